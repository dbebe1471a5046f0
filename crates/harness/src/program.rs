//! What opens files and starts processes.

pub(crate) mod bench_all;
pub(crate) mod check;
mod criterion;
mod machine;
mod output;
pub(crate) mod render;
pub(crate) mod train_one;

use std::fs;
use std::path::Path;

/// The bytes of a file, or which file could not be read and why.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
