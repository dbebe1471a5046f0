//! `gen`: the fixtures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::run::{cargo, output, root, succeed, target};

pub(crate) const HELP: &str = "
usage: cargo xtask gen [--check]
       cargo xtask gen fixtures

Makes the generated files under fixtures/ and writes the manifest of all files. The recipes are in
crates/testkit/examples/gen.

  --check     change nothing; fail if a generated file differs from what its generator makes, or
              the manifest from the files. Needs no network
  fixtures    first take the other files anew from their packages: starts npm, pip, cargo and tar,
              and needs the network

Example:
  cargo xtask gen --check
";

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => succeed(&mut generator(&[]))?,
        ["--check"] => check()?,
        ["fixtures"] => fixtures()?,
        _ => return Err(format!("unknown arguments {args:?}; see --help")),
    }
    Ok(ExitCode::SUCCESS)
}

/// The files are what the manifest and the generators say.
pub(crate) fn check() -> Result<(), String> {
    succeed(&mut generator(&["--check"]))
}

fn generator(args: &[&str]) -> Command {
    let mut command = cargo(&["run", "--quiet", "--package", "testkit", "--example", "gen", "--"]);
    command.args(args).current_dir(root());
    command
}

/// Fetches the packages that the recipes name, and has all files made from them.
fn fixtures() -> Result<(), String> {
    let place = target().join("fixtures");
    if place.exists() {
        fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    }
    let packages = output(&mut generator(&["--packages"]))?;
    let mut crates = Vec::new();
    for line in packages.lines() {
        let [registry, name, version] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("not a registry, a name and a version: {line:?}"));
        };
        match registry {
            "npm" => npm(&place, name, version)?,
            "pypi-sdist" => pypi(&place, name, version, Archive::Source)?,
            "pypi-wheel" => pypi(&place, name, version, Archive::Wheel)?,
            "crates" => crates.push((name, version)),
            _ => return Err(format!("{line:?} names an unknown registry")),
        }
        println!("{line}");
    }
    vendor(&place, &crates)?;
    let from = place.to_str().ok_or("the target folder's path is not UTF-8")?;
    succeed(&mut generator(&["--from", from]))
}

/// Unpacks a package as `place/npm/name`.
fn npm(place: &Path, name: &str, version: &str) -> Result<(), String> {
    let downloads = folder(place.join("downloads").join(name))?;
    let mut npm = Command::new("npm");
    npm.args(["pack", "--silent", &format!("{name}@{version}"), "--pack-destination"]);
    output(npm.arg(&downloads))?;
    untar(&only_file(&downloads)?, &folder(place.join("npm").join(name))?)
}

/// What of a Python package is fetched.
enum Archive {
    Source,
    Wheel,
}

/// Unpacks a package as `place/pypi/name`.
fn pypi(place: &Path, name: &str, version: &str, archive: Archive) -> Result<(), String> {
    let downloads = folder(place.join("downloads").join(name))?;
    let unpacked = folder(place.join("pypi").join(name))?;
    let kind = match archive {
        Archive::Source => "--no-binary",
        Archive::Wheel => "--only-binary",
    };
    let mut pip = python(&["-m", "pip", "download", "--quiet", "--no-deps", kind, ":all:"]);
    output(pip.arg("--dest").arg(&downloads).arg(format!("{name}=={version}")))?;
    let file = only_file(&downloads)?;
    match archive {
        Archive::Source => untar(&file, &unpacked),
        Archive::Wheel => {
            output(python(&["-m", "zipfile", "-e"]).arg(&file).arg(&unpacked)).map(drop)
        }
    }
}

/// Unpacks crates as `place/crates/name`, by vendoring a package that depends on them.
fn vendor(place: &Path, crates: &[(&str, &str)]) -> Result<(), String> {
    let package = folder(place.join("downloads/crates"))?;
    folder(package.join("src"))?;
    let mut manifest = String::from(
        "[package]\nname = \"fixtures\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n",
    );
    for (name, version) in crates {
        manifest.push_str(&format!("{name} = \"={version}\"\n"));
    }
    write(&package.join("Cargo.toml"), &manifest)?;
    write(&package.join("src/lib.rs"), "")?;
    let unpacked = place.join("crates");
    let mut vendor = cargo(&["vendor", "--quiet", "--versioned-dirs"]);
    output(vendor.arg(&unpacked).current_dir(&package))?;
    for (name, version) in crates {
        let from = unpacked.join(format!("{name}-{version}"));
        fs::rename(&from, unpacked.join(name))
            .map_err(|error| format!("{}: {error}", from.display()))?;
    }
    Ok(())
}

fn python(args: &[&str]) -> Command {
    let mut python = Command::new("python3");
    python.args(args);
    python
}

fn untar(archive: &Path, folder: &Path) -> Result<(), String> {
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(archive).arg("-C").arg(folder).arg("--strip-components=1");
    output(&mut tar).map(drop)
}

fn folder(path: PathBuf) -> Result<PathBuf, String> {
    fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The one file of a folder.
fn only_file(folder: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    match (files.next(), files.next()) {
        (Some(file), None) => Ok(file),
        _ => Err(format!("{}: expected exactly one file", folder.display())),
    }
}
