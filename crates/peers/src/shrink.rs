//! The smallest input that still shows a difference.

use serde_json::Value;

/// The shortest text that `differs`, found by leaving out parts and by putting simple characters
/// in place of odd ones. `text` must differ. At most `budget` questions are asked.
pub fn text(text: &str, budget: usize, mut differs: impl FnMut(&str) -> bool) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let mut left = budget;
    let mut ask = |chars: &[char]| {
        if left == 0 {
            return false;
        }
        left -= 1;
        differs(&chars.iter().collect::<String>())
    };
    loop {
        let before = chars.clone();
        let mut len = chars.len();
        while len > 0 {
            let mut at = 0;
            while at < chars.len() {
                let end = (at + len).min(chars.len());
                let mut fewer = chars.clone();
                fewer.drain(at..end);
                if ask(&fewer) {
                    chars = fewer;
                } else {
                    at += len;
                }
            }
            len /= 2;
        }
        for at in 0..chars.len() {
            for simple in ['a', ' ', 'b', '\u{E9}'] {
                if chars[at] == simple {
                    break;
                }
                let mut other = chars.clone();
                other[at] = simple;
                if ask(&other) {
                    chars = other;
                    break;
                }
            }
        }
        if chars == before {
            return chars.into_iter().collect();
        }
    }
}

/// The smallest document that `differs`: parts become null, members of lists and of vocabularies
/// go, sequences of one become that one, flags become false. `document` must differ.
pub fn document(document: &Value, budget: usize, mut differs: impl FnMut(&Value) -> bool) -> Value {
    let mut best = document.clone();
    let mut left = budget;
    loop {
        let mut changed = false;
        let mut at = 0;
        // Every candidate is one change; a change that still differs is kept, and the list is made
        // anew from where it was.
        while let Some(candidate) = candidate(&best, at) {
            if left == 0 {
                return best;
            }
            left -= 1;
            if candidate != best && differs(&candidate) {
                best = candidate;
                changed = true;
            } else {
                at += 1;
            }
        }
        if !changed {
            return best;
        }
    }
}

/// The document with its change number `at`.
fn candidate(document: &Value, at: usize) -> Option<Value> {
    let mut changed = document.clone();
    let mut left = at;
    change(&mut changed, &mut left, true).then_some(changed)
}

/// Does change number `left` of this value and those below; false if there are fewer.
fn change(value: &mut Value, left: &mut usize, is_root: bool) -> bool {
    let here = |left: &mut usize| {
        let now = *left == 0;
        *left = left.wrapping_sub(1);
        now
    };
    match value {
        Value::Object(fields) => {
            if !is_root && fields.contains_key("type") && fields["type"] != "BPE" {
                if here(left) {
                    *value = Value::Null;
                    return true;
                }
                for inner in ["normalizers", "pretokenizers", "processors", "decoders"] {
                    let Some(list) = fields.get(inner).and_then(Value::as_array) else { continue };
                    if list.len() == 1 && here(left) {
                        *value = list[0].clone();
                        return true;
                    }
                }
            }
            let Value::Object(fields) = value else { return false };
            let names: Vec<String> = fields.keys().cloned().collect();
            for name in names {
                let droppable = matches!(name.as_str(), "truncation" | "padding");
                if droppable && !fields[&name].is_null() && here(left) {
                    fields.insert(name, Value::Null);
                    return true;
                }
                if name == "vocab" && fields[&name].is_object() {
                    let vocab = fields[&name].as_object_mut().expect("it is one");
                    let tokens: Vec<String> = vocab.keys().cloned().collect();
                    for range in ranges(tokens.len()) {
                        if here(left) {
                            tokens[range].iter().for_each(|token| drop(vocab.remove(token)));
                            return true;
                        }
                    }
                    continue;
                }
                if let Some(field) = fields.get_mut(&name)
                    && change(field, left, false)
                {
                    return true;
                }
            }
            false
        }
        Value::Array(items) => {
            for range in ranges(items.len()) {
                if here(left) {
                    items.drain(range);
                    return true;
                }
            }
            items.iter_mut().any(|item| change(item, left, false))
        }
        Value::Bool(flag) if *flag => {
            if here(left) {
                *value = Value::Bool(false);
                return true;
            }
            false
        }
        _ => false,
    }
}

/// Halves, quarters and so on of a list, down to single members.
fn ranges(len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let sizes =
        std::iter::successors(Some(len.div_ceil(2)), |&size| (size > 1).then_some(size / 2));
    sizes
        .filter(|&size| size > 0)
        .flat_map(move |size| (0..len).step_by(size).map(move |at| at..(at + size).min(len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_shrinks_to_what_matters() {
        let found = text("some \u{4E00} long x text with y", 1000, |text| {
            text.contains('x') && text.contains('y')
        });
        assert_eq!(found, "xy");
        assert_eq!(text("qqqq\u{4E00}", 1000, |text| text.chars().count() >= 2), "aa");
    }

    #[test]
    fn document_shrinks_to_what_matters() {
        let whole = serde_json::json!({
            "added_tokens": [{"content": "x", "special": true}, {"content": "y", "special": true}],
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "NFD"}]},
            "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},
        });
        let found = document(&whole, 1000, |value| value.to_string().contains("NFD"));
        let least = serde_json::json!({
            "added_tokens": [], "normalizer": {"type": "NFD"},
            "model": {"type": "BPE", "vocab": {}, "merges": []},
        });
        assert_eq!(found, least);
    }
}
