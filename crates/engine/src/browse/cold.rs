//! Messages on disk, as far as they can be told about without being brought back.

use crate::id::{MailboxId, Sequence};
use crate::lane::Run;
use crate::level::Level;
use crate::message::{Delivery, MessageState};
use crate::payloads::{ColdRecord, Payloads};
use crate::time::{Span, Timestamp};

/// Records of a run read at a time.
const COLD_BATCH: u32 = 64;

/// What is known about a message on disk: it was never delivered and has nothing unusual.
pub(super) fn cold_delivery(mailbox: MailboxId, level: Level, record: &ColdRecord) -> Delivery {
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
pub(crate) struct ColdReader<'a> {
    run: &'a Run,
    level: Level,
    payloads: &'a dyn Payloads,
    /// The position of the first record that was not passed over at the start.
    start: u32,
    /// The position of the first record not read yet.
    next: u32,
    /// The position of the first record of the batch.
    at: u32,
    batch: std::vec::IntoIter<ColdRecord>,
    ahead: Option<ColdRecord>,
}

impl<'a> ColdReader<'a> {
    pub(crate) fn new(
        run: &'a Run,
        level: Level,
        from: Sequence,
        payloads: &'a dyn Payloads,
    ) -> ColdReader<'a> {
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
        let mut reader = ColdReader {
            run,
            level,
            payloads,
            start: low,
            next: low,
            at: low,
            batch: Vec::new().into_iter(),
            ahead: None,
        };
        reader.advance();
        reader
    }

    /// How many messages of the run lie before the start.
    pub(crate) fn passed(&self) -> u32 {
        let gaps = self.run.gaps.between(self.run.consumed, self.start);
        self.start.saturating_sub(self.run.consumed).saturating_sub(gaps)
    }

    /// The position of the next record in the run, and the record.
    pub(crate) fn ahead(&self) -> Option<(u32, ColdRecord)> {
        self.ahead.map(|record| (self.at.saturating_sub(1), record))
    }

    pub(crate) fn peek(&self) -> Option<Sequence> {
        self.ahead.as_ref().map(|record| record.sequence)
    }

    /// The next record, if it has this number.
    pub(crate) fn take(&mut self, sequence: Sequence) -> Option<(ColdRecord, Level)> {
        let record = self.ahead.filter(|record| record.sequence == sequence)?;
        self.advance();
        Some((record, self.level))
    }

    fn advance(&mut self) {
        loop {
            self.read_on();
            self.ahead = self.batch.next();
            let position = self.at;
            self.at = position.saturating_add(1);
            if self.ahead.is_none() || !self.run.gaps.contains(position) {
                return;
            }
        }
    }

    fn read_on(&mut self) {
        if self.batch.len() == 0 && self.next < self.run.count {
            let wanted = COLD_BATCH.min(self.run.count.saturating_sub(self.next));
            let records = self.payloads.cold_records(self.run.id, self.next, wanted);
            let read = u32::try_from(records.len()).unwrap_or(u32::MAX);
            self.at = self.next;
            // Records that cannot be read now are passed over, not waited for.
            self.next = if read == 0 { self.run.count } else { self.next.saturating_add(read) };
            self.batch = records.into_iter();
        }
    }
}
