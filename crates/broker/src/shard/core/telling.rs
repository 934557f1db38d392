//! Who is told what, and when.

use super::{Core, Phase};
use crate::api::{Answer, Event, Received, Refused, Tag};
use crate::shard::peer::{self, PeerId};
use crate::shard::recent::Body;
use vorrang_engine::{Delivery, Effect, Reply};
use vorrang_log::Position;

impl Core {
    /// Tells everything that has become durable.
    pub(super) fn release(&mut self) {
        self.hold.release(self.writer.durable(), &mut self.peers);
    }

    pub(super) fn route(&mut self, effect: Effect, plain: bool) {
        match effect {
            Effect::Reply { request, reply } => {
                let (id, tag) = peer::of_request(request);
                match &reply {
                    Reply::Declared { transaction } => {
                        if let Some(peer) = self.peers.get_mut(&id) {
                            peer.transactions.insert(*transaction);
                        }
                    }
                    // The first delivery of a session must not overtake its acceptance.
                    Reply::SessionAccepted { .. } => {
                        return self.tell_in_line(self.writer.newest(), id, Event::Reply { tag, reply });
                    }
                    _ => {}
                }
                let event = match reply {
                    Reply::Sent { .. } if plain => return self.tell_accepted(id, tag),
                    Reply::Received { messages } => {
                        Event::Answer { tag, answer: Answer::Received(self.received(messages)) }
                    }
                    reply => Event::Reply { tag, reply },
                };
                self.tell_after(self.writer.newest(), id, event);
            }
            Effect::Refuse { request, refusal } => {
                let (id, tag) = peer::of_request(request);
                let refused = Refused::Impossible(refusal);
                self.tell_after(self.writer.newest(), id, Event::Refused { tag, refused });
            }
            Effect::Deliver { receiver, delivery } => {
                let (id, link) = peer::of_receiver(receiver);
                let wait = self.delivery_waits_for(&delivery);
                let body = self.body_of(&delivery);
                let Some(peer) = self.peers.get_mut(&id) else { return };
                if let Some(open) = peer.links.get_mut(&link) {
                    open.delivered = open.delivered.wrapping_add(1);
                }
                if peer.handed(&delivery) {
                    self.laden.push(id);
                }
                let wait = peer.in_line(wait);
                self.hold.tell(peer, Some(wait), Event::Deliver { link, delivery, body });
            }
            Effect::Drained { receiver } => {
                let (id, link) = peer::of_receiver(receiver);
                if let Some(open) = self.peers.get_mut(&id).and_then(|peer| peer.links.get_mut(&link)) {
                    open.drained();
                }
                self.tell_in_line(None, id, Event::Drained { link });
            }
            Effect::Detach { receiver, refusal } => {
                let (id, link) = peer::of_receiver(receiver);
                self.drop_link(receiver);
                let refused = Refused::Impossible(refusal);
                self.tell_in_line(self.writer.newest(), id, Event::Detached { link, refused });
            }
            Effect::Warm { run, from, count, .. } => self.cold.push((run, from, count)),
        }
    }

    fn received(&self, messages: Vec<Delivery>) -> Vec<Received> {
        let with_body = |delivery| Received { body: self.body_of(&delivery), delivery };
        messages.into_iter().map(with_body).collect()
    }

    /// The bytes to go with a delivery, if they are at hand. What is removed by being sent must bring them
    /// along: its place on the disk may be used again before anybody reads it there. That read waits for the disk on
    /// this thread; a connection that does not read causes no more of them than may be on its way to it.
    fn body_of(&self, delivery: &Delivery) -> Option<Body> {
        let recent = self.recent.find(delivery.location).cloned();
        if recent.is_some() || delivery.token.is_some() {
            return recent;
        }
        self.reader.read(delivery.location, delivery.size).ok()
    }

    /// A locked message need only be durable itself; one that is removed by being sent must be removed
    /// durably first.
    pub(super) fn delivery_waits_for(&self, delivery: &Delivery) -> Option<Position> {
        if delivery.token.is_some() {
            self.writer.position_of(delivery.location)
        } else {
            self.writer.newest()
        }
    }

    /// Tells an event once `position` is durable, and not before earlier events of the same line.
    pub(super) fn tell_in_line(&mut self, position: Option<Position>, id: PeerId, event: Event) {
        if let Some(peer) = self.peers.get_mut(&id) {
            let wait = peer.in_line(position);
            self.hold.tell(peer, Some(wait), event);
        }
    }

    /// Tells that a send was accepted once everything decided so far is durable.
    #[inline]
    fn tell_accepted(&mut self, id: PeerId, tag: Tag) {
        if let Some(peer) = self.peers.get_mut(&id) {
            self.hold.tell_accepted(peer, self.writer.newest(), tag);
        }
    }

    #[inline]
    pub(super) fn tell_after(&mut self, position: Option<Position>, id: PeerId, event: Event) {
        let position = position.filter(|_| self.phase == Phase::Serving);
        if let Some(peer) = self.peers.get_mut(&id) {
            self.hold.tell(peer, position, event);
        }
    }

    pub(super) fn tell(&mut self, id: PeerId, event: Event) {
        self.tell_after(None, id, event);
    }

    pub(super) fn tell_all(&mut self) {
        self.hold.tell_all(&mut self.peers);
    }
}
