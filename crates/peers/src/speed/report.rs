//! What came out: data, a page of Markdown, and the same page as HTML.

use std::fmt::Write as _;
use std::path::Path;

use harness::manifest::Manifest;
use harness::report::Rounds;
use serde::Serialize;

/// Everything.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Where it comes from.
    pub manifest: Manifest,
    /// Who gives our ids.
    pub gates: Vec<Gate>,
    /// Times of those who do.
    pub speeds: Vec<Speed>,
    /// Hard texts.
    pub worst: Vec<Worst>,
    /// Training.
    pub training: Vec<Training>,
}

/// Whether a contestant's ids are ours.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Gate {
    /// The model.
    pub model: String,
    /// Name and version.
    pub contestant: String,
    /// How many texts were compared.
    pub texts: usize,
    /// On how many ids differ.
    pub differing: usize,
    /// The smallest text found on which they do.
    pub smallest: Option<String>,
    /// Our ids of it.
    pub ours: Option<String>,
    /// Theirs.
    pub theirs: Option<String>,
    /// Why it could not be asked.
    pub skipped: Option<String>,
}

/// MB/s (1 MB is 10^6 bytes) of one contestant on one corpus, and what loading costs.
#[derive(Clone, Debug, Serialize)]
pub struct Speed {
    /// The model.
    pub model: String,
    /// The corpus.
    pub corpus: String,
    /// Name and version.
    pub contestant: String,
    /// The whole text, never seen before, one thread unless the contestant takes more by itself.
    pub first: Option<Rounds>,
    /// The same text again.
    pub later: Option<Rounds>,
    /// Documents of 2 KB, one by one.
    pub documents: Option<Rounds>,
    /// Counting the whole text.
    pub count: Option<Rounds>,
    /// The documents in one call, two threads.
    pub batch: Option<Rounds>,
    /// Seconds from nothing to the first id, imports included.
    pub load: Option<Rounds>,
    /// Resident bytes after loading.
    pub memory: Option<Rounds>,
    /// Most resident bytes.
    pub peak: Option<Rounds>,
}

/// A hard text.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Worst {
    /// The model.
    pub model: String,
    /// The kind of text.
    pub text: String,
    /// Seconds of each for 1 MB, or why there are none.
    pub seconds: Vec<(String, Result<f64, String>)>,
    /// Our seconds for 16 MB.
    pub ours_16_mb: Option<f64>,
    /// Our time for 16 MB over that for 8 MB: 2 is linear.
    pub ratio_of_double: Option<f64>,
}

/// Training of byte-level BPE.
#[derive(Clone, Debug, Serialize)]
pub struct Training {
    /// Name and version.
    pub trainer: String,
    /// Wall seconds of the call.
    pub seconds: Option<Rounds>,
    /// Most resident bytes of the process.
    pub peak: Option<Rounds>,
    /// How many merges it made.
    pub merges: Option<usize>,
    /// Whether they are ours.
    pub verdict: Option<String>,
}

/// One of the measurements.
type Column = fn(&Speed) -> Option<&Rounds>;

impl Report {
    /// Records a file that was read.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn add_file(&mut self, path: &Path) -> Result<(), String> {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        self.manifest.add_file(name, &bytes);
        Ok(())
    }

    /// Records a text by its name.
    pub fn add_text(&mut self, name: &str, text: &str) {
        self.manifest.add_file(&format!("corpus {name}"), text.as_bytes());
    }

    /// The data, sealed as the other reports are.
    ///
    /// # Errors
    ///
    /// If it cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, String> {
        let mut report = self.clone();
        report.manifest.report_sha256 = "0".repeat(64);
        let json = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
        Ok(harness::manifest::seal(&json).unwrap_or(json))
    }

    /// The page.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut page = String::from("# Peers\n\n");
        self.head(&mut page);
        self.gate_tables(&mut page);
        self.speed_tables(&mut page);
        self.cost_tables(&mut page);
        self.worst_tables(&mut page);
        self.training_table(&mut page);
        self.manifest_table(&mut page);
        page
    }

    fn head(&self, page: &mut String) {
        let machine = self.manifest.machine.as_ref();
        let cpu = machine.map_or("an unknown processor", |machine| machine.cpu.as_str());
        let threads = machine.map_or(0, |machine| machine.threads);
        let _ = writeln!(
            page,
            "{}, commit {}, {cpu}, {threads} logical processors, {} s.\n\n\
             Every contestant is a process of its own. In each of {} interleaved rounds it starts \
             afresh, loads, encodes a text that it has not seen (first), the same text again \
             (later), its documents of 2 KB one by one, counts, and encodes the documents in a \
             batch with two threads. MB/s, 1 MB is 10^6 bytes; medians, lowest and highest round \
             in brackets. Python contestants are timed inside of Python through their fastest form \
             of ids, so what a list of numbers costs there is not counted; crates are called from \
             Rust and return a vector. A contestant whose ids differ has no times. Caches that \
             contestants keep between calls help them in all but the first pass.",
            self.manifest.created,
            self.manifest.commit.as_deref().unwrap_or("unknown"),
            self.manifest.seconds,
            self.manifest.options.get("rounds").map_or("?", String::as_str),
        );
    }

    fn models(&self) -> Vec<&str> {
        let mut models: Vec<&str> = Vec::new();
        for gate in &self.gates {
            if !models.contains(&gate.model.as_str()) {
                models.push(&gate.model);
            }
        }
        models
    }

    fn gate_tables(&self, page: &mut String) {
        page.push_str("\n## Whose ids are ours\n\n| model | contestant | texts | differ | smallest | ours | theirs |\n|---|---|--:|--:|---|---|---|\n");
        for gate in &self.gates {
            let code = |text: &Option<String>| match text {
                Some(text) => format!("`{}`", cell(&format!("{text:?}"))),
                None => String::new(),
            };
            let (texts, differ) = match &gate.skipped {
                Some(why) => ("skipped".to_owned(), cell(&shorten(why))),
                None => (gate.texts.to_string(), gate.differing.to_string()),
            };
            let ids = |ids: &Option<String>| ids.as_deref().map(shorten).unwrap_or_default();
            let _ = writeln!(
                page,
                "| {} | {} | {texts} | {differ} | {} | {} | {} |",
                gate.model,
                gate.contestant,
                code(&gate.smallest),
                ids(&gate.ours),
                ids(&gate.theirs)
            );
        }
    }

    fn speed_tables(&self, page: &mut String) {
        let columns: [Column; 5] = [
            |s| s.first.as_ref(),
            |s| s.later.as_ref(),
            |s| s.documents.as_ref(),
            |s| s.count.as_ref(),
            |s| s.batch.as_ref(),
        ];
        for model in self.models() {
            let of_model: Vec<&Speed> = self.speeds.iter().filter(|s| s.model == model).collect();
            let mut corpora: Vec<&str> = Vec::new();
            for speed in &of_model {
                if !corpora.contains(&speed.corpus.as_str()) {
                    corpora.push(&speed.corpus);
                }
            }
            for corpus in corpora {
                let rows: Vec<&&Speed> = of_model.iter().filter(|s| s.corpus == corpus).collect();
                let _ = writeln!(
                    page,
                    "\n## {model}, {corpus}, MB/s\n\n| contestant | first | later | 2 KB documents | count | batch, 2 threads |\n|---|--:|--:|--:|--:|--:|"
                );
                for row in &rows {
                    let _ = write!(page, "| {} |", row.contestant);
                    for column in columns {
                        let _ = write!(page, " {} |", column(row).map_or("–".to_owned(), rate));
                    }
                    page.push('\n');
                }
                // How ours stands to the fastest of the others.
                page.push_str("| *ours / fastest peer* |");
                for column in columns {
                    let median = |s: &&&Speed| column(s).map(|rounds| rounds.median);
                    let ours = rows.iter().find(|s| s.contestant == "ours").and_then(median);
                    let peers = rows.iter().filter(|s| s.contestant != "ours").filter_map(median);
                    let best = peers.fold(f64::NAN, f64::max);
                    match ours {
                        Some(ours) if best > 0.0 => {
                            let _ = write!(page, " *{:.2}* |", ours / best);
                        }
                        _ => page.push_str(" – |"),
                    }
                }
                page.push('\n');
            }
        }
    }

    fn cost_tables(&self, page: &mut String) {
        page.push_str("\n## Loading and memory\n\nSeconds from nothing to the first id (imports of Python packages included), resident memory after that, and the most while encoding.\n\n| model | contestant | load ms | after load MB | peak MB |\n|---|---|--:|--:|--:|\n");
        for model in self.models() {
            let mut seen: Vec<&str> = Vec::new();
            for speed in self.speeds.iter().filter(|s| s.model == model) {
                if seen.contains(&speed.contestant.as_str()) {
                    continue;
                }
                seen.push(&speed.contestant);
                let scaled = |rounds: &Option<Rounds>, by: f64| {
                    rounds.as_ref().map_or("–".to_owned(), |r| format!("{:.0}", r.median * by))
                };
                let _ = writeln!(
                    page,
                    "| {model} | {} | {} | {} | {} |",
                    speed.contestant,
                    scaled(&speed.load, 1e3),
                    scaled(&speed.memory, 1e-6),
                    scaled(&speed.peak, 1e-6)
                );
            }
        }
    }

    fn worst_tables(&self, page: &mut String) {
        for model in self.models() {
            let rows: Vec<&Worst> = self.worst.iter().filter(|row| row.model == model).collect();
            let Some(first) = rows.first() else { continue };
            let names: Vec<&str> = first.seconds.iter().map(|(name, _)| name.as_str()).collect();
            let _ = writeln!(
                page,
                "\n## Worst cases, {model}\n\nMilliseconds for 1 MB (2^20 bytes), first pass; for ours also 16 MB, and that over 8 MB (2 is linear).\n"
            );
            let _ =
                writeln!(page, "| text | {} | ours 16 MB | ours t(2n)/t(n) |", names.join(" | "));
            let _ = writeln!(page, "|---|{}--:|--:|", "--:|".repeat(names.len()));
            for row in rows {
                let _ = write!(page, "| {} |", row.text);
                for (_, seconds) in &row.seconds {
                    let text = match seconds {
                        Ok(seconds) => format!("{:.1}", seconds * 1e3),
                        Err(why) => cell(&shorten(why)),
                    };
                    let _ = write!(page, " {text} |");
                }
                let number = |value: Option<f64>, by: f64, digits: usize| {
                    value.map_or("–".to_owned(), |value| format!("{:.digits$}", value * by))
                };
                let _ = writeln!(
                    page,
                    " {} | {} |",
                    number(row.ours_16_mb, 1e3, 0),
                    number(row.ratio_of_double, 1.0, 2)
                );
            }
        }
    }

    fn training_table(&self, page: &mut String) {
        if self.training.is_empty() {
            return;
        }
        let vocab = self.manifest.options.get("vocab").map_or("?", String::as_str);
        let _ = writeln!(
            page,
            "\n## Training: byte-level BPE, {vocab} tokens, GPT-2's splitter\n\nWall seconds of the call, most resident memory of the process, and whether the merges are ours, in order.\n\n| trainer | s | peak MB | merges | beside ours |\n|---|--:|--:|--:|---|"
        );
        for row in &self.training {
            let seconds = row.seconds.as_ref().map_or("–".to_owned(), |r| {
                format!("{:.2} [{:.2}–{:.2}]", r.median, r.min, r.max)
            });
            let peak =
                row.peak.as_ref().map_or("–".to_owned(), |r| format!("{:.0}", r.median / 1e6));
            let merges = row.merges.map_or("–".to_owned(), |merges| merges.to_string());
            let verdict = row.verdict.as_deref().unwrap_or("–");
            let _ = writeln!(
                page,
                "| {} | {seconds} | {peak} | {merges} | {verdict} |",
                cell(&row.trainer)
            );
        }
    }

    fn manifest_table(&self, page: &mut String) {
        page.push_str("\n## What was read\n\n| file | bytes | SHA-256 |\n|---|--:|---|\n");
        for file in &self.manifest.files {
            let _ = writeln!(page, "| {} | {} | `{}` |", file.path, file.bytes, &file.sha256[..16]);
        }
    }

    /// The page as HTML: the same headings, paragraphs and tables.
    #[must_use]
    pub fn to_html(&self) -> String {
        let style = include_str!("../../../harness/src/report/style.css");
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Peers</title><style>{style}\ntable {{ border-collapse: collapse; font-size: .82rem; display: block; overflow-x: auto; }} td, th {{ padding: .2rem .6rem; border-bottom: 1px solid var(--rule); text-align: left; }} .n {{ text-align: right; font-variant-numeric: tabular-nums; }}</style></head><body><main>\n"
        );
        let markdown = self.to_markdown();
        let mut lines = markdown.lines().peekable();
        while let Some(line) = lines.next() {
            if let Some(title) = line.strip_prefix("# ") {
                let _ = writeln!(html, "<h1>{}</h1>", inline(title));
            } else if let Some(title) = line.strip_prefix("## ") {
                let _ = writeln!(html, "<h2>{}</h2>", inline(title));
            } else if line.starts_with('|') {
                let rule = lines.next_if(|line| line.starts_with("|--")).unwrap_or_default();
                let numeric: Vec<bool> =
                    cells(rule).iter().map(|cell| cell.ends_with(':')).collect();
                html.push_str("<table><thead>");
                table_row(&mut html, line, "th", &numeric);
                html.push_str("</thead><tbody>");
                while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
                    table_row(&mut html, line, "td", &numeric);
                }
                html.push_str("</tbody></table>\n");
            } else if !line.is_empty() {
                let _ = writeln!(html, "<p>{}</p>", inline(line));
            }
        }
        html.push_str("</main></body></html>\n");
        html
    }
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim_matches('|').replace("\\|", "\u{1}");
    inner.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

fn table_row(html: &mut String, line: &str, tag: &str, numeric: &[bool]) {
    html.push_str("<tr>");
    for (i, cell) in cells(line).iter().enumerate() {
        let class = if numeric.get(i) == Some(&true) { " class=\"n\"" } else { "" };
        let _ = write!(html, "<{tag}{class}>{}</{tag}>", inline(cell));
    }
    html.push_str("</tr>");
}

/// Code and emphasis.
fn inline(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut html = String::new();
    for (i, part) in text.split('`').enumerate() {
        if i % 2 == 1 {
            let _ = write!(html, "<code>{part}</code>");
            continue;
        }
        for (i, part) in part.split('*').enumerate() {
            let _ =
                if i % 2 == 1 { write!(html, "<em>{part}</em>") } else { write!(html, "{part}") };
        }
    }
    html
}

fn rate(rounds: &Rounds) -> String {
    let digits = if rounds.median < 10.0 { 1 } else { 0 };
    format!("{:.digits$} [{:.digits$}–{:.digits$}]", rounds.median, rounds.min, rounds.max)
}

/// A text that does not end its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('`', "'").replace('\n', " ")
}

fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
