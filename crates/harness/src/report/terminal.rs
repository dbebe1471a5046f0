//! The headline as plain text for a terminal.

use std::fmt::Write as _;

use super::view::{self, Cell, Table, grouped};
use super::{Report, html, markdown};
use crate::metrics::Ratio;

pub(super) fn render(report: &Report, width: usize) -> String {
    let mut out = String::new();
    for experiment in &report.experiments {
        let size = experiment.headline_size();
        let terms = &experiment.terms;
        let _ = write!(
            out,
            "{}: splitter {}, normalizer {}, {} special tokens, policy {}\n  train {} in {} \
             documents, held out {} in {} documents\n\n",
            experiment.name,
            terms.splitter,
            terms.normalizer,
            terms.special_tokens.len(),
            terms.bytes.name(),
            view::bytes(experiment.train.bytes),
            grouped(experiment.train.documents),
            view::bytes(experiment.held_out.bytes),
            grouped(experiment.held_out.documents)
        );
        table(&mut out, &view::headline(report, experiment, size), width);
        if experiment.sizes().len() > 1 {
            table(&mut out, &markdown::curve(experiment, Ratio::BytesPerToken), width);
        }
        if let Some(premiums) = view::premiums(experiment, size, 0) {
            table(&mut out, &premiums, width);
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
        if fertility.rows.len() > 1 {
            table(&mut out, &fertility, width);
        }
        table(&mut out, &view::morphology(experiment, size), width);
        table(&mut out, &view::differences(experiment, size), width);
    }
    table(&mut out, &view::voided(report), width);
    let sentences = html::sentences(report);
    if !sentences.is_empty() {
        wrap(&mut out, &sentences, width);
    }
    out
}

/// A table in columns; columns that do not fit are put into a further block below, under the same
/// first column.
fn table(out: &mut String, table: &Table, width: usize) {
    if table.rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "{}", table.caption);
    let columns = table.head.len();
    let text = |cell: &Cell| match (&cell.detail, cell.best) {
        (Some(detail), best) => {
            format!("{}{} [{detail}]", cell.text, if best { "*" } else { "" })
        }
        (None, true) => format!("{}*", cell.text),
        (None, false) => cell.text.clone(),
    };
    let widths: Vec<usize> = (0..columns)
        .map(|i| {
            let cells = table.rows.iter().filter(|line| line.void.is_none() || i == 0);
            let cells =
                cells.filter_map(|line| line.cells.get(i)).map(|cell| columns_of(&text(cell)));
            cells.chain([columns_of(&table.head[i].title)]).max().unwrap_or(0)
        })
        .collect();
    let mut from = 1;
    while from < columns || (columns == 1 && from == 1) {
        let mut used = widths[0];
        let mut to = from;
        while to < columns && (to == from || used + 2 + widths[to] <= width) {
            used += 2 + widths[to];
            to += 1;
        }
        let shown: Vec<usize> = std::iter::once(0).chain(from..to).collect();
        let mut line = |cells: &dyn Fn(usize) -> String| {
            let mut row = String::new();
            for &i in &shown {
                let cell = cells(i);
                let pad = " ".repeat(widths[i].saturating_sub(columns_of(&cell)));
                let gap = if i == 0 { "" } else { "  " };
                let _ = if table.head[i].numeric {
                    write!(row, "{gap}{pad}{cell}")
                } else {
                    write!(row, "{gap}{cell}{pad}")
                };
            }
            let _ = writeln!(out, "{}", row.trim_end());
        };
        line(&|i| table.head[i].title.clone());
        line(&|i| "─".repeat(widths[i]));
        for row in &table.rows {
            match &row.void {
                None => line(&|i| row.cells.get(i).map(text).unwrap_or_default()),
                Some(reason) => line(&|i| match i {
                    0 => text(&row.cells[0]),
                    _ if i == shown[1] => format!("void: {reason}"),
                    _ => String::new(),
                }),
            }
        }
        out.push('\n');
        from = to.max(from + 1);
    }
}

/// How many columns text takes. Exact for the scripts of the tables, which are Latin.
fn columns_of(text: &str) -> usize {
    text.chars().count()
}

fn wrap(out: &mut String, text: &str, width: usize) {
    let mut used = 0;
    for word in text.split(' ') {
        let len = columns_of(word);
        if used > 0 && used + 1 + len > width {
            out.push('\n');
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += len;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::view::{Head, Line};

    fn sample() -> Table {
        Table {
            id: "t",
            caption: "Caption".into(),
            head: vec![Head::text("name"), Head::number("first"), Head::number("second")],
            rows: vec![
                Line {
                    cells: vec![Cell::new("a"), Cell::new("1.0"), Cell::new("22.5")],
                    ..Line::default()
                },
                Line {
                    cells: vec![Cell::new("b"), Cell::new("3"), Cell::new("4")],
                    void: Some("broken".into()),
                    ..Line::default()
                },
            ],
            note: None,
        }
    }

    #[test]
    fn columns_line_up_and_void_rows_say_why() {
        let mut out = String::new();
        table(&mut out, &sample(), 80);
        assert_eq!(
            out,
            "Caption\nname  first  second\n────  ─────  ──────\na       1.0    22.5\nb     void: \
             broken\n\n"
        );
    }

    #[test]
    fn columns_that_do_not_fit_go_below() {
        let mut out = String::new();
        table(&mut out, &sample(), 12);
        assert!(out.contains("name  first\n") && out.contains("name  second\n"), "{out}");
        let mut out = String::new();
        wrap(&mut out, "one two three", 7);
        assert_eq!(out, "one two\nthree\n");
    }
}
