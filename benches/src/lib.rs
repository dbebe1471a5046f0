//! Criterion benches, a file per task; this library holds what they share.
