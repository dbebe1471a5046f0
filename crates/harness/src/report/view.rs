//! Tables, apart from how they are drawn: HTML, Markdown and the terminal render the same ones.

use crate::metrics::{Better, Ratio, Unit};
use crate::morphology::{Agreement, Morphology};
use crate::report::{Experiment, Group, Measures, Parity, Report, Rounds, Row, Standing};
use crate::stats::Estimate;

/// A table.
pub(super) struct Table {
    pub(super) id: &'static str,
    pub(super) caption: String,
    pub(super) head: Vec<Head>,
    pub(super) rows: Vec<Line>,
    /// What a reader must know to read it, in lines.
    pub(super) note: Option<String>,
}

/// The head of a column.
pub(super) struct Head {
    pub(super) title: String,
    /// The algorithm that the column belongs to.
    pub(super) algorithm: Option<String>,
    pub(super) numeric: bool,
}

/// A row.
#[derive(Default)]
pub(super) struct Line {
    pub(super) cells: Vec<Cell>,
    pub(super) muted: bool,
    /// Shown instead of everything behind the first cell.
    pub(super) void: Option<String>,
    /// The algorithm that the row belongs to.
    pub(super) algorithm: Option<String>,
}

/// A cell.
#[derive(Clone, Default)]
pub(super) struct Cell {
    pub(super) text: String,
    /// In small letters behind or under it: an interval, a range.
    pub(super) detail: Option<String>,
    /// The best of its column or row.
    pub(super) best: bool,
    /// 0 to 1: how far it is to be shaded.
    pub(super) shade: Option<f64>,
}

impl Cell {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    fn none() -> Self {
        Self::new("–")
    }

    fn detail(mut self, detail: Option<String>) -> Self {
        self.detail = detail;
        self
    }
}

impl Head {
    pub(super) fn text(title: impl Into<String>) -> Self {
        Self { title: title.into(), algorithm: None, numeric: false }
    }

    pub(super) fn number(title: impl Into<String>) -> Self {
        Self { title: title.into(), algorithm: None, numeric: true }
    }

    fn algorithm(name: &str) -> Self {
        Self { title: display_name(name), algorithm: Some(name.to_owned()), numeric: true }
    }
}

/// The name of an algorithm as people write it.
pub(super) fn display_name(algorithm: &str) -> String {
    match algorithm {
        "bpe" => "BPE".into(),
        "wordpiece" => "WordPiece".into(),
        "wordpiece-freq" => "WordPiece (freq.)".into(),
        "unigram" => "Unigram".into(),
        "char" => "characters".into(),
        "byte" => "bytes".into(),
        "word" => "words".into(),
        other => other.to_owned(),
    }
}

/// The colour and marker of an algorithm. Algorithms that the project does not know share the last.
pub(super) fn slot(algorithm: &str) -> usize {
    const KNOWN: [&str; 7] =
        ["bpe", "wordpiece", "unigram", "char", "word", "byte", "wordpiece-freq"];
    KNOWN.iter().position(|&known| known == algorithm).unwrap_or(KNOWN.len())
}

/// `n` with a comma before every third digit from the right.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the unit that suits them (powers of ten).
pub(super) fn bytes(n: u64) -> String {
    match n {
        0..1_000 => format!("{n} B"),
        1_000..1_000_000 => format!("{} kB", significant(n as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{} MB", significant(n as f64 / 1e6)),
        _ => format!("{} GB", significant(n as f64 / 1e9)),
    }
}

/// Seconds in the unit that suits them.
pub(super) fn seconds(s: f64) -> String {
    if s < 1e-3 {
        format!("{} µs", significant(s * 1e6))
    } else if s < 1.0 {
        format!("{} ms", significant(s * 1e3))
    } else {
        format!("{} s", significant(s))
    }
}

/// Three digits that mean something.
pub(super) fn significant(x: f64) -> String {
    let size = x.abs();
    let decimals = if size >= 99.95 {
        0
    } else if size >= 9.995 {
        1
    } else {
        2
    };
    if size >= 1e4 { grouped(x.round() as u64) } else { format!("{x:.decimals$}") }
}

/// A size of a vocabulary: `8k`, `32k`, or the number.
pub(super) fn short_size(size: usize) -> String {
    if size >= 1000 && size.is_multiple_of(1000) {
        format!("{}k", size / 1000)
    } else {
        size.to_string()
    }
}

fn value(x: f64, unit: Unit) -> String {
    match unit {
        Unit::Plain => format!("{x:.3}"),
        Unit::Share if x == 0.0 => "0 %".into(),
        Unit::Share if x < 0.01 => format!("{:.2} %", x * 100.0),
        Unit::Share => format!("{:.1} %", x * 100.0),
    }
}

fn interval(estimate: &Estimate, unit: Unit) -> Option<String> {
    estimate.interval.map(|[low, high]| match unit {
        Unit::Plain => format!("{low:.3}–{high:.3}"),
        Unit::Share => format!("{:.1}–{:.1}", low * 100.0, high * 100.0),
    })
}

fn estimate_cell(estimate: Option<&Estimate>, unit: Unit) -> Cell {
    match estimate {
        None => Cell::none(),
        Some(estimate) => Cell::new(value(estimate.value, unit)).detail(interval(estimate, unit)),
    }
}

fn option_cell(x: Option<f64>, unit: Unit) -> Cell {
    x.map_or_else(Cell::none, |x| Cell::new(value(x, unit)))
}

fn rounds_cell(rounds: &Rounds, print: impl Fn(f64) -> String) -> Cell {
    let detail =
        (rounds.rounds > 1).then(|| format!("{}–{}", print(rounds.min), print(rounds.max)));
    Cell::new(print(rounds.median)).detail(detail)
}

impl Experiment {
    /// The sizes, ascending.
    #[must_use]
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.rows.iter().map(|row| row.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// The size at which most contenders have a row that counts; the largest of several.
    #[must_use]
    pub fn headline_size(&self) -> usize {
        let counting = |size: usize| {
            let rows = self.at(size).filter(|row| row.standing == Standing::Contender);
            rows.filter(|row| row.void.is_none()).count()
        };
        self.sizes().into_iter().max_by_key(|&size| counting(size)).unwrap_or(0)
    }

    /// The rows of a size.
    pub(super) fn at(&self, size: usize) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.size == size)
    }

    /// The algorithms, in order.
    pub(super) fn algorithms(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !names.contains(&row.algorithm.as_str()) {
                names.push(&row.algorithm);
            }
        }
        names
    }
}

/// The headline: one row for each algorithm at one size.
pub(super) fn headline(report: &Report, experiment: &Experiment, size: usize) -> Table {
    let ratios =
        [Ratio::BytesPerToken, Ratio::BitsPerByte, Ratio::TokensPerWord, Ratio::SingleTokenWords];
    let rows: Vec<&Row> = experiment.at(size).collect();
    let speed = |row: &Row| {
        let measured = report.speed.iter().find(|speed| {
            speed.corpus == experiment.name
                && speed.algorithm == row.algorithm
                && speed.size == row.size
        });
        measured.map(super::Speed::on_new_text)
    };
    let training = |row: &Row| {
        report.training.iter().find(|training| {
            training.corpus == experiment.name
                && training.algorithm == row.algorithm
                && training.size == row.size
        })
    };
    let has_parity = rows.iter().any(|row| !row.parity.is_empty());
    let has_speed = rows.iter().any(|row| speed(row).is_some());
    let has_memory = rows.iter().any(|row| training(row).is_some_and(|t| t.peak_bytes.is_some()));
    let mut head = vec![Head::text("algorithm")];
    head.extend(ratios.iter().map(|ratio| {
        Head::number(match ratio {
            Ratio::TokensPerWord => "tokens per word",
            Ratio::BitsPerByte => "bits per byte",
            other => other.title(),
        })
    }));
    head.extend(["Rényi efficiency", "vocabulary used"].map(Head::number));
    if has_parity {
        head.push(Head::number("Gini over languages"));
    }
    head.push(Head::number("attention cost"));
    if has_speed {
        head.push(Head::number("encode, MB/s"));
    }
    head.push(Head::number("train"));
    if has_memory {
        head.push(Head::number("peak memory"));
    }
    let contenders = |row: &&&Row| row.void.is_none() && row.standing == Standing::Contender;
    let best = |ratio: Ratio| {
        let values = rows.iter().filter(contenders).filter_map(|row| row.overall.value(ratio));
        match ratio.better() {
            Better::Higher => values.max_by(f64::total_cmp),
            Better::Lower => values.min_by(f64::total_cmp),
            Better::Neither => None,
        }
    };
    let lines = rows.iter().map(|row| {
        let measures = &row.overall;
        let smaller = row.void.is_none() && row.vocab_len != row.size;
        let len = smaller.then(|| format!("{} tokens", grouped(row.vocab_len as u64)));
        let mut cells = vec![Cell::new(display_name(&row.algorithm)).detail(len)];
        cells.extend(ratios.iter().map(|&ratio| {
            let mut cell = estimate_cell(measures.ratios.get(&ratio), ratio.unit());
            cell.best = row.standing == Standing::Contender
                && measures.value(ratio).is_some()
                && measures.value(ratio) == best(ratio);
            cell
        }));
        cells.push(option_cell(measures.renyi_efficiency, Unit::Plain));
        cells.push(option_cell(measures.vocab_use, Unit::Share));
        if has_parity {
            let gini = row.parity.first().and_then(|parity| parity.gini.as_ref());
            cells.push(estimate_cell(gini, Unit::Plain));
        }
        cells.push(option_cell(measures.attention_cost, Unit::Plain));
        if has_speed {
            cells.push(
                speed(row).map_or_else(Cell::none, |rounds| rounds_cell(&rounds, significant)),
            );
        }
        cells.push(match training(row) {
            Some(training) => {
                rounds_cell(training.cpu_seconds.as_ref().unwrap_or(&training.seconds), seconds)
            }
            None => Cell::new(seconds(row.train_seconds)),
        });
        if has_memory {
            let peak = training(row).and_then(|training| training.peak_bytes);
            cells.push(peak.map_or_else(Cell::none, |peak| Cell::new(bytes(peak))));
        }
        Line {
            cells,
            muted: row.standing == Standing::Baseline,
            void: row.void.clone(),
            algorithm: Some(row.algorithm.clone()),
        }
    });
    let notes: Vec<String> = rows
        .iter()
        .flat_map(|row| {
            row.notes.iter().map(|note| format!("\n{}: {note}.", display_name(&row.algorithm)))
        })
        .collect();
    Table {
        id: "headline",
        caption: format!(
            "Held-out text of {}, vocabulary of {} tokens",
            experiment.name,
            grouped(size as u64)
        ),
        head,
        rows: lines.collect(),
        note: Some(
            "Small figures are 95 % bootstrap intervals over documents, or the range of timed \
             rounds. Bold is the best contender of a column. Baselines are grey: they show the \
             extremes and do not compete. Attention cost is relative to the byte baseline."
                .to_owned()
                + &notes.concat(),
        ),
    }
}

/// Paired differences of the contenders at one size.
pub(super) fn differences(experiment: &Experiment, size: usize) -> Table {
    let rows = experiment.differences.iter().filter(|d| d.size == size).map(|d| {
        let unit = d.ratio.unit();
        let told_apart = d.difference.excludes_zero();
        let signed = match unit {
            Unit::Plain => format!("{:+.3}", d.difference.value),
            Unit::Share => format!("{:+.1} pp", d.difference.value * 100.0),
        };
        let range = d.difference.interval.map(|[low, high]| match unit {
            Unit::Plain => format!("{low:+.3} to {high:+.3}"),
            Unit::Share => format!("{:+.1} to {:+.1}", low * 100.0, high * 100.0),
        });
        Line {
            cells: vec![
                Cell::new(d.ratio.title()),
                Cell::new(format!("{} − {}", display_name(&d.a), display_name(&d.b))),
                Cell::new(signed),
                range.map_or_else(Cell::none, Cell::new),
                Cell::new(if d.difference.interval.is_none() {
                    "too few documents"
                } else if told_apart {
                    "told apart"
                } else {
                    "not told apart"
                }),
            ],
            muted: !told_apart,
            ..Line::default()
        }
    });
    Table {
        id: "differences",
        caption: format!("Paired differences at {} tokens", grouped(size as u64)),
        head: vec![
            Head::text("metric"),
            Head::text("pair"),
            Head::number("difference"),
            Head::number("95 % interval"),
            Head::text("verdict"),
        ],
        rows: rows.collect(),
        note: Some(
            "Both contestants are resampled with the same documents, so that what documents have \
             in common cancels out. Each interval stands alone: of many at 95 %, about one in twenty \
             would exclude zero by chance if there were no difference."
                .into(),
        ),
    }
}

/// Every metric of one group of documents: metrics down, algorithms across.
pub(super) fn all_metrics(caption: String, columns: &[(&Row, Option<&Measures>)]) -> Table {
    let mut head = vec![Head::text("metric")];
    head.extend(columns.iter().map(|(row, _)| Head::algorithm(&row.algorithm)));
    let mut rows: Vec<Line> = Vec::new();
    let mut push = |title: &str, cells: Vec<Cell>| {
        if cells.iter().any(|cell| cell.text != "–") {
            let mut all = vec![Cell::new(title)];
            all.extend(cells);
            rows.push(Line { cells: all, ..Line::default() });
        }
    };
    let across = |cell: &dyn Fn(&Row, &Measures) -> Cell| -> Vec<Cell> {
        columns
            .iter()
            .map(|(row, measures)| match measures {
                Some(measures) if row.void.is_none() => cell(row, measures),
                _ => Cell::none(),
            })
            .collect()
    };
    push("tokens", across(&|_, m| Cell::new(grouped(m.tokens))));
    for &ratio in Ratio::ALL {
        push(ratio.title(), across(&|_, m| estimate_cell(m.ratios.get(&ratio), ratio.unit())));
    }
    push(
        "Rényi efficiency (α = 2.5)",
        across(&|_, m| option_cell(m.renyi_efficiency, Unit::Plain)),
    );
    push("vocabulary used", across(&|_, m| option_cell(m.vocab_use, Unit::Share)));
    for (i, name) in ["5 %", "median", "95 %", "longest"].into_iter().enumerate() {
        push(
            &format!("token length, {name} (bytes)"),
            across(&|_, m| m.lengths.map_or_else(Cell::none, |l| Cell::new(l[i].to_string()))),
        );
    }
    push(
        "digit grouping: consistency",
        across(&|_, m| option_cell(m.digit_consistency, Unit::Share)),
    );
    push(
        "digit grouping: right-aligned",
        across(&|_, m| option_cell(m.digit_alignment, Unit::Share)),
    );
    push(
        "attention cost (Σ L², relative)",
        across(&|_, m| option_cell(m.attention_cost, Unit::Plain)),
    );
    push("embedding parameters", across(&|row, _| Cell::new(grouped(row.embedding_parameters))));
    Table { id: "metrics", caption, head, rows, note: None }
}

/// What concerns code and numbers: metrics down, algorithms across.
pub(super) fn code(experiment: &Experiment, size: usize) -> Table {
    let rows: Vec<&Row> = experiment.at(size).filter(|row| row.void.is_none()).collect();
    let mut head = vec![Head::text("metric")];
    head.extend(rows.iter().map(|row| Head::algorithm(&row.algorithm)));
    let mut lines: Vec<Line> = Vec::new();
    let mut push = |title: &str, cells: Vec<Cell>| {
        if cells.iter().any(|cell| cell.text != "–") {
            let cells = std::iter::once(Cell::new(title)).chain(cells).collect();
            lines.push(Line { cells, ..Line::default() });
        }
    };
    for ratio in [
        Ratio::TokensPerIndentation,
        Ratio::SingleTokenIndentations,
        Ratio::MergedIndentations,
        Ratio::SingleTokenOperators,
        Ratio::OperatorCrossingTokens,
    ] {
        let cell = |row: &&Row| estimate_cell(row.overall.ratios.get(&ratio), ratio.unit());
        let mut cells: Vec<Cell> = rows.iter().map(cell).collect();
        mark_best(&mut cells, &rows, |row| row.overall.value(ratio), ratio);
        push(ratio.title(), cells);
    }
    type Value = fn(&Measures) -> Option<f64>;
    let numbers: [(&str, Value); 2] = [
        ("numbers of a length cut alike", |m| m.digit_consistency),
        ("numbers in threes from the right", |m| m.digit_alignment),
    ];
    for (title, value) in numbers {
        let cells = rows.iter().map(|row| option_cell(value(&row.overall), Unit::Share));
        push(title, cells.collect());
    }
    Table {
        id: "code",
        caption: format!(
            "Held-out text of {}, vocabulary of {} tokens: indentation and operators in code, \
             numbers everywhere",
            experiment.name,
            grouped(size as u64)
        ),
        head,
        rows: lines,
        note: None,
    }
}

/// Token boundaries against those of morphs, if gold segmentations were given.
pub(super) fn morphology(experiment: &Experiment, size: usize) -> Table {
    let rows: Vec<(&Row, &Morphology)> = experiment
        .at(size)
        .filter(|row| row.void.is_none())
        .filter_map(|row| Some((row, row.morphology.as_ref()?)))
        .collect();
    let mut lines = Vec::new();
    let mut push = |group: &str, agreement: &dyn Fn(&Morphology) -> Option<Agreement>| {
        let best = rows
            .iter()
            .filter(|(row, _)| row.standing == Standing::Contender)
            .filter_map(|(_, morphology)| Some(agreement(morphology)?.f1?.value))
            .max_by(f64::total_cmp);
        for (row, morphology) in &rows {
            let Some(found) = agreement(morphology) else { continue };
            let mut f1 = estimate_cell(found.f1.as_ref(), Unit::Share);
            f1.best = row.standing == Standing::Contender
                && found.f1.is_some_and(|f1| Some(f1.value) == best);
            lines.push(Line {
                cells: vec![
                    Cell::new(group),
                    Cell::new(display_name(&row.algorithm)),
                    Cell::new(grouped(found.words)),
                    f1,
                    estimate_cell(found.precision.as_ref(), Unit::Share),
                    estimate_cell(found.recall.as_ref(), Unit::Share),
                    estimate_cell(found.exact.as_ref(), Unit::Share),
                    estimate_cell(found.whole.as_ref(), Unit::Share),
                ],
                muted: row.standing == Standing::Baseline,
                algorithm: Some(row.algorithm.clone()),
                ..Line::default()
            });
        }
    };
    push("all words", &|morphology| Some(morphology.overall.clone()));
    let mut languages: Vec<&String> = rows.iter().flat_map(|r| r.1.languages.keys()).collect();
    languages.sort();
    languages.dedup();
    for language in languages {
        let of = |morphology: &Morphology| morphology.languages.get(language).cloned();
        push(&language_name(language), &of);
    }
    Table {
        id: "morphs",
        caption: format!("Token boundaries against morphs, {} tokens", grouped(size as u64)),
        head: vec![
            Head::text("words"),
            Head::text("algorithm"),
            Head::number("number"),
            Head::number("F1"),
            Head::number("precision"),
            Head::number("recall"),
            Head::number("exact"),
            Head::number("one token"),
        ],
        rows: lines,
        note: Some(
            "Boundaries inside of words, summed over the words of the gold file; intervals are over \
             words. A word that is one token has no boundary: it costs recall, never precision, so a \
             large vocabulary of whole words scores low here and may serve a model well."
                .into(),
        ),
    }
}

/// One value for each group (language, corpus) and algorithm.
pub(super) fn by_group(
    id: &'static str,
    caption: String,
    experiment: &Experiment,
    size: usize,
    groups: impl Fn(&Row) -> &[Group],
    group_title: &str,
    ratio: Ratio,
) -> Table {
    let rows: Vec<&Row> = experiment.at(size).collect();
    let mut names: Vec<&str> = Vec::new();
    for row in &rows {
        for group in groups(row) {
            if !names.contains(&group.name.as_str()) {
                names.push(&group.name);
            }
        }
    }
    let estimate = |row: &Row, name: &str| -> Option<Estimate> {
        if row.void.is_some() {
            return None;
        }
        let group = groups(row).iter().find(|group| group.name == name)?;
        group.measures.ratios.get(&ratio).copied()
    };
    let mut head = vec![Head::text(group_title)];
    head.extend(rows.iter().map(|row| Head::algorithm(&row.algorithm)));
    let lines = names.iter().map(|name| {
        let mut cells = vec![Cell::new(*name)];
        cells.extend(
            rows.iter().map(|row| estimate_cell(estimate(row, name).as_ref(), ratio.unit())),
        );
        mark_best(&mut cells[1..], &rows, |row| estimate(row, name).map(|e| e.value), ratio);
        Line { cells, ..Line::default() }
    });
    Table { id, caption, head, rows: lines.collect(), note: None }
}

/// Marks the best contender of a row; none where all are equal.
fn mark_best(cells: &mut [Cell], rows: &[&Row], value: impl Fn(&Row) -> Option<f64>, ratio: Ratio) {
    let contenders = rows.iter().filter(|row| row.standing == Standing::Contender);
    let values = contenders.filter_map(|row| value(row));
    if values.clone().max_by(f64::total_cmp) == values.clone().min_by(f64::total_cmp) {
        return;
    }
    let best = match ratio.better() {
        Better::Higher => values.max_by(f64::total_cmp),
        Better::Lower => values.min_by(f64::total_cmp),
        Better::Neither => None,
    };
    for (cell, row) in cells.iter_mut().zip(rows) {
        let mine = value(row);
        cell.best = row.standing == Standing::Contender && mine.is_some() && mine == best;
    }
}

/// The premium of every language, for the `nth` parallel corpus.
pub(super) fn premiums(experiment: &Experiment, size: usize, nth: usize) -> Option<Table> {
    let rows: Vec<(&Row, &Parity)> = experiment
        .at(size)
        .filter(|row| row.void.is_none())
        .filter_map(|row| Some((row, row.parity.get(nth)?)))
        .collect();
    let parity = rows.first()?.1;
    let mut head = vec![Head::text("language")];
    head.extend(rows.iter().map(|(row, _)| Head::algorithm(&row.algorithm)));
    let largest = rows
        .iter()
        .filter(|(row, _)| row.standing == Standing::Contender)
        .flat_map(|(_, parity)| parity.premiums.values().map(|e| e.value))
        .fold(1.0, f64::max);
    let mut lines: Vec<Line> = parity
        .premiums
        .keys()
        .map(|language| {
            let mut cells = vec![Cell::new(language_name(language))];
            cells.extend(rows.iter().map(|(_, parity)| {
                let estimate = parity.premiums.get(language);
                let mut cell = estimate_cell(estimate, Unit::Plain);
                cell.shade = estimate
                    .filter(|_| largest > 1.0)
                    .map(|e| ((e.value - 1.0) / (largest - 1.0)).clamp(0.0, 1.0));
                cell
            }));
            Line { cells, ..Line::default() }
        })
        .collect();
    let mut gini = vec![Cell::new("Gini coefficient")];
    gini.extend(rows.iter().map(|(_, parity)| estimate_cell(parity.gini.as_ref(), Unit::Plain)));
    lines.push(Line { cells: gini, ..Line::default() });
    Some(Table {
        id: "premium",
        caption: format!(
            "Tokens relative to {} on the same content ({}, {} aligned held-out documents), {} \
             tokens",
            language_name(&parity.reference),
            parity.corpus,
            parity.documents,
            grouped(size as u64)
        ),
        head,
        rows: lines,
        note: None,
    })
}

/// Encoding speed.
pub(super) fn speed(report: &Report) -> Table {
    let rows = report.speed.iter().map(|speed| Line {
        cells: vec![
            Cell::new(speed.corpus.clone()),
            Cell::new(display_name(&speed.algorithm)),
            Cell::new(grouped(speed.size as u64)),
            Cell::new(bytes(speed.bytes)),
            speed.first.map_or_else(Cell::none, |first| rounds_cell(&first, significant)),
            rounds_cell(&speed.pipeline, significant),
            rounds_cell(&speed.encode, significant),
        ],
        muted: speed.standing == Standing::Baseline,
        algorithm: Some(speed.algorithm.clone()),
        ..Line::default()
    });
    Table {
        id: "speed",
        caption: "Encoding, one thread, MB/s (1 MB = 1,000,000 bytes)".into(),
        head: vec![
            Head::text("corpus"),
            Head::text("algorithm"),
            Head::number("vocabulary"),
            Head::number("text"),
            Head::number("new text to ids"),
            Head::number("seen text to ids"),
            Head::number("seen pieces to ids"),
        ],
        rows: rows.collect(),
        note: Some(
            "Median of interleaved rounds with the range: every algorithm is timed once in each \
             round, so that a disturbance of the machine falls on all of them. “Text to ids” is \
             splitting and encoding, “pieces to ids” the algorithm alone. New text is encoded in a \
             new session; seen text in a session that has encoded it before, which an encoder that \
             remembers pieces turns into looking them up."
                .into(),
        ),
    }
}

/// Training time and memory.
pub(super) fn training(report: &Report) -> Table {
    let rows = report.training.iter().map(|training| Line {
        cells: vec![
            Cell::new(training.corpus.clone()),
            Cell::new(display_name(&training.algorithm)),
            Cell::new(grouped(training.size as u64)),
            rounds_cell(&training.seconds, seconds),
            training.cpu_seconds.map_or_else(Cell::none, |cpu| rounds_cell(&cpu, seconds)),
            training.peak_bytes.map_or_else(Cell::none, |n| Cell::new(bytes(n))),
            training.before_bytes.map_or_else(Cell::none, |n| Cell::new(bytes(n))),
            Cell::new(if training.same_model { "yes" } else { "NO" }),
        ],
        muted: training.standing == Standing::Baseline,
        void: (!training.same_model)
            .then(|| "another process trained a different model from the same counts".into()),
        algorithm: Some(training.algorithm.clone()),
    });
    Table {
        id: "training",
        caption: "Training from counts, each time in a process of its own".into(),
        head: vec![
            Head::text("corpus"),
            Head::text("algorithm"),
            Head::number("vocabulary"),
            Head::number("time"),
            Head::number("processor time"),
            Head::number("peak memory"),
            Head::number("before training"),
            Head::text("same model"),
        ],
        rows: rows.collect(),
        note: Some(
            "Median of the rounds with their range. On a busy machine the time is longer than the \
             processor time; every trainer works on one thread here. Peak memory is the resident \
             set of the whole process while it trains; “before training” is what program and \
             counts take already."
                .into(),
        ),
    }
}

/// Hard inputs.
pub(super) fn worst_cases(report: &Report) -> Table {
    let rows = report.worst_cases.iter().map(|case| Line {
        cells: vec![
            Cell::new(case.input.clone()),
            Cell::new(display_name(&case.algorithm)),
            Cell::new(bytes(case.bytes)),
            Cell::new(significant(case.mb_per_second)),
            Cell {
                text: format!("{:.2}", case.doubling),
                shade: (case.doubling > 2.5).then(|| ((case.doubling - 2.0) / 2.0).min(1.0)),
                ..Cell::default()
            },
        ],
        muted: case.standing == Standing::Baseline,
        algorithm: Some(case.algorithm.clone()),
        ..Line::default()
    });
    Table {
        id: "worst",
        caption: "Inputs made to be hard".into(),
        head: vec![
            Head::text("input"),
            Head::text("algorithm"),
            Head::number("bytes"),
            Head::number("MB/s"),
            Head::number("time(2n) / time(n)"),
        ],
        rows: rows.collect(),
        note: Some(
            "About 2 is linear, 4 quadratic. A doubling above 2.5 is shaded; short times make it \
             uncertain by a tenth or two."
                .into(),
        ),
    }
}

/// Every check, summed over sizes and corpora.
pub(super) fn verification(report: &Report) -> Table {
    let mut lines: Vec<(String, String, u64, u64, Option<String>)> = Vec::new();
    for experiment in &report.experiments {
        for row in &experiment.rows {
            for check in &row.checks {
                let key = (row.algorithm.clone(), check.law.clone());
                let at = lines.iter().position(|l| (&l.0, &l.1) == (&key.0, &key.1));
                let line = match at {
                    Some(at) => &mut lines[at],
                    None => {
                        lines.push((key.0, key.1, 0, 0, None));
                        let last = lines.len() - 1;
                        &mut lines[last]
                    }
                };
                line.2 += 1;
                line.3 += check.cases;
                if let (None, Some(failure)) = (&line.4, &check.failure) {
                    line.4 = Some(format!("{}, {} tokens: {failure}", experiment.name, row.size));
                }
            }
        }
    }
    // The checks of an algorithm together, in the order of the first row.
    let mut order: Vec<String> = Vec::new();
    for line in &lines {
        if !order.contains(&line.0) {
            order.push(line.0.clone());
        }
    }
    lines.sort_by_key(|line| order.iter().position(|name| *name == line.0));
    let rows = lines.into_iter().map(|(algorithm, law, models, cases, failure)| Line {
        cells: vec![
            Cell::new(display_name(&algorithm)),
            Cell::new(law),
            Cell::new(grouped(models)),
            Cell::new(grouped(cases)),
            Cell::new(match &failure {
                None => "holds".to_owned(),
                Some(failure) => format!("FAILS: {failure}"),
            }),
        ],
        muted: false,
        void: None,
        algorithm: failure.is_some().then(|| "failed".to_owned()),
    });
    Table {
        id: "verification",
        caption: "What was checked before anything was measured".into(),
        head: vec![
            Head::text("algorithm"),
            Head::text("law"),
            Head::number("models"),
            Head::number("cases"),
            Head::text("outcome"),
        ],
        rows: rows.collect(),
        note: None,
    }
}

/// Rows that do not count, with the reason.
pub(super) fn voided(report: &Report) -> Table {
    let rows = report.experiments.iter().flat_map(|experiment| {
        experiment.rows.iter().filter_map(|row| {
            let reason = row.void.clone()?;
            Some(Line {
                cells: vec![
                    Cell::new(experiment.name.clone()),
                    Cell::new(display_name(&row.algorithm)),
                    Cell::new(grouped(row.size as u64)),
                    Cell::new(reason),
                ],
                ..Line::default()
            })
        })
    });
    Table {
        id: "voided",
        caption: "Rows that do not count".into(),
        head: vec![
            Head::text("corpus"),
            Head::text("algorithm"),
            Head::number("vocabulary"),
            Head::text("reason"),
        ],
        rows: rows.collect(),
        note: None,
    }
}

/// The corpora of an experiment.
pub(super) fn corpora(experiment: &Experiment) -> Table {
    let rows = experiment.corpora.iter().map(|corpus| Line {
        cells: vec![
            Cell::new(corpus.name.clone()),
            Cell::new(corpus.role.clone()),
            Cell::new(languages(&corpus.languages)),
            Cell::new(bytes(corpus.train.bytes))
                .detail(Some(format!("{} documents", grouped(corpus.train.documents)))),
            Cell::new(bytes(corpus.held_out.bytes))
                .detail(Some(format!("{} documents", grouped(corpus.held_out.documents)))),
        ],
        ..Line::default()
    });
    Table {
        id: "corpora",
        caption: "Corpora".into(),
        head: vec![
            Head::text("corpus"),
            Head::text("kind"),
            Head::text("languages"),
            Head::number("training"),
            Head::number("held out"),
        ],
        rows: rows.collect(),
        note: None,
    }
}

fn languages(tags: &[String]) -> String {
    match tags {
        [] => "–".into(),
        [one] => language_name(one),
        many if many.len() <= 4 => {
            many.iter().map(|tag| language_name(tag)).collect::<Vec<_>>().join(", ")
        }
        many => format!("{} languages", many.len()),
    }
}

/// Criterion's results.
pub(super) fn criterion(report: &Report) -> Table {
    let rows = report.criterion.iter().map(|result| {
        let [low, high] = result.interval;
        let rate = result.bytes.map(|n| n as f64 * 1e3 / result.nanoseconds);
        Line {
            cells: vec![
                Cell::new(result.name.clone()),
                Cell::new(seconds(result.nanoseconds / 1e9)).detail(Some(format!(
                    "{}–{}",
                    seconds(low / 1e9),
                    seconds(high / 1e9)
                ))),
                rate.map_or_else(Cell::none, |rate| Cell::new(significant(rate))),
            ],
            ..Line::default()
        }
    });
    Table {
        id: "criterion",
        caption: "Criterion benches".into(),
        head: vec![Head::text("bench"), Head::number("time"), Head::number("MB/s")],
        rows: rows.collect(),
        note: None,
    }
}

/// The English name of a language tag, where the project's fixtures use it; else the tag.
pub(super) fn language_name(tag: &str) -> String {
    let name = match tag.split(['-', '_']).next().unwrap_or(tag) {
        "en" => "English",
        "vi" => "Vietnamese",
        "zh" if tag.contains("Hant") => "Chinese (traditional)",
        "zh" => "Chinese",
        "ja" => "Japanese",
        "ko" => "Korean",
        "th" => "Thai",
        "ar" => "Arabic",
        "hi" => "Hindi",
        "ru" => "Russian",
        "de" => "German",
        "tr" => "Turkish",
        "fi" => "Finnish",
        "es" => "Spanish",
        "fr" => "French",
        "am" => "Amharic",
        "km" => "Khmer",
        "he" => "Hebrew",
        "fa" => "Persian",
        "el" => "Greek",
        "it" => "Italian",
        "pt" => "Portuguese",
        "id" => "Indonesian",
        "sw" => "Swahili",
        "ta" => "Tamil",
        "te" => "Telugu",
        "bn" => "Bengali",
        "my" => "Burmese",
        "lo" => "Lao",
        "bo" => "Tibetan",
        "ka" => "Georgian",
        "hy" => "Armenian",
        "uk" => "Ukrainian",
        "pl" => "Polish",
        "cs" => "Czech",
        "hu" => "Hungarian",
        "nl" => "Dutch",
        "sv" => "Swedish",
        "yo" => "Yoruba",
        "zu" => "Zulu",
        "ur" => "Urdu",
        "zxx" => "no language",
        "mul" => "several languages",
        "und" => "unknown",
        _ => return tag.to_owned(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_units_chosen() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(12_345), "12.3 kB");
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(seconds(123.4), "123 s");
        assert_eq!(significant(9.999), "10.0");
        assert_eq!(significant(12_345.6), "12,346");
        assert_eq!(short_size(8000), "8k");
        assert_eq!(short_size(1024), "1024");
        assert_eq!(value(0.001, Unit::Share), "0.10 %");
    }
}
