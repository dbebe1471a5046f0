//! Speed, loading and memory of one contestant in one round.

use super::contest::{Contest, LIMIT, memory, read, time};
use super::corpora::Corpus;
use super::models::Model;
use super::report::{Cost, Report, Speed};

/// Passes over a text that was seen go on until they took this long together; the fastest counts.
const ENOUGH: f64 = 0.1;
/// At most so many of them.
const PASSES: usize = 10;
/// Who is slower than this in the first pass, in MB/s, is measured in one round only.
pub const PATIENCE: f64 = 5.0;

/// One fresh process: load, a pass over a text never seen, the same again, documents, batch.
/// Gives the speed of the first pass in MB/s.
///
/// # Errors
///
/// If the contestant cannot load the model, or the first pass fails or takes too long.
pub fn measure(
    contest: &Contest,
    model: &Model,
    corpus: &Corpus,
    name: &str,
    round: usize,
    report: &mut Report,
) -> Result<f64, String> {
    let mut runner = contest.spawn(name)?;
    let before = memory(&mut runner, "now").unwrap_or(0.0);
    let answer = contest.load(&mut runner, name, &model.value)?;
    {
        let cost = cost(report, &model.name, name);
        let mut keep = |series: fn(&mut Cost) -> &mut super::report::Series, value: Option<f64>| {
            if let Some(value) = value {
                series(cost).set(round, value);
            }
        };
        keep(|cost| &mut cost.load, answer["seconds"].as_f64());
        keep(|cost| &mut cost.load_cpu, answer["cpu"].as_f64());
        keep(|cost| &mut cost.loaded, memory(&mut runner, "now").map(|now| now - before));
    }
    read(&mut runner, &corpus.file)?;
    let bytes = corpus.text.len() as f64 / 1e6;
    let (first_wall, first) = time(&mut runner, "whole", LIMIT)?;
    let row = speed(report, &model.name, corpus, name);
    row.first.set(round, bytes / first);
    row.first_wall.set(round, bytes / first_wall);
    // What a contestant does not have stays empty.
    if let Ok((wall, cpu)) = fastest(&mut runner, "whole") {
        row.later.set(round, bytes / cpu);
        row.later_wall.set(round, bytes / wall);
    }
    if let Ok((_, cpu)) = fastest(&mut runner, "documents") {
        row.documents.set(round, bytes / cpu);
    }
    if let Ok((_, cpu)) = fastest(&mut runner, "count") {
        row.count.set(round, bytes / cpu);
    }
    if let Ok((wall, _)) = fastest(&mut runner, "batch") {
        row.batch.set(round, bytes / wall);
    }
    if let Some(peak) = memory(&mut runner, "peak") {
        cost(report, &model.name, name).peak.set(round, peak - before);
    }
    Ok(bytes / first)
}

/// The shortest wall and the shortest processor time of some passes.
fn fastest(runner: &mut crate::runner::Runner, what: &str) -> Result<(f64, f64), String> {
    let (mut wall, mut cpu) = time(runner, what, LIMIT)?;
    let mut spent = wall;
    for pass in 1..PASSES {
        // The second shows whether the first one made something ready.
        let enough = if pass == 1 { ENOUGH * 5.0 } else { ENOUGH };
        if spent > enough {
            break;
        }
        let again = time(runner, what, LIMIT)?;
        spent += again.0;
        wall = wall.min(again.0);
        cpu = cpu.min(again.1);
    }
    Ok((wall, cpu))
}

fn speed<'r>(report: &'r mut Report, model: &str, corpus: &Corpus, name: &str) -> &'r mut Speed {
    let is =
        |row: &Speed| row.model == model && row.corpus == corpus.name && row.contestant == name;
    let at = report.speeds.iter().position(is).unwrap_or_else(|| {
        report.speeds.push(Speed {
            model: model.to_owned(),
            corpus: corpus.name.clone(),
            bytes: corpus.text.len(),
            contestant: name.to_owned(),
            ..Speed::default()
        });
        report.speeds.len() - 1
    });
    &mut report.speeds[at]
}

fn cost<'r>(report: &'r mut Report, model: &str, name: &str) -> &'r mut Cost {
    let is = |row: &Cost| row.model == model && row.contestant == name;
    let at = report.costs.iter().position(is).unwrap_or_else(|| {
        let (model, contestant) = (model.to_owned(), name.to_owned());
        report.costs.push(Cost { model, contestant, ..Cost::default() });
        report.costs.len() - 1
    });
    &mut report.costs[at]
}
