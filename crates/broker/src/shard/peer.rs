//! The connections a shard serves: what each may do, what it has open, what it is to be told.
//!
//! The engine knows requests and receivers by one number each. Its upper half is the connection, its
//! lower half the door's own number: whom an effect is for needs no table, and no connection can name
//! what belongs to another.

use super::hold::Held;
use crate::access::{self, Action, Denied, Need, Principal, Scope};
use crate::api::{self, Event, Link, Outlet, Tag};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vorrang_engine::entity::{Catalogue, EntityPath};
use vorrang_engine::{Delivery, MailboxId, ReceiverId, RequestTag, Timestamp, TransactionId};
use vorrang_log::Position;

/// A connection, numbered in the order of arrival. Numbers are not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u32);

/// What may be on its way to a connection's peer ([`api::weight`]), of a connection that says what has left it: beyond
/// that its receivers get nothing, whatever their credit, and go on when half of it has left. Somebody who does not read
/// so holds up no more than this, and others get the rest.
const ON_THE_WAY_MAX: u64 = 8 * 1024 * 1024;

/// Permissions remembered per connection; beyond it the memory starts over.
const PERMITS_MAX: usize = 32;

impl PeerId {
    pub(super) fn request(self, tag: Tag) -> RequestTag {
        RequestTag(join(self, tag.0))
    }

    pub(super) fn receiver(self, link: Link) -> ReceiverId {
        ReceiverId(join(self, link.0))
    }
}

/// Whose request this is, and their number for it.
pub(super) fn of_request(request: RequestTag) -> (PeerId, Tag) {
    let (peer, number) = split(request.0);
    (peer, Tag(number))
}

/// Whose receiver this is, and their number for it.
pub(super) fn of_receiver(receiver: ReceiverId) -> (PeerId, Link) {
    let (peer, number) = split(receiver.0);
    (peer, Link(number))
}

fn join(peer: PeerId, number: u32) -> u64 {
    u64::from(peer.0) << 32 | u64::from(number)
}

fn split(both: u64) -> (PeerId, u32) {
    let half = |bits: u64| u32::try_from(bits).expect("half of 64 bits are 32");
    (PeerId(half(both >> 32)), half(both & u64::from(u32::MAX)))
}

/// A permission that was looked up before.
#[derive(Debug, Clone, Copy)]
struct Permit {
    mailbox: MailboxId,
    need: Need,
    until: Timestamp,
}

/// A receiver that is open or waits for its session.
#[derive(Debug)]
pub(super) struct OpenLink {
    pub(super) mailboxes: SmallVec<[MailboxId; 1]>,
    pub(super) action: Action,
    /// When its permission ends.
    pub(super) until: Timestamp,
    /// How many messages it was sent in all, wrapping.
    pub(super) delivered: u32,
    /// How many it may be sent in all, wrapping, as it last said.
    pub(super) limit: u32,
    /// Whether what finds no message is to be given back.
    pub(super) drain: bool,
}

impl OpenLink {
    pub(super) fn new(mailboxes: SmallVec<[MailboxId; 1]>, action: Action, until: Timestamp) -> OpenLink {
        OpenLink { mailboxes, action, until, delivered: 0, limit: 0, drain: false }
    }

    /// How many messages it may be sent now, given how many it may be sent in all. Both wrap; a bound
    /// that lies behind means none.
    pub(super) fn credit(&self) -> u32 {
        let ahead = self.limit.wrapping_sub(self.delivered);
        if ahead > u32::MAX / 2 { 0 } else { ahead }
    }

    /// Its credit was given back.
    pub(super) fn drained(&mut self) {
        (self.limit, self.drain) = (self.delivered, false);
    }
}

/// Deliveries that were decided and have not left the connection, by weight.
#[derive(Debug, Default)]
struct OnTheWay {
    handed: u64,
    /// What has left; none if the connection does not say.
    taken: Option<u64>,
    held_back: bool,
}

impl OnTheWay {
    fn weight(&self) -> u64 {
        self.taken.map_or(0, |taken| self.handed.saturating_sub(taken))
    }
}

/// One connection.
pub(super) struct Peer {
    pub(super) id: PeerId,
    outlet: Arc<dyn Outlet>,
    principal: Arc<Principal>,
    permits: SmallVec<[Permit; 4]>,
    pub(super) links: BTreeMap<Link, OpenLink>,
    pub(super) transactions: BTreeSet<TransactionId>,
    /// Deliveries keep their order: none leaves before those decided earlier.
    deliveries_wait_for: Position,
    on_the_way: OnTheWay,
    /// What waits for the disk.
    pub(super) held: Held,
    /// What will be told next.
    pub(super) outbox: Vec<Event>,
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Peer {
    pub(super) fn new(id: PeerId, outlet: Arc<dyn Outlet>) -> Peer {
        Peer {
            id,
            outlet,
            principal: Arc::new(Principal::anonymous()),
            permits: SmallVec::new(),
            links: BTreeMap::new(),
            transactions: BTreeSet::new(),
            deliveries_wait_for: Position::START,
            on_the_way: OnTheWay::default(),
            held: Held::default(),
            outbox: Vec::new(),
        }
    }

    /// What the peer may do.
    pub(super) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// From now on this is what the peer may do.
    pub(super) fn become_principal(&mut self, principal: Arc<Principal>) {
        self.principal = principal;
        self.permits.clear();
    }

    /// Passes the one door for a path as the asker wrote it.
    pub(super) fn authorise_at(
        &self,
        action: Action,
        place: &Scope,
        now: Timestamp,
    ) -> Result<Timestamp, Denied> {
        access::authorise(&self.principal, action, place, now)
    }

    /// Passes the one door for a mailbox that was looked up before, remembering the answer: nearly
    /// every message asks the same question as the one before.
    pub(super) fn authorise_mailbox(
        &mut self,
        catalogue: &Catalogue,
        action: Action,
        mailbox: MailboxId,
        now: Timestamp,
    ) -> Result<Timestamp, Denied> {
        let need = action.need();
        let known = self.permits.iter().find(|permit| permit.mailbox == mailbox && permit.need == need);
        if let Some(permit) = known.filter(|permit| now < permit.until) {
            return Ok(permit.until);
        }
        let place = match catalogue.entity(mailbox.entity()) {
            Some(entity) => {
                Scope::of_entity(&EntityPath { sub_queue: mailbox.part(), ..entity.path.clone() })
            }
            // Whoever was permitted before it was deleted has a permit still; to others a number that
            // names nothing looks like one that is not theirs.
            None => Scope::unknown(mailbox.entity().0),
        };
        let until = access::authorise(&self.principal, action, &place, now)?;
        if self.permits.len() >= PERMITS_MAX {
            self.permits.clear();
        }
        self.permits.retain(|permit| permit.mailbox != mailbox || permit.need != need);
        self.permits.push(Permit { mailbox, need, until });
        Ok(until)
    }

    /// What a delivery waits for that waits for `position` itself: also for all that were decided earlier.
    pub(super) fn in_line(&mut self, position: Option<Position>) -> Position {
        let wait = position.unwrap_or(Position::START).max(self.deliveries_wait_for);
        self.deliveries_wait_for = wait;
        wait
    }

    /// A delivery is on its way. True if with it so much is that no more may follow.
    pub(super) fn handed(&mut self, delivery: &Delivery) -> bool {
        self.on_the_way.handed = self.on_the_way.handed.saturating_add(api::weight(delivery));
        let over = self.on_the_way.weight() >= ON_THE_WAY_MAX;
        over && !std::mem::replace(&mut self.on_the_way.held_back, over)
    }

    /// The connection says what has left it. True if deliveries that were held back go on.
    pub(super) fn taken(&mut self, weight: u64) -> bool {
        self.on_the_way.taken = Some(weight);
        let goes_on = self.on_the_way.held_back && self.on_the_way.weight() < ON_THE_WAY_MAX / 2;
        self.on_the_way.held_back &= !goes_on;
        goes_on
    }

    /// Whether nothing more may be handed out for now.
    pub(super) fn is_held_back(&self) -> bool {
        self.on_the_way.held_back
    }

    /// Tells everything there is to tell.
    pub(super) fn flush(&mut self) {
        if !self.outbox.is_empty() {
            self.outlet.effects(std::mem::take(&mut self.outbox));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_connection_and_their_own_half() {
        for (peer, number) in [(0, 0), (1, u32::MAX), (u32::MAX, 7)] {
            let peer = PeerId(peer);
            assert_eq!(of_request(peer.request(Tag(number))), (peer, Tag(number)));
            assert_eq!(of_receiver(peer.receiver(Link(number))), (peer, Link(number)));
        }
    }

    #[test]
    fn credit_is_what_is_left_of_the_bound_also_when_it_wraps() {
        let mut link = OpenLink::new(SmallVec::new(), Action::Receive, Timestamp::NEVER);
        let cases =
            [(0, 10, 10), (4, 10, 6), (10, 10, 0), (11, 10, 0), (u32::MAX, 4, 5), (u32::MAX, u32::MAX, 0)];
        for (delivered, limit, credit) in cases {
            (link.delivered, link.limit) = (delivered, limit);
            assert_eq!(link.credit(), credit, "{limit} after {delivered}");
        }
        link.drained();
        assert_eq!(link.credit(), 0);
    }
}
