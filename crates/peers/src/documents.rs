//! Random tokenizer.json files: any normalizer with any pre-tokenizer, model, post-processor,
//! decoder and added tokens. Combinations that no real file has are where nobody looks.

use serde_json::{Map, Value, json};
use tokenizer_core::Rng;

/// Characters of the vocabularies: few, so that merges and matches happen all the time.
const ALPHABET: &[&str] = &[
    "a",
    "b",
    "c",
    "d",
    "e",
    "o",
    "s",
    "t",
    "A",
    "B",
    "1",
    "2",
    ".",
    ",",
    "'",
    "!",
    "-",
    "_",
    "\u{E9}",
    "\u{DF}",
    "\u{4E2D}",
    "\u{65E5}",
    "\u{3042}",
    "\u{301}",
    "\u{2581}",
    " ",
    "\n",
    "\u{120}",
    "\u{1F600}",
    "\u{430}",
    "\u{200D}",
];

/// Makes documents.
pub struct Documents {
    rng: Rng,
    charsmaps: Vec<String>,
    trims: bool,
}

impl Documents {
    /// Documents of this seed; `charsmaps` are precompiled ones, in base64.
    #[must_use]
    pub fn new(seed: u64, charsmaps: Vec<String>) -> Self {
        Self { rng: Rng::new(seed ^ 0x00D0_C5ED), charsmaps, trims: true }
    }

    /// The next document, and texts that are near its tokens.
    pub fn next_document(&mut self) -> (Value, Vec<String>) {
        let byte_level = self.one_in(3);
        let (model, tokens) = self.model(byte_level);
        let mut added = self.added_tokens(&tokens);
        let mut hints: Vec<String> = Vec::new();
        for token in &tokens {
            let text = token.trim_start_matches("##").trim_end_matches("</w>");
            hints.push(text.replace(if byte_level { '\u{120}' } else { '\u{2581}' }, " "));
        }
        for token in &added {
            // Added tokens come first in texts, as nothing else meets their flags.
            for _ in 0..hints.len() / (2 * added.len()) + 1 {
                hints.push(token["content"].as_str().unwrap_or_default().to_owned());
            }
        }
        let first_free = tokens.len() as u64;
        // Where offsets are trimmed, theirs looks at the normalized text of unknown tokens of
        // Unigram and of added tokens that take white space, ours at the original one. And ours
        // goes by ids: it cannot tell a normalized token that was matched from the same token made
        // by the model of other text.
        self.trims = model["type"] != "Unigram" && self.one_in(2);
        if self.trims {
            for token in added.iter_mut().filter(|token| token["normalized"] == true) {
                token["lstrip"] = json!(false);
                token["rstrip"] = json!(false);
                let known = tokens.iter().any(|known| token["content"] == known.as_str());
                token["normalized"] = json!(!known);
            }
        }
        let document = json!({
            "version": "1.0",
            "truncation": self.truncation(),
            "padding": self.padding(),
            "added_tokens": added,
            "normalizer": self.normalizer(0),
            "pre_tokenizer": self.pre_tokenizer(byte_level, 0),
            "post_processor": self.post_processor(0, first_free),
            "decoder": self.decoder(byte_level, 0),
            "model": model,
        });
        (document, hints)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.rng.below(n) == 0
    }

    fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    fn of<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn word(&mut self, longest: usize) -> String {
        (0..self.below(longest) + 1).map(|_| self.of(&ALPHABET[..12])).collect()
    }

    fn model(&mut self, byte_level: bool) -> (Value, Vec<String>) {
        if byte_level {
            return self.bpe(true);
        }
        match self.below(5) {
            0 => self.word_piece(),
            1 => self.word_level(),
            2 | 3 => self.unigram(),
            _ => self.bpe(false),
        }
    }

    fn bpe(&mut self, byte_level: bool) -> (Value, Vec<String>) {
        let prefix = (!byte_level && self.one_in(6)).then(|| self.of(&["##", "@", ""]));
        let suffix = (!byte_level && self.one_in(6)).then(|| self.of(&["</w>", "_", ""]));
        // With an affix, byte fallback spells the affix too, and offsets leave the text.
        let byte_fallback = prefix.is_none() && suffix.is_none() && self.one_in(3);
        let mut tokens: Vec<String> = Vec::new();
        if self.one_in(2) {
            tokens.push("<unk>".to_owned());
        }
        if byte_level {
            let all: Vec<u8> = (0..=255).collect();
            let spelled = formats::byte_level::encode(&all);
            let drop = self.one_in(4);
            for c in spelled.chars() {
                if !(drop && self.one_in(30)) {
                    tokens.push(c.to_string());
                }
            }
        } else {
            for c in ALPHABET {
                if self.one_in(8) {
                    continue;
                }
                tokens.push((*c).to_owned());
                if let Some(prefix) = prefix {
                    tokens.push(format!("{prefix}{c}"));
                }
                if let Some(suffix) = suffix {
                    tokens.push(format!("{c}{suffix}"));
                    if let Some(prefix) = prefix {
                        tokens.push(format!("{prefix}{c}{suffix}"));
                    }
                }
            }
        }
        if byte_fallback {
            let all = self.one_in(2);
            for byte in 0..256 {
                if all || self.one_in(2) {
                    tokens.push(format!("<0x{byte:02X}>"));
                }
            }
        }
        dedup(&mut tokens);
        let mut merges: Vec<(String, String)> = Vec::new();
        let frequent: &[&str] = if byte_level {
            &["a", "b", "c", "\u{120}", "s", "t", "e", "1", ".", "\u{10A}", "\u{C3}", "\u{A9}"]
        } else {
            &ALPHABET[..26]
        };
        let mut usable: Vec<String> = tokens
            .iter()
            .filter(|token| frequent.iter().any(|f| token.contains(f)))
            .cloned()
            .collect();
        usable.retain(|token| !token.starts_with("<0x") && token != "<unk>");
        for _ in 0..self.below(60) {
            if usable.is_empty() {
                break;
            }
            let left = usable[self.below(usable.len())].clone();
            let right = usable[self.below(usable.len())].clone();
            if suffix.is_some_and(|suffix| !suffix.is_empty() && left.ends_with(suffix)) {
                continue;
            }
            let rest = match prefix.filter(|prefix| !prefix.is_empty()) {
                Some(prefix) => match right.strip_prefix(prefix) {
                    Some(rest) => rest.to_owned(),
                    None => continue,
                },
                None => right.clone(),
            };
            let product = format!("{left}{rest}");
            if product.chars().count() > 12 {
                continue;
            }
            merges.push((left, right));
            if !tokens.contains(&product) {
                tokens.push(product.clone());
                usable.push(product);
            }
        }
        // Whole words that no merge makes: `ignore_merges` finds them.
        for _ in 0..self.below(4) {
            let word = self.word(6);
            tokens.push(word);
        }
        dedup(&mut tokens);
        let merges: Vec<Value> = if self.one_in(2)
            && merges.iter().all(|(left, right)| !left.contains(' ') && !right.contains(' '))
        {
            merges.iter().map(|(left, right)| json!(format!("{left} {right}"))).collect()
        } else {
            merges.iter().map(|(left, right)| json!([left, right])).collect()
        };
        let unk = tokens.contains(&"<unk>".to_owned()) && !self.one_in(4);
        let model = json!({
            "type": "BPE",
            "dropout": null,
            "unk_token": unk.then_some("<unk>"),
            "continuing_subword_prefix": prefix,
            "end_of_word_suffix": suffix,
            "fuse_unk": self.one_in(2),
            "byte_fallback": byte_fallback,
            // Theirs takes the text of a byte token for the token; ours keeps the two apart.
            "ignore_merges": !byte_fallback && self.one_in(3),
            "vocab": self.vocab(&tokens),
            "merges": merges,
        });
        (model, tokens)
    }

    /// Ids in order, shuffled, or with gaps.
    fn vocab(&mut self, tokens: &[String]) -> Map<String, Value> {
        let mut ids: Vec<usize> = (0..tokens.len()).collect();
        match self.below(8) {
            0 => {
                for i in (1..ids.len()).rev() {
                    ids.swap(i, self.below(i + 1));
                }
            }
            1 => {
                let gap = self.below(ids.len().max(1));
                ids.iter_mut().filter(|id| **id >= gap).for_each(|id| *id += 3);
            }
            _ => {}
        }
        tokens.iter().zip(ids).map(|(token, id)| (token.clone(), json!(id))).collect()
    }

    fn words(&mut self, prefix: &str) -> Vec<String> {
        let mut tokens = vec!["[UNK]".to_owned()];
        for c in ALPHABET {
            if !self.one_in(5) {
                tokens.push((*c).to_owned());
            }
            if !self.one_in(3) {
                tokens.push(format!("{prefix}{c}"));
            }
        }
        for _ in 0..40 {
            let word = self.word(5);
            tokens.push(if self.one_in(2) { word } else { format!("{prefix}{word}") });
        }
        dedup(&mut tokens);
        tokens
    }

    fn word_piece(&mut self) -> (Value, Vec<String>) {
        let prefix = self.of(&["##", "##", "##", "@@", "a", ""]);
        let tokens = self.words(prefix);
        let model = json!({
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": prefix,
            "max_input_chars_per_word": ([100, 100, 4, 1][self.below(4)]),
            "vocab": self.vocab(&tokens),
        });
        (model, tokens)
    }

    fn word_level(&mut self) -> (Value, Vec<String>) {
        let tokens = self.words("\u{2581}");
        let model = json!({
            "type": "WordLevel",
            "vocab": self.vocab(&tokens),
            "unk_token": "[UNK]",
        });
        (model, tokens)
    }

    fn unigram(&mut self) -> (Value, Vec<String>) {
        let mut tokens = vec!["<unk>".to_owned()];
        if self.one_in(2) {
            tokens.extend(["<s>".to_owned(), "</s>".to_owned()]);
        }
        for c in ALPHABET {
            if !self.one_in(6) {
                tokens.push((*c).to_owned());
            }
        }
        for _ in 0..60 {
            let word = self.word(5);
            tokens.push(if self.one_in(2) { word } else { format!("\u{2581}{word}") });
        }
        let byte_fallback = self.one_in(3);
        if byte_fallback {
            let all = self.one_in(2);
            for byte in 0..256 {
                if all || self.one_in(2) {
                    tokens.push(format!("<0x{byte:02X}>"));
                }
            }
        }
        if !self.one_in(8) {
            dedup(&mut tokens);
        }
        let coarse = self.one_in(4);
        let pieces: Vec<Value> = tokens
            .iter()
            .map(|token| {
                let score = -(self.below(12_000) as f64) / 1000.0;
                json!([token, if coarse { score.round() } else { score }])
            })
            .collect();
        let unk = match self.below(8) {
            0 => Value::Null,
            1 => json!(self.below(20)),
            _ => json!(0),
        };
        let model = json!({
            "type": "Unigram",
            "unk_id": unk,
            "vocab": pieces,
            "byte_fallback": byte_fallback,
        });
        (model, tokens)
    }

    fn added_tokens(&mut self, tokens: &[String]) -> Vec<Value> {
        let mut contents: Vec<String> = Vec::new();
        for _ in 0..self.below(6) {
            let content = match self.below(8) {
                0 | 1 => tokens[self.below(tokens.len())].clone(),
                2 => self
                    .of(&["<s>", "</s>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "<pad>"])
                    .to_owned(),
                3 => self
                    .of(&["<|endoftext|>", "<|im_start|>", "<|", "  ", " a", "a ", "\n"])
                    .to_owned(),
                4 => self
                    .of(&[
                        "\u{C9}",
                        "AB",
                        "e\u{301}",
                        "\u{FB01}",
                        "\u{2581}a",
                        "\u{2581}",
                        "\u{DF}",
                    ])
                    .to_owned(),
                5 => format!(" {}", self.word(2)),
                _ => self.word(4),
            };
            contents.push(content);
        }
        contents.retain(|content| !content.is_empty());
        dedup(&mut contents);
        let next = tokens.len();
        let mut fresh = 0;
        contents
            .into_iter()
            .map(|content| {
                let known = tokens.iter().position(|token| *token == content);
                let id = known.unwrap_or_else(|| {
                    fresh += 1;
                    next + fresh - 1
                });
                json!({
                    "id": id,
                    "content": content,
                    "single_word": self.one_in(3),
                    "lstrip": self.one_in(3),
                    "rstrip": self.one_in(3),
                    "normalized": self.one_in(2),
                    "special": self.one_in(2),
                })
            })
            .collect()
    }

    fn normalizer(&mut self, depth: usize) -> Value {
        match self.below(18) {
            0..4 if depth == 0 => Value::Null,
            0 => json!({"type": "Sequence", "normalizers": []}),
            1 => json!({"type": "NFC"}),
            2 => json!({"type": "NFD"}),
            3 => json!({"type": "NFKC"}),
            4 => json!({"type": "NFKD"}),
            5 => json!({"type": "Lowercase"}),
            6 => json!({"type": "StripAccents"}),
            7 => {
                json!({"type": "Strip", "strip_left": self.one_in(2), "strip_right": self.one_in(2)})
            }
            8 => json!({"type": "Nmt"}),
            9 => json!({
                "type": "BertNormalizer",
                "clean_text": self.one_in(2),
                "handle_chinese_chars": self.one_in(2),
                "strip_accents": ([None, Some(true), Some(false)][self.below(3)]),
                "lowercase": self.one_in(2),
            }),
            10 => json!({"type": "Prepend", "prepend": self.of(&["\u{2581}", " ", "ab"])}),
            11 => json!({
                "type": "Replace",
                "pattern": {"String": self.of(&[" ", "a", "ab", "\u{E9}", "\n", "aa"])},
                "content": self.of(&["\u{2581}", "", "b", "xyz", "\u{4E2D}"]),
            }),
            12 => json!({
                "type": "Replace",
                "pattern": {"Regex": self.of(&["\\s+", "[ab]", " {2,}", "a*", "\\d", "^a", "$", "(?=a)"])},
                "content": self.of(&[" ", "", "b", "xyz"]),
            }),
            13 if !self.charsmaps.is_empty() && self.one_in(4) => {
                let charsmap =
                    self.charsmaps[self.rng.below(self.charsmaps.len() as u64) as usize].clone();
                json!({"type": "Precompiled", "precompiled_charsmap": charsmap})
            }
            14 => json!({"type": "ByteLevel"}),
            _ if depth < 2 => {
                let parts: Vec<Value> =
                    (0..self.below(4)).map(|_| self.normalizer(depth + 1)).collect();
                json!({"type": "Sequence", "normalizers": parts})
            }
            _ => json!({"type": "Lowercase"}),
        }
    }

    fn behavior(&mut self) -> &'static str {
        self.of(&["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"])
    }

    fn byte_level_part(&mut self) -> Value {
        json!({
            "type": "ByteLevel",
            "add_prefix_space": self.one_in(2),
            "trim_offsets": self.trims && self.one_in(2),
            "use_regex": !self.one_in(3),
        })
    }

    fn metaspace_part(&mut self) -> Value {
        json!({
            "type": "Metaspace",
            "replacement": self.of(&["\u{2581}", "\u{2581}", "\u{2581}", "_"]),
            "prepend_scheme": self.of(&["always", "first", "never"]),
            "split": self.one_in(2),
        })
    }

    fn pre_tokenizer(&mut self, byte_level: bool, depth: usize) -> Value {
        if byte_level && depth == 0 {
            let last = self.byte_level_part();
            if self.one_in(2) {
                return last;
            }
            let mut parts: Vec<Value> =
                (0..self.below(3)).map(|_| self.pre_tokenizer(false, 1)).collect();
            parts.push(last);
            return json!({"type": "Sequence", "pretokenizers": parts});
        }
        match self.below(16) {
            0 | 1 if depth == 0 => Value::Null,
            0 => json!({"type": "Sequence", "pretokenizers": []}),
            1 => json!({"type": "BertPreTokenizer"}),
            2 => json!({"type": "Whitespace"}),
            3 => json!({"type": "WhitespaceSplit"}),
            4 => json!({"type": "UnicodeScripts"}),
            5 => {
                json!({"type": "CharDelimiterSplit", "delimiter": self.of(&[" ", "a", "\u{2581}", "-"])})
            }
            6 => json!({"type": "Punctuation", "behavior": self.behavior()}),
            7 => json!({"type": "Digits", "individual_digits": self.one_in(2)}),
            8 => json!({"type": "FixedLength", "length": self.below(4) + 1}),
            9 => json!({
                "type": "Split",
                "pattern": {"String": self.of(&[" ", "a", "ab", "\n", "\u{2581}", "\u{E9}"])},
                "behavior": self.behavior(),
                "invert": self.one_in(2),
            }),
            10 => json!({
                "type": "Split",
                "pattern": {"Regex": self.of(&[
                    "\\s+", "\\w+|[^\\w\\s]+", "\\p{N}{1,3}", "(?=[A-Z])", "[ab]+?", "a*", " ?\\p{L}+",
                    "\\b", "^.", ".$", "(?i:s|t)",
                    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
                ])},
                "behavior": self.behavior(),
                "invert": self.one_in(2),
            }),
            11 | 12 => self.metaspace_part(),
            13 => self.byte_level_part(),
            _ if depth < 2 => {
                let parts: Vec<Value> =
                    (0..self.below(4)).map(|_| self.pre_tokenizer(false, depth + 1)).collect();
                json!({"type": "Sequence", "pretokenizers": parts})
            }
            _ => json!({"type": "Whitespace"}),
        }
    }

    fn post_processor(&mut self, depth: usize, n_tokens: u64) -> Value {
        let id = |this: &mut Self| this.rng.below(n_tokens);
        match self.below(9) {
            0..3 if depth == 0 => Value::Null,
            0 | 1 => json!({
                "type": "BertProcessing", "sep": ["[SEP]", id(self)], "cls": ["[CLS]", id(self)],
            }),
            2 | 3 => json!({
                "type": "RobertaProcessing", "sep": ["</s>", id(self)], "cls": ["<s>", id(self)],
                "trim_offsets": self.trims && self.one_in(2), "add_prefix_space": self.one_in(2),
            }),
            4 => self.byte_level_part(),
            5 if depth < 1 => {
                let parts: Vec<Value> =
                    (0..self.below(3)).map(|_| self.post_processor(depth + 1, n_tokens)).collect();
                json!({"type": "Sequence", "processors": parts})
            }
            _ => {
                let sequence = |this: &mut Self, name: &str| json!({"Sequence": {"id": name, "type_id": this.below(3)}});
                let special = |this: &mut Self| json!({"SpecialToken": {"id": this.of(&["X", "Y"]), "type_id": this.below(3)}});
                let mut single = vec![sequence(self, "A")];
                let mut pair = vec![sequence(self, "A"), sequence(self, "B")];
                if self.one_in(6) {
                    pair.swap(0, 1);
                }
                for _ in 0..self.below(3) {
                    let (at, part) = (self.below(single.len() + 1), special(self));
                    single.insert(at, part);
                }
                for _ in 0..self.below(4) {
                    let (at, part) = (self.below(pair.len() + 1), special(self));
                    pair.insert(at, part);
                }
                let (x, y, z) = (id(self), id(self), id(self));
                json!({
                    "type": "TemplateProcessing",
                    "single": single,
                    "pair": pair,
                    "special_tokens": {
                        "X": {"id": "X", "ids": [x], "tokens": ["X"]},
                        "Y": {"id": "Y", "ids": [y, z], "tokens": ["Y", "Z"]},
                    },
                })
            }
        }
    }

    fn decoder(&mut self, byte_level: bool, depth: usize) -> Value {
        if byte_level && depth == 0 && !self.one_in(5) {
            return self.byte_level_part();
        }
        match self.below(14) {
            0 | 1 if depth == 0 => Value::Null,
            0 => json!({"type": "Sequence", "decoders": []}),
            1 => json!({"type": "BPEDecoder", "suffix": self.of(&["</w>", "_", "a"])}),
            2 => self.byte_level_part(),
            3 => json!({
                "type": "WordPiece", "prefix": self.of(&["##", "##", "a", "@@"]), "cleanup": self.one_in(2),
            }),
            4 => self.metaspace_part(),
            5 => json!({
                "type": "CTC", "pad_token": self.of(&["<pad>", "a"]),
                "word_delimiter_token": self.of(&["|", "b"]), "cleanup": self.one_in(2),
            }),
            6 => json!({"type": "Fuse"}),
            7 => json!({
                "type": "Strip", "content": self.of(&[" ", "a", "\u{E9}"]),
                "start": self.below(3), "stop": self.below(3),
            }),
            8 => json!({
                "type": "Replace",
                "pattern": {"String": self.of(&["\u{2581}", "a", "ab", " "])},
                "content": self.of(&[" ", "", "xy"]),
            }),
            9 | 10 => json!({"type": "ByteFallback"}),
            _ if depth < 2 => {
                let parts: Vec<Value> =
                    (0..self.below(5)).map(|_| self.decoder(false, depth + 1)).collect();
                json!({"type": "Sequence", "decoders": parts})
            }
            _ => json!({"type": "Fuse"}),
        }
    }

    fn truncation(&mut self) -> Value {
        if !self.one_in(4) {
            return Value::Null;
        }
        json!({
            "direction": self.of(&["Left", "Right"]),
            "max_length": self.below(15) + 2,
            "strategy": self.of(&["LongestFirst", "OnlyFirst", "OnlySecond"]),
            "stride": self.below(4),
        })
    }

    fn padding(&mut self) -> Value {
        if !self.one_in(5) {
            return Value::Null;
        }
        json!({
            "strategy": if self.one_in(2) { json!("BatchLongest") } else { json!({"Fixed": self.below(20)}) },
            "direction": self.of(&["Left", "Right"]),
            "pad_to_multiple_of": ([None, Some(8), Some(3)][self.below(3)]),
            "pad_id": self.below(4),
            "pad_type_id": self.below(2),
            "pad_token": "<pad>",
        })
    }
}

/// Drops what is there twice; the first stays.
fn dedup(tokens: &mut Vec<String>) {
    let mut seen = std::collections::HashSet::new();
    tokens.retain(|token| seen.insert(token.clone()));
}
