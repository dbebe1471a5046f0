//! A small comparison, rendered in every form.

use harness::corpus::Corpus;
use harness::experiment::{Plan, compare};
use harness::manifest::{broken_seal, seal};
use harness::morphology::Gold;
use harness::report::{Check, Report};

fn report() -> Report {
    let lines = |words: [&str; 3]| -> String {
        let line = |n: usize| format!("{} {n} {} {}\n", words[0], words[1], words[n % 3]);
        (0..150).map(line).collect()
    };
    let texts = [
        ("en", lines(["the <b>cat</b>", "sat", "on the mat"])),
        ("ar", lines(["القطة", "جلست", "على الحصيرة"])),
        ("zh-Hans", lines(["这只猫", "坐在", "垫子上"])),
    ];
    let plan = Plan {
        name: "animals & <others>".into(),
        vocab_sizes: vec![560, 600],
        bootstrap: 50,
        ..Plan::default()
    };
    let corpora = vec![Corpus::parallel("animals", &texts).expect("parallel")];
    compare(&plan, corpora, None, &mut |_| {}).expect("equal terms")
}

#[test]
fn every_form_is_rendered() {
    let report = report();
    assert!(report.passed());

    let json = seal(&report.to_json()).expect("a place for the seal");
    assert_eq!(broken_seal(&json), None);
    let back = Report::from_json(&json).expect("its own form");
    assert_eq!(back.experiments[0].rows.len(), report.experiments[0].rows.len());
    assert_eq!(back.to_html(), {
        let mut sealed = report.clone();
        sealed.manifest.report_sha256 = back.manifest.report_sha256.clone();
        sealed.to_html()
    });

    let html = report.to_html();
    for section in ["terms", "headline", "compression", "premium", "samples", "verification"] {
        assert!(html.contains(&format!("<section id=\"{section}\"")), "{section}");
    }
    assert!(html.contains("What these numbers do not mean"));
    assert!(html.contains("dir=\"rtl\""), "Arabic is written from right to left");
    assert!(html.contains("prefers-color-scheme: dark"));
    assert!(html.contains("<th scope=\"col\"") && html.contains("<th scope=\"row\""));

    let markdown = report.to_markdown();
    assert!(markdown.contains("## Headline") && markdown.contains("| **"), "{markdown}");
    let terminal = report.to_terminal(100);
    assert!(terminal.contains("bytes per token"), "{terminal}");
}

#[test]
fn morphs_are_shown_where_gold_is_given() {
    let text: String = (0..300).map(|n| format!("the {n} readers walked\n")).collect();
    let mut corpus = Corpus::new("text", "prose");
    corpus.push_lines("en", &text);
    let plan = Plan {
        algorithms: vec!["bpe".into(), "byte".into()],
        vocab_sizes: vec![300],
        bootstrap: 20,
        ..Plan::default()
    };
    let gold = Gold::parse(include_str!("gold/morphology.tsv")).expect("its own form");
    let report = compare(&plan, vec![corpus], Some(&gold), &mut |_| {}).expect("equal terms");
    let morphology = report.experiments[0].rows[1].morphology.as_ref().expect("it was given");
    let (words, languages) = (&morphology.overall, &morphology.languages);
    assert_eq!((words.words, languages.len()), (gold.len() as u64, 4));
    // A byte a token: every boundary of a morph is one of a token, and no word is whole.
    assert_eq!(words.recall.map(|recall| recall.value), Some(1.0));
    assert_eq!(words.whole.map(|whole| whole.value), Some(0.0));
    assert!(words.precision.is_some_and(|precision| precision.interval.is_some()));
    assert!(report.to_html().contains("<section id=\"morphs\""));
    assert!(report.to_markdown().contains("## Morphs"));
    assert!(report.to_terminal(100).contains("against morphs"));
}

#[test]
fn the_page_is_one_file_without_script_and_its_markup_nests() {
    let html = report().to_html();
    for outside in ["src=", "<script", "@import", "url(", "http://"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(!html.contains("<b>cat"), "texts are escaped");
    assert!(!html.contains("NaN") && !html.contains("inf\""), "numbers are finite");
    let mut open: Vec<&str> = vec!["html", "head"];
    let body = html.split("</style>").nth(1).expect("styles come first");
    for tag in body.split('<').skip(1) {
        let (name, closed) = match tag.strip_prefix('/') {
            Some(rest) => (rest, true),
            None => (tag, false),
        };
        let inner = tag.split('>').next().unwrap_or("");
        let name = name.split([' ', '>', '\n']).next().unwrap_or("");
        if closed {
            assert_eq!(open.pop(), Some(name), "before </{name}>");
        } else if !inner.ends_with('/')
            && !["br", "wbr", "meta", "link", "!DOCTYPE"].contains(&name)
        {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn failed_checks_and_void_rows_are_visible_everywhere() {
    let mut report = report();
    let row = &mut report.experiments[0].rows[1];
    row.void = Some("fast encoder = naive encoder: \"<x>\" differs".into());
    row.checks.push(Check {
        law: "fast encoder = naive encoder".into(),
        cases: 3,
        failure: Some("\"<x>\" differs".into()),
    });
    assert!(!report.passed());
    let html = report.to_html();
    assert!(html.contains("verdict bad") && html.contains("FAILS"));
    assert!(html.contains("&lt;x&gt;") && !html.contains("\"<x>\""));
    let markdown = report.to_markdown();
    assert!(markdown.contains("Checks failed") && markdown.contains("Rows that do not count"));
    assert!(report.to_terminal(100).contains("Rows that do not count"));
}
