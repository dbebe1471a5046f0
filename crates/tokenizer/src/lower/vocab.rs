//! Vocabularies whose ids may have gaps.

use tokenizer_core::{TokenKind, VocabBuilder};

use super::LowerError;

/// The most ids in a row that a vocabulary may leave out: a file's ids are dense but for a few
/// gaps, and one far id must not cost memory.
const MAX_GAP: usize = 1 << 20;

/// Adds unused tokens until the next id is `id`.
pub(crate) fn fill_to(vocab: &mut VocabBuilder, id: u32, part: &str) -> Result<(), LowerError> {
    let gap = (id as usize).saturating_sub(vocab.len());
    if gap > MAX_GAP {
        return Err(LowerError::new(
            part,
            format!("{gap} ids before id {id} are missing, but at most {MAX_GAP} may be"),
        ));
    }
    for _ in 0..gap {
        vocab
            .push(b"", TokenKind::Unused)
            .map_err(|error| LowerError::caused(part.to_owned(), error))?;
    }
    Ok(())
}
