//! Facts on their way into the log, and which of them the disk already has.
//!
//! One batch is in hand while the shard works; it is handed over when the step ends, and may come back
//! to grow for as long as the disk is busy with the one before. Locations and positions both grow, so
//! the first location of each batch that is not yet durable tells for any message whether it is safe.
//! A decision may fill more than one batch. It is safe with the last of them only, because reading drops
//! a decision that is not whole.

use super::company::Company;
use super::regions::{Regions, region_of};
use super::staging::Ahead;
use crate::journal::record::{self, GATHERED, Scratch, Sink, Written};
use bytes::Bytes;
use std::collections::VecDeque;
use vorrang_engine::fact::Fact;
use vorrang_engine::{Location, Span, State, Timestamp};
use vorrang_log::{Batch, BatchError, Failure, Log, Position, Region};

/// How long nothing is written before the log counts as idle. Long enough that a client which sends one
/// message after the other does not pay for it, short against the time in which a disk loses a block.
const IDLE_AFTER: Span = Span(200);

/// The shard's end of the log.
#[derive(Debug)]
pub(super) struct Writer {
    log: Log,
    record_bytes_max: usize,
    batch_bytes_max: usize,
    batch: Option<Batch>,
    now: Timestamp,
    /// What is not durable: the batch to wait for, and the first record that has to wait for it.
    in_flight: VecDeque<(Position, Location)>,
    /// The segment that the newest durable batch lies in.
    durable_region: Option<Region>,
    regions: Regions,
    company: Company,
    /// Bytes written since the last snapshot began.
    bytes: u64,
    /// Payloads of the next decision that were written before it.
    ahead: Vec<Ahead>,
    /// When the newest batch was handed over, if nothing follows it yet that would tell damage to it from
    /// the trace of a crash.
    unconfirmed: Option<Timestamp>,
}

impl Writer {
    pub(super) fn new(log: Log, limits: vorrang_log::Limits, regions: Regions) -> Writer {
        Writer {
            log,
            record_bytes_max: limits.record_bytes,
            batch_bytes_max: limits.batch_bytes,
            batch: None,
            now: Timestamp::default(),
            in_flight: VecDeque::new(),
            durable_region: None,
            regions,
            company: Company::default(),
            bytes: 0,
            ahead: Vec::new(),
            unconfirmed: None,
        }
    }

    /// Begins a step at `now`. False if the disk is so far behind that nothing should be decided.
    pub(super) fn begin(&mut self, now: Timestamp) -> bool {
        self.now = now;
        if self.batch.is_none() {
            self.batch = self.log.batch();
        }
        self.batch.as_ref().is_some_and(|batch| !batch.is_full())
    }

    /// Hands over what was written.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        self.end_step(true).map(drop)
    }

    /// The same at the end of a step. Says whether it was committed on the spot, which is done only if the shard may wait
    /// for that `here`.
    pub(super) fn end_step(&mut self, here: bool) -> Result<bool, Failure> {
        match self.batch.take() {
            Some(mut batch) => {
                if !batch.is_empty() {
                    self.unconfirmed = Some(self.now);
                }
                let something = !batch.is_empty();
                batch.set_read_back(self.company.read_back(batch.position()));
                batch.set_commit_here(here);
                let position = self.log.submit(batch, self.now.0)?;
                Ok(something && self.log.durable() >= position)
            }
            None => Ok(false),
        }
    }

    /// When the newest batch is to be confirmed; none if it is, or is still on its way to the disk.
    pub(super) fn confirmation_due(&self) -> Option<Timestamp> {
        self.unconfirmed.filter(|_| self.in_flight.is_empty()).map(|written| written.after(IDLE_AFTER))
    }

    /// Writes an empty entry behind the newest one if the log has fallen idle: damage to what was
    /// acknowledged last must not pass for a torn tail. Between steps; nobody waits for it.
    pub(super) fn confirm_if_idle(&mut self) -> Result<(), Failure> {
        if self.confirmation_due().is_some_and(|due| due <= self.now) {
            self.log.confirm(self.now.0)?;
            self.unconfirmed = None;
        }
        Ok(())
    }

    /// Whether another decision should wait for the next batch.
    pub(super) fn is_full(&self) -> bool {
        self.batch.as_ref().is_none_or(Batch::is_full)
    }

    /// Writes the facts of one decision, and tells payloads where they lie.
    pub(super) fn unit(&mut self, facts: &mut [Fact], scratch: &mut Scratch) -> Result<(), Failure> {
        let kept = |fact: &Fact| fact.durability() != vorrang_engine::Durability::Volatile;
        let Some(last) = facts.iter().rposition(kept) else { return Ok(()) };
        let mut first = None;
        for (index, fact) in facts.iter_mut().enumerate().take(last.saturating_add(1)) {
            match record::write(fact, index < last, self, scratch) {
                Ok(Some(place)) => {
                    self.regions.wrote(place.location, place.first_part);
                    if let Some(batch) = &self.batch {
                        self.company.note(batch.position(), fact);
                        first.get_or_insert((batch.position(), place.location));
                    }
                }
                Ok(None) => {}
                Err(failure) => return Err(failure),
            }
        }
        let end = self.batch.as_ref().map(Batch::position);
        if let Some((begin, location)) = first
            && Some(begin) != end
        {
            self.wait_for_whole(location);
        }
        Ok(())
    }

    /// Notes that the decision whose first record lies at `first` went into several batches: everything
    /// of it waits for the last one.
    fn wait_for_whole(&mut self, first: Location) {
        let Some(last) = self.newest() else { return };
        while self.in_flight.pop_back_if(|(_, begin)| *begin >= first).is_some() {}
        self.in_flight.push_back((last, first));
    }

    /// The most bytes of a batch.
    pub(super) fn batch_bytes_max(&self) -> usize {
        self.batch_bytes_max
    }

    /// Tells of payloads that were written before the next decision; none after it.
    pub(super) fn set_ahead(&mut self, ahead: Vec<Ahead>) {
        self.ahead = ahead;
    }

    /// Where to wait for the message at `location`; none if it is safe already.
    pub(super) fn position_of(&self, location: Location) -> Option<Position> {
        if vorrang_log::Location::from_raw(location.0).region().is_extent() {
            return None;
        }
        let after = self.in_flight.partition_point(|(_, first)| *first <= location);
        let index = after.checked_sub(1)?;
        self.in_flight.get(index).map(|(position, _)| *position)
    }

    /// The newest batch that is not durable; none if everything is.
    pub(super) fn newest(&self) -> Option<Position> {
        self.in_flight.back().map(|(position, _)| *position)
    }

    /// How far the log is durable.
    pub(super) fn durable(&mut self) -> Position {
        let durable = self.log.durable();
        while let Some((position, first)) = self.in_flight.front()
            && *position <= durable
        {
            self.durable_region = Some(region_of(*first));
            self.in_flight.pop_front();
        }
        durable
    }

    /// Lets the log have every region back that no message lies in.
    /// Nothing is let go from `pinned` on.
    pub(super) fn let_go(&mut self, state: &mut State, moving: bool, pinned: Option<Region>) {
        self.regions.let_go(state, &self.log, (self.durable_region, pinned), moving);
    }

    /// The segment that the newest durable batch lies in.
    pub(super) fn durable_region(&self) -> Option<Region> {
        self.durable_region
    }

    /// Notes where a payload was written that no fact brought.
    pub(super) fn wrote(&mut self, written: Written) {
        self.regions.wrote(written.location, written.first_part);
    }

    pub(super) fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Bytes written since the last snapshot began.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Begins to count bytes anew.
    pub(super) fn mark(&mut self) {
        self.bytes = 0;
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    /// The log itself, between steps.
    pub(super) fn log_mut(&mut self) -> &mut Log {
        &mut self.log
    }

    pub(super) fn into_log(self) -> Log {
        self.log
    }

    /// Gives up the buffers of work that is done. Between steps.
    pub(super) fn drop_buffers(&mut self) {
        self.log.drop_buffers();
    }

    /// The batch in hand, waiting for the disk if need be: a decision that was begun is written whole.
    fn hand(&mut self) -> Result<&mut Batch, Failure> {
        while self.batch.is_none() {
            self.batch = self.log.batch();
            if self.batch.is_none() {
                self.log.flush()?;
            }
        }
        Ok(self.batch.as_mut().expect("the loop ends with a batch in hand"))
    }

    /// Puts so many bytes into the batch in hand, or into the next if it is full, and says where they lie.
    fn put(
        &mut self,
        bytes: usize,
        put: impl Fn(&mut Batch) -> Result<vorrang_log::Location, BatchError>,
    ) -> Result<Location, Failure> {
        loop {
            let batch = self.hand()?;
            match put(batch) {
                Ok(location) => {
                    let (position, location) = (batch.position(), Location(location.raw()));
                    if self.in_flight.back().is_none_or(|(newest, _)| *newest < position) {
                        self.in_flight.push_back((position, location));
                    }
                    self.bytes = self.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
                    return Ok(location);
                }
                Err(BatchError::Full { .. }) => self.end()?,
                Err(error @ (BatchError::RecordTooLarge { .. } | BatchError::FixedTooLarge { .. })) => {
                    unreachable!("records are cut to the log's limits before they are appended: {error}")
                }
            }
        }
    }
}

impl Sink for Writer {
    type Failure = Failure;

    fn append(&mut self, kind: u8, fixed: &[u8], payload: &[u8]) -> Result<Location, Failure> {
        let bytes = fixed.len().saturating_add(payload.len());
        self.put(bytes, |batch| batch.record(kind, fixed, &[payload]))
    }

    fn gather(&mut self, item: &[&[u8]]) -> Result<Location, Failure> {
        let bytes = item.iter().map(|part| part.len()).sum();
        self.put(bytes, |batch| batch.gather(GATHERED, item))
    }

    fn record_bytes_max(&self) -> usize {
        self.record_bytes_max
    }

    fn written_before(&self, payload: &Bytes) -> Option<(&[u8], Location)> {
        self.ahead.iter().find_map(|ahead| ahead.of(payload))
    }
}
