//! Vocabulary file formats: bytes to documents and back; knows no algorithm
