//! Peek: messages by number, whatever their state.

use vorrang_filter::{Environment, Filter};

use super::Stored;
use super::cold::{ColdReader, cold_delivery};
use crate::id::{MailboxId, Sequence, SessionId};
use crate::level::Level;
use crate::message::{Delivery, MessageState};
use crate::payloads::Payloads;
use crate::refusal::Refusal;
use crate::state::State;

/// Which messages to look at.
#[derive(Debug, Clone)]
pub struct Peek<'a> {
    /// Where.
    pub mailbox: MailboxId,
    /// From this number on.
    pub from: Sequence,
    /// At most so many; [`Limits::peek_max`](crate::Limits) bounds it too.
    pub max: usize,
    /// Only those of one session.
    pub session: Option<&'a SessionId>,
    /// Only those in this state.
    pub state: Option<MessageState>,
    /// Only those of this level.
    pub level: Option<Level>,
    /// Only those that match.
    pub filter: Option<&'a Filter>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Peeked {
    /// The messages, in the order of numbers.
    pub messages: Vec<Delivery>,
    /// Where to go on, if not everything was looked at.
    pub next: Option<Sequence>,
}

impl<'a> Peek<'a> {
    /// The first messages of a mailbox.
    #[must_use]
    pub fn new(mailbox: MailboxId, max: usize) -> Peek<'a> {
        Peek { mailbox, from: Sequence(0), max, session: None, state: None, level: None, filter: None }
    }

    fn wants(&self, delivery: &Delivery, payloads: &dyn Payloads) -> bool {
        let fits = self.session.is_none_or(|session| delivery.session.as_ref() == Some(session))
            && self.state.is_none_or(|state| delivery.state == state)
            && self.level.is_none_or(|level| delivery.level == level);
        fits && self.filter.is_none_or(|filter| matches_stored(filter, delivery, payloads))
    }
}

impl State {
    /// Looks at messages without taking them.
    pub fn peek(&self, peek: &Peek<'_>, payloads: &dyn Payloads) -> Result<Peeked, Refusal> {
        self.owner(peek.mailbox)?;
        let mut peeked = Peeked::default();
        let Some(mailbox) = self.mailboxes.get(&peek.mailbox) else { return Ok(peeked) };
        let mut hot =
            mailbox.index.from(peek.from).filter_map(|(_, handle)| self.records.get(handle)).peekable();
        let runs = mailbox.lanes.iter().flat_map(|(level, lane)| lane.runs().map(move |run| (level, run)));
        let mut cold: Vec<ColdReader<'_>> =
            runs.map(|(level, run)| ColdReader::new(run, level, peek.from, payloads)).collect();
        let max = peek.max.min(self.limits.peek_max);
        for _ in 0..self.limits.scan_max {
            let next_cold = cold.iter().filter_map(ColdReader::peek).min();
            let next_hot = hot.peek().map(|record| record.sequence);
            let first = match (next_hot, next_cold) {
                (None, None) => {
                    peeked.next = None;
                    return Ok(peeked);
                }
                (Some(hot), Some(cold)) => hot.min(cold),
                (Some(only), None) | (None, Some(only)) => only,
            };
            if peeked.messages.len() >= max {
                peeked.next = Some(first);
                return Ok(peeked);
            }
            let delivery = if next_hot == Some(first) {
                hot.next().map(|record| self.delivery_of(record))
            } else {
                cold.iter_mut()
                    .find_map(|run| run.take(first))
                    .map(|(record, level)| cold_delivery(peek.mailbox, level, &record))
            };
            if let Some(delivery) = delivery
                && peek.wants(&delivery, payloads)
            {
                peeked.messages.push(delivery);
            }
            peeked.next = Some(first.next());
        }
        Ok(peeked)
    }
}

/// Whether a stored message matches. One that cannot be read or evaluated does not.
pub(crate) fn matches_stored(filter: &Filter, delivery: &Delivery, payloads: &dyn Payloads) -> bool {
    let Some(payload) = payloads.message(delivery.location, delivery.size) else { return false };
    let mut new_id = || 0;
    filter
        .matches(&Stored::new(&*payload, delivery, payloads), &mut Environment::new(&mut new_id))
        .unwrap_or(false)
}
