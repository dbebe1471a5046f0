//! Text to text with edits that keep offsets
