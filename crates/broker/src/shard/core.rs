//! The shard without its thread: requests in, facts to the log, events out.
//!
//! Everything here is synchronous and decided by its arguments alone, so the simulator runs exactly
//! this. A step takes what has arrived, authorises and decides it, writes and applies the facts, lets
//! timers and deliveries follow, and hands the batch to the log. What a step promises is told when the
//! log says that it is durable: replies and answers wait for everything written so far, because what
//! they say may rest on it; a delivery waits for its message alone.
//!
//! If the log fails, the shard is over: nothing more is told but that.

use super::hold::Hold;
use super::keys::Keys;
use super::payload::{Decode, PayloadReader, Source};
use super::peer::{self, OpenLink, Peer, PeerId};
use super::recent::{Body, Recent};
use super::snapshot::{Schedule, Snapshot};
use super::writer::Writer;
use crate::access::{Action, Denied, Principal};
use crate::api::{
    Answer, Event, Found, Link, Operation, Outlet, Place, Purpose, Refused, Request, Tag, forward_targets,
};
use smallvec::smallvec;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use vorrang_engine::command::{self, AcceptSession, Attach, Settle};
use vorrang_engine::{
    Command, Delivery, Effect, Fact, MailboxId, Outcome, ReceiverId, Reply, State, Timestamp,
};
use vorrang_log::{Appending, Failure, NoRoom, Position};

/// Events waiting for the disk beyond which no more deliveries are decided.
const HELD_MAX: usize = 65_536;
/// Ticks in one step; what is due beyond that waits for the next, which is due at once.
const TICKS_MAX: usize = 16;

/// Something that arrives at a shard.
#[expect(clippy::large_enum_variant, reason = "nearly all items are requests")]
pub enum Item {
    /// A connection begins.
    Open(Arc<dyn Outlet>),
    /// From now on this is what the connection may do.
    Become(Arc<Principal>),
    /// A request.
    Request(Request),
    /// The connection is over.
    Close,
}

impl std::fmt::Debug for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Item::Open(_) => f.write_str("Open"),
            Item::Become(_) => f.write_str("Become"),
            Item::Request(request) => request.fmt(f),
            Item::Close => f.write_str("Close"),
        }
    }
}

type Peers = hashbrown::HashMap<PeerId, Peer, foldhash::fast::FixedState>;

/// A shard: engine, log and connections.
pub struct Core {
    state: State,
    writer: Writer,
    reader: PayloadReader,
    recent: Recent,
    decode: Arc<dyn Decode>,
    keys: Arc<Keys>,
    outcome: Outcome,
    peers: Peers,
    /// Connections with something to be told.
    told: Vec<PeerId>,
    hold: Hold,
    /// When permissions of open receivers end.
    endings: BTreeSet<(Timestamp, PeerId, Link)>,
    now: Timestamp,
    durable: Position,
    room: Result<(), NoRoom>,
    snapshots: Schedule,
    /// When the last snapshot was begun.
    snapshot_at: Timestamp,
    behind: bool,
    over: Option<Arc<str>>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("now", &self.now).field("durable", &self.durable).finish_non_exhaustive()
    }
}

impl Core {
    pub(super) fn new(
        state: State,
        writer: Writer,
        decode: Arc<dyn Decode>,
        keys: Arc<Keys>,
        snapshots: Schedule,
        now: Timestamp,
    ) -> Core {
        let reader = PayloadReader::new(writer.log().reader());
        let durable = writer.log().durable();
        Core {
            state,
            writer,
            reader,
            recent: Recent::default(),
            decode,
            keys,
            outcome: Outcome::default(),
            peers: Peers::default(),
            told: Vec::new(),
            hold: Hold::default(),
            endings: BTreeSet::new(),
            now,
            durable,
            room: Ok(()),
            snapshots,
            snapshot_at: now,
            behind: false,
            over: None,
        }
    }

    /// Takes what has arrived, as far as the log has room, and everything that follows from it.
    pub fn step(&mut self, now: Timestamp, arrived: &mut VecDeque<(PeerId, Item)>) {
        self.now = self.now.max(now);
        if self.over.is_none()
            && let Err(failure) = self.work(arrived)
        {
            self.end(&failure.to_string());
        }
        self.tell_all();
    }

    /// Begins a namespace with nothing in it, and a new term in one that was there before; waits until
    /// that is durable.
    pub(super) fn announce(&mut self, seed: u128) -> Result<(), Failure> {
        self.writer.begin(self.now);
        self.carry_out(&Command::Create { seed }, None)?;
        self.carry_out(&Command::Recover, None)?;
        self.writer.end()?;
        self.writer.log_mut().flush()?;
        self.release();
        Ok(())
    }

    /// When the next step is due though nothing arrives; a time that has passed if it is due now.
    #[must_use]
    pub fn next_wake(&self) -> Option<Timestamp> {
        if self.state.has_deliverable() && self.hold.len() < HELD_MAX {
            return Some(self.now);
        }
        let ending = self.endings.first().map(|(at, ..)| *at);
        self.state.next_deadline().into_iter().chain(ending).min()
    }

    /// Whether the last step could not take everything because the disk is behind: there is nothing
    /// to do before it has news.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.behind
    }

    /// Why the shard is over, if it is.
    #[must_use]
    pub fn over(&self) -> Option<&Arc<str>> {
        self.over.as_ref()
    }

    /// Makes everything that was handed to the log durable, and does the log's background work: for
    /// shards whose log has no threads.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.writer.log_mut().flush()?;
        self.writer.log().upkeep();
        Ok(())
    }

    /// Begins a snapshot if one is due and the shard is not over.
    pub fn snapshot_if_due(&mut self) -> Option<Result<Snapshot, vorrang_log::snapshot::Error>> {
        let wanted = self.writer.log().pressure().snapshot_wanted;
        let waited = self.now.since(self.snapshot_at);
        let due = self.snapshots.is_due(self.writer.bytes(), waited, wanted);
        (due && self.over.is_none()).then(|| self.snapshot())
    }

    /// Begins a snapshot of everything decided so far.
    pub fn snapshot(&mut self) -> Result<Snapshot, vorrang_log::snapshot::Error> {
        let writer = self.writer.log_mut().snapshot(self.snapshots.pace)?;
        self.writer.mark();
        self.snapshot_at = self.now;
        Ok(Snapshot::new(writer, self.state.freeze(), self.writer.regions().spans()))
    }

    /// What the engine knows.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The keys that are valid now.
    #[must_use]
    pub fn keys(&self) -> &Arc<Keys> {
        &self.keys
    }

    /// Reads stored payloads.
    #[must_use]
    pub fn reader(&self) -> &PayloadReader {
        &self.reader
    }

    fn work(&mut self, arrived: &mut VecDeque<(PeerId, Item)>) -> Result<(), Failure> {
        if let Some(failure) = self.writer.log().failure() {
            return Err(failure.clone());
        }
        self.release();
        self.behind = !self.writer.begin(self.now);
        if self.behind {
            return Ok(());
        }
        self.room = self.writer.log_mut().permit(Appending::Growing, self.now.0);
        self.tick()?;
        self.end_permissions()?;
        while !self.writer.is_full()
            && let Some((peer, item)) = arrived.pop_front()
        {
            self.take(peer, item)?;
        }
        while self.state.has_deliverable() && !self.writer.is_full() && self.hold.len() < HELD_MAX {
            self.carry_out(&Command::Deliver, None)?;
        }
        self.writer.end()?;
        self.writer.let_go(&mut self.state);
        Ok(())
    }

    /// Tells everything that has become durable.
    fn release(&mut self) {
        self.durable = self.writer.durable();
        let (peers, told) = (&mut self.peers, &mut self.told);
        self.hold.release(self.durable, |id, event| {
            if let Some(peer) = peers.get_mut(&id)
                && peer.tell(event)
            {
                told.push(id);
            }
        });
    }

    fn tick(&mut self) -> Result<(), Failure> {
        for _ in 0..TICKS_MAX {
            if self.state.next_deadline().is_none_or(|deadline| deadline > self.now) || self.writer.is_full()
            {
                break;
            }
            self.carry_out(&Command::Tick, None)?;
        }
        Ok(())
    }

    fn take(&mut self, id: PeerId, item: Item) -> Result<(), Failure> {
        match item {
            Item::Open(outlet) => {
                self.peers.insert(id, Peer::new(id, outlet));
                Ok(())
            }
            Item::Become(principal) => {
                if let Some(peer) = self.peers.get_mut(&id) {
                    peer.become_principal(principal);
                }
                Ok(())
            }
            Item::Request(Request { tag, operation }) => match self.authorise(id, &operation) {
                Ok(until) => self.request(id, tag, operation, until),
                Err(denied) => {
                    self.tell(id, Event::Refused { tag, refused: Refused::Denied(denied) });
                    Ok(())
                }
            },
            Item::Close => self.close(id),
        }
    }

    /// Asks the one door. Says until when the permission holds.
    fn authorise(&mut self, id: PeerId, operation: &Operation) -> Result<Timestamp, Denied> {
        let (now, catalogue, action) = (self.now, self.state.catalogue(), operation.action());
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
            Place::Own => Ok(Timestamp::NEVER),
            Place::Anywhere => peer.authorise_at(action, &crate::access::Scope::namespace(), now),
        }
    }

    /// Carries out a request that is permitted until `until`.
    fn request(
        &mut self,
        id: PeerId,
        tag: Tag,
        operation: Operation,
        until: Timestamp,
    ) -> Result<(), Failure> {
        let Some(peer) = self.peers.get_mut(&id) else { return Ok(()) };
        if operation.grows()
            && let Err(no_room) = self.room
        {
            self.tell(id, Event::Refused { tag, refused: no_room.into() });
            return Ok(());
        }
        let request = id.request(tag);
        let mut answered = Asker { id, tag, plain: false };
        let command = match operation {
            Operation::Find { path, purpose } => {
                self.find(id, tag, &path, purpose);
                return Ok(());
            }
            Operation::Ask(question) => {
                let source = Source { recent: &self.recent, reader: &self.reader, decode: &self.decode };
                let answer = super::question::answer(&self.state, &source, (self.now, id), question);
                self.answer(id, tag, answer);
                return Ok(());
            }
            Operation::Send { entity, via, transaction, messages, acceptance } => {
                answered.plain = acceptance == crate::api::Acceptance::Plain;
                Command::Send(command::Send { request, entity, via, transaction, messages })
            }
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
                let Some(open) = peer.links.get(&link) else { return Ok(()) };
                Command::Credit { receiver: id.receiver(link), credit: open.credit(limit), drain }
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
            Operation::Administer(change) => Command::Administer { request, change },
        };
        self.carry_out(&command, Some(answered))
    }

    /// Looks an entity up for somebody who may use it.
    fn find(&mut self, id: PeerId, tag: Tag, path: &vorrang_engine::entity::EntityPath, purpose: Purpose) {
        let found = self.state.catalogue().find(path);
        let answer = found.ok_or_else(|| Refused::NotFound { path: path.to_string().into() }).map(|entity| {
            let mailbox = MailboxId::new(entity.id, path.sub_queue);
            let description = Arc::new(entity.clone());
            Answer::Found(Found { entity: entity.id, mailbox, purpose, description })
        });
        self.answer(id, tag, answer);
    }

    /// Answers a question when everything the answer may rest on is durable.
    fn answer(&mut self, id: PeerId, tag: Tag, answer: Result<Answer, Refused>) {
        let event = match answer {
            Ok(answer) => Event::Answer { tag, answer },
            Err(refused) => Event::Refused { tag, refused },
        };
        self.tell_after(self.writer.newest(), id, event);
    }

    /// Decides a command; writes, applies and tells what comes of it.
    fn carry_out(&mut self, command: &Command, asker: Option<Asker>) -> Result<(), Failure> {
        self.outcome.clear();
        let source = Source { recent: &self.recent, reader: &self.reader, decode: &self.decode };
        if let Err(refusal) = self.state.decide(self.now, command, &source, &mut self.outcome) {
            if let Some(Asker { id, tag, .. }) = asker {
                self.forget_link(id, command);
                let refused = Refused::Impossible(refusal);
                self.tell_after(self.writer.newest(), id, Event::Refused { tag, refused });
            }
            return Ok(());
        }
        let mut outcome = std::mem::take(&mut self.outcome);
        let recent = &mut self.recent;
        self.writer.unit(&mut outcome.facts, |fact, written| {
            if let Some(payload) = fact.payload() {
                let body = Body { bytes: payload.bytes.clone(), assigned_id: payload.assigned_id };
                recent.keep(written.location, body);
            }
        })?;
        for fact in &outcome.facts {
            self.state.apply(fact);
            self.note(fact);
        }
        let plain = asker.is_some_and(|asker| asker.plain);
        for effect in outcome.effects.drain(..) {
            self.route(effect, plain);
        }
        self.outcome = outcome;
        Ok(())
    }

    /// Keeps the shard's own books about what happened.
    fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::ReceiverDetached { receiver, .. } => self.drop_link(*receiver),
            Fact::Administered { change, .. } => self.keys.follow(change, self.state.catalogue()),
            _ => {}
        }
    }

    fn route(&mut self, effect: Effect, plain: bool) {
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
                let event = if plain && matches!(reply, Reply::Sent { .. }) {
                    Event::Accepted { first: tag, count: 1 }
                } else {
                    Event::Reply { tag, reply }
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
                let body = self.recent.find(delivery.location).cloned();
                if let Some(open) = self.peers.get_mut(&id).and_then(|peer| peer.links.get_mut(&link)) {
                    open.delivered = open.delivered.wrapping_add(1);
                }
                self.tell_in_line(wait, id, Event::Deliver { link, delivery, body });
            }
            Effect::Drained { receiver } => {
                let (id, link) = peer::of_receiver(receiver);
                self.tell_in_line(None, id, Event::Drained { link });
            }
            Effect::Detach { receiver, refusal } => {
                let (id, link) = peer::of_receiver(receiver);
                self.drop_link(receiver);
                let refused = Refused::Impossible(refusal);
                self.tell_in_line(self.writer.newest(), id, Event::Detached { link, refused });
            }
            Effect::Warm { .. } => {}
        }
    }

    /// A locked message need only be durable itself; one that is removed by being sent must be removed
    /// durably first.
    fn delivery_waits_for(&self, delivery: &Delivery) -> Option<Position> {
        if delivery.token.is_some() {
            self.writer.position_of(delivery.location)
        } else {
            self.writer.newest()
        }
    }

    /// Tells an event once `position` is durable, and not before earlier events of the same line.
    fn tell_in_line(&mut self, position: Option<Position>, id: PeerId, event: Event) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let wait = position.unwrap_or(Position::START).max(peer.deliveries_wait_for);
        peer.deliveries_wait_for = wait;
        self.tell_after(Some(wait), id, event);
    }

    fn tell_after(&mut self, position: Option<Position>, id: PeerId, event: Event) {
        match position {
            Some(position) if position > self.durable => self.hold.keep(position, id, event),
            _ => self.tell(id, event),
        }
    }

    fn tell(&mut self, id: PeerId, event: Event) {
        if let Some(peer) = self.peers.get_mut(&id)
            && peer.tell(event)
        {
            self.told.push(id);
        }
    }

    fn tell_all(&mut self) {
        for id in self.told.drain(..) {
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.flush();
            }
        }
    }

    /// Ends receivers whose permission has ended and was not renewed.
    fn end_permissions(&mut self) -> Result<(), Failure> {
        while let Some(&(at, id, link)) = self.endings.first()
            && at <= self.now
        {
            self.endings.pop_first();
            let (now, catalogue) = (self.now, self.state.catalogue());
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

    /// Ends a connection: its receivers, its waits and its transactions.
    fn close(&mut self, id: PeerId) -> Result<(), Failure> {
        let Some(mut peer) = self.peers.remove(&id) else { return Ok(()) };
        peer.flush();
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
    fn forget_link(&mut self, id: PeerId, command: &Command) {
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

    fn drop_link(&mut self, receiver: ReceiverId) {
        let (id, link) = peer::of_receiver(receiver);
        if let Some(open) = self.peers.get_mut(&id).and_then(|peer| peer.links.remove(&link)) {
            self.endings.remove(&(open.until, id, link));
        }
    }

    /// Ends the shard because something beside it failed.
    pub(super) fn give_up(&mut self, reason: &str) {
        if self.over.is_none() {
            self.end(reason);
            self.tell_all();
        }
    }

    /// The shard is over: what was not told by now never will be.
    fn end(&mut self, reason: &str) {
        let reason: Arc<str> = reason.into();
        self.hold.clear();
        let mut ids: Vec<PeerId> = self.peers.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            self.tell(id, Event::Stopped { reason: Arc::clone(&reason) });
        }
        self.over = Some(reason);
    }

    /// Ends the shard in good order: everything decided becomes durable and is told, then the log is
    /// closed.
    pub fn stop(mut self) -> Result<(), Failure> {
        if self.over.is_none() {
            self.writer.end()?;
            self.writer.log_mut().flush()?;
            self.release();
            self.end("the broker is shutting down");
            self.tell_all();
        }
        let now = self.now;
        self.writer.into_log().close(now.0).map(|_| ())
    }
}

/// Who waits for the outcome of a command.
#[derive(Debug, Clone, Copy)]
struct Asker {
    id: PeerId,
    tag: Tag,
    /// Whether being told "accepted" is enough.
    plain: bool,
}
