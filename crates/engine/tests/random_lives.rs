//! Random lives of a namespace: nothing panics, everything adds up, replay equals live.

use vorrang_engine::fuzzing::check_commands;

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

#[test]
fn every_random_life_adds_up_and_is_what_its_log_says() {
    for seed in 0..400 {
        let bytes = life(seed, 200 + usize::try_from(seed % 20).unwrap() * 100);
        let outcome = std::panic::catch_unwind(|| check_commands(&bytes));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}
