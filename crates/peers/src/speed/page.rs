//! The report as a page: Markdown, and the same headings, paragraphs and tables as HTML.

use std::fmt::Write as _;

use harness::report::Rounds;

use super::contest::{OURS, OURS_PREPARED};
use super::report::{
    COLUMNS, Column, Cost, Gate, Report, Speed, Standing, Training, Worst, standings,
};

/// What the numbers do not say.
const CAVEATS: [(&str, &str); 8] = [
    (
        "Equal ids were seen, not proven.",
        "A contestant is admitted if its ids equal ours on the texts of the gate: documents of \
         the corpora and some awkward texts. Elsewhere it may differ.",
    ),
    (
        "The choice is ours.",
        "This project chose the contestants, the corpora, the models and the way of measuring. \
         Contestants are called as their documentation says; their authors may know better ways.",
    ),
    (
        "Python contestants are timed inside of Python.",
        "What they return is their fastest form of ids, an array where they have one. A list of \
         numbers costs a program more than that, and a crate that is called from Rust never pays \
         for it.",
    ),
    (
        "Processor time is not waiting time.",
        "One-thread columns count the processor time of all threads, so that other programs on \
         the machine count less. A contestant that uses more threads by itself answers earlier than \
         these numbers say. The batch, loading and training have wall time.",
    ),
    (
        "Later passes read a text that was read before.",
        "Caches that contestants keep between calls make them fast; how large they may grow is \
         another question, to which the table of memory is part of the answer.",
    ),
    (
        "Small texts end early.",
        "A corpus of one or two MB is read within some milliseconds; rounds differ, and a range \
         that is wide says that the machine was busy. Believe ratios, and medians of many rounds.",
    ),
    (
        "Another machine may order differently.",
        "Wide vector units, large caches and fast memory help some designs more than others.",
    ),
    (
        "Fewer tokens are not a better model.",
        "Bytes per token and Rényi efficiency of trained vocabularies describe compression. \
         Nothing here trains a language model.",
    ),
];

enum Block {
    Heading(String),
    Paragraph(String),
    Table(Table),
}

struct Table {
    /// Titles, and whether the column holds numbers.
    head: Vec<(String, bool)>,
    rows: Vec<Vec<Cell>>,
}

#[derive(Clone, Default)]
struct Cell {
    text: String,
    /// In small letters behind or under it.
    detail: String,
    kind: Kind,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Kind {
    #[default]
    Plain,
    /// The best of its column.
    Best,
    /// We lose.
    Loss,
    /// It does not count.
    Void,
    /// Shown as it is.
    Code,
}

impl Cell {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    fn none() -> Self {
        Self::new("–")
    }

    fn kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }
}

/// The page as Markdown.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut text = String::from("# Beside other tokenizers\n");
    for block in blocks(report) {
        text.push('\n');
        match block {
            Block::Heading(title) => {
                let _ = writeln!(text, "## {title}");
            }
            Block::Paragraph(words) => {
                let _ = writeln!(text, "{words}");
            }
            Block::Table(table) => {
                let titles: Vec<&str> =
                    table.head.iter().map(|(title, _)| title.as_str()).collect();
                let _ = writeln!(text, "| {} |", titles.join(" | "));
                text.push('|');
                for (_, number) in &table.head {
                    text.push_str(if *number { "--:|" } else { "---|" });
                }
                text.push('\n');
                for row in &table.rows {
                    text.push('|');
                    row.iter().for_each(|cell| {
                        let _ = write!(text, " {} |", markdown_cell(cell));
                    });
                    text.push('\n');
                }
            }
        }
    }
    text
}

fn markdown_cell(cell: &Cell) -> String {
    let plain = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let text = match cell.kind {
        Kind::Plain => plain(&cell.text),
        Kind::Best => format!("**{}**", plain(&cell.text)),
        Kind::Loss => format!("{} (loses)", plain(&cell.text)),
        Kind::Void => format!("*{}*", plain(&cell.text)),
        Kind::Code => format!("`{}`", plain(&cell.text).replace('`', "'")),
    };
    if cell.detail.is_empty() { text } else { format!("{text} {}", plain(&cell.detail)) }
}

/// The page as HTML: one file, no script, no request, light and dark.
#[must_use]
pub fn html(report: &Report) -> String {
    const STYLE: &str = include_str!("../../../harness/src/report/style.css");
    const MORE: &str = "
td.loss, td.loss small { color: var(--bad); } td.loss { background: var(--bad-paper); }
td code { overflow-wrap: normal; } td.words { min-width: 12rem; }
main > p { max-width: 48rem; overflow-wrap: break-word; } main > h2 { margin-top: 2.6rem; }";
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>Beside other tokenizers</title>\
         <style>{STYLE}{MORE}\n</style></head><body>\n<header class=\"top\">\
         <h1>Beside other tokenizers</h1></header>\n<main>\n"
    );
    for block in blocks(report) {
        match block {
            Block::Heading(title) => {
                let _ = writeln!(html, "<h2>{}</h2>", inline(&title));
            }
            Block::Paragraph(words) => {
                let _ = writeln!(html, "<p>{}</p>", inline(&words));
            }
            Block::Table(table) => html_table(&mut html, &table),
        }
    }
    html.push_str("</main></body></html>\n");
    html
}

fn html_table(html: &mut String, table: &Table) {
    html.push_str("<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>");
    for (title, number) in &table.head {
        let class = if *number { " class=\"num\"" } else { "" };
        let _ = write!(html, "<th scope=\"col\"{class}>{}</th>", inline(title));
    }
    html.push_str("</tr></thead>\n<tbody>");
    for row in &table.rows {
        html.push_str("<tr>");
        for (i, cell) in row.iter().enumerate() {
            let number = table.head.get(i).is_some_and(|(_, number)| *number);
            let text = escape(&cell.text);
            let text = match cell.kind {
                Kind::Best => format!("<b>{text}</b>"),
                Kind::Code => format!("<code>{text}</code>"),
                Kind::Loss => format!("{text} loses"),
                Kind::Plain | Kind::Void => text,
            };
            let mut class = String::from(if number { "num" } else { "" });
            match cell.kind {
                Kind::Loss => class.push_str(" loss"),
                Kind::Void => class.push_str(" void"),
                _ if !number && cell.text.len() > 40 => class.push_str(" words"),
                _ => {}
            }
            let small = if cell.detail.is_empty() {
                String::new()
            } else {
                format!("<small>{}</small>", escape(&cell.detail))
            };
            let tag = if i == 0 { "th scope=\"row\"" } else { "td" };
            let end = if i == 0 { "th" } else { "td" };
            let _ = write!(html, "<{tag} class=\"{}\">{text}{small}</{end}>", class.trim());
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Text with code between back-ticks and what is strong between two stars.
fn inline(text: &str) -> String {
    let mut html = String::new();
    for (i, part) in escape(text).split('`').enumerate() {
        if i % 2 == 1 {
            let _ = write!(html, "<code>{part}</code>");
            continue;
        }
        for (i, part) in part.split("**").enumerate() {
            let _ = if i % 2 == 1 { write!(html, "<b>{part}</b>") } else { write!(html, "{part}") };
        }
    }
    html
}

/// A page under construction.
struct Page<'r> {
    report: &'r Report,
    blocks: Vec<Block>,
}

fn blocks(report: &Report) -> Vec<Block> {
    let mut page = Page { report, blocks: Vec::new() };
    page.head();
    page.losses();
    page.gate();
    page.speed();
    page.costs();
    page.worst();
    page.training();
    page.failures();
    page.caveats();
    page.manifest();
    page.blocks
}

impl Page<'_> {
    fn heading(&mut self, title: impl Into<String>) {
        self.blocks.push(Block::Heading(title.into()));
    }

    fn words(&mut self, words: impl Into<String>) {
        self.blocks.push(Block::Paragraph(words.into()));
    }

    /// A table; titles that begin with `#` are of numbers.
    fn table(&mut self, head: &[&str], rows: Vec<Vec<Cell>>) {
        let head = head.iter().map(|title| match title.strip_prefix('#') {
            Some(title) => (title.to_owned(), true),
            None => ((*title).to_owned(), false),
        });
        self.blocks.push(Block::Table(Table { head: head.collect(), rows }));
    }

    fn head(&mut self) {
        let report = self.report;
        let machine = report.manifest.machine.as_ref();
        let cpu = machine.map_or("an unknown processor", |machine| machine.cpu.as_str());
        let threads = machine.map_or(0, |machine| machine.threads);
        let busy = report.load_average.map_or(String::new(), |[start, end]| {
            format!(" The load average was {start:.1} at the beginning and {end:.1} at the end.")
        });
        // A whole hash is too long for a narrow page, and is in the data.
        let commit = report.manifest.commit.as_deref().unwrap_or("unknown");
        let (hash, changes) = commit.split_at(commit.find('+').unwrap_or(commit.len()));
        self.words(format!(
            "{}, commit {}{changes}, {cpu}, {threads} logical processors, {} in {} s.{busy}",
            report.manifest.created,
            hash.get(..12).unwrap_or(hash),
            match report.rounds {
                1 => "one round".to_owned(),
                rounds => format!("{rounds} rounds"),
            },
            report.manifest.seconds,
        ));
        self.words(
            "Every contestant is a process of its own. In each round it starts afresh, loads the \
             model, encodes a text that it has not seen (first), the same text again (later), its \
             documents of about 2 KB one by one, counts without ids, and encodes the documents in \
             one call with two threads. Rounds are interleaved; tables have the median and, in \
             brackets or small letters, the lowest and the highest round. Without them there was one round: so it is where a \
             contestant does less than 5 MB/s.",
        );
        for gate in report.faults() {
            self.words(format!(
                "**FAILED: {} differs from ours on {}, which it defines. The fault is ours.**",
                report.shown(&gate.contestant),
                gate.model
            ));
        }
    }

    fn losses(&mut self) {
        let all = standings(self.report, OURS);
        if all.is_empty() {
            return;
        }
        let (won, mut lost): (Vec<_>, Vec<_>) =
            all.iter().partition(|standing| standing.ratio.median >= 1.0);
        lost.sort_by(|a, b| a.ratio.median.total_cmp(&b.ratio.median));
        self.heading("Where we lose");
        self.words(format!(
            "Of {} columns in the tables of speed in which somebody else is exact, ours is the \
             fastest in {} and slower than the fastest in {}:",
            all.len(),
            won.len(),
            lost.len()
        ));
        let row = |standing: &&Standing<'_>| {
            vec![
                Cell::new(standing.model),
                Cell::new(standing.corpus),
                Cell::new(standing.column),
                ratio(standing.ratio),
                Cell::new(self.report.shown(standing.peer)),
            ]
        };
        let rows: Vec<_> = lost.iter().map(row).collect();
        if !rows.is_empty() {
            self.table(&["model", "corpus", "column", "#ours / theirs", "the fastest"], rows);
        }
    }

    fn gate(&mut self) {
        let report = self.report;
        self.heading("Whose ids are ours");
        let texts = report.gates.first().map_or(0, |gate| gate.texts);
        self.words(format!(
            "Ids of ordinary text on {texts} texts a model, without texts that spell a control token. Who differs once is not timed; the \
             smallest text on which it was seen to differ stands beside it. References define what \
             the model means."
        ));
        let shown = |gate: &&Gate| {
            let (texts, kind) = match &gate.skipped {
                Some(why) => (format!("skipped: {}", shorten(why, 90)), Kind::Plain),
                None if gate.differing == 0 => ("equal".to_owned(), Kind::Plain),
                None => (format!("differs on {}", gate.differing), Kind::Void),
            };
            let code = |text: &Option<String>| match text {
                Some(text) => Cell::new(shorten(text, 60)).kind(Kind::Code),
                None => Cell::default(),
            };
            let smallest = gate.smallest.as_ref().map(|text| format!("{text:?}"));
            let role = if gate.reference { ", reference" } else { "" };
            vec![
                Cell::new(format!("{}{role}", report.shown(&gate.contestant))),
                Cell::new(texts).kind(kind),
                code(&smallest),
                code(&gate.ours),
                code(&gate.theirs),
            ]
        };
        for model in report.models() {
            let rows = report.gates.iter().filter(|gate| gate.model == model);
            let rows = rows.map(|gate| shown(&gate)).collect();
            let head = [model, "ids", "smallest difference", "ours", "theirs"];
            self.table(&head, rows);
        }
    }

    fn speed(&mut self) {
        let report = self.report;
        for model in report.models() {
            let of_model: Vec<&Speed> = report.speeds.iter().filter(|s| s.model == model).collect();
            let mut corpora: Vec<&str> = Vec::new();
            for speed in &of_model {
                if !corpora.contains(&speed.corpus.as_str()) {
                    corpora.push(&speed.corpus);
                }
            }
            if corpora.is_empty() {
                continue;
            }
            self.heading(format!("Speed: {model}"));
            self.words(
                "MB/s, 1 MB is 10⁶ bytes; the first four columns are of processor time, the last \
                 of wall time. Prepared is what a server would use: the tables of the model are \
                 built while it loads, and a session remembers 64 MB instead of 4.",
            );
            for corpus in corpora {
                let rows: Vec<&Speed> =
                    of_model.iter().copied().filter(|s| s.corpus == corpus).collect();
                self.speed_table(model, corpus, &rows);
            }
        }
    }

    fn speed_table(&mut self, model: &str, corpus: &str, rows: &[&Speed]) {
        let report = self.report;
        let median = |of: Column, row: &Speed| of(row).rounds().map(|rounds| rounds.median);
        let best =
            |of: Column| rows.iter().filter_map(|row| median(of, row)).max_by(f64::total_cmp);
        let mut lines = Vec::new();
        for row in rows {
            let mut line = vec![Cell::new(report.shown(&row.contestant))];
            for (_, of) in COLUMNS {
                line.push(match of(row).rounds() {
                    Some(rounds) if Some(rounds.median) == best(of) => {
                        rate(rounds).kind(Kind::Best)
                    }
                    Some(rounds) => rate(rounds),
                    None => Cell::none(),
                });
            }
            lines.push(line);
        }
        for (name, title) in
            [(OURS, "ours / the fastest other"), (OURS_PREPARED, "prepared / the fastest other")]
        {
            let mut all = standings(report, name);
            all.retain(|standing| standing.model == model && standing.corpus == corpus);
            if all.is_empty() {
                continue;
            }
            let mut line = vec![Cell::new(title)];
            for (column, _) in COLUMNS {
                let found = all.iter().find(|standing| standing.column == column);
                line.push(found.map_or_else(Cell::none, |standing| ratio(standing.ratio)));
            }
            lines.push(line);
        }
        for gate in report.gates.iter().filter(|gate| gate.model == model && gate.differing > 0) {
            let mut line = vec![Cell::new(report.shown(&gate.contestant))];
            line.push(Cell::new("void: other ids").kind(Kind::Void));
            line.resize(COLUMNS.len() + 1, Cell::none());
            lines.push(line);
        }
        let size = rows.first().map_or(0, |row| row.bytes);
        let title = format!("{corpus}, {:.1} MB", size as f64 / 1e6);
        let mut head = vec![title];
        head.extend(COLUMNS.iter().map(|(title, _)| format!("#{title}")));
        self.table(&head.iter().map(String::as_str).collect::<Vec<_>>(), lines);
    }

    fn costs(&mut self) {
        let report = self.report;
        if report.costs.is_empty() {
            return;
        }
        self.heading("Loading and memory");
        self.words(
            "From the request to the first id in a fresh process, in wall and in processor time; \
             imports of Python packages are part of it, the start of the interpreter is not. Memory \
             is resident memory that loading added, and the most that there was while encoding, \
             without what there was before loading; texts and ids are part of it. What a crate \
             carries in its program counts when it is touched. Medians of all rounds.",
        );
        for model in report.models() {
            let of_model: Vec<&Cost> = report.costs.iter().filter(|c| c.model == model).collect();
            type Of = fn(&Cost) -> Option<Rounds>;
            let columns: [(f64, Of); 4] = [
                (1e3, |cost| cost.load.rounds()),
                (1e3, |cost| cost.load_cpu.rounds()),
                (1e-6, |cost| cost.loaded.rounds()),
                (1e-6, |cost| cost.peak.rounds()),
            ];
            let best = |of: Of| {
                let medians = of_model.iter().filter_map(|cost| of(cost).map(|r| r.median));
                medians.min_by(f64::total_cmp)
            };
            let row = |cost: &&Cost| {
                let mut line = vec![Cell::new(report.shown(&cost.contestant))];
                for (by, of) in columns {
                    line.push(match of(cost) {
                        Some(rounds) => {
                            let digits = if rounds.median * by < 10.0 { 1 } else { 0 };
                            let cell = Cell::new(format!("{:.digits$}", rounds.median * by));
                            let is_best = Some(rounds.median) == best(of);
                            if is_best { cell.kind(Kind::Best) } else { cell }
                        }
                        None => Cell::none(),
                    });
                }
                line
            };
            let rows = of_model.iter().map(row).collect::<Vec<_>>();
            if !rows.is_empty() {
                let head = [model, "#load ms", "#of processor", "#loaded MB", "#peak MB"];
                self.table(&head, rows);
            }
        }
    }

    fn worst(&mut self) {
        let report = self.report;
        for model in report.models() {
            let rows: Vec<&Worst> = report.worst.iter().filter(|row| row.model == model).collect();
            let Some(least) = rows.iter().map(|row| row.bytes).min() else { continue };
            let mut texts: Vec<&str> = Vec::new();
            let mut names: Vec<&str> = Vec::new();
            for row in &rows {
                if !texts.contains(&row.text.as_str()) {
                    texts.push(&row.text);
                }
                if !names.contains(&row.contestant.as_str()) {
                    names.push(&row.contestant);
                }
            }
            self.heading(format!("Hard texts: {model}"));
            self.words(format!(
                "Milliseconds of processor time for {} KB without a place to cut, first met, and in \
                 small letters how much longer that takes than half of it: 2 is linear, 4 is \
                 quadratic. The last column is ours on 16 MB.",
                least >> 10
            ));
            let find = |text: &str, name: &str, large: bool| {
                rows.iter().find(|row| {
                    row.text == text && row.contestant == name && (row.bytes > least) == large
                })
            };
            let cell = |row: Option<&&Worst>| match row {
                None => Cell::none(),
                Some(row) => match (row.seconds.rounds(), row.doubling.rounds()) {
                    (Some(seconds), doubling) => Cell {
                        text: significant(seconds.median * 1e3),
                        detail: doubling.map_or(String::new(), |r| format!("×{:.1}", r.median)),
                        kind: Kind::Plain,
                    },
                    (None, _) => {
                        let why = row.failure.as_deref().unwrap_or("no time");
                        Cell::new(shorten(why, 40)).kind(Kind::Void)
                    }
                },
            };
            let lines = texts.iter().map(|text| {
                let mut line = vec![Cell::new(text.replace('_', " "))];
                let times = names.iter().map(|name| {
                    find(text, name, false).and_then(|row| row.seconds.rounds()).map(|r| r.median)
                });
                let best = times.flatten().min_by(f64::total_cmp);
                for name in &names {
                    let row = find(text, name, false);
                    let is_best =
                        row.and_then(|row| row.seconds.rounds()).map(|r| r.median) == best;
                    let cell = cell(row);
                    let plain = cell.kind == Kind::Plain && best.is_some();
                    line.push(if is_best && plain { cell.kind(Kind::Best) } else { cell });
                }
                line.push(cell(find(text, "ours", true)));
                line
            });
            let lines: Vec<_> = lines.collect();
            let mut head = vec!["text".to_owned()];
            head.extend(names.iter().map(|name| format!("#{}", report.shown(name))));
            head.push("#ours, 16 MB".to_owned());
            self.table(&head.iter().map(String::as_str).collect::<Vec<_>>(), lines);
        }
    }

    fn training(&mut self) {
        let report = self.report;
        let mut algorithms: Vec<&str> = Vec::new();
        for row in &report.training {
            if !algorithms.contains(&row.algorithm.as_str()) {
                algorithms.push(&row.algorithm);
            }
        }
        if algorithms.is_empty() {
            return;
        }
        let option = |name: &str| report.manifest.options.get(name).map_or("?", String::as_str);
        let (vocab, bytes) = (option("vocab"), option("bytes of training"));
        self.heading(format!("Training: {vocab} tokens, {bytes} bytes of text"));
        self.words(
            "Wall time of the call, reading the file included, processor time of all threads (at \
             most two are allowed), the most resident memory above what there was before. On the \
             right how the vocabulary does on text that was held out. BPE over bytes with GPT-2's \
             splitter; Unigram with SentencePiece's settings, but white space is kept and bounds \
             pieces alone; WordPiece by frequency, and by the score of its papers, with BERT's \
             uncased words. As SentencePiece means its defaults, which ours follow piece by piece. \
             The log-likelihood of held-out text is in nats a byte: of all segmentations, and of \
             the best one.",
        );
        let seconds = |rounds: Option<Rounds>| match rounds {
            Some(rounds) => Cell {
                text: significant(rounds.median),
                detail: match rounds.rounds {
                    1 => String::new(),
                    _ => format!("{}–{}", significant(rounds.min), significant(rounds.max)),
                },
                kind: Kind::Plain,
            },
            None => Cell::none(),
        };
        for algorithm in algorithms {
            let rows = report.training.iter().filter(|row| row.algorithm == algorithm);
            let line = |row: &Training| {
                let number = |value: Option<f64>, digits: usize| match value {
                    Some(value) => Cell::new(format!("{value:.digits$}")),
                    None => Cell::none(),
                };
                let verdict = match (&row.verdict, &row.failure) {
                    (Some(verdict), _) => verdict.clone(),
                    (None, Some(why)) => format!("failed: {}", shorten(why, 70)),
                    (None, None) => String::new(),
                };
                let likelihood = |of: usize| {
                    let value = row.quality.and_then(|quality| quality.likelihood);
                    number(value.map(|both| both[of]), 3)
                };
                let mut cells = vec![
                    Cell::new(report.shown(&row.trainer)),
                    seconds(row.seconds.rounds()),
                    seconds(row.cpu.rounds()),
                    number(row.peak.rounds().map(|rounds| rounds.median / 1e6), 0),
                    Cell::new(verdict),
                    number(row.quality.map(|quality| quality.bytes_per_token), 3),
                    number(row.quality.and_then(|quality| quality.renyi), 3),
                    number(row.quality.map(|quality| quality.used * 100.0), 1),
                ];
                if algorithm.starts_with("unigram") {
                    cells.extend([likelihood(0), likelihood(1)]);
                }
                cells
            };
            let lines = rows.map(line).collect();
            let title = match algorithm {
                "bpe" => "BPE",
                "bpe-preset" => "BPE as SentencePiece",
                "unigram" => "Unigram",
                "unigram-preset" => "Unigram as SentencePiece",
                "wordpiece" => "WordPiece",
                "wordpiece-pmi" => "WordPiece by PMI",
                other => other,
            };
            let mut head = vec![
                title,
                "#s",
                "#of processor",
                "#peak MB",
                "beside ours",
                "#bytes per token",
                "#Rényi",
                "#used %",
            ];
            if algorithm.starts_with("unigram") {
                head.extend(["#log-likelihood", "#of the best"]);
            }
            self.table(&head, lines);
        }
    }

    fn failures(&mut self) {
        let failures = &self.report.failures;
        if failures.is_empty() {
            return;
        }
        self.heading("What did not work");
        let rows = failures.iter().map(|why| vec![Cell::new(shorten(why, 200))]).collect();
        self.table(&["model, corpus, contestant: why"], rows);
    }

    fn caveats(&mut self) {
        self.heading("What these numbers do not mean");
        for (claim, reason) in CAVEATS {
            self.words(format!("**{claim}** {reason}"));
        }
    }

    fn manifest(&mut self) {
        let manifest = &self.report.manifest;
        self.heading("What was read and run");
        let file = |file: &harness::manifest::FileHash| {
            vec![
                Cell::new(&file.path),
                Cell::new(file.bytes.to_string()),
                Cell::new(file.sha256.get(..16).unwrap_or_default()).kind(Kind::Code),
            ]
        };
        self.table(&["file", "#bytes", "SHA-256"], manifest.files.iter().map(file).collect());
        let pair = |(name, value): (&String, &String)| vec![Cell::new(name), Cell::new(value)];
        self.table(&["contestant", "version"], manifest.versions.iter().map(pair).collect());
        self.table(&["option", "value"], manifest.options.iter().map(pair).collect());
    }
}

/// A speed, with the ends of its rounds.
fn rate(rounds: Rounds) -> Cell {
    let digits = if rounds.median < 10.0 { 1 } else { 0 };
    let detail = match rounds.rounds {
        1 => String::new(),
        _ => format!("{:.digits$}–{:.digits$}", rounds.min, rounds.max),
    };
    Cell { text: format!("{:.digits$}", rounds.median), detail, kind: Kind::Plain }
}

/// A ratio; below 1 we lose.
fn ratio(rounds: Rounds) -> Cell {
    let kind = if rounds.median < 1.0 { Kind::Loss } else { Kind::Plain };
    let detail = match rounds.rounds {
        1 => String::new(),
        _ => format!("{:.2}–{:.2}", rounds.min, rounds.max),
    };
    Cell { text: format!("{:.2}", rounds.median), detail, kind }
}

/// Three digits that mean something.
fn significant(x: f64) -> String {
    let digits = match x.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{x:.digits$}")
}

fn shorten(text: &str, most: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(most).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::super::report::Series;
    use super::*;

    fn report() -> Report {
        let speed = |contestant: &str, mb: f64| Speed {
            model: "m".into(),
            corpus: "english".into(),
            bytes: 1_000_000,
            contestant: contestant.into(),
            first: Series(vec![Some(mb), Some(mb * 2.0)]),
            later: Series(vec![Some(1000.0 / mb)]),
            ..Speed::default()
        };
        let gate = |contestant: &str, differing| Gate {
            model: "m".into(),
            contestant: contestant.into(),
            texts: 9,
            differing,
            smallest: (differing > 0).then(|| "a|`<b>".to_owned()),
            ..Gate::default()
        };
        Report {
            gates: vec![gate("crate quick", 0), gate("wrong", 3)],
            speeds: vec![speed("ours", 10.0), speed("crate quick", 20.0)],
            ..Report::default()
        }
    }

    #[test]
    fn losses_are_marked_and_the_wrong_are_void() {
        let text = markdown(&report());
        assert!(
            text.contains("| m | english | first | 0.50 (loses) 0.50–0.50 | crate quick |"),
            "{text}"
        );
        assert!(text.contains("fastest in 1 and slower than the fastest in 1"), "{text}");
        assert!(text.contains("| wrong (Python) | *void: other ids* |"), "{text}");
        assert!(text.contains("| crate quick | **30** 20–40 |"), "{text}");
        let rows = text.lines().filter(|line| line.starts_with('|'));
        assert!(rows.clone().all(|row| row.ends_with('|')));
        let html = html(&report());
        assert!(
            html.contains("<td class=\"num loss\">0.50 loses<small>0.50–0.50</small></td>"),
            "{html}"
        );
        assert!(html.contains("a|`&lt;b&gt;"), "{html}");
    }

    #[test]
    fn faults_of_ours_come_first() {
        let mut report = report();
        report.gates[1].reference = true;
        let text = markdown(&report);
        let failed =
            text.find("FAILED: wrong (Python) differs from ours on m").expect("it is said");
        assert!(failed < text.find("## ").expect("there are headings"));
    }
}
