//! Dispositions: outcomes and settlement of deliveries, in both directions (AMQP 1.0 2.7.6).
//!
//! A range of the peer's is clamped to what is unsettled in that session, over all its links, and never walked as
//! it stands. Accepted deliveries of ours gather until the output is taken and become the fewest ranges.

use smallvec::{SmallVec, smallvec};

use super::event::{Event, LinkId, SettledDelivery, Settlement};
use super::handshake::Phase;
use super::link::{LinkEntry, LinkState};
use super::outbox::Outbox;
use super::receive::{Fault, Work};
use super::runs::Runs;
use super::serial::Serial;
use super::session::{Session, SessionState};
use super::unsettled::{Progress, Unsettled};
use super::{Connection, Gone, wire};
use crate::performative::{DeliveryState, Disposition, Role};

impl Connection {
    /// Settles a delivery with this state, whether we sent or received it, and tells the peer.
    ///
    /// The answer to a receiver that told its outcome unsettled is the same outcome, a rejection without error; an
    /// error in it means that settling failed.
    pub fn settle(&mut self, link: LinkId, delivery: Serial, state: DeliveryState) -> Result<(), Gone> {
        self.dispose(link, delivery, state, true)
    }

    /// Tells our outcome of a delivery we received and leaves it to the sender to settle it;
    /// [`Event::Settlement`] follows.
    pub fn decide(&mut self, link: LinkId, delivery: Serial, state: DeliveryState) -> Result<(), Gone> {
        self.dispose(link, delivery, state, false)
    }

    /// Settles a delivery as accepted. What is accepted between two outputs goes out in ranges.
    #[inline]
    pub fn accept(&mut self, link: LinkId, delivery: Serial) -> Result<(), Gone> {
        self.take_decided(link, delivery, true, true).map(|_| ())
    }

    /// Settles all unsettled deliveries of a link from `first` to `last` as accepted; returns how many. The same as to
    /// [accept](Connection::accept) each.
    pub fn accept_range(&mut self, link: LinkId, first: Serial, last: Serial) -> Result<u32, Gone> {
        let slot = link.0.slot;
        let Some(LinkEntry::Live(entry)) = self.links.find_mut(link.0) else { return Err(Gone) };
        let departing = matches!(entry.state, LinkState::Departing { .. });
        if !(departing || entry.state == LinkState::Attached) || self.phase != Phase::Open {
            return Err(Gone);
        }
        let session_slot = entry.session;
        let Some(session) = self.sessions.get_mut(session_slot) else { return Err(Gone) };
        let accepted = &mut session.accepted;
        let count = match entry.flow.own_role() {
            Role::Sender => settle_range(&mut session.sent, &mut accepted.sent_settled, slot, first, last),
            Role::Receiver => {
                settle_range(&mut session.received, &mut accepted.received_settled, slot, first, last)
            }
        };
        entry.unsettled = entry.unsettled.saturating_sub(count);
        if count > 0 {
            list_unflushed(session, session_slot, &mut self.unflushed);
        }
        if departing {
            self.depart(slot);
        }
        Ok(count)
    }

    fn dispose(
        &mut self,
        link: LinkId,
        delivery: Serial,
        state: DeliveryState,
        settled: bool,
    ) -> Result<(), Gone> {
        let accepted = state == DeliveryState::ACCEPTED;
        let (role, channel) = self.take_decided(link, delivery, settled, accepted)?;
        if !accepted {
            let (first, state) = (delivery.get(), Some(state));
            let disposition =
                Disposition { role, first, last: Some(first), settled, state, batchable: false };
            wire::put_frame(&mut self.outbox, channel, &disposition);
            self.depart(link.0.slot);
        }
        Ok(())
    }

    /// Takes a delivery that is decided out of the unsettled set, or marks it if it is not settled; if accepted, it
    /// joins the ranges of the next output. Returns our role and channel.
    #[inline]
    fn take_decided(
        &mut self,
        link: LinkId,
        delivery: Serial,
        settled: bool,
        accepted: bool,
    ) -> Result<(Role, u16), Gone> {
        let slot = link.0.slot;
        let Some(LinkEntry::Live(entry)) = self.links.find_mut(link.0) else { return Err(Gone) };
        let departing = matches!(entry.state, LinkState::Departing { .. });
        if !(departing || entry.state == LinkState::Attached) || self.phase != Phase::Open {
            return Err(Gone);
        }
        let session_slot = entry.session;
        let Some(session) = self.sessions.get_mut(session_slot) else { return Err(Gone) };
        let role = entry.flow.own_role();
        let found = match role {
            Role::Sender => settled && take_entry(&mut session.sent, slot, delivery, true),
            Role::Receiver => take_entry(&mut session.received, slot, delivery, settled),
        };
        if !found {
            return Err(Gone);
        }
        if settled {
            entry.unsettled = entry.unsettled.saturating_sub(1);
        }
        if accepted {
            let runs = match (role, settled) {
                (Role::Sender, _) => &mut session.accepted.sent_settled,
                (Role::Receiver, true) => &mut session.accepted.received_settled,
                (Role::Receiver, false) => &mut session.accepted.received_unsettled,
            };
            runs.push(delivery);
            list_unflushed(session, session_slot, &mut self.unflushed);
        }
        let channel = session.own_channel;
        if departing && accepted {
            self.depart(slot);
        }
        Ok((role, channel))
    }

    /// Writes the gathered ranges of all sessions, and opens windows that are half used.
    #[inline]
    pub(super) fn flush_all_accepted(&mut self) {
        while let Some(slot) = self.unflushed.pop() {
            self.flush_listed(slot);
        }
    }

    /// Writes the gathered ranges of one session.
    pub(super) fn flush_accepted(&mut self, slot: u32) {
        if self.sessions.get(slot).is_some_and(|session| session.listed) {
            self.unflushed.retain(|listed| *listed != slot);
            self.flush_listed(slot);
        }
    }

    fn flush_listed(&mut self, slot: u32) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let channel = session.own_channel;
        session.listed = false;
        let accepted = &mut session.accepted;
        let outbox = &mut self.outbox;
        write_runs(outbox, channel, Role::Receiver, false, &mut accepted.received_unsettled);
        write_runs(outbox, channel, Role::Receiver, true, &mut accepted.received_settled);
        write_runs(outbox, channel, Role::Sender, true, &mut accepted.sent_settled);
        if session.windows.wants_reopening() && session.state != SessionState::Ending {
            self.write_session_flow(slot);
        }
    }

    pub(super) fn on_disposition(
        &mut self,
        channel: u16,
        disposition: Disposition,
        work: &mut Work,
    ) -> Result<(), Fault> {
        let Some(slot) = self.session_of(channel)? else { return Ok(()) };
        let Some(session) = self.sessions.get_mut(slot) else { return Ok(()) };
        let first = Serial::new(disposition.first);
        let last = disposition.last.map_or(first, Serial::new);
        let (settled, state) = (disposition.settled, disposition.state);
        let told = Told { settled, decided: state.as_ref().is_some_and(is_decision) };
        let mut runs = SettledRuns::new();
        match disposition.role {
            Role::Receiver => {
                collect(&mut session.sent, first, last, told, work, |key| key, &mut runs);
            }
            // A sender that has not settled tells nothing we act on.
            Role::Sender if settled => {
                collect(&mut session.received, first, last, told, work, |()| 0, &mut runs);
            }
            Role::Sender => {}
        }
        let mut state = state.map(Box::new);
        let count = runs.len();
        for (index, run) in runs.into_iter().enumerate() {
            // The last event takes the state, so that the usual single one costs no copy.
            let state = if index.saturating_add(1) == count { state.take() } else { state.clone() };
            self.report_settlement(run, settled, state);
        }
        Ok(())
    }

    fn report_settlement(&mut self, run: SettledRun, settled: bool, state: Option<Box<DeliveryState>>) {
        let Some(key) = self.links.key(run.link) else { return };
        if settled && let Some(LinkEntry::Live(link)) = self.links.get_mut(run.link) {
            let count = u32::try_from(run.deliveries.len()).unwrap_or(u32::MAX);
            link.unsettled = link.unsettled.saturating_sub(count);
        }
        let deliveries = run.deliveries;
        self.events.push_back(Event::Settlement(Settlement {
            link: LinkId(key),
            settled,
            state,
            deliveries,
        }));
    }
}

/// Nearly always one: most dispositions are about one delivery, or about deliveries of one link.
type SettledRuns = SmallVec<[SettledRun; 1]>;

/// Deliveries of one link that follow each other in a range.
struct SettledRun {
    link: u32,
    deliveries: SmallVec<[SettledDelivery; 1]>,
}

/// What a disposition says about its range.
#[derive(Clone, Copy)]
struct Told {
    settled: bool,
    decided: bool,
}

/// Whether a state ends a delivery; `received` only tells how far it has come.
fn is_decision(state: &DeliveryState) -> bool {
    !matches!(state, DeliveryState::Received { .. })
}

/// Applies a disposition to the unsettled deliveries in its range and gathers those it changes, link by link.
fn collect<Key: Copy>(
    unsettled: &mut Unsettled<Key>,
    first: Serial,
    last: Serial,
    told: Told,
    work: &mut Work,
    name: impl Fn(Key) -> u128,
    runs: &mut SettledRuns,
) {
    let mut indices = unsettled.indices(first, last);
    while let Some(index) = indices.next() {
        work.settlements_left = work.settlements_left.saturating_sub(1);
        let Some(entry) = unsettled.at_mut(index) else { continue };
        // An outcome counts once; a peer that repeats it is waiting for our answer.
        let news = told.settled || (told.decided && entry.progress == Progress::Open);
        if !news {
            continue;
        }
        let delivery = SettledDelivery { delivery: entry.id, key: name(entry.key) };
        let link = entry.link;
        if told.settled {
            unsettled.hole_at(index);
        } else {
            entry.progress = Progress::Decided;
        }
        match runs.last_mut() {
            Some(run) if run.link == link => run.deliveries.push(delivery),
            Some(_) => runs.push(SettledRun { link, deliveries: smallvec![delivery] }),
            None => {
                // Nearly always the only one. Others grow as they need to: room for all in each would be their square.
                let mut deliveries = SmallVec::with_capacity(indices.len().saturating_add(1));
                deliveries.push(delivery);
                runs.push(SettledRun { link, deliveries });
            }
        }
    }
    unsettled.tidy();
}

/// Settles a delivery of this link, or marks it as decided if it was open.
#[inline]
fn take_entry<Key: Copy>(unsettled: &mut Unsettled<Key>, link: u32, delivery: Serial, settled: bool) -> bool {
    if settled {
        return unsettled.settle(delivery, link);
    }
    match unsettled.get_mut(delivery) {
        Some(entry) if entry.link == link && entry.progress == Progress::Open => {
            entry.progress = Progress::Decided;
            true
        }
        _ => false,
    }
}

fn settle_range<Key: Copy>(
    unsettled: &mut Unsettled<Key>,
    runs: &mut Runs,
    link: u32,
    first: Serial,
    last: Serial,
) -> u32 {
    let mut count = 0u32;
    for index in unsettled.indices(first, last) {
        let Some(entry) = unsettled.at_mut(index) else { continue };
        if entry.link == link {
            runs.push(entry.id);
            unsettled.hole_at(index);
            count = count.saturating_add(1);
        }
    }
    unsettled.tidy();
    count
}

/// Notes that a session has something to say with the next output.
#[inline]
pub(super) fn list_unflushed(session: &mut Session, slot: u32, unflushed: &mut Vec<u32>) {
    if !session.listed {
        session.listed = true;
        unflushed.push(slot);
    }
}

fn write_runs(outbox: &mut Outbox, channel: u16, role: Role, settled: bool, runs: &mut Runs) {
    runs.take(|run| {
        let disposition = Disposition {
            role,
            first: run.first.get(),
            last: Some(run.last.get()),
            settled,
            state: Some(DeliveryState::ACCEPTED),
            batchable: false,
        };
        wire::put_frame(outbox, channel, &disposition);
    });
}
