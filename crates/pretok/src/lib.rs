//! Text to spans: named pre-tokenization patterns, splitters, and regular expressions
