//! The report as Markdown: the tables of the page without its charts.

use std::fmt::Write as _;

use super::view::{self, Cell, Table, grouped};
use super::{Report, html};
use crate::metrics::Ratio;

pub(super) fn render(report: &Report) -> String {
    let mut out = format!("# {}\n\n", report.title);
    let sentences = html::sentences(report);
    if !sentences.is_empty() {
        let _ = write!(out, "{sentences}\n\n");
    }
    if !report.passed() {
        out.push_str("**Checks failed; see Verification.**\n\n");
    }
    if let Some(experiment) = report.experiments.first() {
        let size = experiment.headline_size();
        let terms = &experiment.terms;
        let _ = write!(
            out,
            "## Terms\n\n- normalizer: {}\n- splitter: {}\n- special tokens: {}\n- unseen text: \
             {}\n- training part: {} in {} documents\n- held-out part: {} in {} documents\n\n",
            terms.normalizer,
            code(&terms.splitter),
            if terms.special_tokens.is_empty() {
                "none".to_owned()
            } else {
                code(&terms.special_tokens.join(" "))
            },
            terms.bytes.name(),
            view::bytes(experiment.train.bytes),
            grouped(experiment.train.documents),
            view::bytes(experiment.held_out.bytes),
            grouped(experiment.held_out.documents)
        );
        table(&mut out, "## Headline", &view::headline(report, experiment, size));
        table(&mut out, "### Differences", &view::differences(experiment, size));
        for (n, experiment) in report.experiments.iter().enumerate() {
            let title = if n == 0 { "## Against vocabulary size\n\n" } else { "" };
            let _ = write!(out, "{title}### {}\n\n", experiment.name);
            table(&mut out, "", &curve(experiment, Ratio::BytesPerToken));
            if n == 0 {
                table(&mut out, "", &curve(experiment, Ratio::BitsPerByte));
            }
        }
        for nth in 0.. {
            let Some(premiums) = view::premiums(experiment, size, nth) else { break };
            let title = if nth == 0 { "## Premium of languages" } else { "" };
            table(&mut out, title, &premiums);
        }
        let fertility = view::by_group(
            "fertility",
            format!("Tokens per word, {} tokens", grouped(size as u64)),
            experiment,
            size,
            |row| &row.languages,
            "language",
            Ratio::TokensPerWord,
        );
        table(&mut out, "## Fertility of languages", &fertility);
        table(&mut out, "## Code and numbers", &view::code(experiment, size));
        table(&mut out, "## Morphs", &view::morphology(experiment, size));
        let rows: Vec<_> = experiment.at(size).map(|row| (row, Some(&row.overall))).collect();
        let caption = format!("{}, {} tokens", experiment.name, grouped(size as u64));
        table(&mut out, "## Every metric", &view::all_metrics(caption, &rows));
    }
    table(&mut out, "## Speed", &view::speed(report));
    table(&mut out, "## Training time and memory", &view::training(report));
    table(&mut out, "## Worst cases", &view::worst_cases(report));
    table(&mut out, "## Verification", &view::verification(report));
    table(&mut out, "", &view::voided(report));
    table(&mut out, "## Criterion", &view::criterion(report));
    out.push_str("## What these numbers do not mean\n\n");
    for (claim, reason) in html::CAVEATS {
        let _ = writeln!(out, "- **{claim}** {reason}");
    }
    let manifest = &report.manifest;
    let _ = write!(
        out,
        "\n## Manifest\n\n- made: {}\n- commit: {}\n- options, SHA-256: `{}`\n",
        manifest.created,
        manifest.commit.as_deref().unwrap_or("unknown"),
        manifest.options_sha256
    );
    if let Some(machine) = &manifest.machine {
        let _ = writeln!(
            out,
            "- machine: {}, {} threads, {}",
            machine.cpu, machine.threads, machine.system
        );
    }
    for (name, version) in &manifest.versions {
        let _ = writeln!(out, "- {name}: {version}");
    }
    let _ = writeln!(out, "- files: {} (hashes in report.json)", manifest.files.len());
    out
}

/// A ratio, sizes down, algorithms across.
pub(super) fn curve(experiment: &super::Experiment, ratio: Ratio) -> Table {
    let algorithms = experiment.algorithms();
    let mut head = vec![view::Head::number("vocabulary")];
    head.extend(algorithms.iter().map(|name| view::Head::number(view::display_name(name))));
    let rows = experiment.sizes().into_iter().map(|size| {
        let mut cells = vec![Cell::new(grouped(size as u64))];
        cells.extend(algorithms.iter().map(|&name| {
            match experiment.at(size).find(|row| row.algorithm == name) {
                Some(row) if row.void.is_some() => Cell::new("void"),
                Some(row) => match row.overall.value(ratio) {
                    Some(value) => Cell::new(html::plain(value, ratio.unit())),
                    None => Cell::new("–"),
                },
                None => Cell::new("–"),
            }
        }));
        view::Line { cells, ..view::Line::default() }
    });
    let caption = match ratio {
        Ratio::BytesPerToken => "Bytes per token".to_owned(),
        Ratio::BitsPerByte => "Bits per byte".to_owned(),
        other => other.title().to_owned(),
    };
    Table { id: "curve", caption, head, rows: rows.collect(), note: None }
}

fn code(text: &str) -> String {
    let fence = if text.contains('`') { "``" } else { "`" };
    format!("{fence}{text}{fence}")
}

fn table(out: &mut String, heading: &str, table: &Table) {
    if table.rows.is_empty() {
        return;
    }
    if !heading.is_empty() {
        let _ = write!(out, "{heading}\n\n");
    }
    let _ = write!(out, "{}:\n\n|", escape(&table.caption));
    for column in &table.head {
        let _ = write!(out, " {} |", escape(&column.title));
    }
    out.push_str("\n|");
    for column in &table.head {
        out.push_str(if column.numeric { "--:|" } else { "---|" });
    }
    out.push('\n');
    for line in &table.rows {
        out.push('|');
        for (i, cell) in line.cells.iter().enumerate() {
            match (&line.void, i) {
                (Some(reason), 1) => {
                    let _ = write!(out, " void: {} |", escape(reason));
                    break;
                }
                _ => {
                    let _ = write!(out, " {} |", text(cell));
                }
            }
        }
        out.push('\n');
    }
    out.push('\n');
    if let Some(note) = &table.note {
        let _ = write!(out, "{}\n\n", note.replace('\n', "  \n"));
    }
}

fn text(cell: &Cell) -> String {
    let mut out = escape(&cell.text);
    if cell.best {
        out = format!("**{out}**");
    }
    if let Some(detail) = &cell.detail {
        let _ = write!(out, " ({})", escape(detail));
    }
    out
}

/// Text that cannot end a cell or a line, or become markup.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' => {
                out.push('\\');
                out.push(c);
            }
            '\n' | '\r' => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_cannot_break_the_table() {
        assert_eq!(escape("a|b\nc`<x>"), "a\\|b c\\`\\<x\\>");
        assert_eq!(code("a`b"), "``a`b``");
    }
}
