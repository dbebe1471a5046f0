//! The bodies of the fuzz targets on random bytes: what `fuzz/` looks for with guidance, looked for a
//! little without, so that the targets stay right and up to date.

#[path = "../../../fuzz/src/lib.rs"]
#[allow(unreachable_pub, reason = "there they are the public functions of a crate")]
mod fuzz;

use tokenizer_core::Rng;

/// Runs a target on inputs of all lengths up to `longest`, and says which seed failed.
fn run(target: fn(&[u8]), inputs: u64, longest: u64) {
    target(&[]);
    for seed in 0..inputs {
        let mut rng = Rng::new(seed);
        let len = rng.below(longest + 1);
        let alphabet = 1 + rng.below(256);
        let data: Vec<u8> = (0..len).map(|_| rng.below(alphabet) as u8).collect();
        let outcome = std::panic::catch_unwind(|| target(&data));
        assert!(outcome.is_ok(), "seed {seed}: {data:?}");
    }
}

#[test]
fn table() {
    run(fuzz::table::run, 300, 2000);
}

#[test]
fn merges() {
    run(fuzz::merges::run, 300, 400);
}

#[test]
fn trie() {
    run(fuzz::trie::run, 1000, 600);
}

#[test]
fn lattice() {
    run(fuzz::lattice::run, 1000, 400);
}

#[test]
fn scanner() {
    run(fuzz::scanner::run, 100, 300);
}
