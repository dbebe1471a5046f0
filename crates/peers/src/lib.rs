//! Other projects' tokenizers beside ours: who differs, on what, and how fast everybody is.
//!
//! - [`contestant`]: the one trait, and what a contestant answers.
//! - [`ours`], [`native`] and [`runner`]: this workspace, crates of other projects, and Python
//!   packages over a pipe.
//! - [`texts`] and [`documents`]: random texts and random tokenizer.json files, each a function of
//!   a seed.
//! - [`compare`] and [`shrink`]: what differs between two answers, and the smallest input that
//!   still shows it.
//! - [`fuzz`]: all of it together; the program `fuzz` prints its table.
//! - [`speed`]: whose ids are ours, and how fast everybody is; the program `speed` writes the page.
//!
//! Nothing here is built by default, and nothing else of the workspace depends on it.

pub mod compare;
pub mod contestant;
pub mod documents;
pub mod fuzz;
pub mod native;
pub mod ours;
pub mod runner;
pub mod shrink;
pub mod speed;
pub mod texts;
