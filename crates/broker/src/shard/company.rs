//! Whether the messages of a batch lie among their own kind.
//!
//! Messages are read back lane by lane. A large batch that belongs to one lane, or two or three, is read in long stretches,
//! which a disk gives as fast as they can be sent: so it need not be copied into the system's cache when it is written.
//! What is scattered would be read in single blocks, and is worth the copy.

use smallvec::SmallVec;
use vorrang_engine::fact::Fact;
use vorrang_engine::{Level, MailboxId};
use vorrang_log::Position;

/// As many lanes as can [rest](super::resting) in one segment.
const LANES_MAX: usize = 3;

/// Who the messages of the batch in hand belong to.
#[derive(Debug, Default)]
pub(super) struct Company {
    batch: Position,
    lanes: SmallVec<[(MailboxId, Level); LANES_MAX]>,
    scattered: bool,
}

impl Company {
    /// Takes note of what was written to a batch.
    pub(super) fn note(&mut self, batch: Position, fact: &Fact) {
        if batch != self.batch {
            *self = Company { batch, ..Company::default() };
        }
        match fact {
            Fact::Enqueued { arrival, .. } => {
                let lane = (arrival.mailbox, arrival.level);
                if !self.lanes.contains(&lane) {
                    if self.lanes.len() < LANES_MAX {
                        self.lanes.push(lane);
                    } else {
                        self.scattered = true;
                    }
                }
            }
            // Subscriptions read at times of their own, and so do messages that wait for theirs.
            Fact::Published { .. } | Fact::Scheduled { .. } => self.scattered = true,
            _ => {}
        }
    }

    /// Whether the messages of a batch, if it has any, are of a few lanes.
    pub(super) fn is_close(&self, batch: Position) -> bool {
        batch == self.batch && !self.scattered && !self.lanes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use vorrang_engine::fact::{Arrival, Payload};
    use vorrang_engine::{EntityId, LevelOrigin, Location, Sequence, Timestamp};

    fn payload() -> Payload {
        Payload { bytes: Bytes::new(), size: 0, location: Location::NOWHERE, assigned_id: None }
    }

    fn enqueued(mailbox: u32, level: u8) -> Fact {
        let arrival = Arrival {
            mailbox: MailboxId(mailbox),
            sequence: Sequence(1),
            eligible: Timestamp(1),
            level: Level(level),
            origin: LevelOrigin::Default,
            details: None,
        };
        Fact::Enqueued { payload: payload(), arrival }
    }

    fn published() -> Fact {
        let (topic, sequence, at) = (EntityId(1), Sequence(1), Timestamp(1));
        Fact::Published { topic, sequence, at, payload: payload(), copies: Vec::new() }
    }

    #[test]
    fn messages_of_up_to_three_lanes_lie_close() {
        let lanes = |count: u8| (0..200).map(|number| enqueued(7, number % count)).collect::<Vec<_>>();
        let cases = [
            ("none", Vec::new(), false),
            ("settlements", vec![Fact::Recovered { generation: 1, at: Timestamp(1) }], false),
            ("one", lanes(1), true),
            ("three", lanes(3), true),
            ("four", lanes(4), false),
            ("levels of two queues", [lanes(2), vec![enqueued(8, 0)]].concat(), true),
            ("and of a third", [lanes(2), vec![enqueued(8, 0), enqueued(9, 0)]].concat(), false),
            ("one, and a topic", [lanes(1), vec![published()]].concat(), false),
        ];
        for (case, facts, close) in cases {
            let mut company = Company::default();
            for fact in &facts {
                company.note(Position(5), fact);
            }
            assert_eq!(company.is_close(Position(5)), close, "{case}");
            assert!(!company.is_close(Position(6)), "{case}: the next batch has nobody yet");
            company.note(Position(6), &enqueued(1, 1));
            assert!(company.is_close(Position(6)), "{case}: the next batch begins anew");
        }
    }
}
