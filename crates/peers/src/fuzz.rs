//! The differential fuzz: models, texts, comparisons, and the table of what came out.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use formats::tokenizer_json::TokenizerJson;
use serde::Serialize;
use serde_json::{Value, json};
use testkit::fixtures;
use tokenizer::{Document, LoadOptions, TiktokenEncoding, Tokenizer};
use tokenizer_core::{Rng, TokenId};

use crate::compare::{self, Part, Verdict};
use crate::contestant::{Contestant, DecodeRequest, Outcome, Request};
use crate::documents::Documents;
use crate::native::huggingface::{self, HuggingFace};
use crate::native::tiktoken::{self, Tiktoken};
use crate::ours::Ours;
use crate::runner::Runner;
use crate::shrink;
use crate::texts::Texts;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// A folder with tokenizer.json, .model files, in any depth.
    pub data: Option<PathBuf>,
    /// How many texts altogether.
    pub texts: u64,
    /// Where the random numbers begin.
    pub seed: u64,
    /// The Python that has SentencePiece.
    pub python: Option<PathBuf>,
    /// How many differences are shrunk and shown for each model.
    pub show: usize,
    /// Only models whose name contains this.
    pub only: Option<String>,
}

/// A row of the table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// The model.
    pub model: String,
    /// Name and version of the reference.
    pub reference: String,
    /// How many texts (pairs count once).
    pub texts: u64,
    /// How many encodings and decodings were compared.
    pub comparisons: u64,
    /// Where the reference gave no answer, by its words.
    pub skipped: BTreeMap<String, u64>,
    /// Documents of random models that ours refuses and the reference takes, by our words.
    pub refused: BTreeMap<String, u64>,
    /// Random documents that both took.
    pub documents: u64,
    /// Random documents that the reference refuses.
    pub unusable: u64,
    /// How many comparisons differed.
    pub differences: u64,
    /// The shrunk ones.
    pub shown: Vec<Shown>,
}

/// A shrunk difference.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// Which part of the answer.
    pub part: String,
    /// The question.
    pub input: Value,
    /// Our answer.
    pub ours: String,
    /// The reference's.
    pub theirs: String,
    /// The document, if it is a random one.
    pub document: Option<Value>,
}

/// Runs everything; `progress` receives a line now and then, and each difference.
///
/// # Errors
///
/// If the folder or a model in it cannot be read.
pub fn run(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, String> {
    // Other projects' panics are outcomes, not news.
    std::panic::set_hook(Box::new(|_| {}));
    let subjects = subjects(options)?;
    let wanted = |name: &str| options.only.as_deref().is_none_or(|only| name.contains(only));
    let random_wanted = wanted("random documents");
    let subjects: Vec<Subject> = subjects.into_iter().filter(|s| wanted(&s.name)).collect();
    // Random documents find most: they get as many texts as four models.
    let shares = subjects.len() as u64 + if random_wanted { 4 } else { 0 };
    if shares == 0 {
        return Err("no model to compare".to_owned());
    }
    let share = options.texts.div_ceil(shares);
    let lines = corpus_lines();
    let mut rows = Vec::new();
    for (i, subject) in subjects.iter().enumerate() {
        let seed = options.seed.wrapping_add(i as u64);
        let mut fuzz = Fuzz::new(seed, &lines, options.show, progress);
        rows.push(fuzz.subject(subject, share, options)?);
    }
    if random_wanted {
        let mut fuzz = Fuzz::new(options.seed, &lines, options.show, progress);
        rows.push(fuzz.random(share * 4, charsmaps(&subjects)));
    }
    Ok(rows)
}

/// The table as text.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| model | reference | texts | comparisons | skipped | differences |\n|---|---|--:|--:|--:|--:|\n",
    );
    for row in rows {
        let skipped: u64 = row.skipped.values().sum();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {skipped} | {} |",
            row.model, row.reference, row.texts, row.comparisons, row.differences
        );
    }
    let total = |of: fn(&Row) -> u64| rows.iter().map(of).sum::<u64>();
    let _ = writeln!(
        text,
        "| all | | {} | {} | {} | {} |",
        total(|r| r.texts),
        total(|r| r.comparisons),
        total(|r| r.skipped.values().sum()),
        total(|r| r.differences)
    );
    for row in rows {
        if row.documents > 0 {
            let _ = writeln!(
                text,
                "\n{}: {} taken by both, {} refused by the reference, {} refused by ours alone",
                row.model,
                row.documents,
                row.unusable,
                row.refused.values().sum::<u64>()
            );
        }
        for (why, n) in &row.refused {
            let _ = writeln!(text, "  ours refuses {n}: {why}");
        }
        for (why, n) in &row.skipped {
            let _ = writeln!(text, "  {} skipped {n}: {why}", row.model);
        }
    }
    text
}

/// A model and where it comes from.
struct Subject {
    name: String,
    source: Source,
}

enum Source {
    Json(Vec<u8>),
    SentencePiece(PathBuf),
    Tiktoken(TiktokenEncoding),
}

fn subjects(options: &Options) -> Result<Vec<Subject>, String> {
    let mut subjects: Vec<Subject> = [
        ("r50k_base", TiktokenEncoding::R50kBase),
        ("p50k_base", TiktokenEncoding::P50kBase),
        ("cl100k_base", TiktokenEncoding::Cl100kBase),
        ("o200k_base", TiktokenEncoding::O200kBase),
        ("o200k_harmony", TiktokenEncoding::O200kHarmony),
    ]
    .into_iter()
    .map(|(name, encoding)| Subject { name: name.to_owned(), source: Source::Tiktoken(encoding) })
    .collect();
    let Some(data) = &options.data else {
        return Ok(subjects);
    };
    for path in files(data)? {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        let source = match extension {
            "json" => {
                let file =
                    fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                if formats::detect(&file) != Some(formats::Format::TokenizerJson) {
                    continue;
                }
                Source::Json(file)
            }
            "model" if options.python.is_some() => Source::SentencePiece(path),
            _ => continue,
        };
        subjects.push(Subject { name, source });
    }
    Ok(subjects)
}

/// All files of a folder, in any depth, in order.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let fault = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Lines of the committed corpora.
fn corpus_lines() -> Vec<String> {
    let paths = files(&fixtures::root().join("corpora")).unwrap_or_default();
    let texts = paths.iter().filter_map(|path| fs::read_to_string(path).ok());
    let mut lines: Vec<String> = Vec::new();
    for text in texts {
        lines.extend(text.lines().filter(|line| !line.is_empty()).take(400).map(str::to_owned));
    }
    lines
}

/// The precompiled normalizers of the models.
fn charsmaps(subjects: &[Subject]) -> Vec<String> {
    let mut found = Vec::new();
    for subject in subjects {
        let Source::Json(file) = &subject.source else { continue };
        let Ok(value) = serde_json::from_slice::<Value>(file) else { continue };
        let parts = match value["normalizer"]["normalizers"].as_array() {
            Some(parts) => parts.clone(),
            None => vec![value["normalizer"].clone()],
        };
        for part in parts {
            if let Some(charsmap) = part["precompiled_charsmap"].as_str() {
                found.push(charsmap.to_owned());
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// One question and the numbers of its text.
#[derive(Clone, Debug)]
struct Question {
    first: String,
    second: Option<String>,
    special: bool,
    template: bool,
}

impl Question {
    fn request(&self) -> Request<'_> {
        Request {
            first: &self.first,
            second: self.second.as_deref(),
            special: self.special,
            template: self.template,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "text": self.first, "pair": self.second,
            "special_tokens": self.special, "template": self.template,
        })
    }
}

/// What a reference can be asked.
#[derive(Clone, Copy)]
struct Abilities {
    special: bool,
    template: bool,
    pairs: bool,
    /// Whether long texts are cut into windows. Which ones depends on both texts of a pair, so pairs
    /// are frequent then.
    truncates: bool,
    skip_special: Skip,
}

/// Whether decoding leaves special tokens out.
#[derive(Clone, Copy, PartialEq)]
enum Skip {
    Never,
    Always,
    Either,
}

const ALL: Abilities = Abilities {
    special: true,
    template: true,
    pairs: true,
    truncates: false,
    skip_special: Skip::Either,
};

struct Fuzz<'p> {
    rng: Rng,
    texts: Texts,
    show: usize,
    progress: &'p mut dyn FnMut(&str),
    last_news: Instant,
    /// What was shown of random documents: the part and the types of the document's parts.
    seen: HashSet<String>,
}

impl<'p> Fuzz<'p> {
    fn new(seed: u64, lines: &[String], show: usize, progress: &'p mut dyn FnMut(&str)) -> Self {
        Self {
            rng: Rng::new(seed ^ 0x0F22),
            texts: Texts::new(seed, lines.to_vec()),
            show,
            progress,
            last_news: Instant::now(),
            seen: HashSet::new(),
        }
    }

    fn subject(&mut self, subject: &Subject, n: u64, options: &Options) -> Result<Row, String> {
        let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", subject.name);
        let mut row = Row { model: subject.name.clone(), ..Row::default() };
        match &subject.source {
            Source::Tiktoken(encoding) => {
                let tokenizer = Tokenizer::from_encoding(*encoding);
                let mut theirs = Tiktoken::new(*encoding)
                    .ok_or_else(|| fault(&"the reference does not have it"))?;
                row.reference = tiktoken::VERSION.to_owned();
                let abilities = Abilities {
                    special: true,
                    template: false,
                    pairs: false,
                    skip_special: Skip::Never,
                    ..ALL
                };
                self.fixed(&tokenizer, false, &mut theirs, abilities, n, &mut row);
            }
            Source::Json(file) => {
                let document = TokenizerJson::parse(file).map_err(|e| fault(&e))?;
                let tokenizer = Tokenizer::from_tokenizer_json(&document).map_err(|e| fault(&e))?;
                let mut theirs = match HuggingFace::load(file) {
                    Outcome::Value(theirs) => theirs,
                    Outcome::Refused(why) | Outcome::Crashed(why) => return Err(fault(&why)),
                };
                row.reference = huggingface::VERSION.to_owned();
                let pads = document.padding.is_some();
                self.fixed(&tokenizer, pads, &mut theirs, ALL, n, &mut row);
            }
            Source::SentencePiece(path) => {
                let file = fs::read(path).map_err(|e| fault(&e))?;
                let document = Document::parse(&file).map_err(|e| fault(&e))?;
                let tokenizer = document.lower(&LoadOptions::default()).map_err(|e| fault(&e))?;
                let python = options.python.as_deref().expect("else there is no such subject");
                let model = json!({"spm": path});
                let mut theirs =
                    Runner::start(python, "sentencepiece", &model, true).map_err(|e| fault(&e))?;
                row.reference = theirs.name().to_owned();
                let abilities = Abilities {
                    special: false,
                    template: false,
                    pairs: false,
                    skip_special: Skip::Always,
                    ..ALL
                };
                self.fixed(&tokenizer, false, &mut theirs, abilities, n, &mut row);
            }
        }
        Ok(row)
    }

    fn fixed(
        &mut self,
        tokenizer: &Tokenizer,
        pads: bool,
        theirs: &mut dyn Contestant,
        abilities: Abilities,
        n: u64,
        row: &mut Row,
    ) {
        let hints = self.hints(tokenizer);
        self.texts.set_hints(hints);
        let mut ours = Ours::new(tokenizer, pads);
        while row.texts < n {
            let batch = (n - row.texts).min(64) as usize;
            let found = self.round(&mut ours, theirs, tokenizer, abilities, batch, row);
            for difference in found {
                self.show(difference, &mut ours, theirs, None, row);
            }
            self.news(row);
        }
    }

    /// Added tokens, and tokens of the vocabulary as they stand in text.
    fn hints(&mut self, tokenizer: &Tokenizer) -> Vec<String> {
        let mut hints = Vec::new();
        for _ in 0..1500 {
            let id = self.rng.below(tokenizer.vocab_len() as u64) as u32;
            let bytes = tokenizer.token_bytes(TokenId(id)).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).replace('\u{2581}', " ");
            hints.push(text.trim_start_matches("##").to_owned());
        }
        let added = tokenizer.added_tokens();
        for _ in 0..if added.is_empty() { 0 } else { 800 } {
            let token = &added[self.rng.below(added.len() as u64) as usize];
            hints.push(token.content.clone());
        }
        hints
    }

    fn question(&mut self, abilities: Abilities) -> Question {
        let mut flag = |able: bool| able && self.rng.below(2) == 0;
        let (special, template) = (flag(abilities.special), flag(abilities.template));
        let one_in = if abilities.truncates { 2 } else { 6 };
        let pair = abilities.pairs && self.rng.below(one_in) == 0;
        // The windows of one text are combined with those of the other.
        let longest = if pair && abilities.truncates { 60 } else { usize::MAX };
        let mut text = || {
            let text = self.texts.next_text();
            match text.char_indices().nth(longest) {
                Some((end, _)) => text[..end].to_owned(),
                None => text,
            }
        };
        Question { first: text(), second: pair.then(text), special, template }
    }

    /// A number of texts; gives what differed.
    fn round(
        &mut self,
        ours: &mut Ours<'_>,
        theirs: &mut dyn Contestant,
        tokenizer: &Tokenizer,
        abilities: Abilities,
        n: usize,
        row: &mut Row,
    ) -> Vec<Difference> {
        let questions: Vec<Question> = (0..n).map(|_| self.question(abilities)).collect();
        let requests: Vec<Request<'_>> = questions.iter().map(Question::request).collect();
        let (our_answers, their_answers) =
            (ours.encode_all(&requests), theirs.encode_all(&requests));
        let mut found = Vec::new();
        for ((question, ours), answer) in questions.iter().zip(&our_answers).zip(&their_answers) {
            row.texts += 1;
            let verdict = excused(compare::encodings(ours, answer), question, theirs);
            record(row, &mut found, verdict, || Input::Text(question.clone()));
        }
        // What they made of the texts, and ids that no text makes.
        let skip_special = match abilities.skip_special {
            Skip::Never => false,
            Skip::Always => true,
            Skip::Either => self.rng.below(2) == 0,
        };
        let mut ids: Vec<Vec<u32>> = Vec::new();
        for answer in their_answers {
            if let Outcome::Value(encoded) = answer {
                ids.push(encoded.ids);
            }
            if self.rng.below(4) == 0 {
                ids.push(self.random_ids(tokenizer));
            }
        }
        let requests: Vec<DecodeRequest<'_>> =
            ids.iter().map(|ids| DecodeRequest { ids, skip_special }).collect();
        let (our_texts, their_texts) = (ours.decode_all(&requests), theirs.decode_all(&requests));
        for ((ids, ours), text) in ids.iter().zip(&our_texts).zip(&their_texts) {
            let request = DecodeRequest { ids, skip_special };
            let verdict = excused_decoding(compare::decodings(ours, text), &request, theirs);
            record(row, &mut found, verdict, || Input::Ids(ids.clone(), skip_special));
        }
        found
    }

    fn random_ids(&mut self, tokenizer: &Tokenizer) -> Vec<u32> {
        let len = self.rng.below(12);
        let added = tokenizer.added_tokens();
        let all = tokenizer.vocab_len() as u64;
        let id = |rng: &mut Rng| match rng.below(4) {
            0 if !added.is_empty() => added[rng.below(added.len() as u64) as usize].id.0,
            1 => rng.below(all.min(300)) as u32,
            _ => rng.below(all) as u32,
        };
        // Numbers that are no token are an error of ours and nothing for others; see the docs.
        let known = |id: &u32| tokenizer.token_bytes(TokenId(*id)).is_some();
        (0..len).map(|_| id(&mut self.rng)).filter(known).collect()
    }

    fn random(&mut self, n: u64, charsmaps: Vec<String>) -> Row {
        let mut row = Row {
            model: "random documents".to_owned(),
            reference: huggingface::VERSION.to_owned(),
            ..Row::default()
        };
        let mut documents = Documents::new(self.rng.next_u64(), charsmaps);
        while row.texts < n {
            let (document, hints) = documents.next_document();
            let Some(mut theirs) = load_theirs(&document) else {
                row.unusable += 1;
                continue;
            };
            let (tokenizer, pads) = match load_ours(&document) {
                Ok(loaded) => loaded,
                Err(why) => {
                    *row.refused.entry(generic(&why)).or_default() += 1;
                    continue;
                }
            };
            row.documents += 1;
            self.texts.set_hints(hints);
            let mut ours = Ours::new(&tokenizer, pads);
            // A padding of pairs is a batch's, and ours has batches of single texts alone.
            let truncates = !document["truncation"].is_null();
            let abilities = Abilities { pairs: !pads, truncates, ..ALL };
            let batch = (n - row.texts).min(40) as usize;
            let found = self.round(&mut ours, &mut theirs, &tokenizer, abilities, batch, &mut row);
            // One of each part tells enough of a random document.
            let mut parts: Vec<Part> = Vec::new();
            for difference in found {
                if !parts.contains(&difference.part) {
                    parts.push(difference.part);
                    self.show(difference, &mut ours, &mut theirs, Some(&document), &mut row);
                }
            }
            self.news(&row);
        }
        row
    }

    fn news(&mut self, row: &Row) {
        if self.last_news.elapsed() > Duration::from_secs(20) {
            self.last_news = Instant::now();
            let (model, texts, differences) = (&row.model, row.texts, row.differences);
            (self.progress)(&format!("{model}: {texts} texts, {differences} differences"));
        }
    }

    /// Shrinks a difference and shows it.
    fn show(
        &mut self,
        difference: Difference,
        ours: &mut dyn Contestant,
        theirs: &mut dyn Contestant,
        document: Option<&Value>,
        row: &mut Row,
    ) {
        if row.shown.len() >= self.show {
            return;
        }
        let part = difference.part;
        let mut input = shrink_input(difference.input, part, ours, theirs);
        if let Some(document) = document {
            let smallest = shrink::document(document, 3000, |candidate| {
                let (Some(mut theirs), Ok((tokenizer, pads))) =
                    (load_theirs(candidate), load_ours(candidate))
                else {
                    return false;
                };
                input.ask(&mut Ours::new(&tokenizer, pads), &mut theirs).part() == Some(part)
            });
            if let (Some(mut theirs), Ok((tokenizer, pads))) =
                (load_theirs(&smallest), load_ours(&smallest))
            {
                input = shrink_input(input, part, &mut Ours::new(&tokenizer, pads), &mut theirs);
                let verdict = input.ask(&mut Ours::new(&tokenizer, pads), &mut theirs);
                if self.seen.insert(format!("{part} {}", kinds(&smallest))) {
                    self.report(row, &input, verdict, Some(smallest));
                }
            }
            return;
        }
        let verdict = input.ask(ours, theirs);
        self.report(row, &input, verdict, None);
    }

    fn report(&mut self, row: &mut Row, input: &Input, verdict: Verdict, document: Option<Value>) {
        let Verdict::Differs { part, ours, theirs } = verdict else { return };
        let shown =
            Shown { part: part.to_string(), input: input.to_json(), ours, theirs, document };
        let mut text = format!(
            "{}: {} differ\n  input  {}\n  ours   {}\n  theirs {}",
            row.model, shown.part, shown.input, shown.ours, shown.theirs
        );
        if let Some(document) = &shown.document {
            let _ = write!(text, "\n  document {document}");
        }
        (self.progress)(&text);
        row.shown.push(shown);
    }
}

/// Something that differed.
struct Difference {
    part: Part,
    input: Input,
}

#[derive(Clone)]
enum Input {
    Text(Question),
    Ids(Vec<u32>, bool),
}

impl Input {
    fn ask(&self, ours: &mut dyn Contestant, theirs: &mut dyn Contestant) -> Verdict {
        match self {
            Self::Text(question) => {
                let request = question.request();
                let verdict = compare::encodings(&ours.encode(&request), &theirs.encode(&request));
                excused(verdict, question, theirs)
            }
            Self::Ids(ids, skip_special) => {
                let request = DecodeRequest { ids, skip_special: *skip_special };
                let verdict = compare::decodings(&ours.decode(&request), &theirs.decode(&request));
                excused_decoding(verdict, &request, theirs)
            }
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Text(question) => question.to_json(),
            Self::Ids(ids, skip_special) => json!({"ids": ids, "skip_special": skip_special}),
        }
    }
}

/// A difference that the reference is known to be at fault for is no difference.
fn excused(verdict: Verdict, question: &Question, theirs: &mut dyn Contestant) -> Verdict {
    if verdict.part().is_none() {
        return verdict;
    }
    theirs.excuse(&question.request()).map_or(verdict, Verdict::Skipped)
}

fn excused_decoding(
    verdict: Verdict,
    request: &DecodeRequest<'_>,
    theirs: &mut dyn Contestant,
) -> Verdict {
    if verdict.part().is_none() {
        return verdict;
    }
    theirs.excuse_decoding(request).map_or(verdict, Verdict::Skipped)
}

fn record(
    row: &mut Row,
    found: &mut Vec<Difference>,
    verdict: Verdict,
    input: impl FnOnce() -> Input,
) {
    match verdict {
        Verdict::Same => row.comparisons += 1,
        Verdict::Skipped(why) => *row.skipped.entry(generic(&why)).or_default() += 1,
        Verdict::Differs { part, .. } => {
            row.comparisons += 1;
            row.differences += 1;
            found.push(Difference { part, input: input() });
        }
    }
}

/// The types of a document's parts: what two documents have in common that show one fault.
fn kinds(document: &Value) -> String {
    let mut kinds = Vec::new();
    for (name, part) in document.as_object().into_iter().flatten() {
        collect_kinds(name, part, &mut kinds);
    }
    kinds.join(" ")
}

fn collect_kinds(name: &str, value: &Value, kinds: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(kind) = fields.get("type").and_then(Value::as_str) {
                kinds.push(format!("{name}:{kind}"));
            }
            fields.values().for_each(|field| collect_kinds(name, field, kinds));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_kinds(name, item, kinds)),
        _ => {}
    }
}

/// A message without the numbers and names that make each its own.
fn generic(message: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    for c in message.chars() {
        match c {
            '\'' => {
                // Panics about character boundaries name the character.
                out.push_str("'...");
                break;
            }
            '"' | '`' => {
                quoted = !quoted;
                out.push(c);
            }
            _ if quoted => {}
            '0'..='9' => {
                if !out.ends_with('N') {
                    out.push('N');
                }
            }
            _ => out.push(c),
        }
    }
    out
}

fn shrink_input(
    input: Input,
    part: Part,
    ours: &mut dyn Contestant,
    theirs: &mut dyn Contestant,
) -> Input {
    const BUDGET: usize = 2000;
    match input {
        Input::Text(mut question) => {
            for simpler in [
                Question { second: None, ..question.clone() },
                Question { template: false, ..question.clone() },
                Question { special: false, ..question.clone() },
            ] {
                if Input::Text(simpler.clone()).ask(ours, theirs).part() == Some(part) {
                    question = simpler;
                }
            }
            let mut differs =
                |question: Question| Input::Text(question).ask(ours, theirs).part() == Some(part);
            question.first = shrink::text(&question.first, BUDGET, |first| {
                differs(Question { first: first.to_owned(), ..question.clone() })
            });
            if let Some(second) = question.second.clone() {
                let second = shrink::text(&second, BUDGET, |second| {
                    differs(Question { second: Some(second.to_owned()), ..question.clone() })
                });
                question.second = Some(second);
            }
            Input::Text(question)
        }
        Input::Ids(mut ids, skip_special) => {
            let mut at = 0;
            while at < ids.len() {
                let mut fewer = ids.clone();
                fewer.remove(at);
                let candidate = Input::Ids(fewer.clone(), skip_special);
                if candidate.ask(ours, theirs).part() == Some(part) {
                    ids = fewer;
                } else {
                    at += 1;
                }
            }
            Input::Ids(ids, skip_special)
        }
    }
}

fn load_theirs(document: &Value) -> Option<HuggingFace> {
    match HuggingFace::load(document.to_string().as_bytes()) {
        Outcome::Value(theirs) => Some(theirs),
        Outcome::Refused(_) | Outcome::Crashed(_) => None,
    }
}

fn load_ours(document: &Value) -> Result<(Tokenizer, bool), String> {
    let document =
        TokenizerJson::parse(document.to_string().as_bytes()).map_err(|error| error.to_string())?;
    let pads = document.padding.is_some();
    let tokenizer = Outcome::of(|| Tokenizer::from_tokenizer_json(&document));
    match tokenizer {
        Outcome::Value(tokenizer) => Ok((tokenizer, pads)),
        Outcome::Refused(why) => Err(why),
        Outcome::Crashed(why) => Err(format!("panic: {why}")),
    }
}
