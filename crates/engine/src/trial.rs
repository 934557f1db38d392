//! A namespace to try things on, for tests: a state, a clock, and payloads in a map.
//!
//! Every fact is applied as the shard would, and remembered, so that a test can end by asking whether a
//! state rebuilt from the written facts is the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use smallvec::{SmallVec, smallvec};
use vorrang_filter::{MapMessage, Message, SystemProperty, Value};

use crate::browse::Peek;
use crate::command::{Attach, Chill, Command, ReceiveMode, Send, Settle, Settlement};
use crate::effect::{Effect, Outcome, Reply};
use crate::entity::{EntityName, EntityPath, Request, RuleDescription, Setting, SubscriptionName};
use crate::fact::{Durability, Fact};
use crate::id::{EntityId, Location, LockToken, MailboxId, ReceiverId, RequestTag, RunId, Sequence};
use crate::level::Level;
use crate::limits::Limits;
use crate::message::{Content, Delivery, Incoming};
use crate::payloads::{ColdRecord, Payloads};
use crate::refusal::Refusal;
use crate::state::State;
use crate::store::{Handle, Record};
use crate::text::Text;
use crate::time::{Span, Timestamp};

/// Messages by the place they were stored at.
#[derive(Debug, Default, Clone)]
pub(crate) struct Stored {
    messages: BTreeMap<Location, MapMessage>,
    runs: BTreeMap<RunId, Vec<ColdRecord>>,
}

impl Payloads for Stored {
    fn message(&self, location: Location, _: u32) -> Option<Box<dyn Message + '_>> {
        let message: Box<dyn Message> = Box::new(self.messages.get(&location)?.clone());
        Some(message)
    }

    fn cold_records(&self, run: RunId, from: u32, max: u32) -> Vec<ColdRecord> {
        let (from, max) = (usize::try_from(from).unwrap(), usize::try_from(max).unwrap());
        self.runs.get(&run).into_iter().flatten().skip(from).take(max).copied().collect()
    }
}

impl Stored {
    /// Keeps the records of a run, as an extent's index would.
    pub(crate) fn keep_run(&mut self, run: RunId, records: Vec<ColdRecord>) {
        self.runs.insert(run, records);
    }
}

pub(crate) struct Trial {
    pub(crate) state: State,
    pub(crate) now: Timestamp,
    pub(crate) stored: Stored,
    /// What would have been written.
    pub(crate) written: Vec<Fact>,
    sent: BTreeMap<Bytes, MapMessage>,
    /// Runs that were asked for: from where on, and how many.
    asked: Vec<(RunId, u32, u32)>,
    next: u64,
}

/// A message to send: an id, and what a test wants to add.
pub(crate) fn message(id: &str) -> Incoming {
    with_content(id, MapMessage::new())
}

pub(crate) fn with_content(id: &str, content: MapMessage) -> Incoming {
    let content = content.with_system(SystemProperty::MessageId, Value::String(id.into()));
    Incoming {
        message_id: Some(Text::from(id)),
        ..Incoming::new(Bytes::copy_from_slice(id.as_bytes()), Arc::new(content))
    }
}

/// A message of so many bytes.
pub(crate) fn large(id: &str, bytes: usize) -> Incoming {
    let mut payload = id.as_bytes().to_vec();
    payload.resize(bytes, b' ');
    Incoming { payload: Bytes::from(payload), ..message(id) }
}

pub(crate) fn path(text: &str) -> EntityPath {
    EntityPath::parse(text).unwrap()
}

impl Trial {
    pub(crate) fn new() -> Trial {
        Trial::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Trial {
        let mut trial = Trial {
            state: State::new(limits),
            now: Timestamp(1_000_000),
            stored: Stored::default(),
            written: Vec::new(),
            sent: BTreeMap::new(),
            asked: Vec::new(),
            next: 1,
        };
        trial.step(&Command::Create { seed: 7 }).unwrap();
        trial
    }

    /// Decides, writes and applies one command.
    pub(crate) fn step(&mut self, command: &Command) -> Result<Vec<Effect>, Refusal> {
        let mut outcome = Outcome::default();
        self.state.decide(self.now, command, &self.stored, &mut outcome)?;
        for mut fact in outcome.facts {
            if let Some(payload) = fact.payload_mut() {
                let location = Location((1 << 32) | self.next);
                self.next += 1;
                payload.location = location;
                let content = self.sent.get(&payload.bytes).cloned().unwrap_or_default();
                self.stored.messages.insert(location, content);
            }
            self.state.apply(&fact);
            assert_eq!(self.state.misfits(), 0, "{fact:?} does not fit");
            if fact.durability() != Durability::Volatile {
                self.written.push(fact);
            }
        }
        for effect in &outcome.effects {
            if let Effect::Warm { run, from, count, .. } = effect {
                self.asked.push((*run, *from, *count));
            }
        }
        Ok(outcome.effects)
    }

    /// Writes the first messages of a lane to disk.
    pub(crate) fn chill(&mut self, text: &str, level: u8, count: usize) {
        let (mailbox, level) = (self.mailbox(text), Level(level));
        let lane = self.state.mailboxes.get(&mailbox).unwrap().lanes.lane(level).unwrap();
        let cold = |(_, record): (Handle, &Record)| ColdRecord {
            sequence: record.sequence,
            eligible: record.eligible,
            expires: self.state.delivery_of(record).expires,
            location: record.location,
            size: record.size,
        };
        let records: Vec<_> = lane.chillable(&self.state.records).take(count).map(cold).collect();
        self.next += 1;
        let run = RunId(self.next);
        self.stored.runs.insert(run, records.clone());
        self.step(&Command::Chill(Box::new(Chill { mailbox, level, run, records }))).unwrap();
    }

    /// Loses what was asked for: the answer does not come.
    pub(crate) fn forget_asked(&mut self) {
        self.asked.clear();
    }

    pub(crate) fn advance(&mut self, span: Span) {
        self.now = self.now.after(span);
    }

    fn tag(&mut self) -> RequestTag {
        self.next += 1;
        RequestTag(self.next)
    }

    /// The answer to a request that must be answered at once.
    pub(crate) fn ask(&mut self, command: impl FnOnce(RequestTag) -> Command) -> Result<Reply, Refusal> {
        let tag = self.tag();
        let effects = self.step(&command(tag))?;
        for effect in effects {
            match effect {
                Effect::Reply { request, reply } if request == tag => return Ok(reply),
                Effect::Refuse { request, refusal } if request == tag => return Err(refusal),
                _ => {}
            }
        }
        panic!("no answer")
    }

    pub(crate) fn administer(&mut self, change: Request) -> Result<EntityId, Refusal> {
        match self.ask(|request| Command::Administer { request, change: Box::new(change) })? {
            Reply::Administered { entity } => Ok(entity),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn queue(&mut self, name: &str, settings: Vec<Setting>) -> EntityId {
        self.administer(Request::CreateQueue { name: EntityName::parse(name).unwrap(), settings }).unwrap()
    }

    pub(crate) fn topic(&mut self, name: &str) -> EntityId {
        self.administer(Request::CreateTopic { name: EntityName::parse(name).unwrap(), settings: vec![] })
            .unwrap()
    }

    pub(crate) fn subscribe(
        &mut self,
        topic: &str,
        name: &str,
        settings: Vec<Setting>,
        first_rule: Option<RuleDescription>,
    ) -> EntityId {
        let (topic, name) = (EntityName::parse(topic).unwrap(), SubscriptionName::parse(name).unwrap());
        self.administer(Request::CreateSubscription { topic, name, settings, first_rule }).unwrap()
    }

    pub(crate) fn update(&mut self, text: &str, setting: Setting) {
        self.administer(Request::Update { path: path(text), settings: vec![setting] }).unwrap();
    }

    pub(crate) fn delete(&mut self, text: &str) {
        self.administer(Request::Delete { path: path(text) }).unwrap();
    }

    pub(crate) fn id(&self, text: &str) -> EntityId {
        self.state.catalogue().find(&path(text)).unwrap().id
    }

    pub(crate) fn mailbox(&self, text: &str) -> MailboxId {
        MailboxId::new(self.id(text), path(text).sub_queue)
    }

    /// Remembers what a filter would see of a message.
    pub(crate) fn note(&mut self, incoming: &Incoming, content: MapMessage) {
        self.sent.insert(incoming.payload.clone(), content);
    }

    pub(crate) fn sending(&mut self, to: &str, messages: Vec<(Incoming, MapMessage)>) -> Send {
        let mut batch: SmallVec<[Incoming; 1]> = SmallVec::new();
        for (incoming, content) in messages {
            self.note(&incoming, content.clone());
            batch.push(Incoming { content: Content::Apart(Arc::new(content)), ..incoming });
        }
        let entity = self.id(to);
        Send { request: self.tag(), entity, via: None, transaction: None, messages: batch }
    }

    /// Sends messages that have nothing but an id.
    pub(crate) fn send(&mut self, to: &str, ids: &[&str]) -> Result<Vec<Sequence>, Refusal> {
        self.send_all(to, ids.iter().map(|id| message(id)).collect())
    }

    /// Sends messages whose content is their id alone.
    pub(crate) fn send_all(&mut self, to: &str, messages: Vec<Incoming>) -> Result<Vec<Sequence>, Refusal> {
        let content = |incoming: &Incoming| {
            let id = incoming.message_id.as_ref().map(|id| incoming.read(id)).unwrap_or_default();
            MapMessage::new().with_system(SystemProperty::MessageId, Value::String(id.into()))
        };
        let messages = messages.into_iter().map(|incoming| {
            let content = content(&incoming);
            (incoming, content)
        });
        let send = self.sending(to, messages.collect());
        self.submit(send)
    }

    pub(crate) fn submit(&mut self, send: Send) -> Result<Vec<Sequence>, Refusal> {
        match self.ask(|request| Command::Send(Send { request, ..send }))? {
            Reply::Sent { sequences } => Ok(sequences.into_vec()),
            other => panic!("{other:?}"),
        }
    }

    /// Lets everything happen that is due now.
    pub(crate) fn settle_down(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        for _ in 0..10_000 {
            let due = self.state.next_deadline().is_some_and(|due| due <= self.now);
            if let Some((run, from, count)) = self.asked.pop() {
                let records = self.stored.cold_records(run, from, count);
                effects.extend(self.step(&Command::Warm { run, from, records }).unwrap());
            } else if due {
                effects.extend(self.step(&Command::Tick).unwrap());
            } else if self.state.has_deliverable() {
                effects.extend(self.step(&Command::Deliver).unwrap());
            } else {
                return effects;
            }
        }
        panic!("does not come to rest")
    }

    pub(crate) fn attach(&mut self, text: &str, receiver: u64, credit: u32) {
        self.attach_above(text, receiver, Level(0));
        self.step(&Command::Credit { receiver: ReceiverId(receiver), credit, drain: false }).unwrap();
    }

    /// The same, for messages of a level and above, without credit.
    pub(crate) fn attach_above(&mut self, text: &str, receiver: u64, min_level: Level) {
        let mailboxes = smallvec![self.mailbox(text)];
        let receiver = ReceiverId(receiver);
        let mode = ReceiveMode::PeekLock;
        let attach = |request| {
            let selector = None;
            Command::Attach(Box::new(Attach { request, receiver, mailboxes, mode, min_level, selector }))
        };
        self.ask(attach).unwrap();
    }

    /// Messages handed out now, to whomever.
    pub(crate) fn receive(&mut self) -> Vec<Delivery> {
        let effects = self.settle_down();
        let delivered = effects.into_iter().filter_map(|effect| match effect {
            Effect::Deliver { delivery, .. } => Some(delivery),
            _ => None,
        });
        delivered.collect()
    }

    pub(crate) fn settling(&mut self, delivery: &Delivery, settlement: Settlement) -> Settle {
        let tokens: SmallVec<[LockToken; 1]> = smallvec![delivery.token.unwrap()];
        Settle { request: self.tag(), mailbox: delivery.mailbox, tokens, settlement, transaction: None }
    }

    pub(crate) fn settle(&mut self, delivery: &Delivery, settlement: Settlement) -> Result<(), Refusal> {
        let settle = self.settling(delivery, settlement);
        self.ask(|request| Command::Settle(Settle { request, ..settle })).map(|_| ())
    }

    /// The ids of the messages in a mailbox, in the order of numbers.
    pub(crate) fn ids(&self, text: &str) -> Vec<String> {
        self.peeked(text).iter().map(|delivery| self.id_of(delivery)).collect()
    }

    /// All messages in a mailbox, in the order of numbers.
    pub(crate) fn peeked(&self, text: &str) -> Vec<Delivery> {
        let mut found = Vec::new();
        let mut peek = Peek::new(self.mailbox(text), 1_000);
        loop {
            let peeked = self.state.peek(&peek, &self.stored).unwrap();
            found.extend(peeked.messages);
            match peeked.next {
                Some(next) => peek.from = next,
                None => return found,
            }
        }
    }

    pub(crate) fn id_of(&self, delivery: &Delivery) -> String {
        let message = self.stored.messages.get(&delivery.location).unwrap();
        message.system(SystemProperty::MessageId).map(|id| id.text().into_owned()).unwrap_or_default()
    }

    /// A state rebuilt from what was written.
    pub(crate) fn replayed(&self) -> Trial {
        let mut state = State::new(self.state.limits().clone());
        for fact in &self.written {
            state.apply(fact);
        }
        assert_eq!(state.misfits(), 0);
        Trial {
            state,
            now: self.now,
            stored: self.stored.clone(),
            written: self.written.clone(),
            sent: self.sent.clone(),
            asked: Vec::new(),
            next: self.next,
        }
    }

    /// Every mailbox that holds something, with the ids in it.
    pub(crate) fn contents(&self) -> BTreeMap<String, Vec<String>> {
        let mut contents = BTreeMap::new();
        let catalogue = self.state.catalogue();
        let entities = catalogue
            .entities()
            .flat_map(|entity| std::iter::once(entity).chain(catalogue.subscriptions(entity.id)));
        for entity in entities {
            for suffix in ["", "/$deadletterqueue", "/$transfer/$deadletterqueue"] {
                if entity.topic().is_some() && !suffix.is_empty() {
                    continue;
                }
                let text = format!("{}{suffix}", entity.path);
                let ids = self.ids(&text);
                if !ids.is_empty() {
                    contents.insert(text, ids);
                }
            }
        }
        contents
    }
}
