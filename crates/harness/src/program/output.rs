//! Files that are whole or not there, and progress that is quiet in a pipe.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

/// Writes a file under a temporary name and renames it: an interrupt leaves the old file.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let fail = |error: io::Error| format!("{}: {error}", path.display());
    let temporary = path.with_extension(format!("tmp{}", std::process::id()));
    let written = (|| {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    written.map_err(|error| {
        // The temporary file may not exist; the first error is the one that matters.
        let _ = fs::remove_file(&temporary);
        fail(error)
    })
}

/// One line on standard error that says what is being done, if that is a terminal.
pub(crate) struct Progress {
    start: Instant,
    shown: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), shown: io::stderr().is_terminal() }
    }

    pub(crate) fn step(&self, what: &str) {
        if self.shown {
            let seconds = self.start.elapsed().as_secs();
            // Erases the line first. A terminal that is gone is no reason to stop.
            let _ =
                write!(io::stderr(), "\r\x1B[2K{:>3}:{:02}  {what}", seconds / 60, seconds % 60);
        }
    }

    pub(crate) fn seconds(&self) -> u64 {
        self.start.elapsed().as_secs()
    }

    pub(crate) fn end(&self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1B[2K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_leaves_no_temporary_file() {
        let folder = std::env::temp_dir().join(format!("harness-output-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("report.json");
        write_whole(&path, b"one").unwrap();
        write_whole(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        let error = write_whole(&folder.join("no/such/folder"), b"x").unwrap_err();
        assert!(error.contains("no/such/folder"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
