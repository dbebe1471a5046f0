//! Tables of piece counts in Parquet.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

mod common;

use common::{Folder, corpus, run};

#[test]
#[cfg(feature = "parquet")]
fn tables_are_written_merged_and_trained_on() {
    let folder = Folder::new();
    let (first, second) =
        (folder.write("1.txt", corpus()), folder.write("2.txt", "low lower lowest"));
    let write = |text: &str, out: &str| {
        run(["counts", "write", text, "-o", &folder.at(out)]).code(0);
    };
    write(&first, "1.parquet");
    write(&first, "1.tsv");
    write(&second, "2.counts");
    // The table says what the text form says.
    for (table, text) in [("1.parquet", "1.tsv"), ("m.parquet", "m.tsv")] {
        let (table, text) = (folder.at(table), folder.at(text));
        if table.ends_with("m.parquet") {
            for out in [&table, &text] {
                let shards = [folder.at("1.parquet"), folder.at("2.counts")];
                run(["counts", "merge", &shards[0], &shards[1], "-o", out]).code(0);
            }
        }
        let [shown, expected] = [&table, &text].map(|shard| {
            let mut json = run(["counts", "show", shard, "--json"]).code(0).json();
            json["path"] = serde_json::Value::Null;
            json
        });
        assert_eq!(shown, expected);
        let train = |shard: &str, out: &str| {
            let arguments = ["train", "bpe", "--counts", shard, "-o", out, "--vocab-size", "500"];
            run(arguments.iter().chain(&["--ties", "first-occurrence"])).code(0);
            std::fs::read(out).unwrap()
        };
        let out = folder.at("t.json");
        assert!(train(&table, &out) == train(&text, &out));
    }
    let bad = folder.write("bad.parquet", "PAR1 and no more");
    run(["counts", "show", &bad]).code(3).says("piece counts in Parquet");
}

#[test]
#[cfg(not(feature = "parquet"))]
fn without_the_feature_tables_are_named() {
    let folder = Folder::new();
    let (table, text) = (folder.write("t.parquet", "PAR1..."), folder.write("t.txt", corpus()));
    run(["counts", "show", &table]).code(3).says("built without Parquet");
    run(["train", "bpe", "--counts", &table, "--vocab-size", "300"])
        .code(3)
        .says("built without Parquet");
    run(["counts", "write", &text, "-o", &table]).code(3).says("built without Parquet");
    assert_eq!(std::fs::read(&table).unwrap(), b"PAR1...");
}
