//! A small seeded generator, for simulation and tests: the same seed gives the same run.

/// `SplitMix64`: good enough to choose faults with, and nothing else.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice that always fall the same way for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or zero if there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll().checked_rem(bound).unwrap_or_default()
    }

    /// An index into something of this length, or zero if it is empty.
    pub fn index(&mut self, length: usize) -> usize {
        crate::units::in_memory(self.below(crate::units::on_disk(length)))
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.roll().to_le_bytes();
            chunk.copy_from_slice(word.get(..chunk.len()).expect("a chunk has at most eight bytes"));
        }
    }
}
