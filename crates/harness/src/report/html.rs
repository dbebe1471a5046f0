//! The report as one self-contained page: no script, no request, light and dark, wide and narrow,
//! on paper.

use std::fmt::Write as _;

use super::chart::{self, Bar, DotRow, Frame, Point, Series, escape};
use super::view::{self, Cell, Line, Table, display_name, grouped, short_size, significant, slot};
use super::{Experiment, Group, Measures, Parity, Report, Row, Sample, Standing};
use super::{markdown, tokens};
use crate::metrics::{Ratio, Unit};

/// What the numbers do not say, each with its source. The Markdown report prints the same list.
pub(super) const CAVEATS: [(&str, &str); 8] = [
    (
        "Compression is not model quality.",
        "Fewer tokens make training and inference cheaper. Whether a language model becomes better \
         is another question: Schmidt et al. (2024, “Tokenization Is More Than Compression”) \
         found tokenizers with fewer tokens that gave no better models, Goldman et al. (2024) a \
         correlation. Nothing here trains a model.",
    ),
    (
        "Rényi efficiency can rise while translation falls.",
        "Zouhar et al. (2023) found it to go along with BLEU; Cognetta et al. (2024, “Two \
         Counterexamples to Tokenization and the Noiseless Channel”) changed BPE so that it rises \
         at will while BLEU falls.",
    ),
    (
        "Bits per byte are of a model without memory.",
        "Each token is priced alone, from its count in the training part. That makes vocabularies of \
         different sizes comparable, but a language model sees context, and there the order may be \
         another.",
    ),
    (
        "Fertility needs words.",
        "Words are what white space separates. That is a syllable in Vietnamese, a phrase in \
         Korean or Turkish, and nothing in Chinese, Japanese and Thai, which therefore have none. \
         Compare fertility between tokenizers of one language, not between languages; for those \
         there is the premium.",
    ),
    (
        "The premium mixes the language with the script and the corpus.",
        "A language that is rare in the training text pays more tokens whatever the algorithm. The \
         numbers hold for these training shares, not for the language.",
    ),
    (
        "Bytes per token cannot be compared between scripts.",
        "A Thai letter takes three bytes, an English one takes one.",
    ),
    (
        "Intervals cover the choice of documents only.",
        "They say how much the numbers would move with other documents of the same kind; not with \
         another kind, another training set, another splitter or another seed of the split.",
    ),
    (
        "Speed is of these implementations on this machine.",
        "Other implementations and other machines may order differently. Rounds are interleaved, so \
         believe ratios within this page rather than the figures, and look at the ranges: where \
         they are wide, the machine was busy.",
    ),
];

pub(super) fn render(report: &Report) -> String {
    let mut page = Page::default();
    let experiment = report.experiments.first();
    if let Some(experiment) = experiment {
        terms(&mut page, report, experiment);
        headline(&mut page, report, experiment);
        curves(&mut page, report, experiment);
        languages(&mut page, experiment);
        let code = view::code(experiment, experiment.headline_size());
        if !code.rows.is_empty() {
            page.section(
                "code",
                "Code and numbers",
                "How indentation, operators of two characters or more, and numbers are cut. What \
                 the splitter decides is alike for all: where it gives the last space of an \
                 indentation to the word behind it, no algorithm can keep them apart.",
            );
            page.table(&code);
            page.end();
        }
        let morphs = view::morphology(experiment, experiment.headline_size());
        if !morphs.rows.is_empty() {
            page.section(
                "morphs",
                "Morphs",
                "Whether words are cut where their parts meet, held against the gold segmentations \
                 that were given.",
            );
            page.table(&morphs);
            page.end();
        }
    }
    speed(&mut page, report);
    training(&mut page, report);
    if !report.worst_cases.is_empty() {
        page.section(
            "worst-cases",
            "Worst cases",
            "Inputs without a place to cut, repeated or random, at two sizes. Software that is \
             quadratic somewhere shows it here.",
        );
        page.table(&view::worst_cases(report));
        page.end();
    }
    samples(&mut page, report);
    if let Some(experiment) = experiment {
        metrics(&mut page, experiment);
    }
    verification(&mut page, report);
    if !report.criterion.is_empty() {
        page.section("criterion", "Criterion", "Each bench checks its answer before it is timed.");
        page.table(&view::criterion(report));
        page.end();
    }
    caveats(&mut page);
    manifest(&mut page, report);
    document(report, &page)
}

/// The body under construction, and its table of contents.
#[derive(Default)]
struct Page {
    body: String,
    contents: Vec<(&'static str, &'static str)>,
}

impl Page {
    fn section(&mut self, id: &'static str, title: &'static str, about: &str) {
        self.contents.push((id, title));
        let _ = writeln!(
            self.body,
            "<section id=\"{id}\" aria-labelledby=\"{id}-h\"><h2 id=\"{id}-h\">{title}</h2>"
        );
        if !about.is_empty() {
            let _ = writeln!(self.body, "<p class=\"about\">{}</p>", escape(about));
        }
    }

    fn end(&mut self) {
        self.body.push_str("</section>\n");
    }

    fn table(&mut self, table: &Table) {
        if !table.rows.is_empty() {
            self.body.push_str(&render_table(table));
        }
    }

    /// Tables that are shown when asked for.
    fn details(&mut self, summary: &str, tables: &[Table]) {
        let _ = writeln!(self.body, "<details><summary>{}</summary>", escape(summary));
        tables.iter().for_each(|table| self.table(table));
        self.body.push_str("</details>\n");
    }

    /// A chart drawn for wide and for narrow screens.
    fn chart(&mut self, caption: &str, draw: impl Fn(&str, f64) -> String, id: &str) {
        let _ = write!(
            self.body,
            "<figure><div class=\"wide\">{}</div><div class=\"narrow\">{}</div>",
            draw(&format!("{id}-w"), 760.0),
            draw(&format!("{id}-n"), 350.0)
        );
        if !caption.is_empty() {
            let _ = write!(self.body, "<figcaption>{}</figcaption>", escape(caption));
        }
        self.body.push_str("</figure>\n");
    }
}

fn swatch(algorithm: &str) -> String {
    chart::mark(slot(algorithm))
}

fn render_table(table: &Table) -> String {
    let Table { id, caption, head, rows, note } = table;
    let mut out = format!(
        "<div class=\"scroll\" role=\"region\" aria-label=\"{0}\" tabindex=\"0\"><table \
         class=\"{id}\"><caption>{0}</caption><thead><tr>",
        escape(caption)
    );
    for column in head {
        let class = if column.numeric { " class=\"num\"" } else { "" };
        let mark = column.algorithm.as_deref().map(swatch).unwrap_or_default();
        let _ = write!(out, "<th scope=\"col\"{class}>{mark}{}</th>", escape(&column.title));
    }
    out.push_str("</tr></thead><tbody>\n");
    for line in rows {
        let Line { cells, muted, void, algorithm } = line;
        let failed = algorithm.as_deref() == Some("failed");
        let class = match (failed, muted) {
            (true, _) => " class=\"failed\"",
            (_, true) => " class=\"muted\"",
            _ => "",
        };
        let _ = write!(out, "<tr{class}>");
        for (i, (cell, column)) in cells.iter().zip(head).enumerate() {
            if let (Some(reason), true) = (void, i > 0) {
                let _ = write!(
                    out,
                    "<td class=\"void\" colspan=\"{}\">void: {}</td>",
                    head.len() - 1,
                    escape(reason)
                );
                break;
            }
            out.push_str(&render_cell(cell, i == 0, column.numeric, algorithm.as_deref(), head, i));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    if let Some(note) = note {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note).replace('\n', "<br>"));
    }
    out
}

fn render_cell(
    cell: &Cell,
    first: bool,
    numeric: bool,
    algorithm: Option<&str>,
    head: &[view::Head],
    column: usize,
) -> String {
    let Cell { text, detail, best, shade } = cell;
    let (tag, scope) = if first { ("th", " scope=\"row\"") } else { ("td", "") };
    let class = if numeric { " class=\"num\"" } else { "" };
    let style = match shade {
        Some(shade) => {
            format!(" style=\"background:rgba(var(--shade),{:.2})\"", shade * 0.42)
        }
        None => String::new(),
    };
    // The mark of the algorithm stands in the column that names it.
    let names = algorithm.filter(|_| head[column].title == "algorithm");
    let mark = names.filter(|&name| name != "failed").map(swatch).unwrap_or_default();
    let text = escape(text);
    let text = if *best { format!("<b>{text}</b>") } else { text };
    let detail =
        detail.as_ref().map(|d| format!("<small>{}</small>", escape(d))).unwrap_or_default();
    format!("<{tag}{scope}{class}{style}>{mark}{text}{detail}</{tag}>")
}

fn document(report: &Report, page: &Page) -> String {
    let mut contents = String::new();
    for (id, title) in &page.contents {
        let _ = write!(contents, "<li><a href=\"#{id}\">{title}</a></li>");
    }
    let manifest = &report.manifest;
    let mut kicker = vec![manifest.created.replace('T', " ").trim_end_matches('Z').to_owned()];
    kicker[0].push_str(" UTC");
    if let Some(commit) = &manifest.commit {
        kicker.push(format!("commit {}", commit.chars().take(20).collect::<String>()));
    }
    if let Some(machine) = &manifest.machine {
        kicker.push(format!("{}, {} threads", machine.cpu, machine.threads));
    }
    let checks = report.experiments.iter().flat_map(|e| &e.rows).flat_map(|row| &row.checks);
    let (mut all, mut held) = (0u64, 0u64);
    for check in checks {
        all += 1;
        held += u64::from(check.passed());
    }
    let voided = report.experiments.iter().flat_map(|e| &e.rows).filter(|r| r.void.is_some());
    let verdict = match (report.passed(), voided.count()) {
        (true, 0) => format!("all {} checks hold", grouped(all)),
        (true, n) => format!("all {} checks hold; {n} rows do not count", grouped(all)),
        (false, n) => format!(
            "{} of {} checks fail; {n} rows do not count",
            grouped(all - held),
            grouped(all)
        ),
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta \
         name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<link rel=\"icon\" \
         href=\"data:,\">\n<style>\n{style}</style>\n</head>\n<body>\n<header class=\"top\">\n<p \
         class=\"kicker\">{kicker}</p>\n<h1>{title}</h1>\n{lede}<p><a class=\"verdict{bad}\" \
         href=\"#verification\">{verdict}</a></p>\n<nav aria-label=\"Contents\"><ol>{contents}\
         </ol></nav>\n</header>\n<main>\n{body}</main>\n<footer><p>The numbers behind this page \
         are in <code>report.json</code> beside it; <code>harness check report.json</code> holds \
         them against the files that they came from.</p></footer>\n</body>\n</html>\n",
        title = escape(&report.title),
        style = include_str!("style.css"),
        kicker = escape(&kicker.join(" · ")),
        lede = lede(report),
        bad = if report.passed() { "" } else { " bad" },
        body = page.body,
    )
}

/// The finding in a sentence or two.
fn lede(report: &Report) -> String {
    let text = sentences(report);
    if text.is_empty() { text } else { format!("<p class=\"lede\">{}</p>\n", escape(&text)) }
}

/// What the headline says, in words. Nothing is said that the intervals do not carry.
pub(super) fn sentences(report: &Report) -> String {
    let Some(experiment) = report.experiments.first() else { return String::new() };
    let size = experiment.headline_size();
    let mut rows: Vec<&Row> = experiment
        .at(size)
        .filter(|row| row.standing == Standing::Contender && row.void.is_none())
        .collect();
    let value = |row: &Row| row.overall.value(Ratio::BytesPerToken).unwrap_or(0.0);
    rows.sort_by(|a, b| value(b).total_cmp(&value(a)));
    let Some(first) = rows.first() else { return String::new() };
    let mut text = format!(
        "With {} tokens on {} of held-out text, ",
        grouped(size as u64),
        view::bytes(experiment.held_out.bytes)
    );
    for (i, row) in rows.iter().enumerate() {
        let name = display_name(&row.algorithm);
        let _ = match i {
            0 => write!(text, "{name} packs {:.2} bytes into a token", value(row)),
            _ if i + 1 == rows.len() => write!(text, " and {name} {:.2}", value(row)),
            _ => write!(text, ", {name} {:.2}", value(row)),
        };
    }
    text.push('.');
    if let Some(second) = rows.get(1) {
        let told_apart = experiment.differences.iter().find(|d| {
            let names = [d.a.as_str(), d.b.as_str()];
            d.size == size
                && d.ratio == Ratio::BytesPerToken
                && names.contains(&first.algorithm.as_str())
                && names.contains(&second.algorithm.as_str())
        });
        match told_apart.filter(|d| d.difference.interval.is_some()) {
            Some(d) if d.difference.excludes_zero() => {
                let _ = write!(
                    text,
                    " The first two are told apart (paired 95 % interval of the difference {:.3} \
                     to {:.3}).",
                    d.difference.interval.map_or(0.0, |i| i[0].abs().min(i[1].abs())),
                    d.difference.interval.map_or(0.0, |i| i[0].abs().max(i[1].abs()))
                );
            }
            Some(_) => text.push_str(" The first two are not told apart by these documents."),
            None => {}
        }
    }
    text
}

fn terms(page: &mut Page, report: &Report, experiment: &Experiment) {
    page.section(
        "terms",
        "Terms",
        "Every contestant sees the same text, cut into the same pieces, counted once. They differ \
         in nothing but the algorithm.",
    );
    let terms = &experiment.terms;
    let policy = match terms.bytes {
        super::BytePolicy::Bytes => {
            "every algorithm covers all 256 bytes, so that nothing is unknown (whole words, which \
             cannot, have <unk>)"
        }
        super::BytePolicy::Unk => "alphabets of characters; what is outside is unknown",
    };
    let specials = match terms.special_tokens.len() {
        0 => "none".to_owned(),
        n => format!("{n}, counted in the vocabulary size: {}", terms.special_tokens.join(" ")),
    };
    let sizes: Vec<String> = experiment.sizes().iter().map(|&size| grouped(size as u64)).collect();
    let algorithms: Vec<String> =
        experiment.algorithms().iter().map(|name| display_name(name)).collect();
    let items = [
        ("algorithms", algorithms.join(", ")),
        ("vocabulary sizes", sizes.join(", ")),
        ("normalizer", terms.normalizer.clone()),
        ("splitter", terms.splitter.clone()),
        ("special tokens", specials),
        ("unseen text", policy.to_owned()),
        (
            "training part",
            format!(
                "{} in {} documents, {} distinct pieces",
                view::bytes(experiment.train.bytes),
                grouped(experiment.train.documents),
                grouped(experiment.train.distinct_pieces)
            ),
        ),
        (
            "held-out part",
            format!(
                "{} in {} documents; no document is in both, and translations of one sentence \
                 stay on one side",
                view::bytes(experiment.held_out.bytes),
                grouped(experiment.held_out.documents)
            ),
        ),
        ("seed", report.manifest.options.get("seed").cloned().unwrap_or_else(|| "–".into())),
    ];
    page.body.push_str("<dl class=\"terms\">");
    for (term, text) in items {
        let _ = write!(page.body, "<dt>{term}</dt><dd>{}</dd>", escape(&text));
    }
    page.body.push_str("</dl>\n");
    let summary = format!("The {} corpora", experiment.corpora.len());
    page.details(&summary, &[view::corpora(experiment)]);
    page.end();
}

fn headline(page: &mut Page, report: &Report, experiment: &Experiment) {
    page.section("headline", "Headline", "");
    let size = experiment.headline_size();
    page.table(&view::headline(report, experiment, size));
    page.body.push_str(
        "<p class=\"note\">Definitions and sources are in <code>docs/metrics.md</code>; what the \
         numbers do not mean is said <a href=\"#caveats\">below</a>.</p>\n",
    );
    page.details(
        "Paired differences between the contenders",
        &[view::differences(experiment, size)],
    );
    page.end();
}

/// A ratio by vocabulary size. The contenders alone, whose differences would vanish on an axis that
/// has the extremes too; the baselines where nobody competes.
fn series(experiment: &Experiment, ratio: Ratio) -> Vec<Series> {
    let competes =
        |row: &Row| row.standing == Standing::Contender && row.overall.value(ratio).is_some();
    let contested = experiment.rows.iter().any(competes);
    experiment
        .algorithms()
        .iter()
        .map(|&name| {
            let rows = experiment.rows.iter();
            let mut points: Vec<Point> = rows
                .filter(|row| row.algorithm == name && row.void.is_none())
                .filter(|row| competes(row) || !contested)
                .filter_map(|row| {
                    let estimate = row.overall.ratios.get(&ratio)?;
                    let (y, interval) = (estimate.value, estimate.interval);
                    Some(Point { x: row.size as f64, y, interval })
                })
                .collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            let standing = experiment.rows.iter().find(|row| row.algorithm == name);
            let muted = standing.is_some_and(|row| row.standing == Standing::Baseline);
            Series { name: display_name(name), slot: slot(name), muted, points }
        })
        .filter(|series| !series.points.is_empty())
        .collect()
}

fn size_ticks(experiment: &Experiment) -> Vec<(f64, String)> {
    experiment.sizes().into_iter().map(|size| (size as f64, short_size(size))).collect()
}

/// The chart of a ratio by vocabulary size.
fn curve(page: &mut Page, experiment: &Experiment, ratio: Ratio, id: &str, label: &str) {
    let ticks = size_ticks(experiment);
    let series = series(experiment, ratio);
    let title = format!("{} by vocabulary size, {}", ratio.title(), experiment.name);
    let description: Vec<String> = series
        .iter()
        .map(|s| {
            let values: Vec<String> =
                s.points.iter().map(|p| format!("{:.2} at {}", p.y, p.x)).collect();
            format!("{}: {}", s.name, values.join(", "))
        })
        .collect();
    let description = description.join("; ");
    page.chart(
        &experiment.name,
        |id, width| {
            let height = if width > 500.0 { 400.0 } else { 320.0 };
            let frame = Frame { id, title: &title, description: &description, width, height };
            chart::lines(&frame, label, "vocabulary size", &ticks, &series)
        },
        id,
    );
}

fn curves(page: &mut Page, report: &Report, experiment: &Experiment) {
    page.section(
        "compression",
        "Against vocabulary size",
        "Bytes of held-out text per token; higher is fewer tokens. Pale bars are 95 % intervals. The \
         axis need not begin at zero. The baselines are in the tables.",
    );
    curve(page, experiment, Ratio::BytesPerToken, "curve", "bytes per token");
    page.details(
        "The numbers, baselines included",
        &[markdown::curve(experiment, Ratio::BytesPerToken)],
    );
    page.body.push_str(
        "<h3>Bits per byte</h3><p class=\"about\">What the tokens cost if each is drawn alone from \
         the distribution of the training part; lower is shorter. More tokens in the vocabulary make \
         each of them dearer and the text shorter: bits per byte count both, so that sizes can be \
         compared.</p>",
    );
    curve(page, experiment, Ratio::BitsPerByte, "bits", "bits per byte");
    page.details(
        "The numbers, baselines included",
        &[markdown::curve(experiment, Ratio::BitsPerByte)],
    );
    if report.experiments.len() > 1 {
        page.body.push_str(
            "<h3>Each corpus on its own</h3><p class=\"about\">Trained on the corpus alone and \
             measured on its held-out part.</p><p class=\"legend\">",
        );
        for series in series(experiment, Ratio::BytesPerToken) {
            let mark = chart::mark(series.slot);
            let _ = write!(page.body, "<span>{mark}{}</span> ", escape(&series.name));
        }
        page.body.push_str("</p><div class=\"grid\">\n");
        for (i, experiment) in report.experiments.iter().enumerate().skip(1) {
            let series = series(experiment, Ratio::BytesPerToken);
            let id = format!("curve{i}");
            let frame = Frame {
                id: &id,
                title: &format!("Bytes per token by vocabulary size, {}", experiment.name),
                description: "The numbers are in the table below.",
                width: 290.0,
                height: 220.0,
            };
            let ticks = size_ticks(experiment);
            let svg = chart::lines(&frame, "bytes per token", "", &ticks, &series);
            let _ =
                writeln!(page.body, "<figure><h3>{}</h3>{svg}</figure>", escape(&experiment.name));
        }
        page.body.push_str("</div>\n");
        page.table(&each_alone(report));
    }
    page.end();
}

/// One row for each corpus alone, at its headline size.
fn each_alone(report: &Report) -> Table {
    let mut names: Vec<&str> = Vec::new();
    for experiment in &report.experiments[1..] {
        for name in experiment.algorithms() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let mut head = vec![view::Head::text("corpus"), view::Head::number("vocabulary")];
    head.extend(names.iter().map(|name| view::Head {
        title: display_name(name),
        algorithm: Some((*name).to_owned()),
        numeric: true,
    }));
    let rows = report.experiments[1..].iter().map(|experiment| {
        let size = experiment.headline_size();
        let mut cells = vec![Cell::new(experiment.name.clone()), Cell::new(grouped(size as u64))];
        let rows: Vec<&Row> = experiment.at(size).collect();
        let value = |row: &Row| row.overall.value(Ratio::BytesPerToken);
        let best = rows
            .iter()
            .filter(|row| row.standing == Standing::Contender && row.void.is_none())
            .filter_map(|row| value(row))
            .max_by(f64::total_cmp);
        cells.extend(names.iter().map(|&name| {
            let row = rows.iter().find(|row| row.algorithm == name && row.void.is_none());
            let Some(estimate) = row.and_then(|row| row.overall.ratios.get(&Ratio::BytesPerToken))
            else {
                return Cell::new("–");
            };
            Cell {
                text: format!("{:.3}", estimate.value),
                detail: estimate.interval.map(|[low, high]| format!("{low:.3}–{high:.3}")),
                best: row.is_some_and(|row| row.standing == Standing::Contender)
                    && Some(estimate.value) == best,
                shade: None,
            }
        }));
        Line { cells, ..Line::default() }
    });
    Table {
        id: "alone",
        caption: "Bytes per token, each corpus on its own".into(),
        head,
        rows: rows.collect(),
        note: Some(
            "The size is the largest that most contenders reach on the corpus. A dash is a row that \
             does not count: the text gives no vocabulary of that size."
                .into(),
        ),
    }
}

fn languages(page: &mut Page, experiment: &Experiment) {
    let size = experiment.headline_size();
    if view::premiums(experiment, size, 0).is_some() {
        page.section(
            "premium",
            "Premium of languages",
            "How many tokens the same content takes in each language, relative to one of them \
             (Petrov et al. 2023). 2 means twice as many tokens: twice the cost, half the context. It \
             follows the shares of the languages in the training part, which are not equal here.",
        );
        let rows: Vec<&Row> = experiment
            .at(size)
            .filter(|row| row.void.is_none() && row.standing == Standing::Contender)
            .collect();
        for nth in 0.. {
            let Some(table) = view::premiums(experiment, size, nth) else { break };
            premium_chart(page, &rows, nth);
            page.details("The numbers, baselines included", &[table]);
        }
        page.end();
    }
    let fertility = view::by_group(
        "fertility",
        format!("Tokens per word by language, {} tokens", grouped(size as u64)),
        experiment,
        size,
        |row| &row.languages,
        "language",
        Ratio::TokensPerWord,
    );
    if fertility.rows.len() > 1 {
        page.section(
            "fertility",
            "Fertility of languages",
            "Tokens per word, words being what white space separates. Scripts without spaces have \
             no fertility; their characters per token stand in the second table.",
        );
        page.table(&named_languages(fertility));
        let chars = view::by_group(
            "chars",
            format!("Characters per token by language, {} tokens", grouped(size as u64)),
            experiment,
            size,
            |row| &row.languages,
            "language",
            Ratio::CharsPerToken,
        );
        page.details("Characters per token", &[named_languages(chars)]);
        page.end();
    }
}

fn named_languages(mut table: Table) -> Table {
    for line in &mut table.rows {
        line.cells[0].text = view::language_name(&line.cells[0].text);
    }
    table
}

fn premium_chart(page: &mut Page, rows: &[&Row], nth: usize) {
    let parities: Vec<(&Row, &Parity)> =
        rows.iter().filter_map(|row| Some((*row, row.parity.get(nth)?))).collect();
    let Some(&(_, parity)) = parities.first() else { return };
    let mut order: Vec<(&String, f64)> = parity
        .premiums
        .keys()
        .filter(|language| **language != parity.reference)
        .map(|language| {
            let values = parities.iter().filter_map(|(_, parity)| parity.premiums.get(language));
            (language, values.map(|e| e.value).sum::<f64>())
        })
        .collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let dot_rows: Vec<DotRow> = order
        .iter()
        .map(|(language, _)| DotRow {
            name: view::language_name(language),
            dots: parities
                .iter()
                .filter_map(|(row, parity)| {
                    let estimate = parity.premiums.get(*language)?;
                    Some((slot(&row.algorithm), estimate.value, estimate.interval))
                })
                .collect(),
        })
        .collect();
    let legend: Vec<(usize, String)> = parities
        .iter()
        .map(|(row, _)| (slot(&row.algorithm), display_name(&row.algorithm)))
        .collect();
    let reference = view::language_name(&parity.reference);
    let title =
        format!("Tokens relative to {reference}, by language and algorithm, {}", parity.corpus);
    let inequality: Vec<String> = parities
        .iter()
        .filter_map(|(row, parity)| {
            let gini = parity.gini?;
            let ends = gini.interval.map(|[low, high]| format!(" ({low:.3}–{high:.3})"));
            let name = display_name(&row.algorithm);
            Some(format!("{name} {:.3}{}", gini.value, ends.unwrap_or_default()))
        })
        .collect();
    let caption = format!(
        "{}: {} aligned held-out documents. Pale bars are 95 % intervals over documents; the rule \
         at 1 is {reference}. Gini coefficient over the languages, 0 being parity: {}.",
        parity.corpus,
        parity.documents,
        inequality.join(", ")
    );
    let _ = write!(page.body, "<h3>{}</h3>", escape(&parity.corpus));
    page.chart(
        &caption,
        |id, width| {
            let frame = Frame {
                id,
                title: &title,
                description: "The numbers are in the table that follows.",
                width,
                height: 0.0,
            };
            let label = format!("tokens relative to {reference}");
            chart::dots(&frame, &label, 1.0, &legend, &dot_rows)
        },
        &format!("premium-{nth}"),
    );
}

fn speed(page: &mut Page, report: &Report) {
    if report.speed.is_empty() {
        return;
    }
    page.section(
        "speed",
        "Speed",
        "From text to ids on one thread, in a session that has not seen the text. The black line is \
         the range of the rounds.",
    );
    let mut groups: Vec<(String, Vec<Bar>)> = Vec::new();
    for speed in &report.speed {
        let rounds = speed.on_new_text();
        let bar = Bar {
            name: display_name(&speed.algorithm),
            slot: slot(&speed.algorithm),
            muted: speed.standing == Standing::Baseline,
            value: rounds.median,
            range: Some([rounds.min, rounds.max]),
            text: significant(rounds.median),
        };
        match groups.iter_mut().find(|group| group.0 == speed.corpus) {
            Some(group) => group.1.push(bar),
            None => groups.push((speed.corpus.clone(), vec![bar])),
        }
    }
    // The first corpora are charted; the table has all.
    groups.truncate(4);
    page.chart(
        "",
        |id, width| {
            let frame = Frame {
                id,
                title: "Encoding speed in megabytes a second, by corpus and algorithm",
                description: "The numbers are in the table that follows.",
                width,
                height: 0.0,
            };
            chart::bars(&frame, "MB/s, text to ids, one thread", &groups)
        },
        "speed-chart",
    );
    page.details("The numbers of every corpus", &[view::speed(report)]);
    page.end();
}

fn training(page: &mut Page, report: &Report) {
    if report.training.is_empty() {
        return;
    }
    page.section("training", "Training time and memory", "");
    page.table(&view::training(report));
    page.end();
}

fn samples(page: &mut Page, report: &Report) {
    if report.samples.is_empty() {
        return;
    }
    page.section(
        "samples",
        "The tokens",
        "Neighbouring tokens have different tints. A space is shown as ·, a line end as ↵; a \
         token that is only a part of a character is shown as its bytes. Point at a token for its \
         id.",
    );
    for sample in &report.samples {
        let Sample { name, language, text, lines } = sample;
        let direction = if tokens::is_rtl(language) { "rtl" } else { "ltr" };
        let lang = if language == "zxx" { "" } else { language };
        let class = if language == "zxx" { "sample code" } else { "sample" };
        let _ = writeln!(
            page.body,
            "<div class=\"{class}\"><h3>{}</h3><p class=\"source\" lang=\"{1}\" dir=\"{direction}\">\
             {2}</p>",
            escape(name),
            escape(lang),
            escape(text)
        );
        for line in lines {
            let muted = if line.standing == Standing::Baseline { " muted" } else { "" };
            let _ = write!(
                page.body,
                "<div class=\"line{muted}\"><div class=\"who\">{}{}<small>{} tokens</small></div>",
                swatch(&line.algorithm),
                escape(&display_name(&line.algorithm)),
                line.tokens.len()
            );
            let _ = match &line.void {
                Some(reason) => {
                    write!(page.body, "<p class=\"tokens\">void: {}</p>", escape(reason))
                }
                None => write!(
                    page.body,
                    "<p class=\"tokens\" lang=\"{}\" dir=\"{direction}\">{}</p>",
                    escape(lang),
                    tokens::html(sample, line)
                ),
            };
            page.body.push_str("</div>\n");
        }
        page.body.push_str("</div>\n");
    }
    page.end();
}

fn metrics(page: &mut Page, experiment: &Experiment) {
    let size = experiment.headline_size();
    let rows: Vec<&Row> = experiment.at(size).collect();
    page.section(
        "metrics",
        "Every metric",
        "For all held-out text, for each corpus and each language. Formulas and sources are in \
         docs/metrics.md. Other vocabulary sizes are in report.json.",
    );
    let columns: Vec<(&Row, Option<&Measures>)> =
        rows.iter().map(|row| (*row, Some(&row.overall))).collect();
    let at = format!("{} tokens", grouped(size as u64));
    page.table(&view::all_metrics(format!("{}, {at}", experiment.name), &columns));
    type Groups = fn(&Row) -> &[Group];
    let kinds: [(&str, Groups); 2] =
        [("Corpus", |row| &row.corpora), ("Language", |row| &row.languages)];
    for (kind, groups) in kinds {
        let mut names: Vec<&str> = Vec::new();
        for group in rows.iter().flat_map(|row| groups(row)) {
            if !names.contains(&group.name.as_str()) {
                names.push(&group.name);
            }
        }
        if names.len() < 2 {
            continue;
        }
        for name in names {
            let columns: Vec<(&Row, Option<&Measures>)> = rows
                .iter()
                .map(|row| {
                    let group = groups(row).iter().find(|group| group.name == name);
                    (*row, group.map(|group| &group.measures))
                })
                .collect();
            let title =
                if kind == "Language" { view::language_name(name) } else { name.to_owned() };
            let measures = columns.iter().find_map(|column| column.1);
            let summary = measures.map_or_else(String::new, |m| {
                format!(" · {} in {} documents", view::bytes(m.bytes), grouped(m.documents))
            });
            let table = view::all_metrics(format!("{title}, {at}"), &columns);
            page.details(&format!("{kind}: {title}{summary}"), &[table]);
        }
    }
    page.end();
}

fn verification(page: &mut Page, report: &Report) {
    page.section(
        "verification",
        "Verification",
        "Nothing is measured that was not checked first, on held-out text and on awkward inputs. A \
         row with a failed check does not count, and is shown as void wherever it would stand.",
    );
    page.table(&view::voided(report));
    page.table(&view::verification(report));
    page.end();
}

fn caveats(page: &mut Page) {
    page.section("caveats", "What these numbers do not mean", "");
    page.body.push_str("<ul>\n");
    for (claim, reason) in CAVEATS {
        let _ = writeln!(page.body, "<li><b>{}</b> {}</li>", escape(claim), escape(reason));
    }
    page.body.push_str("</ul>\n");
    page.end();
}

fn manifest(page: &mut Page, report: &Report) {
    let manifest = &report.manifest;
    page.section("manifest", "Manifest", "What went in, so that it can be repeated and checked.");
    page.body.push_str("<dl class=\"terms\">");
    let mut item = |term: &str, text: &str| {
        let _ =
            write!(page.body, "<dt>{}</dt><dd class=\"mono\">{}</dd>", escape(term), escape(text));
    };
    item("made", &manifest.created);
    item("took", &format!("{} s", manifest.seconds));
    if let Some(commit) = &manifest.commit {
        item("commit", commit);
    }
    if let Some(machine) = &manifest.machine {
        let memory = machine.memory_bytes.map(|n| format!(", {} memory", view::bytes(n)));
        item(
            "machine",
            &format!(
                "{}, {} threads{}, {}",
                machine.cpu,
                machine.threads,
                memory.unwrap_or_default(),
                machine.system
            ),
        );
    }
    for (name, version) in &manifest.versions {
        item(name, version);
    }
    for (name, value) in &manifest.options {
        item(name, value);
    }
    item("options, SHA-256", &manifest.options_sha256);
    if let Some(experiment) = report.experiments.first() {
        item("training set, SHA-256", &experiment.terms.train_set);
    }
    page.body.push_str("</dl>\n");
    if !manifest.files.is_empty() {
        let rows = manifest.files.iter().map(|file| Line {
            cells: vec![
                Cell::new(file.path.clone()),
                Cell::new(grouped(file.bytes)),
                Cell::new(file.sha256.clone()),
            ],
            ..Line::default()
        });
        let table = Table {
            id: "files mono",
            caption: "Files".into(),
            head: vec![
                view::Head::text("path"),
                view::Head::number("bytes"),
                view::Head::text("SHA-256"),
            ],
            rows: rows.collect(),
            note: None,
        };
        page.details(&format!("{} files", manifest.files.len()), &[table]);
    }
    page.end();
}

/// The value of a share or plain number for other renderers.
pub(super) fn plain(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Plain => format!("{value:.3}"),
        Unit::Share => format!("{:.1} %", value * 100.0),
    }
}
