//! Running the program and looking at what it did.

#![allow(dead_code, reason = "every test file takes what it needs")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The program.
pub(crate) fn tok() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tok"))
}

/// A folder that is gone at the end.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a file in the folder, as text for a command line.
    pub(crate) fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("a plain path").to_owned()
    }

    /// Writes a file and gives its path.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.0.path().join(name), bytes).expect("the folder can be written");
        self.at(name)
    }

    /// The names in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("the folder can be read");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// What a run gave.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Run {
    fn new(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The run, which must have ended with this code.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "stderr: {}\nstdout: {}",
            self.stderr,
            String::from_utf8_lossy(&self.stdout)
        );
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("text")
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.stdout)))
    }

    /// The message on standard error must say this.
    #[track_caller]
    pub(crate) fn says(self, what: &str) -> Self {
        assert!(self.stderr.contains(what), "{:?} does not say {what:?}", self.stderr);
        self
    }
}

/// Runs `tok` with these arguments and no input.
#[track_caller]
pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    run_with(arguments, b"")
}

/// Runs `tok` with these arguments and this on standard input.
#[track_caller]
pub(crate) fn run_with<S: AsRef<std::ffi::OsStr>>(
    arguments: impl IntoIterator<Item = S>,
    input: &[u8],
) -> Run {
    let mut child = tok()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // The program may end before it reads all.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("the writer ends");
    Run::new(output)
}

/// The arguments of a command line without quotes.
pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// A text of the fixtures.
pub(crate) fn fixture(path: &str) -> PathBuf {
    testkit::fixtures::root().join(path)
}

/// A text in several scripts, long enough to train on.
pub(crate) fn corpus() -> String {
    let manifest = testkit::fixtures::manifest();
    let mut text = String::new();
    for language in ["en", "vi", "de"] {
        let file = manifest.parallel("udhr", language).expect("a language of this set");
        text.push_str(&testkit::fixtures::text(&file.path));
    }
    text
}

/// The ids that `tok encode` prints.
#[track_caller]
pub(crate) fn ids(output: &Run) -> Vec<u32> {
    output.text().split_whitespace().map(|id| id.parse().expect("an id")).collect()
}

/// Kills trainings at random points and goes on from the checkpoint, until one is done.
#[cfg(unix)]
#[track_caller]
pub(crate) fn killed_and_resumed(algorithm: &[&str], out: &str) {
    let folder = Folder::new();
    let text = folder.write("corpus.txt", corpus().repeat(3));
    let whole = folder.at(&format!("whole.{out}"));
    let mut arguments = vec!["train"];
    arguments.extend(algorithm);
    arguments.extend([&text[..], "--quiet", "-o"]);
    let start = std::time::Instant::now();
    run(arguments.iter().copied().chain([&whole[..]])).code(0);
    let usual = start.elapsed();
    let resumed = folder.at(&format!("resumed.{out}"));
    let checkpoint = folder.at("checkpoint");
    arguments.extend([&resumed, "--checkpoint", &checkpoint, "--checkpoint-every", "0"]);
    let mut rng = tokenizer_core::Rng::new(algorithm.len() as u64);
    let mut kills = 0;
    loop {
        let mut child =
            tok().args(&arguments).arg("--resume").stderr(Stdio::null()).spawn().expect("it works");
        // Longer and longer, so that the test ends on slow machines too.
        let patience = usual.mul_f64(rng.next_f64() * (1.0 + f64::from(kills) / 4.0));
        std::thread::sleep(patience);
        if let Some(status) = child.try_wait().expect("it works") {
            assert!(status.success(), "{status}");
            break;
        }
        child.kill().expect("it works"); // SIGKILL
        if child.wait().expect("it works").success() {
            break;
        }
        kills += 1;
        assert!(kills < 200, "no progress from checkpoints");
    }
    assert!(kills > 0, "nothing was killed");
    assert_eq!(
        std::fs::read(whole).expect("it works"),
        std::fs::read(resumed).expect("it works"),
        "{kills} kills"
    );
    let left: Vec<String> =
        folder.names().into_iter().filter(|name| name.starts_with("checkpoint")).collect();
    assert_eq!(left, Vec::<String>::new());
}
