//! Taking turns by weight: of n turns a queue gets its weight's share, evenly spread, while it has messages.
//!
//! Smooth weighted round robin: at each turn everybody who has something gains its weight, the one with most
//! goes, and pays what all gained together. A queue without messages gains nothing, so it cannot save up turns
//! and take them all at once.

/// The largest weight; far above any useful ratio, far below where sums could overflow.
pub const WEIGHT_MAX: u32 = 1_000_000;

/// Whose turn it is among queues with weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    turns: Vec<Turn>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Turn {
    weight: i64,
    credit: i64,
}

impl Share {
    /// One weight per queue; each counts as at least 1 and at most [`WEIGHT_MAX`].
    pub fn new(weights: impl IntoIterator<Item = u32>) -> Share {
        let turn = |weight: u32| Turn { weight: i64::from(weight.clamp(1, WEIGHT_MAX)), credit: 0 };
        Share { turns: weights.into_iter().map(turn).collect() }
    }

    /// How many queues there are.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// How many of `slots` are a queue's share, rounded up.
    pub fn of(&self, slots: usize, queue: usize) -> usize {
        let total: i64 = self.turns.iter().map(|turn| turn.weight).sum();
        let weight = self.turns.get(queue).map_or(0, |turn| turn.weight);
        let (slots_wide, total) = (i64::try_from(slots).unwrap_or(i64::MAX), total.max(1));
        let share = slots_wide.saturating_mul(weight).saturating_add(total - 1) / total;
        usize::try_from(share).unwrap_or(slots)
    }

    /// The queue whose turn it is among those that have something; the first of equals.
    pub fn take(&mut self, has_something: impl Fn(usize) -> bool) -> Option<usize> {
        let mut total = 0;
        let mut best: Option<(usize, i64)> = None;
        for (queue, turn) in self.turns.iter_mut().enumerate() {
            if !has_something(queue) {
                turn.credit = 0;
                continue;
            }
            total += turn.weight;
            turn.credit += turn.weight;
            if best.is_none_or(|(_, credit)| turn.credit > credit) {
                best = Some((queue, turn.credit));
            }
        }
        let (queue, _) = best?;
        if let Some(turn) = self.turns.get_mut(queue) {
            turn.credit -= total;
        }
        Some(queue)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn turns_are_shared_by_weight_and_spread_evenly() {
        let mut share = Share::new([5, 1, 1]);
        let turns: Vec<usize> = (0..7).filter_map(|_| share.take(|_| true)).collect();
        assert_eq!(turns, [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn an_empty_queue_neither_takes_a_turn_nor_saves_it_up() {
        let mut share = Share::new([1, 1]);
        for _ in 0..100 {
            assert_eq!(share.take(|queue| queue == 0), Some(0));
        }
        let turns: Vec<usize> = (0..4).filter_map(|_| share.take(|_| true)).collect();
        assert_eq!(turns, [0, 1, 0, 1], "the one that slept gets half, not a hundred turns");
        assert_eq!(share.take(|_| false), None);
        assert_eq!(Share::new([]).take(|_| true), None);
    }

    #[test]
    fn a_share_of_the_slots_is_rounded_up() {
        let share = Share::new([3, 1]);
        for (slots, first, second) in [(0, 0, 0), (1, 1, 1), (4, 3, 1), (5, 4, 2)] {
            assert_eq!((share.of(slots, 0), share.of(slots, 1)), (first, second), "{slots}");
        }
        assert_eq!(share.of(4, 2), 0, "no such queue");
    }

    proptest! {
        #[test]
        fn after_each_full_round_everybody_had_exactly_its_weight(weights in prop::collection::vec(1_u32..50, 1..8)) {
            let mut share = Share::new(weights.clone());
            let mut counted = vec![0_u32; weights.len()];
            for _ in 0..weights.iter().sum::<u32>() {
                let queue = share.take(|_| true).expect("somebody always has something");
                counted[queue] += 1;
            }
            prop_assert_eq!(counted, weights);
        }
    }
}
