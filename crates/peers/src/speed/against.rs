//! A report held against a recorded one: what became worse.

use harness::report::{Bands, Findings};

use super::contest::is_ours;
use super::report::{COLUMNS, Column, Report, Speed};

/// Where a slope stops to be linear, and where it begins to be quadratic.
const LINEAR: f64 = 2.5;
const QUADRATIC: f64 = 3.0;

/// Holds `new` against `old`.
///
/// - Contestants that had our ids must have them, or be named: another version may differ for its
///   own reasons, a reference may not.
/// - Speed: in each column the ratios of ours to every contestant that both reports timed in the
///   same version; their middle may fall by `bands.speed`. So machines compare as far as
///   contestants feel them alike.
/// - Hard texts that were about linear must not become about quadratic.
/// - Training: the processor time as a ratio to those of the others in the same way, and the peak
///   of memory within `bands.memory`; what was identical must be.
///
/// What the record has and the new report has not is noted.
#[must_use]
pub fn against(new: &Report, old: &Report, bands: Bands) -> Findings {
    let mut findings = Findings::default();
    for (name, value) in &old.manifest.options {
        match new.manifest.options.get(name) {
            Some(other) if other == value => {}
            other => findings.notes.push(format!("option {name} is {other:?}, was {value:?}")),
        }
    }
    for file in &old.manifest.files {
        match new.manifest.files.iter().find(|other| other.path == file.path) {
            Some(other) if other.sha256 == file.sha256 => {}
            Some(_) => findings.notes.push(format!("file {} has changed", file.path)),
            None => findings.notes.push(format!("file {} was not read", file.path)),
        }
    }
    gates(new, old, &mut findings);
    speed(new, old, bands, &mut findings);
    worst(new, old, &mut findings);
    training(new, old, bands, &mut findings);
    findings
}

fn gates(new: &Report, old: &Report, findings: &mut Findings) {
    for before in old.gates.iter().filter(|gate| gate.admits()) {
        let at = format!("{}: ids of {}", before.model, before.contestant);
        let same = |gate: &&super::report::Gate| {
            (&gate.model, &gate.contestant) == (&before.model, &before.contestant)
        };
        match new.gates.iter().find(same) {
            None => findings.notes.push(format!("{at} were not compared")),
            Some(now) => {
                findings.compared += 1;
                if let Some(why) = &now.skipped {
                    findings.notes.push(format!("{at} were not compared: {why}"));
                } else if now.differing > 0
                    && (now.reference || same_version(new, old, &now.contestant))
                {
                    findings.regressions.push(format!(
                        "{at} were ours, and differ now on {} texts; the smallest is {:?}",
                        now.differing,
                        now.smallest.as_deref().unwrap_or_default()
                    ));
                } else if now.differing > 0 {
                    findings.notes.push(format!("{at} differ now, in another version"));
                }
            }
        }
    }
}

fn same_version(new: &Report, old: &Report, contestant: &str) -> bool {
    new.manifest.versions.get(contestant) == old.manifest.versions.get(contestant)
}

fn speed(new: &Report, old: &Report, bands: Bands, findings: &mut Findings) {
    for before in old.speeds.iter().filter(|row| row.contestant == "ours") {
        for (column, of) in COLUMNS {
            let at = format!("{}, {}, {column}", before.model, before.corpus);
            let (now, then) = (ratios(new, before, of), ratios(old, before, of));
            let changes: Vec<f64> = then
                .iter()
                .filter(|(name, _)| same_version(new, old, name))
                .filter_map(|(name, then)| {
                    let (_, now) = now.iter().find(|(other, _)| other == name)?;
                    Some(now / then)
                })
                .collect();
            if let Some(change) = harness::stats::median(&changes) {
                findings.compared += 1;
                let text = format!(
                    "{at}: {:.0} % of the recorded speed beside {} others",
                    change * 100.0,
                    changes.len()
                );
                if change < 1.0 - bands.speed {
                    findings.regressions.push(text);
                } else if change > 1.0 / (1.0 - bands.speed) {
                    findings.notes.push(text);
                }
            } else if !then.is_empty() {
                findings.notes.push(format!("{at}: nobody to compare with"));
            }
        }
    }
}

/// Ours over every other contestant in one column of one table.
fn ratios<'r>(report: &'r Report, like: &Speed, of: Column) -> Vec<(&'r str, f64)> {
    let in_table = |row: &&Speed| row.model == like.model && row.corpus == like.corpus;
    let rows = || report.speeds.iter().filter(in_table);
    let Some(ours) = rows().find(|row| row.contestant == "ours") else { return Vec::new() };
    let others = rows().filter(|row| !is_ours(&row.contestant));
    let ratio = |row: &'r Speed| Some((row.contestant.as_str(), of(ours).over(of(row))?.median));
    others.filter_map(ratio).collect()
}

fn worst(new: &Report, old: &Report, findings: &mut Findings) {
    for before in old.worst.iter().filter(|row| row.contestant == "ours") {
        let at = format!("{}, {}, {} bytes", before.model, before.text, before.bytes);
        let same = |row: &&super::report::Worst| {
            row.contestant == "ours"
                && (&row.model, &row.text, row.bytes) == (&before.model, &before.text, before.bytes)
        };
        let slope = |row: &super::report::Worst| row.doubling.rounds().map(|rounds| rounds.median);
        let (Some(then), Some(now)) = (slope(before), new.worst.iter().find(same)) else {
            continue;
        };
        findings.compared += 1;
        match slope(now) {
            None => findings.regressions.push(format!("{at}: fails now")),
            Some(now) if then < LINEAR && now >= QUADRATIC => findings
                .regressions
                .push(format!("{at}: twice the text takes {now:.2} times as long, was {then:.2}")),
            Some(_) => {}
        }
    }
}

fn training(new: &Report, old: &Report, bands: Bands, findings: &mut Findings) {
    let rows = |report: &'_ Report, algorithm: &str| -> Vec<super::report::Training> {
        report.training.iter().filter(|row| row.algorithm == algorithm).cloned().collect()
    };
    for before in old.training.iter().filter(|row| row.trainer == "ours") {
        let at = format!("training {}", before.algorithm);
        let (now, then) = (rows(new, &before.algorithm), rows(old, &before.algorithm));
        let Some(ours) = now.iter().find(|row| row.trainer == "ours") else {
            findings.notes.push(format!("{at}: missing"));
            continue;
        };
        findings.compared += 1;
        let median = |series: &super::report::Series| series.rounds().map(|r| r.median);
        if let (Some(now), Some(then)) = (median(&ours.peak), median(&before.peak))
            && now > then * (1.0 + bands.memory)
        {
            findings.regressions.push(format!(
                "{at}: peak memory {:.0} MB, was {:.0}",
                now / 1e6,
                then / 1e6
            ));
        }
        let mut changes = Vec::new();
        for other in then.iter().filter(|row| row.trainer != "ours") {
            let Some(again) = now.iter().find(|row| row.trainer == other.trainer) else { continue };
            if !same_version(new, old, &other.trainer) {
                continue;
            }
            let is_identical = |row: &super::report::Training| {
                row.verdict.as_deref().is_some_and(|v| v.starts_with("identical"))
            };
            if is_identical(other) && again.verdict.is_some() && !is_identical(again) {
                findings.regressions.push(format!(
                    "{at}: was identical with {}, is {}",
                    other.trainer,
                    again.verdict.as_deref().unwrap_or_default()
                ));
            }
            if let (Some(now), Some(then)) =
                (ours.cpu.over(&again.cpu), before.cpu.over(&other.cpu))
            {
                changes.push(then.median / now.median);
            }
        }
        if let Some(change) = harness::stats::median(&changes) {
            findings.compared += 1;
            if change < 1.0 - bands.speed {
                findings.regressions.push(format!(
                    "{at}: {:.0} % of the recorded speed beside {} others",
                    change * 100.0,
                    changes.len()
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::{Gate, Series, Training, Worst};
    use super::*;

    fn report() -> Report {
        let speed = |contestant: &str, mb: f64| Speed {
            model: "m".into(),
            corpus: "english".into(),
            contestant: contestant.into(),
            first: Series(vec![Some(mb)]),
            ..Speed::default()
        };
        let training = |trainer: &str, seconds: f64| Training {
            algorithm: "bpe".into(),
            trainer: trainer.into(),
            cpu: Series(vec![Some(seconds)]),
            peak: Series(vec![Some(1e8)]),
            verdict: (trainer != "ours").then(|| "identical, in order".to_owned()),
            ..Training::default()
        };
        Report {
            gates: vec![Gate {
                model: "m".into(),
                contestant: "tiktoken".into(),
                reference: true,
                texts: 5,
                ..Gate::default()
            }],
            speeds: vec![speed("ours", 100.0), speed("a", 50.0), speed("b", 200.0)],
            worst: vec![Worst {
                model: "m".into(),
                text: "spaces".into(),
                contestant: "ours".into(),
                bytes: 8,
                seconds: Series(vec![Some(1.0)]),
                doubling: Series(vec![Some(2.0)]),
                ..Worst::default()
            }],
            training: vec![training("ours", 1.0), training("gigabpe", 2.0)],
            ..Report::default()
        }
    }

    fn check(change: impl FnOnce(&mut Report), expected: &[&str]) {
        let old = report();
        let mut new = report();
        change(&mut new);
        let findings = against(&new, &old, Bands::default());
        let found = &findings.regressions;
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found:?} has no {expected:?}");
        }
        assert!(findings.compared >= 4, "{}", findings.compared);
    }

    #[test]
    fn equal_reports_and_slower_machines_pass() {
        check(|_| {}, &[]);
        check(
            |new| {
                for row in &mut new.speeds {
                    row.first.0[0] = row.first.0[0].map(|mb| mb / 3.0);
                }
            },
            &[],
        );
    }

    #[test]
    fn everything_that_became_worse_is_named() {
        check(
            |new| new.speeds[0].first = Series(vec![Some(60.0)]),
            &["60 % of the recorded speed"],
        );
        check(
            |new| new.gates[0].differing = 2,
            &["ids of tiktoken were ours, and differ now on 2"],
        );
        check(|new| new.worst[0].doubling = Series(vec![Some(4.0)]), &["takes 4.00 times as long"]);
        check(|new| new.worst[0].doubling = Series(Vec::new()), &["fails now"]);
        check(|new| new.training[0].peak = Series(vec![Some(2e8)]), &["200 MB, was 100"]);
        check(|new| new.training[0].cpu = Series(vec![Some(2.0)]), &["training bpe: 50 %"]);
        check(
            |new| new.training[1].verdict = Some("1 of 2 tokens shared".into()),
            &["was identical with gigabpe, is 1 of 2"],
        );
    }
}
