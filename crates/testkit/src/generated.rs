//! Corpora that are made, not found: arithmetic, emoji, logs.
//!
//! Each is a function of a seed and a size, the same on every machine, for ever. The committed
//! ones are under `fixtures/corpora/generated`; `cargo xtask gen --check` makes them again and
//! compares.

use std::fmt::Write as _;

use tokenizer_core::Rng;

use crate::pathological::pick;

/// Calculations with their results, one a line: whole numbers of 1 to 12 digits, grouped digits,
/// decimals, negative numbers, remainders, powers, hexadecimal, percentages, comparisons.
///
/// Every line is true. At least `min_bytes` long, by less than one line.
#[must_use]
pub fn arithmetic(seed: u64, min_bytes: usize) -> String {
    lines(seed, min_bytes, |text, rng| {
        let _ = match rng.below(12) {
            0..=2 => {
                let (a, b) = (number(rng, 12), number(rng, 12));
                write!(text, "{a} + {b} = {}", a + b)
            }
            3 | 4 => {
                let (a, b) = (number(rng, 9), number(rng, 9));
                write!(text, "{a} - {b} = {}", i128::from(a) - i128::from(b))
            }
            5 => {
                let (a, b) = (number(rng, 6), number(rng, 6));
                write!(text, "{a} * {b} = {}", a * b)
            }
            6 => {
                let (a, b) = (number(rng, 8), number(rng, 3) + 1);
                write!(text, "{a} / {b} = {} remainder {}", a / b, a % b)
            }
            7 => {
                let (a, b) = (number(rng, 9), number(rng, 9));
                write!(text, "{} + {} = {}", grouped(a), grouped(b), grouped(a + b))
            }
            8 => {
                let (a, b) = (number(rng, 7), number(rng, 7));
                write!(text, "{} + {} = {}", cents(a), cents(b), cents(a + b))
            }
            9 => {
                let (base, exponent) = (rng.below(30) + 2, rng.below(10) as u32 + 1);
                write!(text, "{base}^{exponent} = {}", u128::from(base).pow(exponent))
            }
            10 => {
                let (a, b) = (number(rng, 8), number(rng, 8));
                write!(text, "{a:#x} + {b:#x} = {:#x}", a + b)
            }
            _ => {
                let (a, b) = (number(rng, 5), number(rng, 5));
                let sign = match a.cmp(&b) {
                    std::cmp::Ordering::Less => "<",
                    std::cmp::Ordering::Equal => "=",
                    std::cmp::Ordering::Greater => ">",
                };
                write!(text, "{a} {sign} {b}, {}% of {} is {}", a % 101, b * 100, a % 101 * b)
            }
        };
    })
}

/// Emoji one a line and in short messages: plain, with presentation selectors, skin tones,
/// zero-width-joiner sequences, keycaps, flags of countries and of subdivisions.
///
/// At least `min_bytes` long, by less than one line.
#[must_use]
pub fn emoji(seed: u64, min_bytes: usize) -> String {
    lines(seed, min_bytes, |text, rng| match rng.below(4) {
        0 => one_emoji(text, rng),
        1 => {
            for _ in 0..rng.below(6) + 2 {
                one_emoji(text, rng);
            }
        }
        _ => {
            for part in pick(rng, MESSAGES).split('*') {
                text.push_str(part);
                one_emoji(text, rng);
            }
        }
    })
}

/// A web server's access log in the combined format.
///
/// At least `min_bytes` long, by less than one line.
#[must_use]
pub fn access_log(seed: u64, min_bytes: usize) -> String {
    let mut clock = Clock::default();
    lines(seed, min_bytes, |text, rng| {
        clock.advance(rng.below(5000));
        // Addresses of the ranges that are reserved for documentation.
        let net = pick(rng, &["192.0.2", "198.51.100", "203.0.113"]);
        let host = rng.below(254) + 1;
        let [day, hour, minute, second] = clock.parts();
        let method = pick(rng, &["GET", "GET", "GET", "GET", "POST", "HEAD", "PUT"]);
        let path = pick(rng, PATHS);
        let status = pick(rng, &[200, 200, 200, 200, 200, 301, 304, 404, 403, 500]);
        let size = number(rng, 6);
        let agent = pick(rng, AGENTS);
        let _ = write!(
            text,
            "{net}.{host} - - [{day:02}/Mar/2024:{hour:02}:{minute:02}:{second:02} +0000] \
             \"{method} {path}{} HTTP/1.1\" {status} {size} \"-\" \"{agent}\"",
            rng.below(10_000)
        );
    })
}

/// A service's events, one JSON object a line.
///
/// At least `min_bytes` long, by less than one line.
#[must_use]
pub fn events(seed: u64, min_bytes: usize) -> String {
    let mut clock = Clock::default();
    lines(seed, min_bytes, |text, rng| {
        clock.advance(rng.below(9000));
        let [day, hour, minute, second] = clock.parts();
        let level = pick(rng, &["info", "info", "info", "debug", "debug", "warn", "error"]);
        let module = pick(rng, MODULES);
        let event = pick(rng, EVENTS);
        let (high, low) = (rng.next_u64(), rng.next_u64());
        let _ = write!(
            text,
            "{{\"time\":\"2024-03-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z\",\
             \"level\":\"{level}\",\"module\":\"{module}\",\"event\":\"{event}\",\
             \"request\":\"{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}\",\"user\":{},\
             \"took_ms\":{}.{:02},\"ok\":{}}}",
            rng.below(1000),
            high >> 32,
            high >> 16 & 0xFFFF,
            high & 0xFFF,
            low >> 52,
            low & 0xFFFF_FFFF_FFFF,
            number(rng, 6),
            number(rng, 4),
            rng.below(100),
            level != "error",
        );
    })
}

/// Lines of `line` until `min_bytes` are reached.
fn lines(seed: u64, min_bytes: usize, mut line: impl FnMut(&mut String, &mut Rng)) -> String {
    let mut rng = Rng::new(seed);
    let mut text = String::with_capacity(min_bytes.saturating_add(256));
    while text.len() < min_bytes {
        line(&mut text, &mut rng);
        text.push('\n');
    }
    text
}

/// A number of 1 to `max_digits` digits, each length as likely as the others.
fn number(rng: &mut Rng, max_digits: u32) -> u64 {
    let digits = rng.below(u64::from(max_digits)) as u32 + 1;
    rng.below(10u64.pow(digits))
}

/// 1234567 as 1,234,567.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// 1234 as 12.34.
fn cents(value: u64) -> String {
    format!("{}.{:02}", value / 100, value % 100)
}

/// Milliseconds since the start of a month; wraps at 28 days.
#[derive(Default)]
struct Clock(u64);

impl Clock {
    fn advance(&mut self, millis: u64) {
        self.0 = (self.0 + millis) % (28 * 86_400_000);
    }

    /// Day of the month, hour, minute, second.
    fn parts(&self) -> [u64; 4] {
        let seconds = self.0 / 1000;
        [seconds / 86_400 + 1, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60]
    }
}

fn one_emoji(text: &mut String, rng: &mut Rng) {
    match rng.below(8) {
        0..=2 => text.push(pick(rng, FACES)),
        3 => text.push_str(pick(rng, SEQUENCES)),
        4 => {
            text.push(pick(rng, HANDS));
            text.push(pick(rng, SKIN_TONES));
        }
        5 => {
            text.push(pick(rng, &['\u{1F468}', '\u{1F469}', '\u{1F9D1}']));
            if rng.below(2) == 0 {
                text.push(pick(rng, SKIN_TONES));
            }
            text.push('\u{200D}');
            text.push_str(pick(rng, PROFESSIONS));
        }
        6 => {
            for letter in pick(rng, COUNTRIES).bytes() {
                let value = 0x1F1E6 + u32::from(letter - b'A');
                text.push(char::from_u32(value).expect("a regional indicator"));
            }
        }
        _ => {
            text.push(pick(rng, &['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '#', '*']));
            text.push_str("\u{FE0F}\u{20E3}");
        }
    }
}

const FACES: &[char] = &[
    '😀', '😁', '😂', '🤣', '😊', '😍', '😎', '🤔', '😴', '😭', '😡', '🥺', '🤯', '🥳', '😱', '🙄',
    '🎉', '🔥', '✨', '💯', '🚀', '🍜', '🍣', '🍕', '☕', '🌧', '🌈', '🐶', '🐱', '🦀', '🐉', '🌸',
    '🎵', '📚', '💡', '✅', '❌', '⚡', '⭐', '💔',
];
const HANDS: &[char] = &['👍', '👎', '👋', '🙏', '👏', '💪', '✌', '👌', '🤝', '🫶', '☝', '✍'];
const SKIN_TONES: &[char] = &['\u{1F3FB}', '\u{1F3FC}', '\u{1F3FD}', '\u{1F3FE}', '\u{1F3FF}'];
/// What follows a person and a joiner.
const PROFESSIONS: &[&str] = &[
    "\u{1F4BB}",
    "\u{1F52C}",
    "\u{1F680}",
    "\u{1F3A8}",
    "\u{1F373}",
    "\u{1F3EB}",
    "\u{1F33E}",
    "\u{2695}\u{FE0F}",
    "\u{2696}\u{FE0F}",
    "\u{2708}\u{FE0F}",
    "\u{1F9B0}",
    "\u{1F9AF}",
];
const SEQUENCES: &[&str] = &[
    "\u{2764}\u{FE0F}",
    "\u{2764}\u{FE0F}\u{200D}\u{1F525}",
    "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}\u{200D}\u{1F466}",
    "\u{1F469}\u{200D}\u{2764}\u{FE0F}\u{200D}\u{1F48B}\u{200D}\u{1F468}",
    "\u{1F3F3}\u{FE0F}\u{200D}\u{1F308}",
    "\u{1F3F4}\u{200D}\u{2620}\u{FE0F}",
    "\u{1F415}\u{200D}\u{1F9BA}",
    "\u{1F43B}\u{200D}\u{2744}\u{FE0F}",
    "\u{1F441}\u{FE0F}\u{200D}\u{1F5E8}\u{FE0F}",
    "\u{1F636}\u{200D}\u{1F32B}\u{FE0F}",
    "\u{26F9}\u{1F3FE}\u{200D}\u{2640}\u{FE0F}",
    "\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
    "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
    "\u{263A}\u{FE0F}",
    "\u{263A}\u{FE0E}",
    "\u{203C}\u{FE0F}",
    "\u{2122}\u{FE0F}",
];
const COUNTRIES: &[&str] = &[
    "VN", "CN", "JP", "KR", "TH", "EG", "IN", "RU", "DE", "TR", "FI", "ES", "US", "GB", "FR", "ET",
    "KH", "BR", "MX", "NG", "ZA", "ID", "UA", "PL", "IT", "GR", "SE", "NO", "AR", "CA", "AU", "NZ",
];
const MESSAGES: &[&str] = &[
    "so happy today *",
    "thank you * see you tomorrow *",
    "* new release is out *",
    "who wants coffee? *",
    "chúc mừng năm mới * *",
    "今天天气很好*",
    "おはよう*",
    "생일 축하해요 *",
    "спасибо *",
    "شكرا *",
    "the train is late again *",
    "I can't believe it worked *",
];
const PATHS: &[&str] = &[
    "/api/v1/users/",
    "/api/v1/orders/",
    "/static/js/app.",
    "/images/thumb_",
    "/search?q=tokenizer&page=",
    "/blog/2024/03/",
    "/docs/guide.html#section-",
    "/login?next=/account/",
    "/favicon.ico?v=",
];
const AGENTS: &[&str] = &[
    "Mozilla/5.0 (X11; Linux x86_64; rv:123.0) Gecko/20100101 Firefox/123.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/122.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_3 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.3 Mobile/15E148 Safari/604.1",
    "curl/8.5.0",
];
const MODULES: &[&str] = &[
    "http::server",
    "db::pool",
    "auth::session",
    "cache",
    "queue::worker",
    "billing::invoice",
    "search::index",
];
const EVENTS: &[&str] = &[
    "request finished",
    "connection reset by peer",
    "retrying after timeout",
    "cache miss",
    "user signed in",
    "payment declined: insufficient funds",
    "index rebuilt in the background",
    "thread 'worker-3' panicked at src/main.rs:42:17",
    "slow query: SELECT id, name FROM users WHERE created_at > $1 ORDER BY id LIMIT 100",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_corpus_has_the_asked_size_and_is_the_same_each_time() {
        type Maker = fn(u64, usize) -> String;
        let makers: [(&str, Maker); 4] = [
            ("arithmetic", arithmetic),
            ("emoji", emoji),
            ("access_log", access_log),
            ("events", events),
        ];
        for (name, make) in makers {
            let text = make(3, 5000);
            assert!(text.len() >= 5000 && text.len() < 5500, "{name}: {}", text.len());
            assert!(text.ends_with('\n'), "{name}");
            assert_eq!(text, make(3, 5000), "{name}");
            assert_ne!(text, make(4, 5000), "{name}: the seed must matter");
        }
    }

    #[test]
    fn sums_are_true() {
        let mut checked = 0;
        for line in arithmetic(1, 20_000).lines() {
            let Some((left, result)) = line.split_once(" = ") else { continue };
            let Some((a, b)) = left.split_once(" + ") else { continue };
            if let (Ok(a), Ok(b)) = (a.parse::<u64>(), b.parse::<u64>()) {
                assert_eq!(result.replace(',', ""), (a + b).to_string(), "{line}");
                checked += 1;
            }
        }
        assert!(checked > 50, "{checked}");
    }

    #[test]
    fn events_are_json() {
        for line in events(1, 5000).lines() {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(event["request"].as_str().unwrap().len(), 36, "{line}");
        }
    }

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(123), "123");
        assert_eq!(grouped(1234), "1,234");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
