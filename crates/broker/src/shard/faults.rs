//! Things that go wrong because a developer wants them to.
//!
//! Without a fault this costs a request one look at an empty list. Faults belong to the process: none survives a
//! restart, or another state put in place of this one.

use super::peer::PeerId;
use crate::api::{Fault, FaultKind, NewFault, Operation, Request};
use std::collections::BTreeMap;
use vorrang_engine::{EntityId, Span, Timestamp};

/// Faults there may be at once; one more is refused.
pub(super) const FAULTS_MAX: usize = 100;
/// The longest a settlement is late.
pub(super) const DELAY_MAX: Span = Span::minutes(60);
/// The longest a fault lasts.
pub(super) const LASTS_MAX: Span = Span::days(1);
/// The longest nothing is taken.
pub(super) const STALL_MAX: Span = Span::minutes(1);
/// Settlements that may be late at once; beyond it they are carried out as they come.
const DELAYED_MAX: usize = 10_000;

/// What goes wrong, and what is late for it.
#[derive(Debug, Default)]
pub(super) struct Faults {
    known: Vec<(EntityId, Fault)>,
    made: u64,
    delayed: BTreeMap<(Timestamp, u64), Delayed>,
    delays: u64,
}

/// A settlement that is late.
#[derive(Debug)]
pub(super) struct Delayed {
    pub(super) peer: PeerId,
    pub(super) request: Request,
    /// Until when it is permitted.
    pub(super) until: Timestamp,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    Busy,
    Late(Span),
}

impl Faults {
    /// Whether there is any.
    pub(super) fn any(&self) -> bool {
        !self.known.is_empty()
    }

    pub(super) fn add(&mut self, entity: EntityId, fault: NewFault, now: Timestamp) -> Fault {
        self.made = self.made.saturating_add(1);
        let NewFault { entity: path, kind, count, lasts } = fault;
        let left = count.or(if lasts.is_none() { Some(1) } else { None });
        let until = lasts.map(|lasts| now.after(lasts));
        let fault = Fault { id: self.made, entity: path, kind, left, until };
        self.known.push((entity, fault.clone()));
        fault
    }

    /// Those that still happen.
    pub(super) fn list(&mut self, now: Timestamp) -> Vec<Fault> {
        self.forget_over(now);
        self.known.iter().map(|(_, fault)| fault.clone()).collect()
    }

    /// Ends one of them, or all; what is late because of any of them is late no more if all end.
    pub(super) fn mend(&mut self, which: Option<u64>, now: Timestamp) -> Vec<Fault> {
        self.forget_over(now);
        let ends = |fault: &Fault| which.is_none_or(|id| fault.id == id);
        let ended =
            self.known.iter().filter(|(_, fault)| ends(fault)).map(|(_, fault)| fault.clone()).collect();
        self.known.retain(|(_, fault)| !ends(fault));
        if self.known.is_empty() {
            let waiting = std::mem::take(&mut self.delayed);
            let at_once = waiting.into_iter().map(|((_, number), delayed)| ((now, number), delayed));
            self.delayed = at_once.collect();
        }
        ended
    }

    /// What becomes of a request; counts what goes wrong.
    pub(super) fn meet(&mut self, operation: &Operation, now: Timestamp) -> Verdict {
        self.forget_over(now);
        let (entity, is_send) = match operation {
            Operation::Send { entity, .. } => (*entity, true),
            Operation::Settle { mailbox, .. } if self.delayed.len() < DELAYED_MAX => {
                (mailbox.entity(), false)
            }
            _ => return Verdict::Pass,
        };
        let concerns = |(known, fault): &&mut (EntityId, Fault)| {
            *known == entity && is_send == (fault.kind == FaultKind::Busy)
        };
        let Some((_, fault)) = self.known.iter_mut().find(concerns) else { return Verdict::Pass };
        fault.left = fault.left.map(|left| left.saturating_sub(1));
        match fault.kind {
            FaultKind::Busy => Verdict::Busy,
            FaultKind::DelaySettles(delay) => Verdict::Late(delay),
        }
    }

    /// Keeps a settlement back until `at`.
    pub(super) fn delay(&mut self, at: Timestamp, delayed: Delayed) {
        self.delays = self.delays.saturating_add(1);
        self.delayed.insert((at, self.delays), delayed);
    }

    /// A settlement that was late long enough.
    pub(super) fn due(&mut self, now: Timestamp) -> Option<Delayed> {
        let first = self.delayed.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }

    /// When the next one is.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.delayed.first_key_value().map(|((at, _), _)| *at)
    }

    fn forget_over(&mut self, now: Timestamp) {
        self.known.retain(|(_, fault)| fault.left != Some(0) && fault.until.is_none_or(|until| now < until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Acceptance, Tag};
    use smallvec::{SmallVec, smallvec};
    use vorrang_engine::command::Settlement;
    use vorrang_engine::entity::EntityPath;
    use vorrang_engine::{LockToken, MailboxId};

    fn send(entity: u32) -> Operation {
        Operation::Send {
            entity: EntityId(entity),
            via: None,
            transaction: None,
            messages: SmallVec::new(),
            acceptance: Acceptance::Plain,
        }
    }

    fn settle(entity: u32) -> Operation {
        Operation::Settle {
            mailbox: MailboxId::main(EntityId(entity)),
            tokens: smallvec![LockToken(1)],
            settlement: Settlement::Complete,
            transaction: None,
        }
    }

    fn fault(kind: FaultKind, count: Option<u32>, lasts: Option<Span>) -> NewFault {
        NewFault { entity: EntityPath::parse("q").unwrap(), kind, count, lasts }
    }

    #[test]
    fn a_fault_happens_as_often_or_as_long_as_it_should_and_only_there() {
        let mut faults = Faults::default();
        assert!(!faults.any());
        faults.add(EntityId(1), fault(FaultKind::Busy, Some(2), None), Timestamp(0));
        let met = |faults: &mut Faults, operation, at| faults.meet(&operation, Timestamp(at));
        assert_eq!(met(&mut faults, send(2), 1), Verdict::Pass);
        assert_eq!(met(&mut faults, settle(1), 1), Verdict::Pass);
        assert_eq!(
            [1, 2, 3].map(|at| met(&mut faults, send(1), at)),
            [Verdict::Busy, Verdict::Busy, Verdict::Pass]
        );
        assert!(!faults.any());
        let late = FaultKind::DelaySettles(Span(5));
        faults.add(EntityId(1), fault(late, None, Some(Span(10))), Timestamp(100));
        assert_eq!(met(&mut faults, settle(1), 109), Verdict::Late(Span(5)));
        assert_eq!(met(&mut faults, send(1), 109), Verdict::Pass);
        assert_eq!(met(&mut faults, settle(1), 110), Verdict::Pass);
        faults.add(EntityId(1), fault(FaultKind::Busy, None, None), Timestamp(0));
        assert_eq!(
            faults.list(Timestamp(200)).first().and_then(|fault| fault.left),
            Some(1),
            "once, unless told"
        );
    }

    #[test]
    fn what_is_late_comes_in_its_time_or_when_the_faults_end() {
        let mut faults = Faults::default();
        let id = faults.add(EntityId(1), fault(FaultKind::Busy, None, Some(Span(1_000))), Timestamp(0)).id;
        let delayed = |tag| Delayed {
            peer: PeerId(1),
            request: Request { tag: Tag(tag), operation: settle(1) },
            until: Timestamp::NEVER,
        };
        for (at, tag) in [(50, 1), (40, 2), (900, 3)] {
            faults.delay(Timestamp(at), delayed(tag));
        }
        assert_eq!(faults.next_due(), Some(Timestamp(40)));
        let due = |faults: &mut Faults, at| {
            std::iter::from_fn(|| faults.due(Timestamp(at))).map(|one| one.request.tag.0).collect::<Vec<_>>()
        };
        assert_eq!(due(&mut faults, 39), []);
        assert_eq!(due(&mut faults, 50), [2, 1]);
        assert_eq!(faults.mend(Some(id + 1), Timestamp(60)), []);
        assert_eq!(faults.mend(None, Timestamp(60)).len(), 1);
        assert_eq!(due(&mut faults, 60), [3]);
    }
}
