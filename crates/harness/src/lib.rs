//! The comparison: algorithms trained on equal terms, measured on held-out text, reported with
//! everything that is needed to check and to repeat it.
//!
//! - [`metrics`]: what is measured, with formulas and sources; [`stats`]: bootstrap intervals,
//!   Rényi entropy, Gini coefficient.
//! - [`morphology`]: token boundaries against gold segmentations into morphs.
//! - [`corpus`]: texts as documents, divided into a training and a held-out part.
//! - [`experiment`]: a [`Plan`](experiment::Plan) of a comparison, the check that it is on equal
//!   terms, and the run. [`contestant`] is the trait that algorithms compete through,
//!   [`algorithms`] are those of the workspace, [`verify`] what each must pass before it is measured.
//! - [`speed`]: interleaved timing, and inputs made to be hard.
//! - [`report`]: the results as data, as JSON, Markdown, one self-contained HTML page, and tables
//!   for a terminal; [`manifest`]: what went in, with hashes.
//!
//! ```
//! use harness::corpus::Corpus;
//! use harness::experiment::{Plan, compare};
//!
//! let mut corpus = Corpus::new("rhyme", "prose");
//! for n in 0..400 {
//!     corpus.push_text("en", &format!("the cat number {n} sat on the mat number {}\n", n * 7));
//! }
//! let plan = Plan {
//!     algorithms: vec!["bpe".into(), "wordpiece".into()],
//!     vocab_sizes: vec![520],
//!     bootstrap: 100,
//!     ..Plan::default()
//! };
//! let report = compare(&plan, vec![corpus], None, &mut |_| {})?;
//! assert!(report.passed());
//! println!("{}", report.to_terminal(100));
//! # Ok::<(), harness::experiment::Refused>(())
//! ```
//!
//! The library opens no file and starts no process; the program `harness` beside it does.

pub mod algorithms;
pub mod contestant;
pub mod corpus;
pub mod experiment;
pub mod manifest;
pub mod metrics;
pub mod morphology;
pub mod report;
pub mod speed;
pub mod stats;
pub mod verify;
