use std::path::Path;

use harness::manifest::broken_seal;
use harness::report::{Bands, Report};

use super::read;
use crate::Check;

/// Checks the seal of a report and the hashes of its manifest, and holds it against a record if
/// one is given; whether all is well.
pub(crate) fn run(options: &Check) -> Result<bool, String> {
    for (name, band) in [("speed", options.speed_band), ("memory", options.memory_band)] {
        if !(0.0..1.0).contains(&band) {
            return Err(format!("the {name} band is {band}, but must be from 0 to below 1"));
        }
    }
    let (json, report) = load(&options.report)?;
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
    let mut holds = mismatches.is_empty();
    if let Some(path) = &options.against {
        let (json, record) = load(path)?;
        if let Some(mismatch) = broken_seal(&json) {
            println!("record: {mismatch}");
            holds = false;
        }
        let bands = Bands { speed: options.speed_band, memory: options.memory_band };
        let findings = report.against(&record, bands);
        for note in &findings.notes {
            println!("note: {note}");
        }
        for regression in &findings.regressions {
            println!("REGRESSION {regression}");
        }
        println!(
            "{} values compared with the record of {}: {} regressions",
            findings.compared,
            record.manifest.created,
            findings.regressions.len()
        );
        holds &= findings.passed();
    }
    Ok(holds)
}

/// The text of a report and what it says.
pub(crate) fn load(path: &Path) -> Result<(String, Report), String> {
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let json = String::from_utf8(read(path)?).map_err(|error| fail(&error))?;
    let report = Report::from_json(&json).map_err(|error| fail(&error))?;
    Ok((json, report))
}
