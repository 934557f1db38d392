//! Deliveries of one link that follow each other without a gap.
//!
//! Clients send and settle in order, and the broker answers in order: so what is accepted at a time is mostly one range, and
//! is told to the protocol engine as one instead of delivery by delivery.

use vorrang_amqp::connection::{LinkId, Serial};

/// At least one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) link: LinkId,
    pub(super) first: Serial,
    pub(super) last: Serial,
}

impl Run {
    /// How many deliveries it is.
    pub(super) fn count(&self) -> u32 {
        self.last.since(self.first).saturating_add(1)
    }

    /// Adds a delivery to a run; if it does not follow it, it begins the next one and the run so far is over.
    pub(super) fn push(run: &mut Option<Run>, link: LinkId, delivery: Serial) -> Option<Run> {
        match run {
            Some(run) if run.link == link && run.last.next() == delivery => {
                run.last = delivery;
                None
            }
            _ => run.replace(Run { link, first: delivery, last: delivery }),
        }
    }
}
