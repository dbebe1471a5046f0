//! A small comparison, rendered in every form.

use harness::corpus::Corpus;
use harness::experiment::{Plan, compare};
use harness::manifest::{broken_seal, seal};
use harness::morphology::Gold;
use harness::report::{Bands, Check, Report, Rounds, Speed, Standing, Training, WorstCase};

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

/// A report with something in every part that a record is compared in.
fn timed() -> Report {
    let mut report = report();
    let rounds = |median| Rounds { median, min: median, max: median, rounds: 3 };
    for (algorithm, encode, pipeline) in [("bpe", 50.0, 20.0), ("byte", 500.0, 100.0)] {
        report.speed.push(Speed {
            corpus: "animals".into(),
            algorithm: algorithm.into(),
            standing: Standing::Contender,
            size: 600,
            bytes: 1000,
            encode: rounds(encode),
            pipeline: rounds(pipeline),
            first: Some(rounds(pipeline)),
        });
    }
    report.training.push(Training {
        corpus: "animals".into(),
        algorithm: "bpe".into(),
        standing: Standing::Contender,
        size: 600,
        seconds: rounds(2.0),
        cpu_seconds: Some(rounds(2.0)),
        peak_bytes: Some(1_000_000),
        before_bytes: None,
        same_model: true,
    });
    for (algorithm, mb_per_second) in [("bpe", 10.0), ("byte", 200.0)] {
        report.worst_cases.push(WorstCase {
            input: "spaces".into(),
            algorithm: algorithm.into(),
            standing: Standing::Contender,
            bytes: 1000,
            mb_per_second,
            doubling: 2.1,
        });
    }
    report
}

#[test]
fn a_report_is_no_regression_of_itself() {
    let report = timed();
    let findings = report.against(&report, Bands::default());
    assert_eq!((&findings.regressions, &findings.notes), (&Vec::new(), &Vec::new()));
    assert!(findings.compared > 500, "{}", findings.compared);
    // A machine of half the speed is none either.
    let mut slow = report.clone();
    for speed in &mut slow.speed {
        speed.encode.median /= 2.0;
        speed.pipeline.median /= 2.0;
        speed.first.as_mut().expect("it is there").median /= 2.0;
    }
    let cpu = slow.training[0].cpu_seconds.as_mut().expect("it is there");
    cpu.median *= 2.0;
    for case in &mut slow.worst_cases {
        case.mb_per_second /= 4.0;
        // Busy during the longer text.
        case.doubling *= 1.6;
    }
    let findings = slow.against(&report, Bands::default());
    assert!(findings.passed(), "{:?}", findings.regressions);
}

#[test]
fn whatever_becomes_worse_is_named() {
    type Change = fn(&mut Report);
    let cases: &[(&str, Change)] = &[
        ("wordpiece-freq at 560: tokens ", |r| r.experiments[0].rows[2].overall.tokens += 1),
        ("wordpiece-freq at 560: bytes per token ", |r| {
            let ratios = &mut r.experiments[0].rows[2].overall.ratios;
            ratios.values_mut().next().expect("there are some").value += 1e-6;
        }),
        ("bytes per token, lower end ", |r| {
            let ratios = &mut r.experiments[0].rows[2].overall.ratios;
            let first = ratios.values_mut().next().expect("there are some");
            first.interval.as_mut().expect("there are documents")[0] += 1e-6;
        }),
        ("wordpiece-freq at 560 on animals: tokens ", |r| {
            r.experiments[0].rows[2].corpora[0].measures.tokens += 1;
        }),
        ("parity on animals: ar ", |r| {
            let premiums = &mut r.experiments[0].rows[2].parity[0].premiums;
            premiums.get_mut("ar").expect("a language").value *= 2.0;
        }),
        ("another vocabulary was trained", |r| r.experiments[0].rows[2].vocab_sha256.clear()),
        ("is void now: torn", |r| r.experiments[0].rows[2].void = Some("torn".into())),
        ("the row is missing", |r| drop(r.experiments[0].rows.remove(2))),
        ("the comparison is missing", |r| r.experiments.clear()),
        ("speed of bpe at 600 on animals, pieces to ids", |r| r.speed[0].encode.median = 30.0),
        ("speed of bpe at 600 on animals, text to ids", |r| r.speed[0].pipeline.median = 10.0),
        ("speed of bpe at 600 on animals, new text to ids", |r| {
            r.speed[0].first.as_mut().expect("it is there").median = 10.0;
        }),
        ("speed of byte at 600 on animals, text to ids", |r| r.speed[1].pipeline.median = 60.0),
        ("training of bpe at 600 on animals: ", |r| {
            r.training[0].cpu_seconds.as_mut().expect("it is there").median = 4.0;
        }),
        ("peak memory 2000000 bytes", |r| r.training[0].peak_bytes = Some(2_000_000)),
        ("processes train different models", |r| r.training[0].same_model = false),
        ("twice the input takes 3.90 times", |r| r.worst_cases[0].doubling = 3.9),
        ("spaces: bpe: 0.0200 of the byte baseline, was 0.0500", |r| {
            r.worst_cases[0].mb_per_second = 4.0;
        }),
        ("worst case spaces: bpe: missing", |r| r.worst_cases.clear()),
        ("checks fail that held", |r| {
            r.experiments[0].rows[2].checks[0].failure = Some("x".into());
        }),
    ];
    let record = timed();
    assert_eq!(record.experiments[0].rows[2].void, None);
    for (expected, change) in cases {
        let mut report = record.clone();
        change(&mut report);
        let found = report.against(&record, Bands::default()).regressions;
        assert!(found.iter().any(|text| text.contains(expected)), "{expected}: {found:?}");
        assert!(found.len() <= 3, "{expected}: {found:?}");
    }
}

#[test]
fn other_terms_and_options_are_said_and_not_compared() {
    let record = timed();
    let mut report = record.clone();
    report.experiments[0].terms.train_set = "other".into();
    report.experiments[0].rows[2].overall.tokens += 1;
    let findings = report.against(&record, Bands::default());
    assert!(findings.passed(), "{:?}", findings.regressions);
    assert!(findings.notes[0].contains("the training set is other"), "{:?}", findings.notes);
    // A smaller run lacks rows, and says so.
    let mut report = record.clone();
    report.manifest.options.insert("vocab-sizes".into(), "560".into());
    report.experiments[0].rows.retain(|row| row.size == 560);
    let findings = report.against(&record, Bands::default());
    assert!(findings.passed(), "{:?}", findings.regressions);
    assert!(findings.notes.iter().any(|note| note.contains("the row is missing")));
    assert!(findings.notes.iter().any(|note| note.contains("vocab-sizes is 560")));
}
