//! Transfers in: checking them against window and credit, and putting deliveries of many frames together.

use bytes::{Bytes, BytesMut};

use super::Connection;
use super::disposition::list_unflushed;
use super::event::{Delivery, Event, LinkId};
use super::link::{Assembly, Direction, LinkEntry, LinkState};
use super::receive::Fault;
use super::serial::Serial;
use super::session::SessionState;
use super::violation::Violation;
use crate::performative::{MESSAGE_FORMAT_PLAIN, Transfer};

impl Connection {
    #[inline]
    pub(super) fn on_transfer(
        &mut self,
        channel: u16,
        transfer: &mut Transfer,
        payload: Bytes,
    ) -> Result<(), Fault> {
        let session_slot =
            self.channels.get(u32::from(channel)).ok_or(Violation::UnknownChannel { channel })?;
        let Some(session) = self.sessions.get_mut(session_slot) else { return Ok(()) };
        if session.state == SessionState::Ending {
            return Ok(());
        }
        if !session.windows.on_transfer() {
            return Err(Fault::Session(session_slot, Violation::WindowExceeded));
        }
        if session.windows.wants_reopening() {
            list_unflushed(session, session_slot, &mut self.unflushed);
        }
        let handle = transfer.handle;
        let unattached = || Fault::Session(session_slot, Violation::UnattachedHandle { handle });
        let slot = session.handles.get(handle).ok_or_else(unattached)?;
        let (id, link) = match self.links.entry_mut(slot) {
            Some((key, LinkEntry::Live(link))) => (LinkId(key), link),
            // It crossed our detach.
            Some((_, LinkEntry::Leaving(_))) | None => return Ok(()),
        };
        match link.state {
            LinkState::Attached => {}
            LinkState::Refused => return Ok(()),
            LinkState::Asked | LinkState::Asking | LinkState::Departing { .. } => return Err(unattached()),
        }
        if link.assembly.is_some() {
            return self.continue_assembly(session_slot, slot, id, transfer, &payload);
        }
        self.start_delivery(session_slot, slot, id, transfer, payload)
    }

    /// Takes the first frame of a delivery, which mostly is the only one.
    #[inline]
    fn start_delivery(
        &mut self,
        session_slot: u32,
        slot: u32,
        id: LinkId,
        transfer: &mut Transfer,
        payload: Bytes,
    ) -> Result<(), Fault> {
        let (limit, tolerance) = (self.stage().unsettled_max, self.limits.credit_overrun_max);
        let Some(LinkEntry::Live(link)) = self.links.get_mut(slot) else { return Ok(()) };
        let Some(session) = self.sessions.get_mut(session_slot) else { return Ok(()) };
        let Direction::Receiving(credit) = &mut link.flow else {
            return Err(Fault::Link(slot, Violation::WrongDirection));
        };
        let Some(delivery) = transfer.delivery_id.map(Serial::new) else {
            return Err(Fault::Link(slot, Violation::DeliveryMixed("a first frame needs a delivery id")));
        };
        if !credit.on_delivery(tolerance) {
            return Err(Fault::Link(slot, Violation::CreditExceeded { tolerance }));
        }
        if transfer.aborted {
            return Ok(());
        }
        let settled = transfer.settled == Some(true);
        if !settled {
            if session.received.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
                return Err(Fault::Link(slot, Violation::UnsettledExceeded { limit }));
            }
            if session.received.push(delivery, slot, ()).is_err() {
                let violation = Violation::DeliveryOrder { delivery: delivery.get() };
                return Err(Fault::Session(session_slot, violation));
            }
            link.unsettled = link.unsettled.saturating_add(1);
        }
        let tag = transfer.delivery_tag.unwrap_or_default();
        let message_format = transfer.message_format.unwrap_or(MESSAGE_FORMAT_PLAIN);
        let fits = u64::try_from(payload.len()).is_ok_and(|length| length <= link.message_bytes_max);
        if fits && !transfer.more {
            let state = transfer.state.take().map(Box::new);
            let delivery = Delivery { link: id, delivery, tag, message_format, settled, state, payload };
            self.events.push_back(Event::Delivery(delivery));
            return Ok(());
        }
        link.assembly = Some(Box::new(Assembly {
            delivery,
            tag,
            message_format,
            settled,
            tracked: !settled,
            state: None,
            payload: BytesMut::new(),
            too_large: false,
        }));
        self.continue_assembly(session_slot, slot, id, transfer, &payload)
    }

    /// Adds a frame to the delivery a link is putting together, and hands it over when it was the last.
    fn continue_assembly(
        &mut self,
        session_slot: u32,
        slot: u32,
        id: LinkId,
        transfer: &mut Transfer,
        payload: &Bytes,
    ) -> Result<(), Fault> {
        let assembly_max = self.stage().assembly_bytes_max;
        let Some(LinkEntry::Live(link)) = self.links.get_mut(slot) else { return Ok(()) };
        let limit = link.message_bytes_max;
        let Some(assembly) = link.assembly.as_mut() else { return Ok(()) };
        if transfer.delivery_id.is_some_and(|delivery| Serial::new(delivery) != assembly.delivery) {
            return Err(Fault::Link(slot, Violation::DeliveryMixed("frames of two deliveries on one link")));
        }
        assembly.settled |= transfer.settled == Some(true);
        if transfer.state.is_some() {
            assembly.state = transfer.state.take();
        }
        let held = u64::try_from(assembly.payload.len()).unwrap_or(u64::MAX);
        let added = u64::try_from(payload.len()).unwrap_or(u64::MAX);
        if transfer.aborted || assembly.too_large || held.saturating_add(added) > limit {
            // Nothing of an oversized or aborted message is kept, however long it goes on.
            assembly.too_large |= !transfer.aborted;
            assembly.payload = BytesMut::new();
            self.assembly_bytes = self.assembly_bytes.saturating_sub(held);
        } else {
            let total = self.assembly_bytes.saturating_add(added);
            if total > assembly_max {
                return Err(Fault::Link(slot, Violation::AssemblyExceeded { limit: assembly_max }));
            }
            self.assembly_bytes = total;
            // Copied, since small frames would otherwise each keep a whole read buffer alive.
            assembly.payload.extend_from_slice(payload);
        }
        if transfer.more && !transfer.aborted {
            return Ok(());
        }
        let Some(assembly) = link.assembly.take() else { return Ok(()) };
        if assembly.tracked && (assembly.settled || transfer.aborted) {
            link.unsettled = link.unsettled.saturating_sub(1);
            if let Some(session) = self.sessions.get_mut(session_slot) {
                session.received.settle(assembly.delivery, slot);
            }
        }
        if transfer.aborted {
            return Ok(());
        }
        if assembly.too_large {
            let (delivery, settled) = (assembly.delivery, assembly.settled);
            self.events.push_back(Event::TooLarge { link: id, delivery, settled, limit });
            return Ok(());
        }
        let bytes = u64::try_from(assembly.payload.len()).unwrap_or(u64::MAX);
        self.assembly_bytes = self.assembly_bytes.saturating_sub(bytes);
        self.events.push_back(Event::Delivery(Delivery {
            link: id,
            delivery: assembly.delivery,
            tag: assembly.tag,
            message_format: assembly.message_format,
            settled: assembly.settled,
            state: assembly.state.map(Box::new),
            payload: assembly.payload.freeze(),
        }));
        Ok(())
    }
}
