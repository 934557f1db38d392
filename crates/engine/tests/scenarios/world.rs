//! The namespace a story happens in: a state, a clock, payloads in a map, and clients by name.

use crate::script::{Step, span};
use crate::words::{entity, path, rule, settings, sql, subscription};
use std::collections::BTreeMap;
use std::sync::Arc;
use vorrang_engine::browse::Peek;
use vorrang_engine::command::{AcceptSession, Attach, ReceiveMode, Selection, Send, Settle, Settlement};
use vorrang_engine::entity::Request;
use vorrang_engine::message::Content;
use vorrang_engine::{
    Command, Delivery, Durability, Effect, Fact, Incoming, Level, Limits, Location, LockToken, MailboxId,
    MessageState, Outcome, Payloads, ReceiverId, Refusal, Reply, RequestTag, Sequence, SessionId, Span,
    State, Text, Timestamp, TransactionId,
};
use vorrang_filter::{MapMessage, Message, SystemProperty, Value};

/// Payloads by place. The place's number is the message's.
#[derive(Default)]
struct Stored(BTreeMap<Location, MapMessage>);

impl Payloads for Stored {
    fn message(&self, location: Location, _: u32) -> Option<Box<dyn Message + '_>> {
        let message: Box<dyn Message> = Box::new(self.0.get(&location)?.clone());
        Some(message)
    }

    fn cold_records(&self, _: vorrang_engine::RunId, _: u32, _: u32) -> Vec<vorrang_engine::ColdRecord> {
        Vec::new()
    }
}

/// Somebody who receives.
struct Client {
    receiver: ReceiverId,
    held: Vec<Delivery>,
}

pub(crate) struct World {
    state: State,
    now: Timestamp,
    stored: Stored,
    written: Vec<Fact>,
    sent: BTreeMap<Vec<u8>, MapMessage>,
    clients: BTreeMap<String, Client>,
    transactions: BTreeMap<String, TransactionId>,
    /// The entity meant where a line names none.
    here: Option<String>,
    next: u64,
}

type Told = Result<String, String>;

impl World {
    pub(crate) fn new() -> World {
        let mut world = World {
            state: State::new(Limits::default()),
            now: Timestamp(1_700_000_000_000),
            stored: Stored::default(),
            written: Vec::new(),
            sent: BTreeMap::new(),
            clients: BTreeMap::new(),
            transactions: BTreeMap::new(),
            here: None,
            next: 0,
        };
        world.run(&Command::Create { seed: 1 }).expect("an empty state can begin");
        world
    }

    /// Everything must add up, and be what its log says.
    pub(crate) fn close(&self) -> Result<(), String> {
        let problems = self.state.audit();
        if !problems.is_empty() {
            return Err(format!("does not add up: {problems:?}"));
        }
        let mut replayed = State::new(Limits::default());
        for fact in &self.written {
            replayed.apply(fact);
        }
        for entity in
            self.state.catalogue().entities().flat_map(|entity| {
                std::iter::once(entity).chain(self.state.catalogue().subscriptions(entity.id))
            })
        {
            for mailbox in [MailboxId::main(entity.id), MailboxId::dead_letter(entity.id)] {
                let peek = Peek::new(mailbox, 1_000);
                let live = self.state.peek(&peek, &self.stored).ok();
                if live != replayed.peek(&peek, &self.stored).ok() {
                    return Err(format!("{} differs after a replay", entity.path));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn step(&mut self, step: &Step) -> Told {
        match step.verb.as_str() {
            "queue" => self.create_queue(step),
            "topic" => self.create_topic(step),
            "subscription" => self.create_subscription(step),
            "rule" => self.create_rule(step),
            "update" => {
                let path = path(step.word(0)?)?;
                let settings = settings(step)?;
                self.administer(Request::Update { path, settings })
            }
            "remove" => self.administer(Request::Delete { path: path(step.word(0)?)? }),
            "send" => self.send(step),
            "receive" => self.receive(step),
            "accept" => self.accept(step),
            "close" => self.close_client(step),
            "complete" | "abandon" | "release" | "defer" | "dead-letter" => self.settle(step),
            "renew" => self.renew(step),
            "fetch" => self.fetch(step),
            "advance" => self.advance(step),
            "peek" => self.peek(step),
            "count" => self.count(step),
            "begin" => self.begin(step),
            "commit" | "roll-back" => self.discharge(step),
            "delete" | "raise" => self.change_waiting(step),
            "explain" => self.explain(step),
            "restart" => self.restart(),
            other => Err(format!("what is {other:?}?")),
        }
    }

    fn run(&mut self, command: &Command) -> Result<Vec<Effect>, Refusal> {
        let mut outcome = Outcome::default();
        self.state.decide(self.now, command, &self.stored, &mut outcome)?;
        for mut fact in outcome.facts {
            if let Some(payload) = fact.payload_mut() {
                self.next += 1;
                payload.location = Location(self.next);
                let content = self.sent.get(&payload.bytes[..]).cloned().unwrap_or_default();
                self.stored.0.insert(Location(self.next), content);
            }
            self.state.apply(&fact);
            if fact.durability() != Durability::Volatile {
                self.written.push(fact);
            }
        }
        Ok(outcome.effects)
    }

    /// Runs a command and finds its answer; also hands out what waits for somebody.
    fn ask(&mut self, command: impl FnOnce(RequestTag) -> Command) -> Result<Reply, String> {
        self.next += 1;
        let tag = RequestTag(self.next);
        let effects = self.run(&command(tag)).map_err(|refusal| refused(&refusal))?;
        let answer = effects.iter().find_map(|effect| match effect {
            Effect::Reply { request, reply } if *request == tag => Some(Ok(reply.clone())),
            Effect::Refuse { request, refusal } if *request == tag => Some(Err(refused(refusal))),
            _ => None,
        });
        self.take_in(effects);
        answer.unwrap_or_else(|| Err("nothing".to_owned()))
    }

    fn take_in(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Deliver { receiver, delivery } => {
                    let client = self.clients.values_mut().find(|client| client.receiver == receiver);
                    client.expect("deliveries go to clients").held.push(delivery);
                }
                Effect::Detach { receiver, .. } => {
                    self.clients.retain(|_, client| client.receiver != receiver);
                }
                _ => {}
            }
        }
    }

    /// Lets everything happen that can.
    fn rest(&mut self) {
        loop {
            let due = self.state.next_deadline().is_some_and(|due| due <= self.now);
            let command = match (due, self.state.has_deliverable()) {
                (true, _) => Command::Tick,
                (false, true) => Command::Deliver,
                (false, false) => return,
            };
            let effects = self.run(&command).expect("time and deliveries are never refused");
            self.take_in(effects);
        }
    }

    fn administer(&mut self, change: Request) -> Told {
        self.ask(|request| Command::Administer { request, change: Box::new(change) })?;
        self.rest();
        Ok("done".to_owned())
    }

    fn create_queue(&mut self, step: &Step) -> Told {
        let name = step.word(0)?;
        self.here = Some(name.to_owned());
        self.administer(Request::CreateQueue { name: entity(name)?, settings: settings(step)? })
    }

    fn create_topic(&mut self, step: &Step) -> Told {
        let name = step.word(0)?;
        self.here = Some(name.to_owned());
        self.administer(Request::CreateTopic { name: entity(name)?, settings: settings(step)? })
    }

    fn create_subscription(&mut self, step: &Step) -> Told {
        let (topic, name) = subscription(step.word(0)?)?;
        let first_rule = match step.setting("where") {
            Some(_) => Some(rule("first", step)?),
            None => None,
        };
        self.administer(Request::CreateSubscription { topic, name, settings: settings(step)?, first_rule })
    }

    fn create_rule(&mut self, step: &Step) -> Told {
        let (topic, subscription) = subscription(step.word(0)?)?;
        let rule = rule(step.word(1)?, step)?;
        self.administer(Request::CreateRule { topic, subscription, rule })
    }

    /// The entity a step is about: named after `marker`, or the last one created.
    fn place(&self, step: &Step, marker: &str) -> Result<String, String> {
        let named = step.after(marker).map(str::to_owned);
        named.or_else(|| self.here.clone()).ok_or_else(|| "no queue yet".to_owned())
    }

    fn mailbox(&self, text: &str) -> Result<MailboxId, String> {
        let path = path(text)?;
        let found = self.state.catalogue().find(&path).ok_or_else(|| format!("no {text}"))?;
        Ok(MailboxId::new(found.id, path.sub_queue))
    }

    fn transaction(&self, step: &Step) -> Result<Option<TransactionId>, String> {
        let Some(name) = step.after("in") else { return Ok(None) };
        self.transactions.get(name).copied().map(Some).ok_or_else(|| format!("no transaction {name}"))
    }

    fn send(&mut self, step: &Step) -> Told {
        let place = self.place(step, "to")?;
        let entity = self.mailbox(&place)?.entity();
        let transaction = self.transaction(step)?;
        let names = step.word(0)?.split(',').map(str::to_owned).collect::<Vec<_>>();
        let messages = names.iter().map(|name| self.message(name, step)).collect::<Result<_, _>>()?;
        let send = move |request| Command::Send(Send { request, entity, via: None, transaction, messages });
        self.ask(send)?;
        self.rest();
        Ok("done".to_owned())
    }

    fn message(&mut self, name: &str, step: &Step) -> Result<Incoming, String> {
        let text = |text: &str| Value::String(text.into());
        let mut content = MapMessage::new().with_system(SystemProperty::MessageId, text(name));
        self.next += 1;
        let payload = format!("{name} {}", self.next).into_bytes();
        let mut incoming = Incoming::new(payload.clone().into(), Arc::new(MapMessage::new()));
        incoming.message_id = Some(Text::from(name));
        for (key, value) in &step.settings {
            match key.as_str() {
                "level" => incoming.priority = Some(value.parse().map_err(|_| format!("level={value}?"))?),
                "session" => {
                    incoming.session_id = Some(Text::from(value.as_str()));
                    content = content.with_system(SystemProperty::SessionId, text(value));
                }
                "lives" => incoming.time_to_live = Some(span(value)?),
                "later" => incoming.scheduled_for = Some(self.now.after(span(value)?)),
                "label" => content = content.with_system(SystemProperty::Label, text(value)),
                property => {
                    let value = value.parse::<i64>().map_or_else(|_| text(value), Value::Int);
                    content = content.with(property, value);
                }
            }
        }
        self.sent.insert(payload, content.clone());
        incoming.content = Content::Apart(Arc::new(content));
        Ok(incoming)
    }

    fn receive(&mut self, step: &Step) -> Told {
        let name = step.word(0)?.to_owned();
        if !self.clients.contains_key(&name) {
            let place = self.place(step, "from")?;
            self.attach(&name, &place, step)?;
        }
        let client = self.clients.get_mut(&name).expect("the client was just attached");
        let (receiver, before) = (client.receiver, client.held.len());
        let credit = step.setting("count").map_or(Ok(1), str::parse).map_err(|_| "count?".to_owned())?;
        self.run(&Command::Credit { receiver, credit, drain: false }).map_err(|refusal| refused(&refusal))?;
        self.rest();
        if self.clients.contains_key(&name) {
            self.run(&Command::Credit { receiver, credit: 0, drain: false })
                .map_err(|refusal| refused(&refusal))?;
        }
        let held = self.clients.get(&name).map(|client| client.held.clone()).unwrap_or_default();
        Ok(list(held.iter().skip(before).map(|delivery| self.told(delivery))))
    }

    fn attach(&mut self, name: &str, place: &str, step: &Step) -> Result<(), String> {
        let mailboxes = place.split('>').map(|part| self.mailbox(part)).collect::<Result<_, _>>()?;
        self.next += 1;
        let receiver = ReceiverId(self.next);
        let min_level =
            step.setting("min-level").map_or(Ok(0), str::parse).map_err(|_| "min-level?".to_owned())?;
        let deleting = step.words.iter().any(|word| word == "deleting");
        let mode = if deleting { ReceiveMode::ReceiveAndDelete } else { ReceiveMode::PeekLock };
        let attach = |request| {
            let (min_level, selector) = (Level(min_level), None);
            Command::Attach(Box::new(Attach { request, receiver, mailboxes, mode, min_level, selector }))
        };
        self.ask(attach)?;
        self.clients.insert(name.to_owned(), Client { receiver, held: Vec::new() });
        Ok(())
    }

    fn accept(&mut self, step: &Step) -> Told {
        let name = step.word(0)?.to_owned();
        let place = self.place(step, "from")?;
        let mailbox = self.mailbox(&place)?;
        self.next += 1;
        let receiver = ReceiverId(self.next);
        let session = step.setting("session").map(SessionId::from);
        self.clients.insert(name.clone(), Client { receiver, held: Vec::new() });
        let (mode, wait) = (ReceiveMode::PeekLock, Span::seconds(1));
        let accept = |request| {
            Command::AcceptSession(Box::new(AcceptSession {
                request,
                receiver,
                mailbox,
                session,
                mode,
                wait,
            }))
        };
        self.next += 1;
        let tag = RequestTag(self.next);
        let mut effects = self.run(&accept(tag)).map_err(|refusal| refused(&refusal))?;
        if !effects.iter().any(|effect| matches!(effect, Effect::Reply { request, .. } if *request == tag)) {
            while self.state.has_deliverable() {
                effects.extend(self.run(&Command::Deliver).map_err(|refusal| refused(&refusal))?);
            }
        }
        let answer = effects.iter().find_map(|effect| match effect {
            Effect::Reply { request, reply: Reply::SessionAccepted { session, .. } } if *request == tag => {
                Some(Ok(session.to_string()))
            }
            Effect::Refuse { request, refusal } if *request == tag => Some(Err(refused(refusal))),
            _ => None,
        });
        answer.unwrap_or_else(|| {
            self.clients.remove(&name);
            let _ = self.run(&Command::Detach { receiver });
            Ok("nothing".to_owned())
        })
    }

    fn close_client(&mut self, step: &Step) -> Told {
        let client = self.clients.remove(step.word(0)?).ok_or_else(|| "no such client".to_owned())?;
        self.run(&Command::Detach { receiver: client.receiver }).map_err(|refusal| refused(&refusal))?;
        self.rest();
        Ok("done".to_owned())
    }

    /// The last delivery of a message to a client.
    fn held(&self, step: &Step) -> Result<Delivery, String> {
        let client = self.clients.get(step.word(0)?).ok_or_else(|| "no such client".to_owned())?;
        let name = step.word(1)?;
        let found = client.held.iter().rev().find(|delivery| self.name(delivery) == name);
        found.cloned().ok_or_else(|| format!("it never got {name}"))
    }

    fn settle(&mut self, step: &Step) -> Told {
        let delivery = self.held(step)?;
        let transaction = self.transaction(step)?;
        let settlement = match step.verb.as_str() {
            "complete" => Settlement::Complete,
            "release" => Settlement::Release,
            "defer" => Settlement::Defer { changes: None },
            "abandon" => {
                let delay = step.setting("delay").map(span).transpose()?;
                Settlement::Abandon { changes: None, delay }
            }
            _ => Settlement::DeadLetter {
                reason: step.setting("reason").map(Arc::from),
                description: None,
                changes: None,
            },
        };
        let (mailbox, token) = (delivery.mailbox, token(&delivery)?);
        let settle = |request| {
            let tokens = [token].into_iter().collect();
            Command::Settle(Settle { request, mailbox, tokens, settlement, transaction })
        };
        self.ask(settle)?;
        self.rest();
        Ok("done".to_owned())
    }

    fn renew(&mut self, step: &Step) -> Told {
        let delivery = self.held(step)?;
        let (mailbox, token) = (delivery.mailbox, token(&delivery)?);
        self.ask(|request| Command::Renew { request, mailbox, tokens: [token].into_iter().collect() })?;
        Ok("done".to_owned())
    }

    /// Receives a deferred message by its number.
    fn fetch(&mut self, step: &Step) -> Told {
        let name = step.word(0)?.to_owned();
        let wanted = step.word(1)?.to_owned();
        let place = self.place(step, "from")?;
        let mailbox = self.mailbox(&place)?;
        let sequence = self.sequence(mailbox, &wanted)?;
        let (mode, receiver) = (ReceiveMode::PeekLock, None);
        let sequences = vec![sequence];
        let fetch = |request| Command::ReceiveDeferred { request, mailbox, sequences, mode, receiver };
        let Reply::Received { messages } = self.ask(fetch)? else { return Err("no answer".to_owned()) };
        self.next += 1;
        let receiver = ReceiverId(self.next);
        let client = self.clients.entry(name).or_insert(Client { receiver, held: Vec::new() });
        client.held.extend(messages.clone());
        Ok(list(messages.iter().map(|delivery| self.told(delivery))))
    }

    fn advance(&mut self, step: &Step) -> Told {
        let end = self.now.after(span(step.word(0)?)?);
        while let Some(due) = self.state.next_deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.rest();
        }
        self.now = end;
        self.rest();
        Ok("done".to_owned())
    }

    fn peek(&self, step: &Step) -> Told {
        let mailbox = self.mailbox(&self.first_or_here(step)?)?;
        let peeked = self.state.peek(&Peek::new(mailbox, 1_000), &self.stored);
        let messages = peeked.map_err(|refusal| refused(&refusal))?.messages;
        Ok(list(messages.iter().map(|delivery| match delivery.state {
            MessageState::Active => self.told(delivery),
            MessageState::Deferred => format!("{} deferred", self.told(delivery)),
            MessageState::Scheduled => format!("{} scheduled", self.told(delivery)),
        })))
    }

    fn count(&self, step: &Step) -> Told {
        let mailbox = self.mailbox(&self.first_or_here(step)?)?;
        let counts = self.state.counts(mailbox);
        let parts = [
            ("ready", counts.ready),
            ("locked", counts.locked),
            ("deferred", counts.deferred),
            ("scheduled", counts.scheduled),
            ("delayed", counts.delayed),
        ];
        let parts: Vec<_> =
            parts.iter().filter(|(_, count)| *count > 0).map(|(name, n)| format!("{name}={n}")).collect();
        Ok(if parts.is_empty() { "nothing".to_owned() } else { parts.join(" ") })
    }

    fn begin(&mut self, step: &Step) -> Told {
        let Reply::Declared { transaction } = self.ask(|request| Command::Declare { request })? else {
            return Err("no answer".to_owned());
        };
        self.transactions.insert(step.word(0)?.to_owned(), transaction);
        Ok("done".to_owned())
    }

    fn discharge(&mut self, step: &Step) -> Told {
        let name = step.word(0)?;
        let transaction = *self.transactions.get(name).ok_or_else(|| format!("no transaction {name}"))?;
        let rollback = step.verb == "roll-back";
        self.ask(|request| Command::Discharge { request: Some(request), transaction, rollback })?;
        self.rest();
        Ok("done".to_owned())
    }

    /// Deletes waiting messages, or gives them another level.
    fn change_waiting(&mut self, step: &Step) -> Told {
        let mailbox = self.mailbox(&self.first_or_here(step)?)?;
        let selection = match step.setting("where") {
            Some(text) => Selection::Filter { filter: Arc::new(sql(text)?), from: Sequence(0) },
            None => Selection::All,
        };
        let max = step.setting("max").map_or(Ok(1_000), str::parse).map_err(|_| "max?".to_owned())?;
        let before = Timestamp::NEVER;
        let reply = if step.verb == "delete" {
            self.ask(|request| Command::DeleteMessages { request, mailbox, selection, before, max })?
        } else {
            let level = step.setting("level").ok_or_else(|| "to which level?".to_owned())?;
            let level = Level(level.parse().map_err(|_| "level?".to_owned())?);
            let dry_run = step.words.iter().any(|word| word == "dry");
            self.ask(|request| Command::Reprioritise { request, mailbox, selection, level, max, dry_run })?
        };
        self.rest();
        match reply {
            Reply::Deleted { count, .. } | Reply::Reprioritised { count, .. } => Ok(count.to_string()),
            other => Err(format!("{other:?}")),
        }
    }

    fn explain(&self, step: &Step) -> Told {
        let place = self.place(step, "in")?;
        let mailbox = self.mailbox(&place)?;
        let sequence = self.sequence(mailbox, step.word(0)?)?;
        let found = self.state.explain(self.now, mailbox, sequence, &self.stored);
        let found = found.map_err(|refusal| refused(&refusal))?;
        let ahead: u64 = found.ahead.iter().map(|ahead| ahead.count).sum();
        let blockers: Vec<_> = found.blockers.iter().map(|blocker| kebab(&format!("{blocker:?}"))).collect();
        Ok(format!("level={} ahead={ahead} {}", found.level, blockers.join(" ")).trim_end().to_owned())
    }

    /// Forgets everything that was not written, as a crash does, and begins again.
    fn restart(&mut self) -> Told {
        let mut state = State::new(Limits::default());
        for fact in &self.written {
            state.apply(fact);
        }
        self.state = state;
        self.clients.clear();
        self.transactions.clear();
        self.run(&Command::Recover).map_err(|refusal| refused(&refusal))?;
        self.rest();
        Ok("done".to_owned())
    }

    fn first_or_here(&self, step: &Step) -> Result<String, String> {
        match step.words.first().filter(|word| *word != "dry") {
            Some(word) => Ok(word.clone()),
            None => self.place(step, "in"),
        }
    }

    fn sequence(&self, mailbox: MailboxId, name: &str) -> Result<Sequence, String> {
        let peeked = self.state.peek(&Peek::new(mailbox, 1_000), &self.stored);
        let messages = peeked.map_err(|refusal| refused(&refusal))?.messages;
        let found = messages.iter().find(|delivery| self.name(delivery) == name);
        found.map(|delivery| delivery.sequence).ok_or_else(|| format!("no {name}"))
    }

    fn name(&self, delivery: &Delivery) -> String {
        let message = self.stored.0.get(&delivery.location);
        let id = message.and_then(|message| message.system(SystemProperty::MessageId));
        id.map(|id| id.text().into_owned()).unwrap_or_default()
    }

    /// A message as a story tells it: its name, then what may be asked about it.
    fn told(&self, delivery: &Delivery) -> String {
        let mut told =
            format!("{} delivery={} level={}", self.name(delivery), delivery.deliveries + 1, delivery.level);
        if let Some(session) = &delivery.session {
            told.extend([" session=", session.as_str()]);
        }
        let properties = delivery.overlay.iter().flat_map(|overlay| overlay.properties.iter());
        for (name, change) in properties {
            if let vorrang_engine::message::PropertyChange::Set(
                vorrang_engine::message::PropertyValue::Typed(value),
            ) = change
            {
                let value = value.as_ref().text().replace(' ', "_");
                told.extend([" ", name, "=", &value]);
            }
        }
        told
    }
}

/// Whether what was found is what was expected: the same names in the same order, and of what is known
/// about each at least what the story mentions.
pub(crate) fn agree(expected: &str, found: &str) -> bool {
    let expected: Vec<_> = expected.split(',').map(str::trim).collect();
    let found: Vec<_> = found.split(',').map(str::trim).collect();
    expected.len() == found.len()
        && expected.iter().zip(found).all(|(expected, found)| {
            let found: Vec<_> = found.split(' ').collect();
            expected.split(' ').all(|word| found.contains(&word))
                && expected.split(' ').next() == found.first().copied()
        })
}

fn list(names: impl Iterator<Item = String>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

fn token(delivery: &Delivery) -> Result<LockToken, String> {
    delivery.token.ok_or_else(|| "it is not locked".to_owned())
}

/// A refusal by the name of its kind: `refused lock-lost`.
fn refused(refusal: &Refusal) -> String {
    let kind = match refusal {
        Refusal::Entity(inner) => return format!("refused entity {}", kebab(&format!("{inner:?}"))),
        other => kebab(&format!("{other:?}")),
    };
    format!("refused {kind}")
}

/// `LockLost { .. }` as `lock-lost`.
fn kebab(debug: &str) -> String {
    let name: String = debug.chars().take_while(char::is_ascii_alphanumeric).collect();
    let mut kebab = String::new();
    for character in name.chars() {
        if character.is_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.extend(character.to_lowercase());
    }
    kebab
}
