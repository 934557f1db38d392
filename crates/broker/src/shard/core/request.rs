//! Requests: permission first, then the engine's word for it.

use super::{Asker, Core, Item};
use crate::access::Action;
use crate::api::{
    Acceptance, Answer, Event, Found, Link, Operation, Purpose, Question, Refused, Request, Tag,
};
use crate::shard::arrivals::Arrived;
use crate::shard::faults::{Delayed, Verdict};
use crate::shard::payload::Source;
use crate::shard::peer::{self, OpenLink, Peer, PeerId};
use crate::shard::{question, staging};
use smallvec::smallvec;
use std::sync::Arc;
use vorrang_engine::command::{self, AcceptSession, Attach, Replay, Settle};
use vorrang_engine::entity::EntityPath;
use vorrang_engine::{Command, MailboxId, ReceiverId, Refusal, Reply, Timestamp};
use vorrang_log::Failure;

impl Core {
    /// Takes what arrived, unless it has to wait for room in the ring or for what waits already.
    #[inline]
    pub(super) fn take(&mut self, id: PeerId, arrived: Arrived<'_>) -> Result<(), Failure> {
        let item = match arrived {
            Arrived::Item(item) => item,
            Arrived::Request(request) => {
                let waits = request.operation.grows() && self.withheld.is_worth_it(self.now);
                if waits || self.withheld.holds(id) || self.staging.holds(id) {
                    self.withheld.push(id, request.take());
                    return Ok(());
                }
                return self.take_or_stage(id, request);
            }
        };
        match item {
            // An item that is a request arrives as one.
            Item::Request(_) => Ok(()),
            Item::Open(outlet) => {
                self.peers.insert(id, Peer::new(id, Arc::clone(outlet)));
                Ok(())
            }
            Item::Become(principal) => {
                self.become_principal(id, Arc::clone(principal));
                Ok(())
            }
            Item::Close => {
                self.withheld.forget(id);
                self.staging.forget(id);
                self.close(id)
            }
        }
    }

    /// Takes a request; large messages go ahead into the log before anything is decided about them.
    ///
    /// From here to where it is carried out a request stays where it is: handing it on would copy some hundred bytes each
    /// time.
    pub(super) fn take_or_stage(&mut self, id: PeerId, request: &mut Request) -> Result<(), Failure> {
        let until = match self.authorise(id, &request.operation) {
            Ok(until) => until,
            Err(denied) => {
                let refused = Refused::Denied(denied);
                self.tell(id, Event::Refused { tag: request.tag, refused });
                return Ok(());
            }
        };
        let large = staging::large(&request.operation, self.batch_bytes_max);
        // Without room they are refused, and need not be written first.
        if large.is_empty() || self.room.is_err() {
            return self.request(id, request, until);
        }
        self.staging.push(id, request.take(), until, large);
        Ok(())
    }

    /// Carries out a request that is permitted until `until`, unless it is to go wrong.
    pub(super) fn request(
        &mut self,
        id: PeerId,
        request: &mut Request,
        until: Timestamp,
    ) -> Result<(), Failure> {
        if self.faults.any() {
            match self.faults.meet(&request.operation, self.now) {
                Verdict::Pass => {}
                Verdict::Busy => {
                    let refused = Refused::Busy { why: "a developer wants this send to fail" };
                    self.tell(id, Event::Refused { tag: request.tag, refused });
                    return Ok(());
                }
                Verdict::Late(delay) => {
                    let delayed = Delayed { peer: id, request: request.take(), until };
                    self.faults.delay(self.now.after(delay), delayed);
                    return Ok(());
                }
            }
        }
        self.perform(id, request, until)
    }

    /// Carries out a request that is permitted until `until`.
    pub(super) fn perform(
        &mut self,
        id: PeerId,
        request: &mut Request,
        until: Timestamp,
    ) -> Result<(), Failure> {
        let (tag, operation) = (request.tag, &request.operation);
        let Some(peer) = self.peers.get_mut(&id) else { return Ok(()) };
        if operation.grows()
            && let Err(no_room) = self.room
        {
            self.tell(id, Event::Refused { tag, refused: no_room.into() });
            return Ok(());
        }
        if let Some(transaction) = operation.transaction()
            && !peer.transactions.contains(&transaction)
        {
            // Another connection's transaction is as unknown as one that never was.
            let refused = Refusal::TransactionUnknown { transaction }.into();
            self.tell(id, Event::Refused { tag, refused });
            return Ok(());
        }
        // By itself, so that messages are moved once, from where they came in to where they are decided about.
        if let Operation::Send { entity, via, transaction, messages, acceptance } = &mut request.operation {
            let answered = Asker { id, tag, plain: *acceptance == Acceptance::Plain };
            let command = Command::Send(command::Send {
                request: id.request(tag),
                entity: *entity,
                via: *via,
                transaction: *transaction,
                messages: std::mem::take(messages),
            });
            return self.carry_out(&command, Some(answered));
        }
        let operation = request.take().operation;
        let request = id.request(tag);
        let answered = Asker { id, tag, plain: false };
        let command = match operation {
            Operation::Find { path, purpose } => {
                self.find(id, tag, &path, purpose);
                return Ok(());
            }
            Operation::Develop(develop) => return self.develop(id, tag, develop),
            Operation::Watch => {
                self.watchers.add(id);
                self.tell_after(self.writer.newest(), id, Event::Reply { tag, reply: Reply::Done });
                return Ok(());
            }
            Operation::Ask(question) => {
                if let Question::Peek { mailbox, .. } = &question {
                    self.carry_out(&Command::Use { entity: mailbox.entity() }, None)?;
                }
                let source = Source { recent: &self.recent, reader: &self.reader, decode: &self.decode };
                let condition = || self.condition();
                let answer = question::answer(&self.state, &source, (self.now, id), condition, question);
                self.answer(id, tag, answer);
                return Ok(());
            }
            // Carried out above.
            Operation::Send { .. } => return Ok(()),
            Operation::Cancel { entity, sequences } => Command::Cancel { request, entity, sequences },
            Operation::Attach { link, mailboxes, mode, min_level, selector } => {
                let open = OpenLink::new(mailboxes.clone(), Action::Receive, until);
                peer.links.insert(link, open);
                self.endings.insert((until, id, link));
                let receiver = id.receiver(link);
                Command::Attach(Box::new(Attach { request, receiver, mailboxes, mode, min_level, selector }))
            }
            Operation::AcceptSession { link, mailbox, session, mode, wait } => {
                let open = OpenLink::new(smallvec![mailbox], Action::UseSession, until);
                peer.links.insert(link, open);
                self.endings.insert((until, id, link));
                let receiver = id.receiver(link);
                Command::AcceptSession(Box::new(AcceptSession {
                    request,
                    receiver,
                    mailbox,
                    session,
                    mode,
                    wait,
                }))
            }
            Operation::Credit { link, limit, drain } => {
                let held_back = peer.is_held_back();
                let Some(open) = peer.links.get_mut(&link) else { return Ok(()) };
                (open.limit, open.drain) = (limit, drain);
                if held_back {
                    return Ok(());
                }
                Command::Credit { receiver: id.receiver(link), credit: open.credit(), drain }
            }
            Operation::Taken { weight } => {
                return if peer.taken(weight) { self.go_on(id) } else { Ok(()) };
            }
            Operation::Detach { link } => Command::Detach { receiver: id.receiver(link) },
            Operation::Settle { mailbox, tokens, settlement, transaction } => {
                Command::Settle(Settle { request, mailbox, tokens, settlement, transaction })
            }
            Operation::Renew { mailbox, tokens } => Command::Renew { request, mailbox, tokens },
            Operation::ReceiveDeferred { mailbox, sequences, mode, link } => {
                let receiver = link.map(|link| id.receiver(link));
                Command::ReceiveDeferred { request, mailbox, sequences, mode, receiver }
            }
            Operation::RenewSession { mailbox, session, link } => {
                Command::RenewSession { request, mailbox, session, receiver: id.receiver(link) }
            }
            Operation::SetSessionState { mailbox, session, link, state } => {
                let receiver = id.receiver(link);
                Command::SetSessionState { request, mailbox, session, receiver, state }
            }
            Operation::Declare => Command::Declare { request },
            Operation::Discharge { transaction, rollback } => {
                peer.transactions.remove(&transaction);
                Command::Discharge { request: Some(request), transaction, rollback }
            }
            Operation::DeleteMessages { mailbox, selection, before, max } => {
                Command::DeleteMessages { request, mailbox, selection, before, max }
            }
            Operation::Reprioritise { mailbox, selection, level, max, dry_run } => {
                Command::Reprioritise { request, mailbox, selection, level, max, dry_run }
            }
            Operation::Replay { mailbox, sequence, to, message, level } => {
                let message = *message;
                Command::Replay(Box::new(Replay { request, mailbox, sequence, to, message, level }))
            }
            Operation::Administer(change) => Command::Administer { request, change },
        };
        self.carry_out(&command, Some(answered))
    }

    /// Takes the credit of connections that have been handed so much that no more may follow.
    pub(super) fn hold_back(&mut self) -> Result<(), Failure> {
        while let Some(id) = self.laden.pop() {
            let links: Vec<Link> =
                self.peers.get(&id).into_iter().flat_map(|peer| peer.links.keys().copied()).collect();
            for link in links {
                let receiver = id.receiver(link);
                self.carry_out(&Command::Credit { receiver, credit: 0, drain: false }, None)?;
            }
        }
        Ok(())
    }

    /// Gives a connection's receivers the credit back that they have.
    fn go_on(&mut self, id: PeerId) -> Result<(), Failure> {
        let Some(peer) = self.peers.get(&id) else { return Ok(()) };
        let links: Vec<(Link, u32, bool)> =
            peer.links.iter().map(|(link, open)| (*link, open.credit(), open.drain)).collect();
        for (link, credit, drain) in links {
            self.carry_out(&Command::Credit { receiver: id.receiver(link), credit, drain }, None)?;
        }
        Ok(())
    }

    /// Looks an entity up for somebody who may use it.
    pub(super) fn find(&mut self, id: PeerId, tag: Tag, path: &EntityPath, purpose: Purpose) {
        let found = self.state.catalogue().find(path);
        let answer = found.ok_or_else(|| Refused::NotFound { path: path.to_string().into() }).map(|entity| {
            let mailbox = MailboxId::new(entity.id, path.sub_queue);
            let description = Arc::new(entity.clone());
            Answer::Found(Found { entity: entity.id, mailbox, purpose, description })
        });
        self.answer(id, tag, answer);
    }

    /// Answers a question when everything the answer may rest on is durable.
    pub(super) fn answer(&mut self, id: PeerId, tag: Tag, answer: Result<Answer, Refused>) {
        let event = match answer {
            Ok(answer) => Event::Answer { tag, answer },
            Err(refused) => Event::Refused { tag, refused },
        };
        self.tell_after(self.writer.newest(), id, event);
    }

    /// Ends a connection: its receivers, its waits and its transactions.
    pub(super) fn close(&mut self, id: PeerId) -> Result<(), Failure> {
        let Some(mut peer) = self.peers.remove(&id) else { return Ok(()) };
        peer.flush();
        self.hold.forget(&peer);
        self.watchers.remove(id);
        for (link, open) in &peer.links {
            self.endings.remove(&(open.until, id, *link));
            self.carry_out(&Command::Detach { receiver: id.receiver(*link) }, None)?;
        }
        for transaction in peer.transactions {
            self.carry_out(&Command::Discharge { request: None, transaction, rollback: true }, None)?;
        }
        Ok(())
    }

    /// Forgets the receiver that a refused attach would have been.
    pub(super) fn forget_link(&mut self, id: PeerId, command: &Command) {
        match command {
            Command::Attach(attach) => self.drop_link(attach.receiver),
            Command::AcceptSession(accept) => self.drop_link(accept.receiver),
            Command::Discharge { transaction, .. } => {
                if let Some(peer) = self.peers.get_mut(&id) {
                    peer.transactions.remove(transaction);
                }
            }
            _ => {}
        }
    }

    pub(super) fn drop_link(&mut self, receiver: ReceiverId) {
        let (id, link) = peer::of_receiver(receiver);
        if let Some(open) = self.peers.get_mut(&id).and_then(|peer| peer.links.remove(&link)) {
            self.endings.remove(&(open.until, id, link));
        }
    }
}
