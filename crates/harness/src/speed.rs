//! Timing: interleaved rounds of trained tokenizers on one thread, and inputs made to be hard.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tokenizer_core::{Rng, Span, Split, TokenId};

use crate::contestant::Trained;
use crate::report::Rounds;

/// Timings of one contestant: MB/s from pieces to ids, and from text to ids.
#[derive(Clone, Copy, Debug, Default)]
pub struct Throughput {
    /// From pieces, in a session that has seen the text.
    pub encode: Rounds,
    /// From text, in a session that has seen it.
    pub pipeline: Rounds,
    /// From text, in a new session each time: what a session remembers of pieces was learned in
    /// this pass.
    pub first: Rounds,
}

/// At least this long is one timing; short texts are encoded several times.
const SHORTEST: Duration = Duration::from_millis(20);

/// Times `contestants` on `texts`: in each round each of them once, in turn, so that what disturbs
/// the machine disturbs all. A first round that warms up is not counted.
#[must_use]
pub fn throughput(
    contestants: &[&Trained],
    splitter: &dyn Split,
    texts: &[&str],
    rounds: usize,
) -> Vec<Throughput> {
    let split: Vec<Vec<Span>> = texts.iter().map(|text| splitter.split(text)).collect();
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let mut sessions: Vec<_> =
        contestants.iter().map(|trained| trained.model().encoder()).collect();
    let mut repeats = vec![[1u32; 3]; contestants.len()];
    let mut values = vec![[const { Vec::new() }; 3]; contestants.len()];
    let mut ids: Vec<TokenId> = Vec::new();
    let mut spans: Vec<Span> = Vec::new();
    for round in 0..=rounds {
        for (i, session) in sessions.iter_mut().enumerate() {
            for way in 0..3 {
                let start = Instant::now();
                for _ in 0..repeats[i][way] {
                    let mut new;
                    let session = if way == 2 {
                        new = contestants[i].model().encoder();
                        &mut new
                    } else {
                        &mut *session
                    };
                    for (text, pieces) in texts.iter().zip(&split) {
                        ids.clear();
                        if way == 0 {
                            session.encode_ids_into(text.as_bytes(), pieces, &mut ids);
                        } else {
                            spans.clear();
                            splitter.split_into(text, &mut spans);
                            session.encode_ids_into(text.as_bytes(), &spans, &mut ids);
                        }
                        black_box(&ids);
                    }
                }
                let time = start.elapsed();
                if round == 0 {
                    let times = SHORTEST.as_secs_f64() / time.as_secs_f64().max(1e-9);
                    repeats[i][way] = times.ceil().clamp(1.0, 10_000.0) as u32;
                } else {
                    let all = bytes as f64 * f64::from(repeats[i][way]);
                    values[i][way].push(all / 1e6 / time.as_secs_f64().max(1e-9));
                }
            }
        }
    }
    values
        .iter()
        .map(|[encode, pipeline, first]| Throughput {
            encode: Rounds::of(encode).unwrap_or_default(),
            pipeline: Rounds::of(pipeline).unwrap_or_default(),
            first: Rounds::of(first).unwrap_or_default(),
        })
        .collect()
}

/// A kind of hard input.
#[derive(Clone, Copy, Debug)]
pub struct HardInput {
    /// What it consists of.
    pub name: &'static str,
    unit: fn(&mut String, &mut Rng),
}

impl HardInput {
    /// The input of at most `bytes` bytes (at most 16 fewer). The same each time.
    #[must_use]
    pub fn text(&self, bytes: usize) -> String {
        let mut rng = Rng::new(1);
        let mut text = String::with_capacity(bytes + 32);
        loop {
            let len = text.len();
            (self.unit)(&mut text, &mut rng);
            if text.len() > bytes {
                text.truncate(len);
                return text;
            }
        }
    }
}

fn char_in(rng: &mut Rng, first: char, last: char) -> char {
    let (first, last) = (u32::from(first), u32::from(last));
    let at = first + rng.below(u64::from(last - first) + 1) as u32;
    char::from_u32(at).unwrap_or('?')
}

/// Inputs without a place to cut, repeated or random.
pub const HARD_INPUTS: &[HardInput] = &[
    HardInput { name: "one letter repeated", unit: |text, _| text.push('a') },
    HardInput { name: "two letters in turn", unit: |text, _| text.push_str("ab") },
    HardInput { name: "random letters", unit: |text, rng| text.push(char_in(rng, 'a', 'z')) },
    HardInput {
        name: "four letters (DNA)",
        unit: |text, rng| text.push(['A', 'C', 'G', 'T'][rng.below(4) as usize]),
    },
    HardInput { name: "digits", unit: |text, rng| text.push(char_in(rng, '0', '9')) },
    HardInput { name: "spaces", unit: |text, _| text.push(' ') },
    HardInput {
        name: "white space mixed",
        unit: |text, rng| text.push([' ', ' ', ' ', '\n', '\t', '\r'][rng.below(6) as usize]),
    },
    HardInput {
        name: "Han without punctuation",
        unit: |text, rng| text.push(char_in(rng, '\u{4E00}', '\u{62FF}')),
    },
    HardInput {
        name: "emoji with joiners",
        unit: |text, rng| {
            text.push(char_in(rng, '\u{1F466}', '\u{1F469}'));
            text.push('\u{200D}');
        },
    },
    HardInput {
        name: "markup soup",
        unit: |text, rng| text.push(['>', '\u{2581}', '\u{2039}', '/', '#'][rng.below(5) as usize]),
    },
];

/// The cost of a hard input.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Bytes of the larger input.
    pub bytes: u64,
    /// MB/s from text to ids on it.
    pub mb_per_second: f64,
    /// Its time / the time of half of it.
    pub doubling: f64,
}

/// Encodes `input` at doubling sizes until `largest` bytes or until one run takes longer than
/// `patience`, and compares the last two sizes. Each time is the shortest of three runs or more.
#[must_use]
pub fn worst_case(
    trained: &Trained,
    splitter: &dyn Split,
    input: &HardInput,
    largest: usize,
    patience: Duration,
) -> Cost {
    let mut size = 16 * 1024;
    let mut half: Option<f64> = None;
    loop {
        let text = input.text(size);
        let mut best = f64::INFINITY;
        let (mut ids, mut spans) = (Vec::new(), Vec::new());
        // At least three runs, and more where they are short and so easily disturbed.
        let began = Instant::now();
        for run in 0..100 {
            if run >= 3 && began.elapsed() > SHORTEST {
                break;
            }
            // A fresh session: nothing that was seen before helps.
            let mut session = trained.model().encoder();
            ids.clear();
            spans.clear();
            let start = Instant::now();
            splitter.split_into(&text, &mut spans);
            session.encode_ids_into(text.as_bytes(), &spans, &mut ids);
            best = best.min(start.elapsed().as_secs_f64().max(1e-9));
            black_box(&ids);
        }
        match half {
            Some(half) if size * 2 > largest || best > patience.as_secs_f64() => {
                return Cost {
                    bytes: text.len() as u64,
                    mb_per_second: text.len() as f64 / 1e6 / best,
                    doubling: best / half,
                };
            }
            _ => half = Some(best),
        }
        size *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hard_inputs_have_their_size_and_repeat() {
        for input in HARD_INPUTS {
            let text = input.text(1000);
            assert!(text.len() <= 1000 && text.len() >= 984, "{}: {}", input.name, text.len());
            assert_eq!(text, input.text(1000), "{}", input.name);
            assert!(input.text(2000).starts_with(&text), "{}", input.name);
        }
    }
}
