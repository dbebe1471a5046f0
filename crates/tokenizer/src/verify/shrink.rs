/// A shortest text on which `differs` still holds, found by taking away: no character of it can be
/// left out (after Zeller and Hildebrandt 2002, "Simplifying and isolating failure-inducing input").
///
/// Begins with halves, so that a long text costs a logarithmic number of trials where the reason is
/// in one place; `O(n²)` trials in the worst case for what remains.
///
/// ```
/// use tokenizer::verify::shrink;
///
/// let short = shrink("some long text with a\tb in it", |text| text.contains('\t'));
/// assert_eq!(short, "\t");
/// ```
#[must_use]
pub fn shrink(text: &str, mut differs: impl FnMut(&str) -> bool) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let mut size = chars.len().div_ceil(2);
    while size > 0 {
        let mut start = 0;
        let mut removed = false;
        while start < chars.len() {
            let end = (start + size).min(chars.len());
            let shorter: String = chars[..start].iter().chain(&chars[end..]).collect();
            if differs(&shorter) {
                chars.drain(start..end);
                removed = true;
            } else {
                start = end;
            }
        }
        size = match (size, removed) {
            (1, true) => 1,
            (1, false) => 0,
            _ => size.div_ceil(2),
        };
    }
    chars.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::shrink;

    #[track_caller]
    fn check(text: &str, differs: impl Fn(&str) -> bool, expected: &str) {
        let short = shrink(text, &differs);
        assert!(differs(&short), "{short:?} no longer differs");
        assert_eq!(short, expected);
    }

    #[test]
    fn keeps_two_places_that_belong_together() {
        let text = format!("{}x{}y{}", "a".repeat(100), "b".repeat(1000), "c".repeat(77));
        check(&text, |t| t.contains('x') && t.contains('y'), "xy");
    }

    #[test]
    fn keeps_what_must_be_long() {
        check(&"a".repeat(1000), |t| t.len() >= 37, &"a".repeat(37));
    }

    #[test]
    fn cuts_between_characters() {
        check("\u{1F600}\u{E9}\u{1F600}", |t| t.contains('\u{E9}'), "\u{E9}");
    }

    #[test]
    fn may_end_with_nothing() {
        check("abc", |_| true, "");
        check("", |_| true, "");
    }
}
