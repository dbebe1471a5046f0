//! The assembled pipeline: special tokens, normalization, splitting, model, post-processing, decoding
