//! The referee of speed: every contestant is a process of its own that speaks the protocol of
//! `python/runner.py`, be it Python or a crate built in here ([`child`]).
//!
//! A contestant's rows count only if its ids are ours on every document and awkward text; ours are
//! those of the reference libraries, which stand in the same table. Rounds are interleaved: in
//! each, every contestant starts afresh, is timed on a text that it has never seen, then on the
//! same text again, on its documents of 2 KB, in a batch with two threads. Reported are medians.

pub mod child;
pub mod models;
pub mod report;

mod referee;

pub use referee::{Options, run};
