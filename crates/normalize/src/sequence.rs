use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use tokenizer_core::{Edit, Normalize, compose};

/// Normalizers one after the other; none leaves the text as it is. Hugging Face `Sequence`.
///
/// ```
/// use normalize::{Form, Lowercase, Sequence, StripAccents, UnicodeForm};
/// use tokenizer_core::Normalize;
///
/// let plain = Sequence::new()
///     .then(UnicodeForm::new(Form::Nfd))
///     .then(StripAccents)
///     .then(Lowercase);
/// assert_eq!(plain.normalize("Élan"), "elan");
/// ```
#[derive(Default)]
pub struct Sequence {
    steps: Vec<Box<dyn Normalize>>,
}

impl Sequence {
    /// No normalizer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more at the end.
    #[must_use]
    pub fn then(mut self, step: impl Normalize + 'static) -> Self {
        self.steps.push(Box::new(step));
        self
    }

    /// The normalizers, in order.
    pub fn steps(&self) -> impl Iterator<Item = &dyn Normalize> {
        self.steps.iter().map(|step| &**step)
    }

    /// The number of normalizers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there is no normalizer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The one normalizer that does the same, without a step between where there is only one.
    #[must_use]
    pub fn boxed(mut self) -> Box<dyn Normalize> {
        match self.steps.len() {
            1 => self.steps.remove(0),
            _ => Box::new(self),
        }
    }
}

impl FromIterator<Box<dyn Normalize>> for Sequence {
    fn from_iter<I: IntoIterator<Item = Box<dyn Normalize>>>(steps: I) -> Self {
        Self { steps: steps.into_iter().collect() }
    }
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequence").field("len", &self.steps.len()).finish_non_exhaustive()
    }
}

impl Normalize for Sequence {
    fn normalize<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for step in &self.steps {
            let changed = match step.normalize(&text) {
                Cow::Borrowed(_) => None,
                Cow::Owned(changed) => Some(changed),
            };
            if let Some(changed) = changed {
                text = Cow::Owned(changed);
            }
        }
        text
    }

    fn normalize_with_edits<'t>(&self, text: &'t str, edits: &mut Vec<Edit>) -> Cow<'t, str> {
        let mut changed: Option<String> = None;
        let (mut so_far, mut step_edits) = (Vec::new(), Vec::new());
        for step in &self.steps {
            let before = changed.as_deref().unwrap_or(text);
            step_edits.clear();
            if let Cow::Owned(after) = step.normalize_with_edits(before, &mut step_edits) {
                so_far = compose(&so_far, &step_edits);
                changed = Some(after);
            }
        }
        edits.extend_from_slice(&so_far);
        changed.map_or(Cow::Borrowed(text), Cow::Owned)
    }

    fn as_any(&self) -> Option<&dyn core::any::Any> {
        Some(self)
    }
}
