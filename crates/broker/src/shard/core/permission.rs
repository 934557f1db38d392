//! Permissions: the one door on the way in, and what happens to open receivers when a right ends.
//!
//! A right ends with its token or with the key that signed it. Whatever is asked after that is denied here; a
//! receiver that lives on the right is detached; and the connection is told, because only it knows its senders.

use super::Core;
use crate::access::{Action, Denied, Principal, Scope};
use crate::api::{Event, Operation, Place, Refused, forward_targets};
use crate::shard::peer::PeerId;
use std::sync::Arc;
use vorrang_engine::{Command, MailboxId, Timestamp};
use vorrang_log::Failure;

impl Core {
    /// Asks the one door. Says until when the permission holds.
    pub(super) fn authorise(&mut self, id: PeerId, operation: &Operation) -> Result<Timestamp, Denied> {
        let (now, catalogue, action) = (self.wall, self.state.catalogue(), operation.action());
        // A connection that is not there has nothing to say; what it asked is dropped further on.
        let Some(peer) = self.peers.get_mut(&id) else { return Ok(now) };
        match operation.place() {
            Place::At(scope) => {
                if let Operation::Administer(request) = operation {
                    for target in forward_targets(request) {
                        peer.authorise_at(Action::Send, &target, now)?;
                    }
                }
                peer.authorise_at(action, &scope, now)
            }
            Place::Entity(entity, via) => {
                if let Some(via) = via {
                    peer.authorise_mailbox(catalogue, action, MailboxId::main(via), now)?;
                }
                peer.authorise_mailbox(catalogue, action, MailboxId::main(entity), now)
            }
            Place::Mailboxes(mailboxes) => {
                let mut until = Timestamp::NEVER;
                for mailbox in mailboxes {
                    until = until.min(peer.authorise_mailbox(catalogue, action, mailbox, now)?);
                }
                Ok(until)
            }
            Place::Between(from, to) => {
                let until = peer.authorise_mailbox(catalogue, Action::Send, MailboxId::main(to), now)?;
                Ok(until.min(peer.authorise_mailbox(catalogue, action, from, now)?))
            }
            Place::Own => Ok(Timestamp::NEVER),
            Place::Anywhere => peer.authorise_at(action, &Scope::namespace(), now),
        }
    }

    /// A connection says who it is. Its keys may have been taken away since they were looked at.
    pub(super) fn become_principal(&mut self, id: PeerId, principal: Arc<Principal>) {
        let left = self.keys.left_of(&principal).map(Arc::new);
        let ended = left.is_some();
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.become_principal(left.unwrap_or(principal));
        }
        if ended {
            self.tell(id, Event::KeysChanged);
        }
    }

    /// Ends the rights that rest on keys which are no longer in force. The receivers that may live on them are
    /// looked at within this step.
    pub(super) fn end_grants(&mut self) {
        let mut ended: Vec<PeerId> = Vec::new();
        for (id, peer) in &mut self.peers {
            let Some(left) = self.keys.left_of(peer.principal()) else { continue };
            peer.become_principal(Arc::new(left));
            for (link, open) in &mut peer.links {
                self.endings.remove(&(open.until, *id, *link));
                open.until = self.wall;
                self.endings.insert((open.until, *id, *link));
            }
            ended.push(*id);
        }
        // Nothing that shows may depend on the order of a hash map.
        ended.sort_unstable();
        for id in ended {
            self.tell(id, Event::KeysChanged);
        }
    }

    /// Ends receivers whose permission has ended and was not renewed.
    pub(super) fn end_permissions(&mut self) -> Result<(), Failure> {
        while let Some(&(at, id, link)) = self.endings.first()
            && at <= self.wall
        {
            self.endings.pop_first();
            let (now, catalogue) = (self.wall, self.state.catalogue());
            let Some(peer) = self.peers.get_mut(&id) else { continue };
            let Some(open) = peer.links.get(&link) else { continue };
            let (action, mailboxes) = (open.action, open.mailboxes.clone());
            let standing = mailboxes.iter().try_fold(Timestamp::NEVER, |until, mailbox| {
                peer.authorise_mailbox(catalogue, action, *mailbox, now).map(|holds| holds.min(until))
            });
            match standing {
                Ok(until) => {
                    if let Some(open) = peer.links.get_mut(&link) {
                        open.until = until;
                    }
                    self.endings.insert((until, id, link));
                }
                Err(denied) => {
                    peer.links.remove(&link);
                    self.carry_out(&Command::Detach { receiver: id.receiver(link) }, None)?;
                    let refused = Refused::Denied(denied);
                    self.tell_in_line(None, id, Event::Detached { link, refused });
                }
            }
        }
        Ok(())
    }
}
