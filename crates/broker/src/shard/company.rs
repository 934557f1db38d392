//! Who will read the messages of a batch back from the log, and how.
//!
//! Hardly anybody reads a message that is handed out in the step that took it in: it is delivered from memory, and read only
//! if it comes back long after. Nobody reads settlements. Other messages are read lane by lane. A large batch that belongs to one lane, or two or three, is read in
//! long stretches, which a disk gives as fast as they can be sent. Neither need be copied into the system's cache when it is
//! written. What is scattered would be read in single blocks, and is worth the copy.

use smallvec::SmallVec;
use vorrang_engine::fact::{Arrival, Fact};
use vorrang_engine::{Level, MailboxId, Sequence};
use vorrang_log::{Position, ReadBack};

/// As many lanes as can [rest](super::resting) in one segment.
const LANES_MAX: usize = 3;
/// Messages that are looked for one by one when some are handed out. A batch with more of them is a large one.
const WAITING_MAX: usize = 8;

/// Who the messages of the batch in hand belong to.
#[derive(Debug, Default)]
pub(super) struct Company {
    batch: Position,
    lanes: SmallVec<[(MailboxId, Level); LANES_MAX]>,
    scattered: bool,
    /// Those that were not handed out yet.
    waiting: SmallVec<[(MailboxId, Sequence); WAITING_MAX]>,
    /// More wait than are known one by one.
    many: bool,
}

impl Company {
    /// Takes note of what was written to a batch.
    pub(super) fn note(&mut self, batch: Position, fact: &Fact) {
        if batch != self.batch {
            *self = Company { batch, ..Company::default() };
        }
        match fact {
            Fact::Enqueued { arrival, .. } => {
                self.note_lane((arrival.mailbox, arrival.level));
                self.note_waiting(arrival);
            }
            // Subscriptions read at times of their own, and so do messages that wait for theirs.
            Fact::Published { copies, .. } => {
                self.scattered = true;
                for copy in copies {
                    self.note_waiting(copy);
                }
            }
            Fact::Scheduled { arrival, .. } => {
                self.scattered = true;
                self.note_waiting(arrival);
            }
            Fact::Locked { mailbox, sequence, .. } | Fact::Taken { mailbox, sequence, .. } if !self.many => {
                let handed_out = (*mailbox, *sequence);
                if let Some(place) = self.waiting.iter().position(|waiting| *waiting == handed_out) {
                    self.waiting.swap_remove(place);
                }
            }
            _ => {}
        }
    }

    fn note_lane(&mut self, lane: (MailboxId, Level)) {
        if self.lanes.contains(&lane) {
            return;
        }
        if self.lanes.len() < LANES_MAX {
            self.lanes.push(lane);
        } else {
            self.scattered = true;
        }
    }

    fn note_waiting(&mut self, arrival: &Arrival) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push((arrival.mailbox, arrival.sequence));
        } else {
            self.many = true;
        }
    }

    /// How the records of a batch will be read back.
    pub(super) fn read_back(&self, batch: Position) -> ReadBack {
        if batch != self.batch {
            ReadBack::Scattered
        } else if self.waiting.is_empty() && !self.many {
            ReadBack::Never
        } else if self.scattered {
            ReadBack::Scattered
        } else {
            ReadBack::Stretches
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use vorrang_engine::fact::Payload;
    use vorrang_engine::{EntityId, LevelOrigin, Location, Timestamp};

    fn payload() -> Payload {
        Payload { bytes: Bytes::new(), size: 0, location: Location::NOWHERE, assigned_id: None }
    }

    fn arrival(mailbox: u32, sequence: u64, level: u8) -> Arrival {
        Arrival {
            mailbox: MailboxId(mailbox),
            sequence: Sequence(sequence),
            eligible: Timestamp(1),
            level: Level(level),
            origin: LevelOrigin::Default,
            details: None,
        }
    }

    fn enqueued(mailbox: u32, level: u8) -> Fact {
        Fact::Enqueued { payload: payload(), arrival: arrival(mailbox, 1, level) }
    }

    fn published(copies: Vec<Arrival>) -> Fact {
        let (topic, sequence, at) = (EntityId(1), Sequence(1), Timestamp(1));
        Fact::Published { topic, sequence, at, payload: payload(), copies }
    }

    fn taken(mailbox: u32, sequence: u64) -> Fact {
        let (mailbox, sequence) = (MailboxId(mailbox), Sequence(sequence));
        Fact::Taken { mailbox, sequence, at: Timestamp(1), receiver: None, rescue: 0 }
    }

    fn read_back(facts: &[Fact]) -> ReadBack {
        let mut company = Company::default();
        for fact in facts {
            company.note(Position(5), fact);
        }
        assert_eq!(company.read_back(Position(6)), ReadBack::Scattered, "nothing is known of the next batch");
        let read_back = company.read_back(Position(5));
        company.note(Position(6), &enqueued(1, 1));
        assert_eq!(company.read_back(Position(6)), ReadBack::Stretches, "the next batch begins anew");
        read_back
    }

    #[test]
    fn messages_of_up_to_three_lanes_are_read_in_stretches() {
        let lanes = |count: u8| (0..200).map(|number| enqueued(7, number % count)).collect::<Vec<_>>();
        let cases = [
            ("one", lanes(1), ReadBack::Stretches),
            ("three", lanes(3), ReadBack::Stretches),
            ("four", lanes(4), ReadBack::Scattered),
            ("levels of two queues", [lanes(2), vec![enqueued(8, 0)]].concat(), ReadBack::Stretches),
            (
                "and of a third",
                [lanes(2), vec![enqueued(8, 0), enqueued(9, 0)]].concat(),
                ReadBack::Scattered,
            ),
            ("one, and a topic", [lanes(1), vec![published(Vec::new())]].concat(), ReadBack::Scattered),
        ];
        for (case, facts, expected) in cases {
            assert_eq!(read_back(&facts), expected, "{case}");
        }
    }

    #[test]
    fn nobody_reads_what_is_handed_out_at_once_or_is_no_message() {
        let sent = |sequence| Fact::Enqueued { payload: payload(), arrival: arrival(7, sequence, 0) };
        let copies = || vec![arrival(8, 1, 0), arrival(9, 1, 0)];
        let many = u64::try_from(WAITING_MAX).unwrap() + 1;
        let cases = [
            ("settlements", vec![Fact::Recovered { generation: 1, at: Timestamp(1) }], ReadBack::Never),
            ("one that waits", vec![sent(1)], ReadBack::Stretches),
            ("one that is handed out", vec![sent(1), taken(7, 1)], ReadBack::Never),
            ("an older one is", vec![sent(2), taken(7, 1)], ReadBack::Stretches),
            ("one of another queue is", vec![sent(1), taken(8, 1)], ReadBack::Stretches),
            ("one of two is", vec![sent(1), sent(2), taken(7, 1)], ReadBack::Stretches),
            ("both are", vec![sent(1), sent(2), taken(7, 1), taken(7, 2)], ReadBack::Never),
            ("one copy is", vec![published(copies()), taken(8, 1)], ReadBack::Scattered),
            ("both copies are", vec![published(copies()), taken(9, 1), taken(8, 1)], ReadBack::Never),
            (
                "more than are known are",
                (1..=many).map(sent).chain((1..=many).map(|number| taken(7, number))).collect(),
                ReadBack::Stretches,
            ),
        ];
        for (case, facts, expected) in cases {
            assert_eq!(read_back(&facts), expected, "{case}");
        }
    }
}
