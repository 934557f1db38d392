//! Deliveries on their way through a connection, by weight.
//!
//! The broker hands out only so much ahead of what has left the connection, so that a client with a large credit that
//! does not read holds no more of them than that. It is told what has left in large steps: much smaller than what may
//! be on its way, much larger than a message.

use vorrang_broker::api::weight;
use vorrang_engine::message::Delivery;

/// What has to leave before the broker is told.
const STEP: u64 = 1024 * 1024;

/// What came, what is held back here, and what was told.
#[derive(Debug, Default)]
pub(super) struct Passing {
    arrived: u64,
    held: u64,
    told: Option<u64>,
    wanted: bool,
}

impl Passing {
    /// There are receivers: from now on the broker is told.
    pub(super) fn begin(&mut self) {
        self.wanted = true;
    }

    /// A delivery came from the broker.
    pub(super) fn arrive(&mut self, delivery: &Delivery) {
        self.arrived = self.arrived.saturating_add(weight(delivery));
    }

    /// A delivery that came is held back.
    pub(super) fn hold(&mut self, delivery: &Delivery) {
        self.held = self.held.saturating_add(weight(delivery));
    }

    /// A delivery is held back no longer.
    pub(super) fn let_go(&mut self, delivery: &Delivery) {
        self.held = self.held.saturating_sub(weight(delivery));
    }

    /// What has left in all, if the broker should be told now.
    pub(super) fn news(&mut self) -> Option<u64> {
        let left = self.arrived.saturating_sub(self.held);
        let due = self.wanted && self.told.is_none_or(|told| left.saturating_sub(told) >= STEP);
        due.then(|| *self.told.insert(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_left_is_told_once_there_are_receivers_and_then_step_by_step() {
        let mut passing = Passing::default();
        assert_eq!(passing.news(), None);
        passing.begin();
        assert_eq!(passing.news(), Some(0));
        assert_eq!(passing.news(), None);
        let cases = [
            (STEP - 1, 0, None),
            (1, 0, Some(STEP)),
            (5 * STEP, 5 * STEP, None),
            (0, 4 * STEP, Some(2 * STEP)),
        ];
        for (arrives, held, told) in cases {
            passing.arrived += arrives;
            passing.held = held;
            assert_eq!(passing.news(), told, "{arrives} came, {held} are held");
        }
    }
}
