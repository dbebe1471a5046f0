//! Counts to a model of 4,000 tokens.

use benches::{prepared, train};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn training(c: &mut Criterion) {
    let (data, entries) = prepared("prose");
    let mut group = c.benchmark_group("train/prose");
    group.throughput(Throughput::Bytes(data.counts.extent())).sample_size(10);
    for entry in &entries {
        // The answer: the same vocabulary each time.
        let (one, other) = (train(&data, entry), train(&data, entry));
        assert!(one.model().vocab() == other.model().vocab());
        assert!(one.model().vocab().len() <= benches::VOCAB_SIZE);
        group.bench_function(entry.contestant.name(), |b| b.iter(|| train(&data, entry)));
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = training
}
criterion_main!(benches);
