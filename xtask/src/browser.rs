//! `browser-test`: the report in a real browser.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::run::root;

pub(crate) const HELP: &str = "
usage: cargo xtask browser-test [--require]

Opens target/bench-all/report.html in a headless Chromium, light and dark, wide and narrow, and puts
screenshots into target/bench-all/screenshots. Fails if a section is missing or empty, if the page
has fewer tables or charts than it must, if it wants anything from the network, if the console shows
a message, or if the narrow page is wider than its window. Says so and succeeds where Chromium is
not installed.

  --require    fail where Chromium is not installed

Example:
  cargo xtask bench-all --quick && cargo xtask browser-test
";

/// The sections that the report must have.
const SECTIONS: &[&str] = &[
    "headline",
    "compression",
    "premium",
    "fertility",
    "code",
    "speed",
    "worst-cases",
    "samples",
    "metrics",
    "verification",
    "manifest",
];

/// The fewest tables, charts and coloured tokens of a report.
const AT_LEAST: &[(&str, usize)] = &[("<table", 5), ("<svg", 3), ("<h2", SECTIONS.len())];

/// Programs that are Chromium.
const PROGRAMS: &[&str] = &["chromium", "chromium-browser", "google-chrome", "chrome"];

/// How long the browser may take for one look.
const PATIENCE: Duration = Duration::from_secs(120);

/// A look at the page.
struct Look {
    name: &'static str,
    scheme: Scheme,
    width: u32,
    height: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Scheme {
    Light,
    Dark,
}

const LOOKS: &[Look] = &[
    Look { name: "wide-light", scheme: Scheme::Light, width: 1280, height: 6000 },
    Look { name: "wide-dark", scheme: Scheme::Dark, width: 1280, height: 6000 },
    Look { name: "narrow-light", scheme: Scheme::Light, width: NARROW, height: 6000 },
    Look { name: "narrow-dark", scheme: Scheme::Dark, width: NARROW, height: 6000 },
];

/// The width of a telephone. Chromium's own window is never narrower than 500.
const NARROW: u32 = 390;

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    let require = match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => false,
        ["--require"] => true,
        _ => return Err(format!("unknown arguments {args:?}; see --help")),
    };
    let Some(chromium) = find() else {
        if require {
            return Err("chromium is not installed".to_owned());
        }
        println!("browser-test: SKIPPED: chromium is not installed");
        return Ok(ExitCode::SUCCESS);
    };
    check(&chromium)?;
    Ok(ExitCode::SUCCESS)
}

/// Chromium, if it is installed.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let candidates = PROGRAMS.iter().flat_map(|name| folders.iter().map(move |f| f.join(name)));
    candidates.into_iter().find(|candidate| candidate.is_file())
}

/// Where the report is.
pub(crate) fn report() -> PathBuf {
    root().join("target/bench-all/report.html")
}

/// Looks at the report.
pub(crate) fn check(chromium: &Path) -> Result<(), String> {
    let report = report();
    let html = fs::read_to_string(&report).map_err(|error| {
        format!("{}: {error}; `cargo xtask bench-all --quick` makes it", report.display())
    })?;
    let folder = report.with_file_name("screenshots");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let browser = Browser { chromium, profile: folder.join("profile") };
    let mut problems = Vec::new();

    let seen = browser.open(&report, &LOOKS[0], None)?;
    problems.extend(content(&seen.page));
    problems.extend(network(&html));
    problems.extend(console(&seen.log));

    for look in LOOKS {
        // A frame has any width that it is given, and this page can measure the one inside.
        let frame = folder.join(format!("{}.html", look.name));
        write(&frame, &framed(look))?;
        let picture = folder.join(format!("{}.png", look.name));
        // The picture of an earlier look proves nothing; that there is none is fine.
        let _ = fs::remove_file(&picture);
        let seen = browser.open(&frame, look, Some(&picture))?;
        let complaints = console(&seen.log).into_iter().chain(measured(&seen.page, look));
        problems.extend(complaints.map(|problem| format!("{}: {problem}", look.name)));
        match fs::metadata(&picture) {
            Ok(file) if file.len() > 10_000 => {}
            Ok(file) => problems.push(format!("{}: a picture of {} bytes", look.name, file.len())),
            Err(error) => problems.push(format!("{}: {error}", picture.display())),
        }
    }
    // Best effort: the profile is the browser's own, and large.
    let _ = fs::remove_dir_all(&browser.profile);
    for problem in &problems {
        eprintln!("browser-test: {problem}");
    }
    if problems.is_empty() {
        println!("browser-test: passed; screenshots are in {}", folder.display());
        return Ok(());
    }
    Err(format!("{} problems", problems.len()))
}

struct Browser<'a> {
    chromium: &'a Path,
    profile: PathBuf,
}

/// What a look at a page gave.
struct Seen {
    /// The page after its scripts have run.
    page: String,
    /// What the browser printed, the console's messages among it.
    log: String,
}

impl Browser<'_> {
    /// Opens a file, and draws it into a picture if one is wanted.
    fn open(&self, file: &Path, look: &Look, picture: Option<&Path>) -> Result<Seen, String> {
        let (out, log) = (self.profile.with_extension("out"), self.profile.with_extension("log"));
        let create = |path: &Path| {
            fs::File::create(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let mut profile = OsString::from("--user-data-dir=");
        profile.push(&self.profile);
        let screenshot = picture.map(|picture| {
            let mut option = OsString::from("--screenshot=");
            option.push(picture);
            option
        });
        let mut command = Command::new(self.chromium);
        command
            .args(["--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run"])
            // Root may not start the sandbox; the page is our own and has no network.
            .args(["--no-sandbox", "--allow-file-access-from-files"])
            .args(["--proxy-server=127.0.0.1:9", "--virtual-time-budget=5000"])
            .args(["--enable-logging=stderr", "--disable-dev-shm-usage"])
            .arg(format!("--window-size={},{}", look.width, look.height))
            .arg(profile)
            .args(
                (look.scheme == Scheme::Dark).then_some("--blink-settings=preferredColorScheme=0"),
            )
            .args(screenshot)
            .arg("--dump-dom")
            .arg(file)
            .stdin(Stdio::null())
            .stdout(create(&out)?)
            .stderr(create(&log)?);
        let mut child = command.spawn().map_err(|e| format!("cannot start the browser: {e}"))?;
        let start = Instant::now();
        let status = loop {
            match child.try_wait().map_err(|error| format!("the browser: {error}"))? {
                Some(status) => break status,
                None if start.elapsed() > PATIENCE => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("the browser took longer than {PATIENCE:?}"));
                }
                None => std::thread::sleep(Duration::from_millis(50)),
            }
        };
        let read = |path: &Path| {
            let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let _ = fs::remove_file(path);
            Ok::<_, String>(String::from_utf8_lossy(&bytes).into_owned())
        };
        let seen = Seen { page: read(&out)?, log: read(&log)? };
        if status.success() {
            Ok(seen)
        } else {
            Err(format!("the browser: {status}\n{}", seen.log))
        }
    }
}

/// A page that shows the report in a frame of the look's size and measures it.
fn framed(look: &Look) -> String {
    format!(
        "<!doctype html><meta charset=\"utf-8\"><title>{name}</title>\
         <style>:root{{color-scheme:light dark}}body{{margin:0}}iframe{{border:0;display:block}}</style>\
         <iframe src=\"../report.html\" width=\"{width}\" height=\"{height}\"></iframe>\
         <script>addEventListener('load',()=>{{const d=frames[0].document;\
         document.body.dataset.width=d.documentElement.scrollWidth;\
         document.body.dataset.background=frames[0].getComputedStyle(d.body).backgroundColor;\
         document.body.dataset.dark=frames[0].matchMedia('(prefers-color-scheme: dark)').matches;}})</script>\n",
        name = look.name,
        width = look.width,
        height = look.height,
    )
}

/// What is wrong with what the frame measured.
fn measured(page: &str, look: &Look) -> Vec<String> {
    let value = |name: &str| {
        let start = page.find(&format!("data-{name}=\""))? + name.len() + 7;
        page[start..].split('"').next()
    };
    let mut problems = Vec::new();
    match value("width").and_then(|width| width.parse::<u32>().ok()) {
        Some(width) if width <= look.width => {}
        Some(width) => {
            problems.push(format!("the page is {width} wide in a window of {}", look.width));
        }
        None => problems.push("the page could not be measured".to_owned()),
    }
    let dark = look.scheme == Scheme::Dark;
    if value("dark") != Some(if dark { "true" } else { "false" }) {
        problems.push("the browser did not take the colour scheme".to_owned());
    }
    match value("background").and_then(brightness) {
        Some(brightness) if (brightness < 128) == dark => {}
        Some(brightness) => {
            problems.push(format!("the background has the brightness {brightness}"));
        }
        None => problems.push("the page has no background of its own".to_owned()),
    }
    problems
}

/// 0 to 255 of `rgb(1, 2, 3)`; none of a transparent colour.
fn brightness(colour: &str) -> Option<u32> {
    let numbers = colour.strip_prefix("rgb(")?.strip_suffix(')')?;
    let parts: Vec<u32> = numbers.split(", ").map_while(|part| part.parse().ok()).collect();
    if let [red, green, blue] = parts[..] { Some((red + green + blue) / 3) } else { None }
}

/// What is missing in the page.
fn content(page: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for section in SECTIONS {
        let head = format!("<section id=\"{section}\"");
        let body = page.split(&head).nth(1).and_then(|rest| rest.split("</section>").next());
        match body {
            None => problems.push(format!("the section {section:?} is missing")),
            Some(body) if text_length(body) < 40 => {
                problems.push(format!("the section {section:?} is empty"));
            }
            Some(_) => {}
        }
    }
    for (what, least) in AT_LEAST {
        let count = page.matches(what).count();
        if count < *least {
            problems.push(format!("{count} of {what}; at least {least} are needed"));
        }
    }
    problems
}

/// Characters outside of tags.
fn text_length(html: &str) -> usize {
    let parts = html.split('<').skip(1);
    parts.map(|part| part.split_once('>').map_or(0, |(_, text)| text.trim().chars().count())).sum()
}

/// What the page would fetch: it must be one file.
fn network(html: &str) -> Vec<String> {
    let attributes =
        ["src=\"http", "src=\"//", "url(http", "url(//", "@import", "<link rel=\"stylesheet\""];
    let found = attributes.iter().filter(|attribute| html.contains(**attribute));
    found.map(|attribute| format!("the page is not one file: {attribute}")).collect()
}

/// The console's messages. A report has none to give.
fn console(log: &str) -> Vec<String> {
    let lines = log.lines().filter(|line| line.contains(":CONSOLE"));
    lines
        .map(|line| format!("the console says {}", line.split("] ").nth(1).unwrap_or(line)))
        .collect()
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> String {
        let section = |name: &&str| {
            format!(
                "<section id=\"{name}\" aria-labelledby=\"x\"><h2>{name}</h2><p>{}</p><table></table><svg></svg></section>",
                "text ".repeat(9)
            )
        };
        SECTIONS.iter().map(section).collect()
    }

    #[test]
    fn a_whole_page_is_fine() {
        assert_eq!(content(&page()), Vec::<String>::new());
    }

    #[test]
    fn missing_and_empty_sections_are_found() {
        let missing = page().replace("id=\"speed\"", "id=\"sped\"");
        assert_eq!(content(&missing), ["the section \"speed\" is missing"]);
        let empty = page().replacen(&"text ".repeat(9), "", 1);
        assert_eq!(content(&empty), ["the section \"headline\" is empty"]);
        assert_eq!(content(&page().replace("<svg", "<sv")).len(), 1);
        assert_eq!(content("").len(), SECTIONS.len() + AT_LEAST.len());
    }

    #[test]
    fn messages_of_the_console_are_found() {
        let log = "sh: 9: odd\n[1:1:1130/025512.8:INFO:CONSOLE:1] \"Uncaught ReferenceError: f\", source\n";
        assert_eq!(console(log), ["the console says \"Uncaught ReferenceError: f\", source"]);
        assert_eq!(console("[1:1:ERROR:dbus] no bus\n"), Vec::<String>::new());
    }

    #[test]
    fn pages_that_need_the_network_are_found() {
        assert_eq!(network("<a href=\"https://example.org\">x</a><img src=\"data:x\">").len(), 0);
        assert_eq!(network("<script src=\"https://example.org/x.js\"></script>").len(), 1);
        assert_eq!(network("<style>a{background:url(//example.org/x)}</style>").len(), 1);
    }

    #[test]
    fn what_the_frame_measured_is_judged() {
        let look = &LOOKS[3];
        let good =
            "<body data-width=\"390\" data-background=\"rgb(10, 20, 30)\" data-dark=\"true\">";
        assert_eq!(measured(good, look), Vec::<String>::new());
        for (from, to) in [
            ("390", "600"),
            ("data-width", "data-height"),
            ("rgb(10, 20, 30)", "rgb(250, 250, 250)"),
            ("rgb(10, 20, 30)", "rgba(0, 0, 0, 0)"),
            ("true", "false"),
        ] {
            assert_eq!(measured(&good.replace(from, to), look).len(), 1, "{from} {to}");
        }
    }
}
