use std::path::Path;

use harness::manifest::broken_seal;
use harness::report::Report;

use super::read;
use crate::Check;

/// Checks the seal of a report and the hashes of its manifest; whether all hold.
pub(crate) fn run(options: &Check) -> Result<bool, String> {
    let path = &options.report;
    let json =
        String::from_utf8(read(path)?).map_err(|error| format!("{}: {error}", path.display()))?;
    let report =
        Report::from_json(&json).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut mismatches: Vec<_> = broken_seal(&json).into_iter().collect();
    // What is no fixture (a gold file) is named by the path that it was given as.
    let find = |file: &str| read(&options.fixtures.join(file)).or_else(|_| read(Path::new(file)));
    mismatches.extend(report.manifest.check(find));
    for mismatch in &mismatches {
        println!("{mismatch}");
    }
    if mismatches.is_empty() {
        println!(
            "the report, its options and its {} files are what the manifest says",
            report.manifest.files.len()
        );
    }
    Ok(mismatches.is_empty())
}
