//! Text to pieces, by the splitters that published tokenizers use.

use benches::{CORPORA, corpus};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tokenizer_core::{Span, Split};

const SPLITTERS: [&str; 6] = ["whitespace", "bert", "gpt2", "cl100k", "o200k", "deepseek-v3"];

fn split(c: &mut Criterion) {
    for name in CORPORA {
        let mut text = String::new();
        for document in corpus(name).documents {
            text.push_str(&document.text);
            if text.len() > 500_000 {
                break;
            }
        }
        let mut group = c.benchmark_group(format!("split/{name}"));
        group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(10);
        for spec in SPLITTERS {
            let splitter = pretok::from_spec(spec).unwrap_or_else(|error| panic!("{error}"));
            // The answer: sorted, disjoint pieces; nothing lost but white space, where it is.
            let spans = splitter.split(&text);
            let mut end = 0;
            for span in &spans {
                assert!(text[end..span.start].trim().is_empty() && !span.is_empty(), "{spec}");
                end = span.end;
            }
            let mut spans: Vec<Span> = Vec::with_capacity(spans.len());
            group.bench_function(spec, |b| {
                b.iter(|| {
                    spans.clear();
                    splitter.split_into(&text, &mut spans);
                    spans.len()
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
    targets = split
}
criterion_main!(benches);
