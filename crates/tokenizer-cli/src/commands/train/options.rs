//! `--preset`, and the options that several algorithms share: which pieces there may be, which tokens
//! are special and under which ids.

use clap::{Args, ValueEnum};
use tokenizer::Sentences;
use tokenizer::lift::Target;
use tokenizer_core::{PieceRules, TokenKind};

use super::{Algorithm, EndOfWordAs, Limit, TieRule, Train, Unit};
use crate::failure::Failure;

/// Another library's trainer, whose results are to be had exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// SentencePiece 0.2.3
    #[value(name = "sentencepiece")]
    SentencePiece,
    /// subword-nmt 0.3.8
    SubwordNmt,
}

/// Which strings may be pieces.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Pieces (bpe over characters, unigram)")]
pub(crate) struct PieceOptions {
    /// Pieces do not mix scripts (Hiragana and Katakana count as Han, digits and punctuation as a
    /// script of their own) [default: false; true with --preset sentencepiece]
    #[arg(long, visible_alias = "split-by-unicode-script", value_name = "BOOL", num_args = 0..=1,
          default_missing_value = "true", require_equals = true)]
    pub(crate) split_by_script: Option<bool>,
    /// Digits count as a script; without it they go with any. Needs --split-by-script [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true",
          require_equals = true)]
    pub(crate) split_by_number: Option<bool>,
    /// Pieces do not reach over spaces (▁). Without it the splitter is none, and a piece may hold
    /// spaces, but not end with one [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true",
          require_equals = true)]
    pub(crate) split_by_whitespace: Option<bool>,
    /// Every digit stands alone [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true",
          require_equals = true)]
    pub(crate) split_digits: Option<bool>,
    /// Runs of spaces (▁▁▁) may be pieces. The splitter is none [default: false]
    #[arg(long, visible_alias = "allow-whitespace-only-pieces", value_name = "BOOL", num_args = 0..=1,
          default_missing_value = "true", require_equals = true)]
    pub(crate) whitespace_pieces: Option<bool>,
}

impl PieceOptions {
    fn is_given(&self) -> bool {
        *self != Self::default()
    }

    /// Whether pieces of the counts must hold more than a word.
    pub(crate) fn needs_whole_text(&self) -> bool {
        self.split_by_whitespace == Some(false) || self.whitespace_pieces == Some(true)
    }
}

/// Tokens with a role.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Tokens with a role (bpe, wordpiece, unigram)")]
pub(crate) struct RoleOptions {
    /// The token for the beginning of a text [default: none; <s> with --preset sentencepiece]
    #[arg(long, visible_alias = "bos-piece", value_name = "TOKEN")]
    pub(crate) bos: Option<String>,
    /// The token for the end of a text [default: none; </s> with --preset sentencepiece]
    #[arg(long, visible_alias = "eos-piece", value_name = "TOKEN")]
    pub(crate) eos: Option<String>,
    /// The token that fills up batches [default: none; <pad> where --pad-id is given]
    #[arg(long, visible_alias = "pad-piece", value_name = "TOKEN")]
    pub(crate) pad: Option<String>,
    /// The id of the unknown token [default: the lowest free one]
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub(crate) unk_id: Option<i64>,
    /// The id of --bos, -1 for no such token
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub(crate) bos_id: Option<i64>,
    /// The id of --eos, -1 for no such token
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub(crate) eos_id: Option<i64>,
    /// The id of --pad, -1 for no such token
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub(crate) pad_id: Option<i64>,
}

impl RoleOptions {
    pub(crate) fn is_given(&self) -> bool {
        *self != Self::default()
    }
}

/// A token that is not trained.
pub(crate) struct Special {
    pub(crate) token: String,
    pub(crate) kind: TokenKind,
    pub(crate) id: Option<u32>,
}

impl Train {
    /// Whether SentencePiece's trainer is followed.
    pub(crate) fn follows_sentencepiece(&self) -> bool {
        self.preset == Some(Preset::SentencePiece)
    }

    /// These options with those of the preset where none were given.
    ///
    /// An option that the preset decides otherwise is refused: the result would not be what the
    /// preset promises.
    pub(crate) fn with_preset(mut self) -> Result<Self, Failure> {
        if self.max_sentence_length.is_some() && !self.follows_sentencepiece() {
            return Err(Failure::usage("--max-sentence-length needs --preset sentencepiece"));
        }
        let (algorithm, preset) = match (self.algorithm, self.preset) {
            (_, None) => return Ok(self),
            (Algorithm::Bpe | Algorithm::Unigram, Some(Preset::SentencePiece))
            | (Algorithm::Bpe, Some(Preset::SubwordNmt)) => (self.algorithm, self.preset),
            (algorithm, Some(preset)) => {
                let name = preset.to_possible_value();
                return Err(Failure::usage(format!(
                    "{} has no --preset {}",
                    algorithm.name(),
                    name.as_ref().map_or("", |value| value.get_name()),
                )));
            }
        };
        let refuse = |option: &str, is_given: bool, preset: &str| match is_given {
            true => {
                Err(Failure::usage(format!("--preset {preset} decides {option}: leave it out")))
            }
            false => Ok(()),
        };
        if preset == Some(Preset::SubwordNmt) {
            let name = "subword-nmt";
            refuse("--unit", self.unit.is_some(), name)?;
            refuse("--ties", self.ties.is_some(), name)?;
            refuse("--end-of-word", self.end_of_word.is_some(), name)?;
            refuse("--continuing-prefix", self.continuing_prefix.is_some(), name)?;
            refuse("--pretok", self.pretok.is_some(), name)?;
            self.unit = Some(Unit::Char);
            self.ties = Some(TieRule::GreatestBytes);
            self.end_of_word = Some("</w>".into());
            self.end_of_word_as = Some(EndOfWordAs::Suffix);
            self.min_frequency = self.min_frequency.or(Some(2));
            self.pretok = Some("spaces".into());
            self.input.lines = true;
            return Ok(self);
        }
        let name = "sentencepiece";
        refuse("--unit", self.unit.is_some(), name)?;
        refuse("--ties", self.ties.is_some(), name)?;
        refuse("--end-of-word", self.end_of_word.is_some(), name)?;
        refuse("--continuing-prefix", self.continuing_prefix.is_some(), name)?;
        refuse("--min-frequency", self.min_frequency.is_some(), name)?;
        refuse("--alphabet-limit", self.alphabet_limit.is_some(), name)?;
        refuse("--pretok", self.pretok.is_some(), name)?;
        refuse("--merges", self.merges.is_some(), name)?;
        refuse("--reserved", self.reserved > 0, name)?;
        if self.base.is_some() {
            return Err(Failure::usage(
                "SentencePiece's trainer knows no model to begin with: --continue goes without \
                 --preset sentencepiece",
            ));
        }
        let is_unigram = algorithm == Algorithm::Unigram;
        self.input.sentences = Some(self.max_sentence_length.unwrap_or(Sentences::MAX_LEN));
        if algorithm == Algorithm::Bpe {
            self.unit = Some(Unit::Char);
            self.ties = Some(TieRule::SentencePiece);
        }
        self.input.lines = true;
        self.normalizer = self.normalizer.or(Some("nmt_nfkc".into()));
        self.character_coverage = self.character_coverage.or(Some(0.9995));
        self.max_token_length = self.max_token_length.or(Some(16));
        self.vocab_limit = self.vocab_limit.or(Some(Limit::Hard));
        self.pieces.split_by_script = self.pieces.split_by_script.or(Some(true));
        let roles = &mut self.roles;
        roles.unk_id = roles.unk_id.or(Some(0));
        roles.bos_id = roles.bos_id.or(Some(1));
        roles.eos_id = roles.eos_id.or(Some(2));
        // Seeds are taken from whole sentences there, words from them later.
        let whole = is_unigram || self.pieces.needs_whole_text();
        self.pretok = Some(if whole { "none" } else { "metaspace" }.into());
        Ok(self)
    }

    /// Refuses contradictions between options about pieces and special tokens.
    pub(crate) fn check_pieces(&self) -> Result<(), Failure> {
        let pieces = &self.pieces;
        let has_rules = match self.algorithm {
            Algorithm::Bpe => self.units() == Unit::Char,
            Algorithm::Unigram => true,
            _ => false,
        };
        if pieces.is_given() && !has_rules {
            return Err(Failure::usage(
                "--split-by-script, --split-by-number, --split-by-whitespace, --split-digits and \
                 --whitespace-pieces are for unigram and for bpe with --unit char",
            ));
        }
        if pieces.split_by_number.is_some() && pieces.split_by_script != Some(true) {
            return Err(Failure::usage(
                "--split-by-number says whether digits are a script: it needs --split-by-script",
            ));
        }
        if pieces.needs_whole_text() && self.pretok.as_deref().is_some_and(|name| name != "none") {
            return Err(Failure::usage(
                "--split-by-whitespace=false and --whitespace-pieces need --pretok none",
            ));
        }
        if pieces.is_given() && self.target()? != Target::SentencePiece {
            let splitter = self.pretok.as_deref().unwrap_or(match self.algorithm {
                Algorithm::Unigram => "metaspace",
                _ => "gpt2",
            });
            let first = splitter.split(',').next().unwrap_or_default();
            if pieces.needs_whole_text() {
                return Err(Failure::usage(
                    "--split-by-whitespace=false and --whitespace-pieces need a .model as output",
                ));
            }
            if !["metaspace", "whitespace", "spaces", "words", "bert"].contains(&first) {
                return Err(Failure::usage(format!(
                    "options about pieces take ▁ for the space, which {splitter} leaves as it is: \
                     use --pretok metaspace or whitespace, or write a .model"
                )));
            }
        }
        let has_roles =
            matches!(self.algorithm, Algorithm::Bpe | Algorithm::Wordpiece | Algorithm::Unigram);
        if self.roles.is_given() && !has_roles {
            return Err(Failure::usage(format!(
                "{} has no --bos, --eos, --pad, nor their ids and --unk-id",
                self.algorithm.name()
            )));
        }
        self.special_tokens("<unk>").map(drop)
    }

    /// The rules for pieces, if there are any.
    pub(crate) fn piece_rules(&self) -> Option<PieceRules> {
        let pieces = &self.pieces;
        if !pieces.is_given() && !self.follows_sentencepiece() {
            return None;
        }
        let mut rules = PieceRules::default();
        rules.max_chars = self.max_token_length.unwrap_or(match self.algorithm {
            Algorithm::Unigram => rules.max_chars,
            _ => usize::MAX,
        });
        rules.script =
            pieces.split_by_script.unwrap_or(false).then_some(pretok::script_of as fn(char) -> _);
        rules.split_by_number = pieces.split_by_number.unwrap_or(true);
        rules.split_by_whitespace = pieces.split_by_whitespace.unwrap_or(true);
        rules.split_digits = pieces.split_digits.unwrap_or(false);
        rules.whitespace_only = pieces.whitespace_pieces.unwrap_or(false);
        Some(rules)
    }

    /// The special tokens that are not reserved or user-defined, in the order of their ids: the ones
    /// with a role, then those of `--special`. `unk` is the name of the unknown token.
    pub(crate) fn special_tokens(&self, unk: &str) -> Result<Vec<Special>, Failure> {
        let roles = &self.roles;
        let has_unk = self.algorithm != Algorithm::Byte && !self.has_no_unknown();
        let preset = |name: &str| self.follows_sentencepiece().then(|| name.to_owned());
        let pad = roles.pad_id.filter(|&id| id >= 0).map(|_| "<pad>".to_owned());
        let named = [
            (
                "--unk",
                has_unk.then(|| self.unk.clone().unwrap_or_else(|| unk.into())),
                roles.unk_id,
            ),
            ("--bos", roles.bos.clone().or_else(|| preset("<s>")), roles.bos_id),
            ("--eos", roles.eos.clone().or_else(|| preset("</s>")), roles.eos_id),
            ("--pad", roles.pad.clone().or(pad), roles.pad_id),
        ];
        let mut specials: Vec<Special> = Vec::new();
        for (option, token, id) in named {
            let id = match id {
                Some(-1) if option != "--unk" => continue,
                Some(id) => Some(u32::try_from(id).map_err(|_| {
                    Failure::usage(format!("{option}-id {id} is no id: 0 or more, or -1 for none"))
                })?),
                None => None,
            };
            let Some(token) = token else {
                if id.is_some() {
                    return Err(Failure::usage(format!("{option}-id needs {option} TOKEN")));
                }
                continue;
            };
            let kind = if option == "--unk" { TokenKind::Unknown } else { TokenKind::Control };
            if let Some(id) = id
                && specials.iter().any(|other| other.id == Some(id))
            {
                return Err(Failure::usage(format!("{option}-id {id} is another token's, too")));
            }
            if specials.iter().any(|other| other.token == token) {
                return Err(Failure::usage(format!("{option} {token} is another token's, too")));
            }
            specials.push(Special { token, kind, id });
        }
        if !self.roles.is_given() && self.algorithm != Algorithm::Unigram {
            // Without roles the unknown token is where --special names it, or behind.
            let unk = specials.pop();
            specials = self.special.iter().map(|token| control(token)).collect();
            if let Some(unk) = unk {
                match specials.iter_mut().find(|other| other.token == unk.token) {
                    Some(named) => *named = unk,
                    None => specials.push(unk),
                }
            }
            return Ok(specials);
        }
        let more: Vec<Special> = self
            .special
            .iter()
            .filter(|&token| specials.iter().all(|other| other.token != *token))
            .map(|token| control(token))
            .collect();
        specials.extend(more);
        if self.algorithm == Algorithm::Unigram && !self.follows_sentencepiece() {
            return Ok(specials);
        }
        Ok(in_order(specials))
    }

    /// Whether nothing is unknown to the model.
    fn has_no_unknown(&self) -> bool {
        let by_bytes = self.units() == Unit::Byte;
        matches!(self.algorithm, Algorithm::Bpe | Algorithm::Wordpiece) && by_bytes
    }
}

/// Special tokens in the order of their ids, which other trainers number from 0 without gaps. Behind
/// them come those whose chosen id is greater than that: the finished vocabulary is numbered anew.
fn in_order(specials: Vec<Special>) -> Vec<Special> {
    let mut near = specials;
    let mut far = Vec::new();
    // Each one that is too far leaves fewer places to the others.
    while let Some(at) = near.iter().rposition(|s| s.id.is_some_and(|id| id as usize >= near.len()))
    {
        far.push(near.remove(at));
    }
    let mut order: Vec<Option<Special>> = near.iter().map(|_| None).collect();
    let (chosen, free): (Vec<_>, Vec<_>) = near.into_iter().partition(|s| s.id.is_some());
    for special in chosen {
        let id = special.id.unwrap_or(0) as usize;
        order[id] = Some(special);
    }
    let mut free = free.into_iter();
    for place in order.iter_mut().filter(|place| place.is_none()) {
        *place = free.next();
    }
    far.reverse();
    order.into_iter().flatten().chain(far).collect()
}

fn control(token: &str) -> Special {
    Special { token: token.to_owned(), kind: TokenKind::Control, id: None }
}
