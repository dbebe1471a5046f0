//! The gate: whose ids are ours.

use testkit::texts;

use super::child::cut;
use super::contest::Contest;
use super::corpora::Corpus;
use super::models::Model;
use super::report::{Gate, Report};
use crate::contestant::{Contestant, Encoded, Outcome, Request};
use crate::runner::Runner;
use crate::shrink;

/// Documents of each corpus on which ids must be equal.
const DOCUMENTS: usize = 250;
/// What control tokens are spelled as. Whether such text is the token is a choice of the caller that
/// not every contestant offers: texts with it are left out.
const CONTROLS: [&str; 10] =
    ["<s>", "</s>", "<unk>", "<pad>", "<mask>", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<|endof"];
/// How many questions the search for the smallest difference may ask.
const QUESTIONS: usize = 400;

/// Compares ids of every contestant with ours; gives the names of those who may be timed, ours
/// first.
///
/// # Errors
///
/// If ours cannot load the model.
pub fn gate(
    model: &Model,
    corpora: &[Corpus],
    contest: &Contest,
    report: &mut Report,
) -> Result<Vec<&'static str>, String> {
    let mut all: Vec<&str> = texts::AWKWARD.iter().map(|(_, text)| *text).collect();
    for corpus in corpora {
        let documents = cut(&corpus.text);
        let step = (documents.len() / DOCUMENTS).max(1);
        all.extend(documents.into_iter().step_by(step));
    }
    all.retain(|text| !CONTROLS.iter().any(|control| text.contains(control)));
    let mut ours = contest
        .start("ours", &model.value)
        .map_err(|why| format!("{}: ours does not load it: {why}", model.name))?;
    report.manifest.versions.insert("ours".to_owned(), "this project".to_owned());
    let requests: Vec<Request<'_>> = all.iter().map(|text| request(text)).collect();
    let expected = ours.encode_all(&requests);
    let mut admitted = vec!["ours"];
    for &name in &model.contestants {
        let mut row = Gate {
            model: model.name.clone(),
            contestant: name.to_owned(),
            reference: model.references.contains(&name),
            texts: all.len(),
            ..Gate::default()
        };
        match contest.start(name, &model.value) {
            Err(why) => row.skipped = Some(why),
            Ok(mut theirs) => {
                report.manifest.versions.insert(name.to_owned(), theirs.name().to_owned());
                compare(&mut row, &all, &expected, &mut ours, &mut theirs);
                if row.admits() {
                    admitted.push(name);
                }
            }
        }
        report.gates.push(row);
    }
    Ok(admitted)
}

/// Fills in what is found; for a difference the smallest text that shows it.
fn compare(
    row: &mut Gate,
    texts: &[&str],
    expected: &[Outcome<Encoded>],
    ours: &mut Runner,
    theirs: &mut Runner,
) {
    let requests: Vec<Request<'_>> = texts.iter().map(|text| request(text)).collect();
    let found = theirs.encode_all(&requests);
    if let Some(Outcome::Refused(why)) = found.first()
        && found.iter().all(|outcome| ids(outcome).is_none())
    {
        row.skipped = Some(why.clone());
        return;
    }
    let wrong: Vec<usize> =
        (0..texts.len()).filter(|&i| ids(&found[i]) != ids(&expected[i])).collect();
    row.differing = wrong.len();
    let Some(&shortest) = wrong.iter().min_by_key(|&&i| texts[i].len()) else { return };
    let mut differs =
        |text: &str| ids(&theirs.encode(&request(text))) != ids(&ours.encode(&request(text)));
    let text = shrink::text(texts[shortest], QUESTIONS, &mut differs);
    let answer = |runner: &mut Runner| match runner.encode(&request(&text)) {
        Outcome::Value(encoded) => format!("{:?}", encoded.ids),
        Outcome::Refused(why) | Outcome::Crashed(why) => why,
    };
    row.ours = Some(answer(ours));
    row.theirs = Some(answer(theirs));
    row.smallest = Some(text);
}

fn ids(outcome: &Outcome<Encoded>) -> Option<&[u32]> {
    match outcome {
        Outcome::Value(encoded) => Some(&encoded.ids),
        _ => None,
    }
}

/// The question for the ids of ordinary text.
fn request(first: &str) -> Request<'_> {
    Request { first, second: None, special: false, template: false }
}
