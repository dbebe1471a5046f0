//! The project's tasks. Standard library only; starts programs.
fn main() {}
