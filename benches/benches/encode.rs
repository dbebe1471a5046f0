//! Pieces to ids, one thread, held-out text of three corpora.

use benches::{CORPORA, prepared, train};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tokenizer_core::{Span, TokenId};

fn encode(c: &mut Criterion) {
    for name in CORPORA {
        let (data, entries) = prepared(name);
        let texts: Vec<&str> = data.held_out_texts().collect();
        let pieces: Vec<Vec<Span>> = texts.iter().map(|text| data.splitter.split(text)).collect();
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        let mut group = c.benchmark_group(format!("encode/{name}"));
        group.throughput(Throughput::Bytes(bytes as u64)).sample_size(10);
        for entry in &entries {
            let trained = train(&data, entry);
            let mut session = trained.model().encoder();
            let mut ids: Vec<TokenId> = Vec::new();
            // The answer: every piece as its naive twin encodes it.
            for (text, pieces) in texts.iter().zip(&pieces).take(5) {
                ids.clear();
                session.encode_ids_into(text.as_bytes(), pieces, &mut ids);
                trained.with_naive(|naive| {
                    let tokens = pieces.iter().flat_map(|p| naive(text[p.range()].as_bytes()));
                    assert!(tokens.map(|token| token.id).eq(ids.iter().copied()));
                });
            }
            group.bench_function(entry.contestant.name(), |b| {
                b.iter(|| {
                    let mut count = 0;
                    for (text, pieces) in texts.iter().zip(&pieces) {
                        ids.clear();
                        session.encode_ids_into(text.as_bytes(), pieces, &mut ids);
                        count += ids.len();
                    }
                    count
                });
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_millis(700));
    targets = encode
}
criterion_main!(benches);
