//! What a command ends with when it does not succeed, and the exit code that says so.

use std::fmt;
use std::io;
use std::path::Path;

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A check said no; what it found was printed already. Exit code 1.
    Check,
    /// The command line asks for what cannot be. Exit code 2.
    Usage(String),
    /// Bad input, or a file that cannot be read or written. Exit code 3.
    Input(String),
    /// Whoever reads our output has gone: nothing to say. Exit code 0.
    OutputClosed,
}

impl Failure {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Check => 1,
            Self::Usage(_) => 2,
            Self::Input(_) => 3,
        }
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::Usage(message.to_string())
    }

    pub(crate) fn input(message: impl fmt::Display) -> Self {
        Self::Input(message.to_string())
    }

    /// A file that could not be read, written or understood.
    pub(crate) fn file(path: &Path, error: impl fmt::Display) -> Self {
        Self::Input(format!("{}: {error}", path.display()))
    }
}

/// Writing to standard output failed.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::Input(format!("standard output: {error}"))
    }
}
