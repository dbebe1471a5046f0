//! Files that appear whole or not at all, progress on a terminal, and interrupts.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;

/// Temporary files that an interrupt must remove.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn temporary() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// On an interrupt: removes temporary files and leaves with 130, the shell's code for it.
pub(crate) fn clean_up_on_interrupt() {
    // Without a handler an interrupt still ends the program; only the cleaning up is lost.
    let _ = ctrlc::set_handler(|| {
        for path in temporary().iter() {
            let _ = std::fs::remove_file(path);
        }
        std::process::exit(130);
    });
}

/// A file that is written under a temporary name beside its own and renamed when it is whole.
/// Dropped before [`commit`](Self::commit), it leaves nothing and an older file as it was.
pub(crate) struct AtomicFile {
    path: PathBuf,
    file: Target,
}

enum Target {
    File(BufWriter<tempfile::NamedTempFile>),
    Device(BufWriter<File>),
}

impl AtomicFile {
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        // A link stays a link: the file that it points to is replaced.
        let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            // A device or a pipe cannot be replaced, only written to.
            let file =
                File::options().write(true).open(path).map_err(|e| Failure::file(path, e))?;
            return Ok(Self { path: path.to_owned(), file: Target::Device(BufWriter::new(file)) });
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if path.is_dir() {
            return Err(Failure::file(path, "is a directory"));
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".tok-").suffix(".tmp");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As any new file; the process's mask still applies.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder).map_err(|e| Failure::file(path, e))?;
        temporary().push(file.path().to_owned());
        Ok(Self { path: path.to_owned(), file: Target::File(BufWriter::new(file)) })
    }

    /// Makes the file appear, whole.
    pub(crate) fn commit(self) -> Result<(), Failure> {
        let Self { path, file } = self;
        let fail = |error: io::Error| Failure::file(&path, error);
        let file = match file {
            Target::File(file) => file.into_inner().map_err(|e| fail(e.into_error()))?,
            Target::Device(mut file) => return file.flush().map_err(fail),
        };
        file.as_file().sync_all().map_err(fail)?;
        let name = file.path().to_owned();
        file.persist(&path).map_err(|e| fail(e.error))?;
        temporary().retain(|other| *other != name);
        Ok(())
    }

    /// Writes all of `bytes` to a file that appears whole.
    pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        let mut file = Self::create(path)?;
        file.write_all(bytes).map_err(|e| Failure::file(path, e))?;
        file.commit()
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Target::File(file) => file.write(bytes),
            Target::Device(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Target::File(file) => file.flush(),
            Target::Device(file) => file.flush(),
        }
    }
}

/// Sets the number of threads of the whole program, before any is made.
pub(crate) fn use_threads(threads: Option<usize>) {
    if let Some(threads) = threads {
        // Fails only where a pool exists already, and none was made before this.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    }
}

/// Standard output, buffered, closed quietly when its reader leaves.
pub(crate) fn stdout() -> BufWriter<io::StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Writes all of `bytes` to standard output.
pub(crate) fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = stdout();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// Writes one JSON document and a line end to standard output.
pub(crate) fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(value).map_err(io::Error::from)?;
    text.push(b'\n');
    print(&text)
}

/// Says on standard error why a command fails. Where that is closed nobody hears it.
pub(crate) fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "tok: {message}");
}

/// What is said on standard error while a command works: nothing in a pipe or under `--quiet`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    shown: bool,
    quiet: bool,
}

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { shown: !quiet && io::stderr().is_terminal(), quiet }
    }

    /// A bar over `total` units, which are bytes where `bytes`.
    pub(crate) fn bar(&self, what: &str, total: u64, unit: Unit) -> ProgressBar {
        if !self.shown {
            return ProgressBar::hidden();
        }
        let template = match unit {
            Unit::Bytes => {
                "{prefix:>10} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta} left"
            }
            Unit::Things => "{prefix:>10} [{bar:30}] {pos}/{len} {per_sec} {eta} left",
        };
        let style = ProgressStyle::with_template(template).expect("a fixed template");
        ProgressBar::new(total).with_style(style).with_prefix(what.to_owned())
    }

    /// A warning; shown in pipes too, unless `--quiet`.
    pub(crate) fn warn(&self, message: impl std::fmt::Display) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "tok: warning: {message}");
        }
    }

    /// A remark for the person at the terminal; unless `--quiet`.
    pub(crate) fn note(&self, message: impl std::fmt::Display) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "{message}");
        }
    }
}

/// What a bar counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    Bytes,
    Things,
}

/// Opens a file to read.
pub(crate) fn open(path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(|e| Failure::file(path, e))
}
