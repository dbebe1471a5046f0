//! A report held against a recorded one: what became worse, and what cannot be compared.

use std::collections::BTreeMap;

use super::{Experiment, Group, Measures, Parity, Report, Row, WorstCase};
use crate::metrics::Ratio;
use crate::morphology::{Agreement, Morphology};
use crate::stats::Estimate;

/// How far what is timed may fall behind the record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bands {
    /// The share of speed that may be lost: 0.3 accepts 70 % of the recorded speed. Training may
    /// take longer in the same measure.
    pub speed: f64,
    /// How much more memory training may take at its peak: 0.25 accepts 125 %.
    pub memory: f64,
}

impl Default for Bands {
    /// 30 % of speed, 25 % of memory.
    fn default() -> Self {
        Self { speed: 0.3, memory: 0.25 }
    }
}

/// What a comparison with a record found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What became worse or different and must not: a sentence each.
    pub regressions: Vec<String>,
    /// What could not be compared, and why; what became better.
    pub notes: Vec<String>,
    /// How many values were compared.
    pub compared: u64,
}

impl Findings {
    /// Whether nothing became worse.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.regressions.is_empty()
    }
}

/// Where scores of one kind begin to differ, relative to their size: rounding of another machine's
/// logarithms stays below.
const EQUAL: f64 = 1e-9;

impl Report {
    /// Holds this report against `record`.
    ///
    /// - Experiments are compared where their terms are equal (splitter, normalizer, special
    ///   tokens, byte policy, training set). On equal terms vocabularies and every metric must be
    ///   equal, and no row may be void that was not. Intervals must be equal for equal numbers of
    ///   resamples.
    /// - Checks that held must hold.
    /// - Speed is compared as a ratio within each report: to the byte baseline's speed from pieces
    ///   to ids on the same corpus, which does nothing but look bytes up. So two machines compare,
    ///   up to what differs in their caches; `bands` says how much may be lost.
    /// - Training: the same ratio for its processor time, and the peak of memory as it is.
    /// - A worst case that was about linear (doubling below 2.5) must not become about quadratic (3
    ///   or more, after what the byte baseline takes longer too), and its speed as a ratio to that
    ///   of the byte baseline on the same text must not fall to less than half.
    ///
    /// What the record has and this report has not is a regression if both were made with the same
    /// options, else a note.
    #[must_use]
    pub fn against(&self, record: &Self, bands: Bands) -> Findings {
        let mut comparison =
            Comparison { new: self, old: record, bands, findings: Findings::default() };
        comparison.options();
        comparison.experiments();
        comparison.speed();
        comparison.training();
        comparison.worst_cases();
        comparison.findings
    }
}

struct Comparison<'r> {
    new: &'r Report,
    old: &'r Report,
    bands: Bands,
    findings: Findings,
}

impl Comparison<'_> {
    fn worse(&mut self, what: String) {
        self.findings.regressions.push(what);
    }

    fn note(&mut self, what: String) {
        self.findings.notes.push(what);
    }

    fn same_options(&self) -> bool {
        self.new.manifest.options == self.old.manifest.options
    }

    /// Something of the record is not here.
    fn missing(&mut self, what: String) {
        if self.same_options() { self.worse(what) } else { self.note(what) }
    }

    fn options(&mut self) {
        let (new, old) = (&self.new.manifest.options, &self.old.manifest.options);
        let mut differ: Vec<String> = Vec::new();
        for (name, value) in old {
            match new.get(name) {
                Some(other) if other == value => {}
                Some(other) => differ.push(format!("option {name} is {other}, was {value}")),
                None => differ.push(format!("option {name} is not given, was {value}")),
            }
        }
        let files = |report: &Report| -> BTreeMap<String, String> {
            let files = report.manifest.files.iter();
            files.map(|file| (file.path.clone(), file.sha256.clone())).collect()
        };
        let (new, old) = (files(self.new), files(self.old));
        for (path, hash) in &old {
            match new.get(path) {
                Some(other) if other == hash => {}
                Some(_) => differ.push(format!("file {path} has changed")),
                None => differ.push(format!("file {path} was not read")),
            }
        }
        differ.into_iter().for_each(|what| self.note(what));
        if !self.new.passed() && self.old.passed() {
            self.worse("checks fail that held".into());
        }
    }

    fn experiments(&mut self) {
        let (new, old) = (self.new, self.old);
        for recorded in &old.experiments {
            let name = &recorded.name;
            let Some(found) = new.experiments.iter().find(|found| found.name == *name) else {
                self.missing(format!("{name}: the comparison is missing"));
                continue;
            };
            let reasons = different_terms(found, recorded);
            if !reasons.is_empty() {
                self.note(format!("{name}: not compared, because {}", reasons.join("; ")));
                continue;
            }
            for old in &recorded.rows {
                let at = format!("{name}: {} at {}", old.algorithm, old.size);
                let new = found
                    .rows
                    .iter()
                    .find(|r| (&r.algorithm, r.size) == (&old.algorithm, old.size));
                match new {
                    Some(new) => self.row(&at, new, old),
                    None => self.missing(format!("{at}: the row is missing")),
                }
            }
        }
    }

    fn row(&mut self, at: &str, new: &Row, old: &Row) {
        self.findings.compared += 1;
        match (&new.void, &old.void) {
            (Some(reason), None) => return self.worse(format!("{at}: is void now: {reason}")),
            (None, Some(_)) => return self.note(format!("{at}: counts now, was void")),
            (Some(_), Some(_)) => return,
            (None, None) => {}
        }
        if new.vocab_sha256 != old.vocab_sha256 {
            // Everything else differs for this reason.
            return self.worse(format!(
                "{at}: another vocabulary was trained ({} tokens, were {}); bytes per token {}, \
                 were {}",
                new.vocab_len,
                old.vocab_len,
                shown(new.overall.value(Ratio::BytesPerToken)),
                shown(old.overall.value(Ratio::BytesPerToken))
            ));
        }
        self.measures(at, &new.overall, &old.overall);
        self.groups(at, &new.corpora, &old.corpora);
        self.groups(at, &new.languages, &old.languages);
        for old in &old.parity {
            match new.parity.iter().find(|new| new.corpus == old.corpus) {
                Some(new) => self.parity(at, new, old),
                None => self.missing(format!("{at}: parity on {} is missing", old.corpus)),
            }
        }
        match (&new.morphology, &old.morphology) {
            (Some(new), Some(old)) => self.morphology(at, new, old),
            (None, Some(_)) => self.missing(format!("{at}: morphs are missing")),
            (_, None) => {}
        }
    }

    fn groups(&mut self, at: &str, new: &[Group], old: &[Group]) {
        for old in old {
            let at = format!("{at} on {}", old.name);
            match new.iter().find(|new| new.name == old.name) {
                Some(new) => self.measures(&at, &new.measures, &old.measures),
                None => self.missing(format!("{at}: missing")),
            }
        }
    }

    fn measures(&mut self, at: &str, new: &Measures, old: &Measures) {
        for (what, new, old) in [
            ("documents", new.documents, old.documents),
            ("bytes", new.bytes, old.bytes),
            ("tokens", new.tokens, old.tokens),
            ("numbers", new.numbers, old.numbers),
        ] {
            self.equal(at, what, Some(new as f64), Some(old as f64));
        }
        for (ratio, old) in &old.ratios {
            self.estimate(at, ratio.title(), new.ratios.get(ratio), Some(old));
        }
        for (what, new, old) in [
            ("Rényi efficiency", new.renyi_efficiency, old.renyi_efficiency),
            ("vocabulary used", new.vocab_use, old.vocab_use),
            ("digit consistency", new.digit_consistency, old.digit_consistency),
            ("digit alignment", new.digit_alignment, old.digit_alignment),
            ("attention cost", new.attention_cost, old.attention_cost),
        ] {
            self.equal(at, what, new, old);
        }
        if new.lengths != old.lengths {
            self.worse(format!(
                "{at}: token lengths are {:?}, were {:?}",
                new.lengths, old.lengths
            ));
        }
    }

    fn parity(&mut self, at: &str, new: &Parity, old: &Parity) {
        let at = format!("{at}, parity on {}", old.corpus);
        for (language, old) in &old.premiums {
            self.estimate(&at, language, new.premiums.get(language), Some(old));
        }
        self.estimate(&at, "Gini coefficient", new.gini.as_ref(), old.gini.as_ref());
    }

    fn morphology(&mut self, at: &str, new: &Morphology, old: &Morphology) {
        let mut agreement = |at: &str, new: &Agreement, old: &Agreement| {
            self.equal(at, "words", Some(new.words as f64), Some(old.words as f64));
            for (what, new, old) in [
                ("precision", &new.precision, &old.precision),
                ("recall", &new.recall, &old.recall),
                ("F1", &new.f1, &old.f1),
                ("exact", &new.exact, &old.exact),
                ("one token", &new.whole, &old.whole),
            ] {
                self.estimate(at, what, new.as_ref(), old.as_ref());
            }
        };
        agreement(&format!("{at}, morphs"), &new.overall, &old.overall);
        for (language, old) in &old.languages {
            if let Some(new) = new.languages.get(language) {
                agreement(&format!("{at}, morphs of {language}"), new, old);
            }
        }
    }

    fn estimate(&mut self, at: &str, what: &str, new: Option<&Estimate>, old: Option<&Estimate>) {
        self.equal(at, what, new.map(|e| e.value), old.map(|e| e.value));
        let resamples = |report: &Report| report.manifest.options.get("bootstrap").cloned();
        let seed = |report: &Report| report.manifest.options.get("seed").cloned();
        let (a, b) = (self.new, self.old);
        let ends = new.and_then(|e| e.interval).zip(old.and_then(|e| e.interval));
        if let (Some((new, old)), true) = (ends, resamples(a) == resamples(b) && seed(a) == seed(b))
        {
            self.equal(at, &format!("{what}, lower end"), Some(new[0]), Some(old[0]));
            self.equal(at, &format!("{what}, upper end"), Some(new[1]), Some(old[1]));
        }
    }

    fn equal(&mut self, at: &str, what: &str, new: Option<f64>, old: Option<f64>) {
        self.findings.compared += 1;
        let same = match (new, old) {
            (Some(new), Some(old)) => (new - old).abs() <= EQUAL * old.abs().max(1.0),
            // A value that the record does not have yet is no change.
            (_, None) => true,
            (None, Some(_)) => false,
        };
        if !same {
            self.worse(format!("{at}: {what} {}, was {}", shown(new), shown(old)));
        }
    }

    /// A ratio to the yardstick of its report; `new` should be at least `old`, within the band.
    fn ratio(&mut self, at: &str, new: f64, old: f64) {
        self.findings.compared += 1;
        let band = self.bands.speed;
        let change = new / old;
        let text =
            format!("{at}: {new:.3} of the yardstick, was {old:.3} ({:.0} %)", change * 100.0);
        if change < 1.0 - band {
            self.worse(text);
        } else if change > 1.0 / (1.0 - band) {
            self.note(format!("{text}: faster"));
        }
    }

    fn speed(&mut self) {
        let (new, old) = (self.new, self.old);
        for recorded in &old.speed {
            let at = format!(
                "speed of {} at {} on {}",
                recorded.algorithm, recorded.size, recorded.corpus
            );
            let found = new.speed.iter().find(|found| {
                (&found.algorithm, found.size, &found.corpus)
                    == (&recorded.algorithm, recorded.size, &recorded.corpus)
            });
            let Some(found) = found else {
                self.missing(format!("{at}: missing"));
                continue;
            };
            let yardsticks = yardstick(new, &found.corpus).zip(yardstick(old, &recorded.corpus));
            let Some((mine, theirs)) = yardsticks else {
                self.note(format!("{at}: not compared, because the byte baseline was not timed"));
                continue;
            };
            // From pieces, the byte baseline is the yardstick itself.
            let ways = [
                ("pieces to ids", Some(found.encode), Some(recorded.encode)),
                ("text to ids", Some(found.pipeline), Some(recorded.pipeline)),
                ("new text to ids", found.first, recorded.first),
            ];
            let skipped = usize::from(recorded.algorithm == "byte");
            for (way, new, old) in ways.into_iter().skip(skipped) {
                if let Some((new, old)) = new.zip(old) {
                    let at = format!("{at}, {way}");
                    self.ratio(&at, new.median / mine, old.median / theirs);
                }
            }
        }
    }

    fn training(&mut self) {
        let (new, old) = (self.new, self.old);
        for recorded in &old.training {
            let at = format!(
                "training of {} at {} on {}",
                recorded.algorithm, recorded.size, recorded.corpus
            );
            let found = new.training.iter().find(|found| {
                (&found.algorithm, found.size, &found.corpus)
                    == (&recorded.algorithm, recorded.size, &recorded.corpus)
            });
            let Some(found) = found else {
                self.missing(format!("{at}: missing"));
                continue;
            };
            if !found.same_model && recorded.same_model {
                self.worse(format!("{at}: processes train different models"));
            }
            let yardsticks = yardstick(new, &found.corpus).zip(yardstick(old, &recorded.corpus));
            let times = found.cpu_seconds.zip(recorded.cpu_seconds);
            if let (Some((mine, theirs)), Some((new, old))) = (yardsticks, times) {
                // The reciprocal of the bytes that the yardstick would do in that time.
                self.ratio(&at, 1.0 / (new.median * mine), 1.0 / (old.median * theirs));
            }
            if let Some((new, old)) = found.peak_bytes.zip(recorded.peak_bytes) {
                self.findings.compared += 1;
                if new as f64 > old as f64 * (1.0 + self.bands.memory) {
                    self.worse(format!("{at}: peak memory {new} bytes, was {old}"));
                }
            }
        }
    }

    fn worst_cases(&mut self) {
        let (new, old) = (self.new, self.old);
        for recorded in &old.worst_cases {
            let at = format!("worst case {}: {}", recorded.input, recorded.algorithm);
            let Some(found) = worst_case(new, &recorded.input, &recorded.algorithm) else {
                self.missing(format!("{at}: missing"));
                continue;
            };
            self.findings.compared += 1;
            let bytes = worst_case(new, &recorded.input, "byte");
            // What slows the baseline on the longer text as well is the machine.
            let machine = bytes.map_or(1.0, |bytes| (bytes.doubling / 2.0).max(1.0));
            if recorded.doubling < 2.5 && found.doubling / machine >= 3.0 {
                self.worse(format!(
                    "{at}: twice the input takes {:.2} times as long, was {:.2}",
                    found.doubling, recorded.doubling
                ));
            }
            let yardsticks = bytes.zip(worst_case(old, &recorded.input, "byte"));
            let Some((mine, theirs)) = yardsticks.filter(|_| recorded.algorithm != "byte") else {
                continue;
            };
            let share = found.mb_per_second / mine.mb_per_second;
            let was = recorded.mb_per_second / theirs.mb_per_second;
            // One text at one size, timed by itself: noisier than the tables of speed.
            if share < was * (1.0 - self.bands.speed.max(0.5)) {
                self.worse(format!("{at}: {share:.4} of the byte baseline, was {was:.4}"));
            }
        }
    }
}

/// A worst case of an algorithm.
fn worst_case<'r>(report: &'r Report, input: &str, algorithm: &str) -> Option<&'r WorstCase> {
    report.worst_cases.iter().find(|case| case.input == input && case.algorithm == algorithm)
}

/// The speed of the byte baseline from pieces to ids on a corpus.
fn yardstick(report: &Report, corpus: &str) -> Option<f64> {
    let mut rows = report.speed.iter();
    let row = rows.find(|row| row.algorithm == "byte" && row.corpus == corpus)?;
    Some(row.encode.median).filter(|&speed| speed > 0.0)
}

fn different_terms(new: &Experiment, old: &Experiment) -> Vec<String> {
    let (new, old) = (&new.terms, &old.terms);
    let specials = |terms: &super::Terms| terms.special_tokens.join(" ");
    let mut reasons = Vec::new();
    for (what, new, old) in [
        ("the normalizer", new.normalizer.clone(), old.normalizer.clone()),
        ("the splitter", new.splitter.clone(), old.splitter.clone()),
        ("the special tokens", specials(new), specials(old)),
        ("the byte policy", new.bytes.name().to_owned(), old.bytes.name().to_owned()),
        ("the training set", new.train_set.clone(), old.train_set.clone()),
    ] {
        if new != old {
            reasons.push(format!("{what} is {new}, was {old}"));
        }
    }
    reasons
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "is missing".to_owned(), |value| format!("{value}"))
}
