//! Who depends on whom.

use crate::json::Json;

use super::{Problem, Source};

/// The crates from the ground up: each may depend on crates of the rows above its own.
const LAYERS: &[&[&str]] = &[
    &["tokenizer-core"],
    &["piece-table", "pretok", "normalize", "formats", "encodings"],
    &["bpe", "wordpiece", "unigram", "baseline"],
    &["tokenizer"],
    &["harness"],
    &["tokenizer-cli", "peers", "tokenizer-py", "tokenizer-wasm"],
];

/// Crates outside of the rows: name, what it may depend on, and which kinds of dependency on it
/// others may have.
const ASIDE: &[(&str, Reach, Use)] = &[
    ("testkit", Reach::Ground, Use::InTests),
    ("benches", Reach::All, Use::Never),
    ("xtask", Reach::Nothing, Use::Never),
];

#[derive(Clone, Copy, PartialEq)]
enum Reach {
    Nothing,
    /// The lowest row alone.
    Ground,
    All,
}

#[derive(Clone, Copy, PartialEq)]
enum Use {
    Never,
    InTests,
}

/// Crates of other projects that a crate's library or program may depend on. A new name here is a
/// change of the design: the commit says what it replaces and what it brings along.
const OTHERS: &[(&str, &[&str])] = &[
    ("tokenizer-core", &["hashbrown"]),
    ("piece-table", &["hashbrown"]),
    ("pretok", &["fancy-regex", "memchr", "regex", "regex-automata", "regex-syntax"]),
    ("normalize", &["hashbrown", "memchr", "unicode-normalization", "unicode-segmentation"]),
    ("formats", &["base64", "bytes", "hashbrown", "memchr", "parquet", "serde", "serde_json"]),
    ("encodings", &[]),
    ("bpe", &["bytemuck", "hashbrown"]),
    ("wordpiece", &["hashbrown"]),
    ("unigram", &["hashbrown"]),
    ("baseline", &["hashbrown"]),
    ("tokenizer", &["aho-corasick", "hashbrown", "memchr", "rayon", "regex-syntax"]),
    (
        "harness",
        &["clap", "hashbrown", "rayon", "serde", "serde_json", "sha2", "unicode-segmentation"],
    ),
    (
        "tokenizer-cli",
        &[
            "clap",
            "clap_complete",
            "ctrlc",
            "flate2",
            "indicatif",
            "memmap2",
            "rayon",
            "serde",
            "serde_json",
            "tempfile",
            "zstd",
        ],
    ),
    ("testkit", &["proptest", "rustix", "serde", "serde_json", "sha2"]),
    ("xtask", &[]),
];

/// Crates whose whole purpose is to bring in other projects.
const UNLISTED: &[&str] = &["benches", "peers"];

/// Crates of other projects that stay in these crates, tests excepted where it says so.
const CONFINED: &[(&str, &[&str], Also)] = &[
    ("serde", &["formats", "harness", "testkit", "tokenizer-cli", "peers", "benches"], Also::Tests),
    (
        "serde_json",
        &["formats", "harness", "testkit", "tokenizer-cli", "peers", "benches"],
        Also::Tests,
    ),
    ("clap", &["harness", "tokenizer-cli", "peers"], Also::Nothing),
    ("criterion", &["benches"], Also::Nothing),
];

#[derive(Clone, Copy, PartialEq)]
enum Also {
    Nothing,
    Tests,
}

/// The crates that people take alone.
pub(super) const LEAN: &[&str] = &["bpe", "wordpiece", "unigram"];

/// What a lean crate may bring along.
const LEAN_TREE: &[&str] = &["tokenizer-core", "piece-table", "hashbrown", "foldhash", "bytemuck"];

/// A crate of the workspace.
#[derive(Debug)]
pub(super) struct Package {
    name: String,
    description: String,
    license: String,
    edition: String,
    rust_version: String,
    /// Under the workspace's folder, with forward slashes.
    manifest: String,
    has_library: bool,
    /// The root files of its programs, under the workspace's folder.
    pub(super) programs: Vec<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug)]
struct Dependency {
    name: String,
    kind: Kind,
    /// In this workspace.
    ours: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Of the library or program, or of its build script.
    Normal,
    /// Of tests, examples and benches.
    Dev,
}

/// The crates of the workspace, from `cargo metadata --no-deps`.
pub(super) fn packages(metadata: &Json) -> Result<Vec<Package>, String> {
    let root = metadata.get("workspace_root").str().ok_or("cargo metadata has no root")?;
    let package = |json: &Json| {
        let text = |key: &str| json.get(key).str().unwrap_or_default().to_owned();
        let below_root = |path: &str| {
            let path = path.replace('\\', "/");
            let below = path.strip_prefix(&root.replace('\\', "/"));
            below.map_or(path.as_str(), |path| path.trim_start_matches('/')).to_owned()
        };
        let dependency = |json: &Json| Dependency {
            name: json.get("name").str().unwrap_or_default().to_owned(),
            kind: if json.get("kind").str() == Some("dev") { Kind::Dev } else { Kind::Normal },
            ours: json.get("path").str().is_some(),
        };
        let targets = json.get("targets").items();
        let is = |target: &Json, kind: &str| {
            target.get("kind").items().iter().any(|found| found.str() == Some(kind))
        };
        Package {
            name: text("name"),
            description: text("description"),
            license: text("license"),
            edition: text("edition"),
            rust_version: text("rust_version"),
            manifest: below_root(&text("manifest_path")),
            has_library: targets.iter().any(|target| is(target, "lib")),
            programs: targets
                .iter()
                .filter(|target| is(target, "bin"))
                .filter_map(|target| target.get("src_path").str().map(below_root))
                .collect(),
            dependencies: json.get("dependencies").items().iter().map(dependency).collect(),
        }
    };
    let packages: Vec<_> = metadata.get("packages").items().iter().map(package).collect();
    if packages.is_empty() {
        Err("cargo metadata lists no packages".to_owned())
    } else {
        Ok(packages)
    }
}

/// Dependencies between our crates point from higher rows to lower ones.
pub(super) fn layers(packages: &[Package]) -> Vec<Problem> {
    let row = |name: &str| LAYERS.iter().position(|row| row.contains(&name));
    let aside = |name: &str| ASIDE.iter().find(|(aside, ..)| *aside == name);
    let mut problems = Vec::new();
    for package in packages {
        let name = package.name.as_str();
        if row(name).is_none() && aside(name).is_none() {
            problems.push(Problem::new(name, "has no place in LAYERS of xtask/src/tidy/graph.rs"));
            continue;
        }
        for dependency in package.dependencies.iter().filter(|dependency| dependency.ours) {
            let other = dependency.name.as_str();
            let allowed = match (aside(name), row(name), aside(other), row(other)) {
                (_, _, Some((.., Use::InTests)), _) => {
                    dependency.kind == Kind::Dev || UNLISTED.contains(&name)
                }
                (_, _, Some((.., Use::Never)), _) => false,
                (Some((_, reach, _)), ..) => match reach {
                    Reach::Nothing => false,
                    Reach::Ground => row(other) == Some(0),
                    Reach::All => true,
                },
                (_, Some(own), _, Some(below)) => below < own,
                _ => false,
            };
            if !allowed {
                let kind = if dependency.kind == Kind::Dev { "in tests " } else { "" };
                problems.push(Problem::new(
                    name,
                    format!(
                        "depends {kind}on {other}: dependencies point down the rows of LAYERS in \
                         xtask/src/tidy/graph.rs"
                    ),
                ));
            }
        }
    }
    problems
}

/// Dependencies on other projects' crates are listed, and some stay in a few crates.
pub(super) fn others(packages: &[Package]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in packages {
        let name = package.name.as_str();
        for dependency in package.dependencies.iter().filter(|dependency| !dependency.ours) {
            let other = dependency.name.as_str();
            let confined = CONFINED.iter().find(|(confined, ..)| *confined == other);
            if let Some((_, homes, also)) = confined {
                let in_tests = dependency.kind == Kind::Dev && *also == Also::Tests;
                if !homes.contains(&name) && !in_tests {
                    let homes = homes.join(", ");
                    problems.push(Problem::new(name, format!("{other} stays in {homes}")));
                    continue;
                }
            }
            let listed = OTHERS.iter().find(|(listed, _)| *listed == name);
            let listed = listed.is_some_and(|(_, others)| others.contains(&other));
            if dependency.kind == Kind::Normal && !listed && !UNLISTED.contains(&name) {
                problems.push(Problem::new(
                    name,
                    format!(
                        "depends on {other}, which OTHERS in xtask/src/tidy/graph.rs does not list"
                    ),
                ));
            }
        }
    }
    problems
}

/// What Cargo knows about each crate: a description, one licence, one edition, one Rust version;
/// what is built by default does not need other projects' tokenizers.
pub(super) fn facts(packages: &[Package], metadata: &Json) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in packages {
        let name = package.name.as_str();
        if package.description.trim().is_empty() {
            problems.push(Problem::new(name, "has no description"));
        }
        if package.license != "MIT OR Apache-2.0" {
            problems.push(Problem::new(name, format!("has the licence {:?}", package.license)));
        }
        let first = &packages[0];
        if package.edition != first.edition || package.rust_version != first.rust_version {
            problems.push(Problem::new(
                name,
                format!("differs from {} in its edition or Rust version", first.name),
            ));
        }
    }
    for member in metadata.get("workspace_default_members").items() {
        // `path+file:///folder/crates/peers#0.1.0`
        let id = member.str().unwrap_or_default();
        if id.contains("/peers#") || id.contains("#peers@") {
            problems.push(Problem::new("peers", "must not be built by default"));
        }
    }
    problems
}

/// What only the text of Cargo.toml says: lints, and no benches in libraries.
pub(super) fn manifests(packages: &[Package], sources: &[Source]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in packages {
        let source = sources.iter().find(|source| source.path == package.manifest);
        let Some(text) = source.and_then(|source| source.text.as_deref()) else {
            problems.push(Problem::new(&package.name, format!("{} is missing", package.manifest)));
            continue;
        };
        problems.extend(manifest(&package.manifest, text, package.has_library));
    }
    problems
}

fn manifest(path: &str, text: &str, has_library: bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !section(text, "[lints]").any(|line| line == "workspace = true") {
        problems.push(Problem::new(path, "does not take the workspace's lints"));
    }
    // Cargo's own bench runner would take criterion's options for its own and fail.
    if has_library && !section(text, "[lib]").any(|line| line == "bench = false") {
        problems.push(Problem::new(path, "[lib] lacks bench = false"));
    }
    problems
}

/// The lines of a section of a TOML text, without surrounding white space.
fn section<'t>(text: &'t str, head: &'t str) -> impl Iterator<Item = &'t str> {
    let behind = text.lines().map(str::trim).skip_while(move |line| *line != head).skip(1);
    behind.take_while(|line| !line.starts_with('['))
}

/// A lean crate brings along what it may, and the README shows the same tree.
pub(super) fn lean(name: &str, tree: &str, readme: Option<&str>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let names = tree_names(tree);
    for other in names.iter().skip(1).map(|(_, other)| *other) {
        if !LEAN_TREE.contains(&other) {
            problems.push(Problem::new(
                name,
                format!(
                    "brings along {other}, which LEAN_TREE in xtask/src/tidy/graph.rs does not list"
                ),
            ));
        }
    }
    let shown = readme.and_then(|readme| {
        let start = readme.lines().position(|line| line.starts_with(&format!("{name} v")))?;
        let lines = readme.lines().skip(start);
        let lines = lines.take_while(|line| !line.starts_with("```") && !line.trim().is_empty());
        Some(lines.collect::<Vec<_>>().join("\n"))
    });
    match shown {
        None => problems.push(Problem::new(
            "README.md",
            format!("does not show the output of `cargo tree -p {name} -e normal`"),
        )),
        Some(shown) if tree_names(&shown) != names => problems.push(Problem::new(
            "README.md",
            format!("the tree of {name} is not what `cargo tree -p {name} -e normal` prints"),
        )),
        Some(_) => {}
    }
    problems
}

/// How deep each crate of a tree stands, and its name.
fn tree_names(tree: &str) -> Vec<(usize, &str)> {
    let drawing = |c: char| "│├└─ ".contains(c);
    let entry = |line| {
        let text = str::trim_start_matches(line, drawing);
        let depth = line.chars().take_while(|c| drawing(*c)).count() / 4;
        Some((depth, text.split(' ').next().filter(|name| !name.is_empty())?))
    };
    tree.lines().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The crates of a workspace: `name: dependency dependency`, where a dependency may be
    /// `dev/name` and `~name` is another project's.
    fn workspace(text: &str) -> Vec<Package> {
        let dependency = |text: &str| {
            let (kind, text) = match text.strip_prefix("dev/") {
                Some(rest) => (Kind::Dev, rest),
                None => (Kind::Normal, text),
            };
            Dependency {
                name: text.trim_start_matches('~').to_owned(),
                kind,
                ours: !text.starts_with('~'),
            }
        };
        let package = |line: &str| {
            let (name, dependencies) = line.split_once(':').unwrap();
            Package {
                name: name.trim().to_owned(),
                description: "what it does".to_owned(),
                license: "MIT OR Apache-2.0".to_owned(),
                edition: "2024".to_owned(),
                rust_version: "1.89".to_owned(),
                manifest: format!("crates/{}/Cargo.toml", name.trim()),
                has_library: true,
                programs: Vec::new(),
                dependencies: dependencies.split_whitespace().map(dependency).collect(),
            }
        };
        text.lines().filter(|line| !line.trim().is_empty()).map(package).collect()
    }

    fn places(problems: Vec<Problem>) -> Vec<String> {
        problems.into_iter().map(|problem| problem.place).collect()
    }

    #[test]
    fn the_layout_of_the_design_is_allowed() {
        let packages = workspace(
            "tokenizer-core: ~hashbrown
             pretok: tokenizer-core ~regex-automata dev/testkit dev/~proptest
             bpe: tokenizer-core ~hashbrown dev/pretok dev/testkit dev/~serde_json
             tokenizer: tokenizer-core pretok bpe formats ~rayon
             formats: tokenizer-core ~serde
             harness: tokenizer bpe pretok ~clap ~serde
             tokenizer-cli: harness tokenizer ~clap
             testkit: tokenizer-core ~proptest ~serde
             benches: bpe dev/tokenizer dev/testkit dev/~criterion ~anything
             peers: harness ~anything
             xtask:",
        );
        assert_eq!(places(layers(&packages)), Vec::<String>::new());
        assert_eq!(places(others(&packages)), Vec::<String>::new());
    }

    #[test]
    fn dependencies_up_or_beside_are_found() {
        let cases = [
            "bpe: wordpiece",
            "bpe: dev/unigram",
            "tokenizer-core: dev/pretok",
            "pretok: normalize",
            "formats: bpe",
            "wordpiece: tokenizer",
            "tokenizer: harness",
            "harness: tokenizer-cli",
            "bpe: testkit",
            "testkit: bpe",
            "xtask: tokenizer-core",
            "tokenizer: benches",
            "no-such-crate: tokenizer-core",
        ];
        for case in cases {
            assert_eq!(layers(&workspace(case)).len(), 1, "{case}");
        }
    }

    #[test]
    fn unlisted_and_misplaced_crates_are_found() {
        let cases = [
            "bpe: ~rayon",
            "bpe: ~serde",
            "tokenizer: ~serde_json",
            "tokenizer: ~clap",
            "bpe: dev/~criterion",
            "tokenizer: dev/~clap",
            "xtask: ~anyhow",
        ];
        for case in cases {
            assert_eq!(others(&workspace(case)).len(), 1, "{case}");
        }
    }

    #[test]
    fn wrong_facts_are_found() {
        let metadata = Json::parse(
            r#"{"workspace_default_members": ["path+file:///folder/crates/peers#0.1.0"]}"#,
        )
        .unwrap();
        let mut packages = workspace("bpe:\nunigram:\nwordpiece:");
        assert_eq!(facts(&packages, &Json::Null), []);
        packages[0].description = " ".to_owned();
        packages[1].license = "MIT".to_owned();
        packages[2].edition = "2021".to_owned();
        let found = places(facts(&packages, &metadata));
        assert_eq!(found, ["bpe", "unigram", "wordpiece", "peers"]);
    }

    #[test]
    fn manifests_without_lints_or_with_benches_are_found() {
        let good = "[package]\nname = \"a\"\n[lib]\nbench = false\n[lints]\nworkspace = true\n";
        assert_eq!(manifest("Cargo.toml", good, true), []);
        let no_lints = good.replace("[lints]", "[other]");
        assert_eq!(manifest("Cargo.toml", &no_lints, true).len(), 1);
        let benches = good.replace("bench = false", "name = \"b\"");
        assert_eq!(manifest("Cargo.toml", &benches, true).len(), 1);
        assert_eq!(manifest("Cargo.toml", &benches, false), []);
    }

    const TREE: &str = "bpe v0.1.0 (/folder/crates/bpe)\n\
        ├── hashbrown v0.17.2\n\
        │   └── foldhash v0.2.0\n\
        └── tokenizer-core v0.1.0 (/folder/crates/tokenizer-core)\n    \
            └── hashbrown v0.17.2 (*)\n";

    #[test]
    fn the_readme_shows_the_tree() {
        let shown = TREE.replace(" (/folder/crates/bpe)", "").replace("0.17.2", "0.17.9");
        let readme = format!("# Title\n\n```text\n{shown}```\n\nmore\n");
        assert_eq!(lean("bpe", TREE, Some(&readme)), []);
        assert_eq!(places(lean("bpe", TREE, None)), ["README.md"]);
        assert_eq!(places(lean("bpe", TREE, Some("nothing"))), ["README.md"]);
        let older = readme.replace("│   └── foldhash v0.2.0\n", "");
        assert_eq!(places(lean("bpe", TREE, Some(&older))), ["README.md"]);
    }

    #[test]
    fn a_lean_crate_that_brings_more_along_is_found() {
        let heavy = format!("{TREE}├── rayon v1.12.0\n");
        let readme = format!("```\n{heavy}```\n");
        assert_eq!(places(lean("bpe", &heavy, Some(&readme))), ["bpe"]);
    }

    #[test]
    fn packages_are_read_from_cargo_metadata() {
        let metadata = Json::parse(
            r#"{"workspace_root": "/folder", "packages": [{"name": "bpe", "description": null,
                "license": "MIT", "edition": "2024", "rust_version": "1.89",
                "manifest_path": "/folder/crates/bpe/Cargo.toml", "targets": [{"kind": ["lib"]},
                    {"kind": ["bin"], "src_path": "/folder/crates/bpe/src/a.rs"}],
                "dependencies": [{"name": "tokenizer-core", "kind": null, "path": "/folder/a"},
                    {"name": "proptest", "kind": "dev"}, {"name": "cc", "kind": "build"}]}]}"#,
        )
        .unwrap();
        let packages = packages(&metadata).unwrap();
        assert_eq!(packages[0].manifest, "crates/bpe/Cargo.toml");
        assert!(packages[0].has_library && packages[0].description.is_empty());
        assert_eq!(packages[0].programs, ["crates/bpe/src/a.rs"]);
        let kinds: Vec<_> = packages[0].dependencies.iter().map(|d| (d.kind, d.ours)).collect();
        assert_eq!(kinds, [(Kind::Normal, true), (Kind::Dev, false), (Kind::Normal, false)]);
        assert!(super::packages(&Json::Null).is_err());
    }
}
