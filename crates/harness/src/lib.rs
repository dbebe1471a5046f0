//! The comparison.

pub mod metrics;
pub mod stats;
