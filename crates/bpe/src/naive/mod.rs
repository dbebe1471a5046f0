//! The specification in code: each function does what the definition says and nothing to be fast.
//!
//! Public so that tests, benches and other implementations can be held against it.

mod encode;
#[cfg(feature = "train")]
mod train;

pub use encode::NaiveEncoder;
#[cfg(feature = "train")]
pub use train::{extend, train};
