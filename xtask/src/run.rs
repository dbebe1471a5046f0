//! Starting programs.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the variable for `cargo run`; the other is where this was built.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = here.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    here.parent().map_or_else(|| here.clone(), Path::to_path_buf)
}

/// Where Cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// The Cargo that started us, with arguments.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args);
    // Those of this package, which would be taken for those of the one that is built.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a program to its end; it shares our output.
///
/// # Errors
///
/// If it cannot be started or does not succeed.
pub(crate) fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| cannot_start(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed: {status}", line(command))) }
}

/// Runs a program to its end and hands its exit code on; it shares our output.
///
/// # Errors
///
/// If it cannot be started or was ended by a signal.
pub(crate) fn pass_on(command: &mut Command) -> Result<ExitCode, String> {
    let status = command.status().map_err(|error| cannot_start(command, &error))?;
    match status.code().map(u8::try_from) {
        Some(Ok(code)) => Ok(ExitCode::from(code)),
        _ => Err(format!("{} failed: {status}", line(command))),
    }
}

/// Runs a program to its end and returns what it printed.
///
/// # Errors
///
/// If it cannot be started or does not succeed; the words hold what it complained about.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    command.stdin(Stdio::null());
    let output = command.output().map_err(|error| cannot_start(command, &error))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} failed: {}\n{complaint}", line(command), output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{}: {error}", line(command)))
}

fn cannot_start(command: &Command, error: &std::io::Error) -> String {
    format!("cannot start `{}`: {error}", command.get_program().to_string_lossy())
}

/// The command as one would type it.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for arg in command.get_args() {
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
    }
    format!("`{line}`")
}
