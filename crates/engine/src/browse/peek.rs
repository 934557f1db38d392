//! Peek: messages by number, whatever their state.

use vorrang_filter::{Environment, Filter};

use super::Stored;
use crate::id::{LockToken, MailboxId, Sequence, SessionId};
use crate::lane::Run;
use crate::level::Level;
use crate::message::{Delivery, MessageState};
use crate::payloads::{ColdRecord, Payloads};
use crate::refusal::Refusal;
use crate::state::State;
use crate::store::{Extra, Place, Record};
use crate::time::{Span, Timestamp};

/// Records of a cold run read at a time.
const COLD_BATCH: u32 = 64;

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
                hot.next().map(|record| self.delivery(record))
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

    /// Everything known about a message, as it would be told about it now. Who holds its lock is not
    /// told: that is the holder's to know.
    pub(crate) fn delivery(&self, record: &Record) -> Delivery {
        let extra = self.extras.get(record.extra);
        let session =
            extra.and_then(|extra| self.sessions.get(extra.session)).map(|session| session.name.clone());
        Delivery {
            mailbox: record.mailbox,
            sequence: record.sequence,
            first_sequence: extra.and_then(Extra::first_sequence),
            location: record.location,
            size: record.size,
            level: record.level,
            state: match record.place() {
                Place::Deferred | Place::LockedDeferred => MessageState::Deferred,
                Place::Scheduled => MessageState::Scheduled,
                _ => MessageState::Active,
            },
            deliveries: u32::from(record.deliveries),
            enqueued: extra.map_or(record.eligible, |extra| extra.enqueued),
            time_to_live: extra.map_or(Span::FOREVER, |extra| extra.time_to_live),
            expires: extra.map_or(Timestamp::NEVER, |extra| extra.expires),
            scheduled_for: extra.filter(|_| record.place() == Place::Scheduled).map(|extra| extra.due),
            token: None::<LockToken>,
            locked_until: None,
            session,
            dead_letter_source: extra.and_then(|extra| extra.dead_letter_source.clone()),
            overlay: extra.and_then(|extra| extra.overlay.clone()),
        }
    }
}

/// Whether a stored message matches. One that cannot be read or evaluated does not.
pub(super) fn matches_stored(filter: &Filter, delivery: &Delivery, payloads: &dyn Payloads) -> bool {
    let Some(payload) = payloads.message(delivery.location, delivery.size) else { return false };
    let mut new_id = || 0;
    filter.matches(&Stored::new(&*payload, delivery), &mut Environment::new(&mut new_id)).unwrap_or(false)
}

/// What is known about a message on disk: it was never delivered and has nothing unusual.
fn cold_delivery(mailbox: MailboxId, level: Level, record: &ColdRecord) -> Delivery {
    Delivery {
        mailbox,
        sequence: record.sequence,
        first_sequence: None,
        location: record.location,
        size: record.size,
        level,
        state: MessageState::Active,
        deliveries: 0,
        enqueued: record.eligible,
        time_to_live: if record.expires == Timestamp::NEVER {
            Span::FOREVER
        } else {
            record.expires.since(record.eligible)
        },
        expires: record.expires,
        scheduled_for: None,
        token: None,
        locked_until: None,
        session: None,
        dead_letter_source: None,
        overlay: None,
    }
}

/// The rest of a run in the order of numbers, read as it is needed.
///
/// Within a run numbers grow: both they and the times of plain messages are given out in the order of
/// arrival. So the start is found by halving.
struct ColdReader<'a> {
    run: &'a Run,
    level: Level,
    payloads: &'a dyn Payloads,
    /// The position of the first record not read yet.
    next: u32,
    batch: std::vec::IntoIter<ColdRecord>,
    ahead: Option<ColdRecord>,
}

impl<'a> ColdReader<'a> {
    fn new(run: &'a Run, level: Level, from: Sequence, payloads: &'a dyn Payloads) -> ColdReader<'a> {
        let (mut low, mut high) = (run.consumed, run.count);
        while low < high {
            let middle = low.midpoint(high);
            let found = payloads.cold_records(run.id, middle, 1).first().map(|record| record.sequence);
            if found.is_some_and(|sequence| sequence < from) {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        let mut reader =
            ColdReader { run, level, payloads, next: low, batch: Vec::new().into_iter(), ahead: None };
        reader.advance();
        reader
    }

    fn peek(&self) -> Option<Sequence> {
        self.ahead.as_ref().map(|record| record.sequence)
    }

    /// The next record, if it has this number.
    fn take(&mut self, sequence: Sequence) -> Option<(ColdRecord, Level)> {
        let record = self.ahead.filter(|record| record.sequence == sequence)?;
        self.advance();
        Some((record, self.level))
    }

    fn advance(&mut self) {
        if self.batch.len() == 0 && self.next < self.run.count {
            let wanted = COLD_BATCH.min(self.run.count.saturating_sub(self.next));
            let records = self.payloads.cold_records(self.run.id, self.next, wanted);
            let read = u32::try_from(records.len()).unwrap_or(u32::MAX);
            // Records that cannot be read now are passed over, not waited for.
            self.next = if read == 0 { self.run.count } else { self.next.saturating_add(read) };
            self.batch = records.into_iter();
        }
        self.ahead = self.batch.next();
    }
}
