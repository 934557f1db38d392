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
    let purpose: u8 = match purpose {
        Purpose::Lock => 1,
        Purpose::MessageId => 2,
        Purpose::Transaction => 3,
        Purpose::NewId => 4,
    };
    let mut input = [0_u8; 40];
    let fields = [&seed.to_le_bytes()[..], &generation.to_le_bytes(), &count.to_le_bytes(), &[purpose]];
    for (slot, byte) in input.iter_mut().zip(fields.into_iter().flatten()) {
        *slot = *byte;
    }
    let key = u64::try_from(seed >> 64).unwrap_or(0);
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
