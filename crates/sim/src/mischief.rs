//! Bugs on purpose, outside the broker: the checkers are only worth something if they catch them.
//!
//! Each stands for a mistake a broker could make, done to what goes in, to what comes out, or to the
//! disk.

use crate::history::{Call, How};
use smallvec::smallvec;
use std::collections::BTreeMap;
use vorrang_broker::api::{Answer, Event, Link, Operation, Refused, Tag};
use vorrang_engine::command::Settlement;
use vorrang_engine::{Level, LockToken, ReceiverId, Refusal, Reply, Sequence, Span, Timestamp};
use vorrang_log::disk::SimDisk;

/// A bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the name says it")]
pub enum Bug {
    SyncIgnored,
    AcknowledgedEarly,
    AbandonLoses,
    BytesChanged,
    RefusedSendKept,
    CompletedReplayed,
    LateCompletionConfirmed,
    OldDiskComesBack,
    LockedHandedTwice,
    SessionSharedByTwo,
    CountForgotten,
    ReleaseCounted,
    BuriedTooEarly,
    DeliveriesSwapped,
    PriorityIgnored,
    DuplicatesKept,
    ScheduleIgnored,
    ExpiryIgnored,
    SendOutsideTransaction,
    CompletionOutsideTransaction,
    StateNotWritten,
    StateStale,
    CreditSwallowed,
    SelectorIgnored,
    FloorIgnored,
}

/// Every bug, and the promise it breaks. A disk that lies leaves gaps the broker refuses to start with.
pub const BUGS: [(Bug, &str); 25] = [
    (Bug::SyncIgnored, "open"),
    (Bug::AcknowledgedEarly, "S1"),
    (Bug::AbandonLoses, "S1"),
    (Bug::BytesChanged, "S2"),
    (Bug::RefusedSendKept, "S2"),
    (Bug::CompletedReplayed, "S3"),
    (Bug::LateCompletionConfirmed, "S3"),
    (Bug::OldDiskComesBack, "S3"),
    (Bug::LockedHandedTwice, "S4"),
    (Bug::SessionSharedByTwo, "S4"),
    (Bug::CountForgotten, "S5"),
    (Bug::ReleaseCounted, "S5"),
    (Bug::BuriedTooEarly, "S5"),
    (Bug::DeliveriesSwapped, "S6"),
    (Bug::PriorityIgnored, "S6"),
    (Bug::DuplicatesKept, "S7"),
    (Bug::ScheduleIgnored, "S8"),
    (Bug::ExpiryIgnored, "S8"),
    (Bug::SendOutsideTransaction, "S9"),
    (Bug::CompletionOutsideTransaction, "S9"),
    (Bug::StateNotWritten, "S10"),
    (Bug::StateStale, "S10"),
    (Bug::CreditSwallowed, "L1"),
    (Bug::SelectorIgnored, "S2"),
    (Bug::FloorIgnored, "S2"),
];

/// How often a bug strikes, for those that would drown everything else.
const ONE_IN: u64 = 5;

/// The bug of a run, if it has one, and what it remembers.
#[derive(Debug, Default)]
pub struct Mischief {
    bug: Option<Bug>,
    turns: u64,
    /// Completions and accepts on their way, by connection and tag.
    pending: BTreeMap<(u32, Tag), (Link, Call)>,
    /// Deliveries to say again.
    delivered: BTreeMap<u128, (u32, Event)>,
    /// Deliveries to say again with the next step.
    late: Vec<(u32, Event)>,
    /// The end of a lock granted now.
    until: Timestamp,
    image: Option<SimDisk>,
}

impl Mischief {
    /// A run with this bug, or an honest one.
    #[must_use]
    pub fn new(bug: Option<Bug>) -> Mischief {
        Mischief { bug, ..Mischief::default() }
    }

    fn is(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn strikes(&mut self) -> bool {
        self.turns += 1;
        self.turns.is_multiple_of(ONE_IN)
    }

    /// Spoils a new disk.
    pub fn spoil_disk(&self, disk: &SimDisk) {
        if self.is(Bug::SyncIgnored) {
            disk.ignore_syncs();
        }
    }

    /// The disk that is found after a crash.
    pub fn swap_disk(&mut self, disk: SimDisk) -> SimDisk {
        if !self.is(Bug::OldDiskComesBack) {
            return disk;
        }
        let old = self.image.replace(disk.fork());
        old.unwrap_or(disk)
    }

    /// Changes what a client asked for. False if the broker never gets it; what the client hears instead
    /// is put into `forged`.
    pub fn meddle(
        &mut self,
        peer: u32,
        tag: Tag,
        operation: &mut Operation,
        call: Option<&Call>,
        forged: &mut Vec<Event>,
    ) -> bool {
        let Some(bug) = self.bug else { return true };
        match (bug, operation) {
            (Bug::AcknowledgedEarly, Operation::Send { messages, transaction: None, .. }) => {
                let sequences = smallvec![Sequence(1); messages.len()];
                forged.push(Event::Reply { tag, reply: Reply::Sent { sequences } });
            }
            (Bug::AbandonLoses, Operation::Settle { settlement, .. }) => {
                if matches!(settlement, Settlement::Abandon { .. }) {
                    *settlement = Settlement::Complete;
                }
            }
            (Bug::BuriedTooEarly, Operation::Settle { settlement, .. }) => {
                if matches!(settlement, Settlement::Abandon { .. }) {
                    let reason = Some("MaxDeliveryCountExceeded".into());
                    *settlement = Settlement::DeadLetter { reason, description: None, changes: None };
                }
            }
            (Bug::ReleaseCounted, Operation::Settle { settlement, .. }) => {
                if matches!(settlement, Settlement::Release | Settlement::Suspend { .. }) {
                    *settlement = Settlement::Abandon { changes: None, delay: None };
                }
            }
            (Bug::CompletionOutsideTransaction, Operation::Settle { transaction, .. })
            | (Bug::SendOutsideTransaction, Operation::Send { transaction, .. }) => *transaction = None,
            (Bug::PriorityIgnored, Operation::Send { messages, .. }) => {
                messages.iter_mut().for_each(|message| message.priority = None);
            }
            (Bug::DuplicatesKept, Operation::Send { messages, .. }) => {
                messages.iter_mut().for_each(|message| message.message_id = None);
            }
            (Bug::ScheduleIgnored, Operation::Send { messages, .. }) => {
                messages.iter_mut().for_each(|message| message.scheduled_for = None);
            }
            (Bug::ExpiryIgnored, Operation::Send { messages, .. }) => {
                messages.iter_mut().for_each(|message| message.time_to_live = None);
            }
            (Bug::StateNotWritten, Operation::SetSessionState { .. }) => {
                forged.push(Event::Reply { tag, reply: Reply::Done });
                return false;
            }
            (Bug::CreditSwallowed, Operation::Credit { .. }) => return false,
            (Bug::SelectorIgnored, Operation::Attach { selector, .. }) => *selector = None,
            (Bug::FloorIgnored, Operation::Attach { min_level, .. }) => *min_level = Level(0),
            (Bug::LateCompletionConfirmed, Operation::Settle { .. }) => {
                self.pending.extend(call.map(|call| ((peer, tag), (Link(0), call.clone()))));
            }
            (Bug::RefusedSendKept, Operation::Send { .. }) => {
                self.pending.extend(call.map(|call| ((peer, tag), (Link(0), call.clone()))));
            }
            (Bug::CompletedReplayed, Operation::Settle { .. }) => {
                self.pending.extend(call.map(|call| ((peer, tag), (Link(0), call.clone()))));
            }
            (Bug::SessionSharedByTwo, Operation::AcceptSession { link, .. }) => {
                self.pending.extend(call.map(|call| ((peer, tag), (*link, call.clone()))));
            }
            _ => {}
        }
        true
    }

    /// Changes what the broker said.
    pub fn twist(&mut self, said: &mut Vec<(u32, Event)>, now: Timestamp) {
        self.until = now.after(Span::seconds(20));
        let late = std::mem::take(&mut self.late);
        match self.bug {
            Some(Bug::DeliveriesSwapped) => {
                for index in 1..said.len() {
                    let deliver = |place: usize| match said.get(place) {
                        Some((peer, Event::Deliver { link, .. })) => Some((*peer, *link)),
                        _ => None,
                    };
                    if deliver(index).is_some() && deliver(index) == deliver(index - 1) {
                        said.swap(index, index - 1);
                    }
                }
            }
            Some(_) => {
                let mut more = Vec::new();
                for (peer, event) in said.iter_mut() {
                    self.twist_one(*peer, event, &mut more);
                }
                said.extend(more);
                said.extend(late);
            }
            None => {}
        }
    }

    fn twist_one(&mut self, peer: u32, event: &mut Event, more: &mut Vec<(u32, Event)>) {
        let Some(bug) = self.bug else { return };
        let again = copy(event);
        match event {
            Event::Deliver { delivery, body, .. } => match bug {
                Bug::CountForgotten => delivery.deliveries = 0,
                Bug::BytesChanged if self.strikes() => {
                    if let Some(body) = body {
                        let mut bytes = body.bytes.to_vec();
                        if let Some(last) = bytes.last_mut() {
                            *last ^= 1;
                        }
                        body.bytes = bytes.into();
                    }
                }
                Bug::LockedHandedTwice if delivery.session.is_none() && self.strikes() => {
                    if let Some(Event::Deliver { link, mut delivery, body }) = again {
                        delivery.token = delivery.token.map(|token| LockToken(token.0 ^ 1));
                        delivery.locked_until = delivery.locked_until.map(|until| until.after(Span(1)));
                        more.push((peer, Event::Deliver { link, delivery, body }));
                    }
                }
                Bug::CompletedReplayed => {
                    if let (Some(token), Some(again)) = (delivery.token, again) {
                        self.delivered.insert(token.0, (peer, again));
                    }
                }
                Bug::PriorityIgnored => delivery.level = Level::NORMAL,
                _ => {}
            },
            Event::Answer { answer: Answer::SessionState(state), .. }
                if bug == Bug::StateStale && self.strikes() =>
            {
                *state = None;
            }
            Event::Reply { tag, reply } => {
                let tag = *tag;
                let asked = self.pending.remove(&(peer, tag));
                match (bug, asked, reply) {
                    (
                        Bug::CompletedReplayed,
                        Some((_, Call::Settle { how: How::Complete, target, .. })),
                        _,
                    ) => {
                        let old = self.delivered.remove(&target.token.0);
                        self.late.extend(old);
                    }
                    (Bug::RefusedSendKept, Some((_, Call::Send { transaction: None, .. })), _)
                        if self.strikes() =>
                    {
                        let refused = Refused::Impossible(Refusal::NamespaceState);
                        *event = Event::Refused { tag, refused };
                    }
                    _ => {}
                }
            }
            Event::Refused { tag, refused } => {
                let tag = *tag;
                match (bug, self.pending.remove(&(peer, tag)), &refused) {
                    (
                        Bug::LateCompletionConfirmed,
                        Some((_, Call::Settle { transaction: None, .. })),
                        Refused::Impossible(Refusal::LockLost { .. }),
                    ) => *event = Event::Reply { tag, reply: Reply::Done },
                    (
                        Bug::SessionSharedByTwo,
                        Some((link, _)),
                        Refused::Impossible(Refusal::SessionLocked { session }),
                    ) => {
                        let receiver = ReceiverId(u64::from(link.0));
                        let (session, until) = (session.clone(), self.until);
                        *event =
                            Event::Reply { tag, reply: Reply::SessionAccepted { receiver, session, until } };
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// An event once more, if it is a delivery.
fn copy(event: &Event) -> Option<Event> {
    match event {
        Event::Deliver { link, delivery, body } => {
            Some(Event::Deliver { link: *link, delivery: delivery.clone(), body: body.clone() })
        }
        _ => None,
    }
}
