//! Making tokens and ids that nobody can guess, without drawing random numbers.

use xxhash_rust::xxh3::xxh3_128_with_seed;

/// What a made number is for: the same count gives different numbers for different purposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A lock token.
    Lock,
    /// The id of a message that came without one.
    MessageId,
    /// A transaction.
    Transaction,
    /// `newid()` in a filter or action.
    NewId,
}

/// The number for the `count`-th use since the `generation`-th restart.
///
/// The seed is secret, and both halves of it go in: once as data, once as the key. The generation keeps
/// tokens apart whose locks were lost in a crash: a client may still hold one and must not settle
/// another message with it.
pub(crate) fn make(seed: u128, generation: u64, count: u64, purpose: Purpose) -> u128 {
    let purpose: u64 = match purpose {
        Purpose::Lock => 1,
        Purpose::MessageId => 2,
        Purpose::Transaction => 3,
        Purpose::NewId => 4,
    };
    let key = u64::try_from(seed >> 64).unwrap_or(0);
    let low = u64::try_from(seed & u128::from(u64::MAX)).unwrap_or(0);
    let mut input = [0_u8; 40];
    let (words, _) = input.as_chunks_mut();
    for (slot, word) in words.iter_mut().zip([low, key, generation, count, purpose]) {
        *slot = word.to_le_bytes();
    }
    // Zero would read as "no token" in some clients.
    xxh3_128_with_seed(&input, key).max(1)
}

/// A message id as duplicate detection remembers it. Keyed, so that nobody can construct two that meet.
pub(crate) fn hash_id(seed: u128, id: &[u8]) -> u128 {
    let key = u64::try_from(seed & u128::from(u64::MAX)).unwrap_or(0);
    xxh3_128_with_seed(id, key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Written down in logs and held by clients: a later version must make the same ones.
    #[test]
    fn tokens_never_change_from_version_to_version() {
        let seed = 0x0123_4567_89ab_cdef_0011_2233_4455_6677;
        let cases = [
            (Purpose::Lock, 0x55c0_ff56_e44c_7dbe_1baf_6900_0821_515a),
            (Purpose::MessageId, 0x502b_237c_b79a_3fd0_a638_b0a2_0c90_7dba),
            (Purpose::Transaction, 0x3720_c6a3_a3f8_b300_9a88_6b03_e8ea_0314),
            (Purpose::NewId, 0xd662_9cd8_0424_5a0a_0e22_e3e5_2abc_fa34),
        ];
        for (purpose, expected) in cases {
            let made = make(seed, 0x8899_aabb_ccdd_eeff, 0x1020_3040_5060_7080, purpose);
            assert_eq!(made, expected, "{purpose:?}: {made:#034x}");
        }
    }

    #[test]
    fn tokens_differ_by_seed_generation_count_and_purpose() {
        let mut seen = BTreeSet::new();
        for seed in [0, 1, 1 << 64] {
            for generation in 0..5 {
                for count in 0..100 {
                    for purpose in [Purpose::Lock, Purpose::MessageId, Purpose::Transaction, Purpose::NewId] {
                        assert!(seen.insert(make(seed, generation, count, purpose)));
                    }
                }
            }
        }
    }
}
