//! The machine and the programs on it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use harness::manifest::Machine;

/// This machine, as far as the system tells.
pub(crate) fn this() -> Machine {
    let value = |file: &str, key: &str| {
        let text = fs::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    Machine {
        cpu: value("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".into()),
        threads: thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: value("/proc/meminfo", "MemTotal").as_deref().and_then(kilobytes),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
    }
}

/// A field of `/proc/self/status` in bytes: `VmRSS` is the resident memory, `VmHWM` its peak.
pub(crate) fn memory(field: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with(field))?;
    kilobytes(line.split_once(':')?.1)
}

/// Seconds that this thread had a processor, where the system tells. It counts in steps of some
/// milliseconds.
pub(crate) fn processor_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split(' ').next()?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}

/// Sets the peak of resident memory back to what is resident now; whether the system did.
pub(crate) fn reset_peak_memory() -> bool {
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

fn kilobytes(text: &str) -> Option<u64> {
    let number = text.trim().strip_suffix("kB")?.trim();
    Some(number.parse::<u64>().ok()? * 1024)
}

/// The first line that a program prints, if it can be started and succeeds.
pub(crate) fn first_line(program: &str, arguments: &[&str], folder: &Path) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(folder).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next().unwrap_or("").trim().to_owned();
    output.status.success().then_some(line)
}

/// The commit of the working tree that holds `folder`, with `+changes` if files differ from it.
pub(crate) fn commit(folder: &Path) -> Option<String> {
    let commit = first_line("git", &["rev-parse", "HEAD"], folder)?;
    let changed = first_line("git", &["status", "--porcelain", "--untracked-files=no"], folder)?;
    Some(if changed.is_empty() { commit } else { format!("{commit}+changes") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(kilobytes("  1234 kB"), Some(1_263_616));
        assert_eq!(kilobytes("1234"), None);
        #[cfg(target_os = "linux")]
        {
            assert!(memory("VmRSS").is_some_and(|bytes| bytes > 100_000));
            assert!(processor_seconds().is_none_or(|seconds| seconds < 1e6));
        }
    }

    #[test]
    fn programs_that_are_not_there_say_nothing() {
        assert_eq!(first_line("no-such-program-here", &[], Path::new(".")), None);
    }
}
