//! Random lives of a namespace: nothing panics, everything adds up, replay equals live.

use vorrang_engine::fuzzing::{check_commands, check_damaged_log};

/// A small generator: the same seed is the same life, everywhere and for ever.
fn life(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[4]
    };
    (0..length).map(|_| next()).collect()
}

/// How many lives to live: `VORRANG_LIVES=20000 cargo test …` for a long run.
fn lives() -> u64 {
    std::env::var("VORRANG_LIVES").ok().and_then(|count| count.parse().ok()).unwrap_or(400)
}

#[test]
fn every_random_life_adds_up_and_is_what_its_log_says() {
    for seed in 0..lives() {
        let bytes = life(seed, 200 + usize::try_from(seed % 20).unwrap() * 100);
        let outcome = std::panic::catch_unwind(|| check_commands(&bytes));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

#[test]
fn a_damaged_log_is_refused_and_nothing_worse() {
    let mut misfits = 0;
    for seed in 0..lives() / 2 {
        let bytes = life(seed.wrapping_add(1_000_000), 300 + usize::try_from(seed % 10).unwrap() * 100);
        let outcome = std::panic::catch_unwind(|| check_damaged_log(&bytes));
        assert!(outcome.is_ok(), "seed {seed}");
        misfits += outcome.unwrap_or(0);
    }
    assert!(misfits > lives(), "{misfits} facts did not fit: the damage is not noticed");
}

#[test]
fn every_life_in_the_corpus_adds_up() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/commands");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let outcome = std::panic::catch_unwind(|| check_commands(&bytes));
        assert!(outcome.is_ok(), "{}", path.display());
        count += 1;
    }
    assert!(count >= 8, "the corpus is gone");
}
