//! The results that criterion left behind.

use std::fs;
use std::path::{Path, PathBuf};

use harness::report::CriterionResult;
use serde_json::Value;

/// Every `new/estimates.json` under `folder`, sorted by name. A folder that is not there has none;
/// what does not have criterion's form is left out.
pub(crate) fn results(folder: &Path) -> Vec<CriterionResult> {
    let mut results: Vec<CriterionResult> = Vec::new();
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                if entry.file_name() == "new" {
                    results.extend(result(&path));
                } else {
                    folders.push(path);
                }
            }
        }
    }
    results.sort_by(|a, b| a.name.cmp(&b.name));
    results
}

fn result(folder: &Path) -> Option<CriterionResult> {
    let parse = |name: &str| -> Option<Value> {
        serde_json::from_slice(&fs::read(folder.join(name)).ok()?).ok()
    };
    let (estimates, benchmark) = (parse("estimates.json")?, parse("benchmark.json")?);
    let estimate = ["median", "mean"].iter().find_map(|&name| estimates.get(name))?;
    let interval = estimate.get("confidence_interval")?;
    Some(CriterionResult {
        name: benchmark.get("full_id")?.as_str()?.to_owned(),
        nanoseconds: estimate.get("point_estimate")?.as_f64()?,
        interval: [interval.get("lower_bound")?.as_f64()?, interval.get("upper_bound")?.as_f64()?],
        bytes: benchmark.pointer("/throughput/Bytes").and_then(Value::as_u64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criterion_form_is_read_and_anything_else_left_out() {
        let root = std::env::temp_dir().join(format!("harness-criterion-{}", std::process::id()));
        let good = root.join("encode/bpe/new");
        let bad = root.join("encode/other/new");
        fs::create_dir_all(&good).unwrap();
        fs::create_dir_all(&bad).unwrap();
        fs::write(bad.join("estimates.json"), "{").unwrap();
        fs::write(
            good.join("estimates.json"),
            r#"{"median":{"point_estimate":1500.0,"confidence_interval":{"lower_bound":1400.0,"upper_bound":1600.0}}}"#,
        )
        .unwrap();
        fs::write(
            good.join("benchmark.json"),
            r#"{"full_id":"encode/bpe","throughput":{"Bytes":3000}}"#,
        )
        .unwrap();
        let results = results(&root);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(results.len(), 1);
        assert_eq!(results[0].name, "encode/bpe");
        assert_eq!((results[0].nanoseconds, results[0].bytes), (1500.0, Some(3000)));
        assert!(super::results(&root).is_empty());
    }
}
