//! Specifications of splitters as pre-tokenizers of a tokenizer.json.

use formats::tokenizer_json::{Pattern as Delimiter, PreTokenizer, SplitBehavior};
use pretok::Pattern;

use super::LiftError;

/// cl100k in Oniguruma's dialect: `$` is the end of a line there, and `+` behind an interval
/// repeats it.
const CL100K: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++\z|\s*[\r\n]|\s+(?!\S)|\s";

/// The stages of a specification.
fn stages(spec: &str) -> Vec<&str> {
    let mut stages = Vec::new();
    let mut rest = Some(spec);
    while let Some(items) = rest {
        let item;
        (item, rest) = match items.split_once(',') {
            Some((item, rest)) if !items.starts_with("regex:") => (item, Some(rest)),
            _ => (items, None),
        };
        stages.push(item);
    }
    stages
}

/// Whether the splitter cuts at marked spaces, so that spaces must be marked.
pub(super) fn marks_spaces(spec: &str) -> Result<bool, LiftError> {
    match stages(spec).iter().position(|&stage| stage == "metaspace") {
        None => Ok(false),
        Some(0) => Ok(true),
        Some(_) => Err(LiftError::new("metaspace marks spaces, so it must be the first splitter")),
    }
}

/// Whether pieces leave white space out, so that decoding must put it in.
pub(super) fn drops_white_space(spec: &str) -> bool {
    stages(spec).iter().any(|stage| ["whitespace", "spaces", "words", "bert"].contains(stage))
}

/// Whether the pieces are cut as GPT-2 cuts them, and only so.
pub(super) fn is_gpt2(spec: &str) -> bool {
    ["gpt2", "r50k", "p50k"].contains(&spec)
}

/// The pre-tokenizers that cut as the splitter does.
pub(super) fn lift(spec: &str) -> Result<Vec<PreTokenizer>, LiftError> {
    let mut lifted = Vec::new();
    for stage in stages(spec) {
        lift_stage(stage, &mut lifted)?;
    }
    Ok(lifted)
}

fn lift_stage(stage: &str, lifted: &mut Vec<PreTokenizer>) -> Result<(), LiftError> {
    if let Some(pattern) = stage.strip_prefix("regex:") {
        lifted.push(isolated(oniguruma(pattern)?));
        return Ok(());
    }
    if let Some(pattern) = Pattern::from_name(stage) {
        match pattern {
            // What `cl100k` says can be said; what the others say already is.
            Pattern::Cl100k => lifted.push(isolated(CL100K.to_owned())),
            // GPT-2's own string cuts alike and needs no possessive quantifiers.
            Pattern::R50k | Pattern::P50k => {
                lifted.extend(Pattern::Gpt2.stages().iter().map(|s| isolated((*s).to_owned())));
            }
            _ => lifted.extend(pattern.stages().iter().map(|s| isolated((*s).to_owned()))),
        }
        return Ok(());
    }
    lifted.push(match stage {
        "none" => return Ok(()),
        "chars" => PreTokenizer::FixedLength { length: 1 },
        "whitespace" => PreTokenizer::WhitespaceSplit,
        "spaces" => PreTokenizer::CharDelimiterSplit { delimiter: ' ' },
        "words" => PreTokenizer::Whitespace,
        "bert" => PreTokenizer::Bert,
        "digits" => PreTokenizer::Digits { individual_digits: true },
        "digit-runs" => PreTokenizer::Digits { individual_digits: false },
        "metaspace" => before_every(super::preparation::MARK),
        "space-prefix" => before_every(" "),
        "scripts" => PreTokenizer::UnicodeScripts,
        "punctuation" => PreTokenizer::Punctuation { behavior: SplitBehavior::Isolated },
        "punctuation-isolated" => PreTokenizer::Punctuation { behavior: SplitBehavior::Isolated },
        "punctuation-removed" => PreTokenizer::Punctuation { behavior: SplitBehavior::Removed },
        "punctuation-merged-with-previous" => {
            PreTokenizer::Punctuation { behavior: SplitBehavior::MergedWithPrevious }
        }
        "punctuation-merged-with-next" => {
            PreTokenizer::Punctuation { behavior: SplitBehavior::MergedWithNext }
        }
        "punctuation-contiguous" => {
            PreTokenizer::Punctuation { behavior: SplitBehavior::Contiguous }
        }
        _ => numbered(stage)?,
    });
    Ok(())
}

fn numbered(stage: &str) -> Result<PreTokenizer, LiftError> {
    let fail = || LiftError::new(format!("a tokenizer.json has no splitter like {stage}"));
    if let Some(length) = stage.strip_prefix("fixed") {
        return Ok(PreTokenizer::FixedLength { length: length.parse().map_err(|_| fail())? });
    }
    let digits = stage.strip_prefix("digits").ok_or_else(fail)?;
    let number = |text: &str| text.parse::<u32>().map_err(|_| fail());
    Ok(isolated(match digits.strip_suffix("-right") {
        None => format!(r"\p{{N}}{{1,{}}}", number(digits)?),
        // As many digits as leave a multiple of the length behind them.
        Some(digits) => {
            let n = number(digits)?;
            format!(r"\p{{N}}{{1,{n}}}(?=(?:\p{{N}}{{{n}}})*(?!\p{{N}}))")
        }
    }))
}

fn isolated(pattern: String) -> PreTokenizer {
    PreTokenizer::Split {
        pattern: Delimiter::Regex(pattern),
        behavior: SplitBehavior::Isolated,
        invert: false,
    }
}

fn before_every(literal: &str) -> PreTokenizer {
    PreTokenizer::Split {
        pattern: Delimiter::String(literal.to_owned()),
        behavior: SplitBehavior::MergedWithNext,
        invert: false,
    }
}

/// The splitter of a specification as one regular expression in Rust syntax, as tiktoken takes it
/// and [`RanksSetup`](crate::RanksSetup) holds it.
///
/// # Errors
///
/// If it is none: a list, or a splitter that no pattern was published for.
pub fn single_pattern(spec: &str) -> Result<String, LiftError> {
    if spec == "none" {
        return Ok("(?s:.+)".to_owned());
    }
    if let Some(pattern) = spec.strip_prefix("regex:") {
        return Ok(pattern.to_owned());
    }
    match Pattern::from_name(spec).map(Pattern::stages) {
        Some([pattern]) => Ok((*pattern).to_owned()),
        _ => Err(LiftError::new(format!(
            "tiktoken cuts text with one regular expression: {spec} is none"
        ))),
    }
}

/// The pre-tokenizers that cut as a pattern of Rust syntax does.
pub(crate) fn of_rust_pattern(pattern: &str) -> Result<Vec<PreTokenizer>, LiftError> {
    match Pattern::from_stages(&[pattern]) {
        Some(known) => lift(known.name()),
        None => Ok(vec![isolated(oniguruma(pattern)?)]),
    }
}

/// A pattern of a tokenizer.json in Rust syntax: that of the published one that it is, else as it
/// stands. Where that means something else, comparing the tokenizers shows it.
pub(crate) fn as_rust_pattern(pattern: &str) -> String {
    let known = match pattern {
        CL100K => Some(Pattern::Cl100k),
        _ => Pattern::from_stages(&[pattern]),
    };
    match known.map(Pattern::stages) {
        Some([published]) => (*published).to_owned(),
        _ => pattern.to_owned(),
    }
}

/// A pattern of Rust syntax in that of Oniguruma, which a tokenizer.json is read in.
///
/// `^` and `$` become `\A` and `\z`. What means something else there and has no simple
/// counterpart is refused.
fn oniguruma(pattern: &str) -> Result<String, LiftError> {
    let refuse = |what: &str| {
        Err(LiftError::new(format!(
            "{what} in the splitter means something else in a tokenizer.json, whose patterns are \
             Oniguruma's"
        )))
    };
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    let (mut class, mut after_interval) = (0usize, false);
    while let Some(c) = chars.next() {
        let was_interval = std::mem::take(&mut after_interval);
        match c {
            '\\' => {
                out.push(c);
                let Some(escaped) = chars.next() else { break };
                if matches!(escaped, 'h' | 'H' | 'R' | 'X' | 'K' | 'Z' | 'G' | 'U' | '<' | '>') {
                    return refuse(&format!("`\\{escaped}`"));
                }
                out.push(escaped);
                // The name of a property or the digits of a code point.
                if chars.peek() == Some(&'{') {
                    for c in chars.by_ref() {
                        out.push(c);
                        if c == '}' {
                            break;
                        }
                    }
                }
            }
            '[' => {
                class += 1;
                out.push(c);
                if chars.peek() == Some(&':') {
                    return refuse("`[:`");
                }
            }
            ']' if class > 0 => {
                class -= 1;
                out.push(c);
            }
            _ if class > 0 => out.push(c),
            '^' => out.push_str(r"\A"),
            '$' => out.push_str(r"\z"),
            '}' => {
                after_interval = true;
                out.push(c);
            }
            '+' if was_interval => return refuse("`+` behind `}`"),
            '(' => {
                out.push(c);
                if chars.peek() == Some(&'?') {
                    let flags: String = chars
                        .clone()
                        .skip(1)
                        .take_while(|c| c.is_alphabetic() || *c == '-')
                        .collect();
                    if !matches!(flags.as_str(), "" | "i") {
                        return refuse(&format!("`(?{flags}`"));
                    }
                }
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}
