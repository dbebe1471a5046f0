//! One enormous piece: what an encoder costs where there is no place to cut.

use benches::{prepared, train};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use harness::speed::HARD_INPUTS;
use tokenizer_core::{Span, TokenId};

/// Short enough for the naive twin to be asked as well, on a part.
const BYTES: usize = 64 * 1024;
const CHECKED: usize = 300;

fn worst_case(c: &mut Criterion) {
    let (data, entries) = prepared("prose");
    let mut group = c.benchmark_group("worst_case");
    group.throughput(Throughput::Bytes(BYTES as u64)).sample_size(10);
    for entry in &entries {
        let trained = train(&data, entry);
        for input in HARD_INPUTS.iter().take(4) {
            let text = input.text(BYTES);
            let piece = [Span::new(0, text.len())];
            let mut session = trained.model().encoder();
            let mut ids: Vec<TokenId> = Vec::new();
            // The answer: on a part that the naive twin can do, the same ids.
            let part = input.text(CHECKED);
            session.encode_ids_into(part.as_bytes(), &[Span::new(0, part.len())], &mut ids);
            let naive = trained.with_naive(|naive| naive(part.as_bytes()));
            assert!(naive.iter().map(|token| token.id).eq(ids.iter().copied()));
            let name = format!("{}/{}", entry.contestant.name(), input.name);
            group.bench_function(name, |b| {
                b.iter(|| {
                    ids.clear();
                    session.encode_ids_into(text.as_bytes(), &piece, &mut ids);
                    ids.len()
                });
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(100))
        .measurement_time(std::time::Duration::from_millis(400));
    targets = worst_case
}
criterion_main!(benches);
