//! Unigram language model tokenization: EM trainer, Viterbi, n-best, sampling
