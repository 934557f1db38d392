//! Links that clients ask for: found, permitted, attached at the broker, and only then answered.

use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;
use vorrang_amqp::connection::{AttachReply, AttachRequest, LinkId};
use vorrang_amqp::performative::{Attach, Error, Role as End, SenderSettleMode, Source, Target, TargetNode};
use vorrang_amqp::ticks::ticks_of;
use vorrang_amqp::value::{Map, MapBuilder, Timestamp as AmqpTimestamp, Value};
use vorrang_amqp::{Symbol, Text};
use vorrang_broker::access::Scope;
use vorrang_broker::api::{Answer, Found, Link, Operation, Purpose};
use vorrang_engine::command::ReceiveMode;
use vorrang_engine::entity::EntityPath;
use vorrang_engine::entity::catalogue::Kind;
use vorrang_engine::{Level, MailboxId, Reply, SessionId, Span, Timestamp};
use vorrang_filter::{Filter, Parameters, Sql};

use super::address::Address;
use super::condition::{self, Told, name};
use super::connection::wall_time;
use super::door::{Door, Expecting};
use super::links::{Managed, Node, Receiver, Responses, Role, Sender};
use super::sending::CREDIT;
use super::{Answered, Outcome};

const SESSION_FILTER: &str = "com.microsoft:session-filter";
/// Sessions held by several receivers at once: known by its name, with or without `:list`, or by its descriptor.
const COOPERATIVE_FILTER: &str = "com.microsoft:non-exclusive-session-filter";
const COOPERATIVE_CODE: u64 = 0x0000_0013_7000_000E;
const MIN_LEVEL_FILTER: &str = "vorrang:min-level";
/// A selector is known by its descriptor, whatever key a client puts it under, or by one of these keys.
const SELECTOR_FILTERS: [&str; 2] = ["apache.org:selector-filter:string", "jms-selector"];
const SELECTOR_CODE: u64 = 0x0000_468C_0000_0004;
const LOCKED_UNTIL: &str = "com.microsoft:locked-until-utc";
const TIMEOUT: &str = "com.microsoft:timeout";
const TRANSFER_DESTINATION: &str = "com.microsoft:transfer-destination-address";
const MAX_BATCH: &str = "com.microsoft:max-message-batch-size";

/// How long a client waits for a session when it does not say.
const SESSION_WAIT: Span = Span::seconds(65);
/// Entities one receiver may be served from.
const ORDERED_MAX: usize = 64;
/// What a batch may weigh even where single messages may weigh more.
const BATCH_BYTES_MAX: u64 = 1_048_576;

/// A link on its way to being attached.
#[derive(Debug)]
pub(super) struct Plan {
    link: LinkId,
    attach: Attach,
    stage: Stage,
}

/// What the plan waits for.
#[derive(Debug)]
enum Stage {
    /// A sender's entities: the target, and the one after it on a send-via link.
    FindTargets { left: Vec<EntityPath>, found: Vec<(EntityPath, Found)> },
    /// A receiver's entities, in order.
    FindSources { left: Vec<EntityPath>, found: Vec<(EntityPath, Found)> },
    /// The entity of a `$management` link.
    FindManaged { path: EntityPath },
    /// The broker to attach the receiver.
    Attach(Box<Attaching>),
}

/// The answer to an attach, that may have to wait for earlier ones.
#[derive(Debug)]
pub(super) enum Ready {
    /// The link is attached.
    Accept {
        /// What the client is told.
        reply: Box<AttachReply>,
        /// Whether the client sends on it, and needs credit.
        takes_messages: bool,
    },
    /// It is not.
    Refuse(Box<Error>),
}

/// A receiver that the broker is about to attach.
#[derive(Debug)]
struct Attaching {
    number: Link,
    mailboxes: Vec<MailboxId>,
    path: Box<str>,
    mode: ReceiveMode,
}

impl Door {
    /// A client asks for a link.
    pub(super) fn attach(&mut self, request: AttachRequest) {
        let AttachRequest { link, session, attach } = request;
        // Names and addresses outlive the read buffer they came in.
        self.links.insert(link, session, attach.name.detached(), Role::Pending(None));
        self.order.ask(session, link);
        let outcome = match attach.role {
            End::Sender => self.attach_sender(link, attach),
            End::Receiver => self.attach_receiver(link, attach),
        };
        if let Err(told) = outcome {
            self.refuse(link, told);
        }
    }

    fn attach_sender(&mut self, link: LinkId, attach: Attach) -> Result<(), Told> {
        let target = match &attach.target {
            Some(TargetNode::Coordinator(_)) => {
                self.accept(link, &attach, Role::Coordinator(BTreeSet::new()), AttachReply::default());
                return Ok(());
            }
            Some(TargetNode::Node(target)) => target.address.as_ref(),
            None => None,
        };
        let stage = match parse_address(target)? {
            Address::Cbs => {
                self.accept(link, &attach, Role::Requests(Node::Cbs), AttachReply::default());
                return Ok(());
            }
            Address::Entity(path) if path.management => Stage::FindManaged { path },
            Address::Entity(path) => {
                let destination = attach.properties.as_ref().and_then(|map| map.value(TRANSFER_DESTINATION));
                let mut left = vec![path];
                if let Some(text) = destination.as_ref().and_then(Value::as_text) {
                    match parse_address(Some(text))? {
                        Address::Entity(path) => left.push(path),
                        _ => return Err(not_allowed("A transfer destination is one entity.")),
                    }
                }
                Stage::FindTargets { left, found: Vec::new() }
            }
            Address::Ordered(_) => return Err(not_allowed("Messages are sent to one entity.")),
        };
        self.find(Plan { link, attach, stage });
        Ok(())
    }

    fn attach_receiver(&mut self, link: LinkId, attach: Attach) -> Result<(), Told> {
        let address = attach.source.as_ref().and_then(|source| source.address.as_ref());
        let stage = match parse_address(address)? {
            Address::Cbs => {
                let responses = responses(Node::Cbs, &attach);
                self.accept(link, &attach, Role::Responses(Box::new(responses)), AttachReply::default());
                return Ok(());
            }
            Address::Entity(path) if path.management => Stage::FindManaged { path },
            Address::Entity(path) => Stage::FindSources { left: vec![path], found: Vec::new() },
            Address::Ordered(paths)
                if paths.len() > ORDERED_MAX || paths.iter().any(|path| path.management) =>
            {
                let text =
                    format!("A receiver is served from at most {ORDERED_MAX} queues or subscriptions.");
                return Err(not_allowed(&text));
            }
            Address::Ordered(mut paths) => {
                paths.reverse();
                Stage::FindSources { left: paths, found: Vec::new() }
            }
        };
        self.find(Plan { link, attach, stage });
        Ok(())
    }

    /// Looks up the next entity a plan needs.
    fn find(&mut self, plan: Plan) {
        let (path, purpose) = match &plan.stage {
            Stage::FindTargets { left, .. } => (left.last(), Purpose::Send),
            Stage::FindSources { left, .. } => (left.last(), Purpose::Receive),
            Stage::FindManaged { path } => (Some(path), Purpose::Inquire),
            Stage::Attach(_) => (None, Purpose::Receive),
        };
        if let Some(path) = path.cloned() {
            self.ask(Expecting::Attach(Box::new(plan)), Operation::Find { path, purpose });
        }
    }

    /// The broker has answered a step of a plan.
    pub(super) fn attach_answered(&mut self, plan: Plan, outcome: Outcome) {
        let link = plan.link;
        if self.links.entry(link).is_none() {
            return; // the client gave up; forgetting the link told the broker
        }
        let path = plan.shown_path();
        let next = match outcome {
            Ok(answered) => self.attach_continued(plan, answered),
            Err(refused) => Err(condition::told(&refused, &path)),
        };
        if let Err(told) = next {
            self.refuse(link, told);
        }
    }

    fn attach_continued(&mut self, plan: Plan, answered: Answered) -> Result<(), Told> {
        let Plan { link, attach, stage } = plan;
        match (stage, answered) {
            (Stage::FindTargets { mut left, mut found }, Answered::Answer(Answer::Found(entity))) => {
                found.extend(left.pop().map(|path| (path, entity)));
                if left.is_empty() {
                    return self.accept_sender(link, &attach, found);
                }
                self.find(Plan { link, attach, stage: Stage::FindTargets { left, found } });
            }
            (Stage::FindSources { mut left, mut found }, Answered::Answer(Answer::Found(entity))) => {
                found.extend(left.pop().map(|path| (path, entity)));
                if left.is_empty() {
                    return self.attach_at_broker(link, attach, &found);
                }
                self.find(Plan { link, attach, stage: Stage::FindSources { left, found } });
            }
            (Stage::FindManaged { path }, Answered::Answer(Answer::Found(entity))) => {
                self.accept_managed(link, &attach, path, &entity);
            }
            (Stage::Attach(attaching), Answered::Reply(Reply::SessionAccepted { session, until, .. })) => {
                self.accept_receiver(link, &attach, *attaching, Some((session, until)));
            }
            (Stage::Attach(attaching), Answered::Reply(_)) => {
                self.accept_receiver(link, &attach, *attaching, None);
            }
            _ => {
                return Err(Told::new(
                    name::INTERNAL_ERROR,
                    500,
                    "The broker gave another answer than asked for.",
                ));
            }
        }
        Ok(())
    }

    fn accept_sender(
        &mut self,
        link: LinkId,
        attach: &Attach,
        mut found: Vec<(EntityPath, Found)>,
    ) -> Result<(), Told> {
        // The path asked for last was looked up first: on a send-via link that is the destination.
        let via = (found.len() > 1).then(|| found.pop()).flatten().map(|(_, via)| via.entity);
        let Some((path, target)) = found.pop() else { return Ok(()) };
        let shown = path.to_string();
        let (status, intake) = match &target.description.kind {
            Kind::Queue(queue) => (queue.shared.status, &queue.intake),
            Kind::Topic(topic) => (topic.description.shared.status, &topic.description.intake),
            Kind::Subscription(_) => return Err(not_allowed("Messages are sent to queues and topics only.")),
        };
        if !target.mailbox.is_main() {
            return Err(not_allowed("Messages cannot be sent to a dead-letter queue."));
        }
        if !status.allows_send() {
            let text = format!("Messaging entity '{shown}' is currently disabled.");
            return Err(Told::new(name::ENTITY_DISABLED, 400, text));
        }
        let size = intake.max_message_kilobytes.saturating_mul(1_024);
        let mut properties = MapBuilder::default();
        properties.push_symbol(MAX_BATCH, &size.min(BATCH_BYTES_MAX));
        if let Some(destination) = attach.properties.as_ref().and_then(|map| map.value(TRANSFER_DESTINATION))
        {
            properties.push_symbol(TRANSFER_DESTINATION, &destination);
        }
        let sender = Sender {
            entity: target.entity,
            via,
            scope: Scope::of_entity(&path),
            path: shown.into(),
            in_flight: 0,
        };
        let reply = AttachReply {
            max_message_size: Some(size),
            properties: Some(properties.finish()),
            ..AttachReply::default()
        };
        self.accept(link, attach, Role::Sender(Box::new(sender)), reply);
        self.claims_changed();
        Ok(())
    }

    fn accept_managed(&mut self, link: LinkId, attach: &Attach, path: EntityPath, found: &Found) {
        let message_bytes_max = match &found.description.kind {
            Kind::Queue(queue) => queue.intake.max_message_kilobytes.saturating_mul(1_024),
            Kind::Topic(topic) => topic.description.intake.max_message_kilobytes.saturating_mul(1_024),
            Kind::Subscription(_) => BATCH_BYTES_MAX,
        };
        let path = EntityPath { management: false, ..path }.to_string().into();
        let node = Node::Management(Managed {
            entity: found.entity,
            mailbox: found.mailbox,
            path,
            message_bytes_max,
        });
        let role = match attach.role {
            End::Sender => Role::Requests(node),
            End::Receiver => Role::Responses(Box::new(responses(node, attach))),
        };
        self.accept(link, attach, role, AttachReply::default());
    }

    fn attach_at_broker(
        &mut self,
        link: LinkId,
        attach: Attach,
        found: &[(EntityPath, Found)],
    ) -> Result<(), Told> {
        if found.iter().any(|(_, found)| matches!(found.description.kind, Kind::Topic(_))) {
            return Err(not_allowed("Messages of a topic are received from its subscriptions."));
        }
        let filters = attach.source.as_ref().and_then(|source| source.filter.as_ref());
        let wishes = Wishes::read(filters)?;
        let settled = attach.snd_settle_mode == Some(SenderSettleMode::Settled);
        let mode = if settled { ReceiveMode::ReceiveAndDelete } else { ReceiveMode::PeekLock };
        let number = self.take_number();
        let paths: Vec<String> = found.iter().map(|(path, _)| path.to_string()).collect();
        let mailboxes: SmallVec<[MailboxId; 1]> = found.iter().map(|(_, found)| found.mailbox).collect();
        let session = match wishes.session {
            SessionWish::No => None,
            SessionWish::Next => Some(None),
            SessionWish::Named(session) => Some(Some(session)),
        };
        let operation = match (session, mailboxes.as_slice()) {
            (Some(session), [mailbox]) => {
                let wait =
                    attach.properties.as_ref().and_then(|map| map.value(TIMEOUT)).and_then(|ms| ms.as_u64());
                let wait = wait.map_or(SESSION_WAIT, Span);
                Operation::AcceptSession { link: number, mailbox: *mailbox, session, mode, wait }
            }
            (Some(_), _) => return Err(not_allowed("A session is accepted from one entity.")),
            (None, _) => Operation::Attach {
                link: number,
                mailboxes: mailboxes.clone(),
                mode,
                min_level: wishes.min_level,
                selector: wishes.selector,
            },
        };
        let attaching =
            Attaching { number, mailboxes: mailboxes.to_vec(), path: paths.join("|").into(), mode };
        if let Some(role) = self.links.role(link) {
            *role = Role::Pending(Some(number));
        }
        self.links.number(number, link);
        let waits_long = matches!(&operation, Operation::AcceptSession { session: None, .. });
        let plan = Plan { link, attach, stage: Stage::Attach(Box::new(attaching)) };
        self.passing.begin();
        self.ask(Expecting::Attach(Box::new(plan)), operation);
        if waits_long {
            self.step_out_of_order(link);
        }
        Ok(())
    }

    fn accept_receiver(
        &mut self,
        link: LinkId,
        attach: &Attach,
        attaching: Attaching,
        session: Option<(SessionId, Timestamp)>,
    ) {
        let mut source = attach.source.clone();
        let mut properties = None;
        if let (Some(source), Some((session, until))) = (source.as_mut(), &session) {
            source.filter = Some(session_filter(source.filter.as_ref(), session));
            let mut builder = MapBuilder::default();
            let until = AmqpTimestamp(i64::try_from(until.0).unwrap_or(i64::MAX));
            builder.push_symbol(LOCKED_UNTIL, &ticks_of(until));
            properties = Some(builder.finish());
        }
        let receiver = Receiver {
            number: attaching.number,
            mailboxes: attaching.mailboxes,
            path: attaching.path,
            settled: attaching.mode == ReceiveMode::ReceiveAndDelete,
            group: session.map(|(session, _)| session),
            sent: 0,
            origins: std::collections::BTreeMap::new(),
            held: std::collections::VecDeque::new(),
            draining: false,
            missed: std::collections::BTreeSet::new(),
        };
        let reply = AttachReply { source, properties, ..AttachReply::default() };
        self.accept(link, attach, Role::Receiver(Box::new(receiver)), reply);
    }

    /// Answers an attach, echoing what the client said unless the reply says otherwise.
    fn accept(&mut self, link: LinkId, attach: &Attach, role: Role, reply: AttachReply) {
        let takes_messages = matches!(role, Role::Sender(_) | Role::Requests(_) | Role::Coordinator(_));
        if let Some(entry) = self.links.entry(link) {
            let (kind, entity) = role.shown();
            let watched = self.entered.client().attached(entry.name.as_str(), kind, entity, wall_time());
            if takes_messages {
                watched.set_credit(CREDIT);
            }
            entry.watched = Some(watched);
            entry.role = role;
        }
        let reply = AttachReply {
            source: reply.source.or_else(|| attach.source.clone()).or_else(|| Some(Source::default())),
            target: reply
                .target
                .or_else(|| attach.target.clone())
                .or_else(|| Some(TargetNode::Node(Target::default()))),
            ..reply
        };
        let ready = Ready::Accept { reply: Box::new(reply), takes_messages };
        let leaving = self.order.answer(link, ready);
        self.answer_attaches(leaving);
    }

    fn refuse(&mut self, link: LinkId, told: Told) {
        if let Some(entry) = self.links.remove(link)
            && let Role::Pending(Some(number)) = entry.role
        {
            self.links.forget_number(number);
        }
        self.answer_refused(link, told.error());
    }

    /// Answers an attach with a refusal, in its turn.
    pub(super) fn answer_refused(&mut self, link: LinkId, error: Error) {
        let leaving = self.order.answer(link, Ready::Refuse(Box::new(error)));
        self.answer_attaches(leaving);
    }

    /// A link is gone, or waits long: those behind it need not.
    pub(super) fn step_out_of_order(&mut self, link: LinkId) {
        let leaving = self.order.step_out(link);
        self.answer_attaches(leaving);
    }

    fn answer_attaches(&mut self, leaving: Vec<(LinkId, Ready)>) {
        for (link, ready) in leaving {
            // The client may be gone already; forgetting the link follows.
            let _ = match ready {
                Ready::Accept { reply, takes_messages } => {
                    let accepted = self.amqp.accept_attach(link, *reply);
                    if accepted.is_ok() && takes_messages { self.amqp.grant(link, CREDIT) } else { accepted }
                }
                Ready::Refuse(error) => self.amqp.refuse_attach(link, *error),
            };
        }
    }
}

impl Plan {
    /// The entity the current step is about, for error texts.
    fn shown_path(&self) -> String {
        match &self.stage {
            Stage::FindTargets { left, .. } | Stage::FindSources { left, .. } => {
                left.last().map(ToString::to_string).unwrap_or_default()
            }
            Stage::FindManaged { path } => path.to_string(),
            Stage::Attach(attaching) => attaching.path.to_string(),
        }
    }
}

/// What a receiver wants beyond messages of an entity.
struct Wishes {
    session: SessionWish,
    min_level: Level,
    selector: Option<Arc<Filter>>,
}

/// Whether a receiver wants a session.
enum SessionWish {
    /// None: it receives from the whole entity.
    No,
    /// The next that is free and has messages.
    Next,
    /// This one.
    Named(SessionId),
}

impl Wishes {
    fn read(filters: Option<&Map>) -> Result<Wishes, Told> {
        if filters.is_some_and(|filters| filters.iter().any(|(key, value)| is_cooperative(&key, &value))) {
            let text =
                "Sessions are held by one receiver at a time; cooperative session locks are not supported.";
            return Err(Told::new(name::NOT_IMPLEMENTED, 501, text));
        }
        let value =
            |key: &str| filters.and_then(|map| map.value(key)).map(|value| value.undescribed().clone());
        let session = match value(SESSION_FILTER) {
            None => SessionWish::No,
            Some(Value::Null) => SessionWish::Next,
            Some(value) => match value.as_str() {
                Some(name) => SessionWish::Named(SessionId(Arc::from(name))),
                None => return Err(argument_error("A session filter is a string or null.")),
            },
        };
        let min_level = match value(MIN_LEVEL_FILTER) {
            None | Some(Value::Null) => Level(0),
            Some(value) => match value.as_integer().and_then(|level| u8::try_from(level).ok()) {
                Some(level) => Level(level),
                None => return Err(argument_error("vorrang:min-level is a number from 0 to 255.")),
            },
        };
        let text = filters.and_then(selector).map(|value| value.undescribed().clone());
        let selector = match text.as_ref().map(|value| value.as_str()) {
            None => None,
            Some(Some(text)) => match Sql::parse(text, Parameters::default()) {
                Ok(sql) => Some(Arc::new(Filter::from(sql))),
                Err(error) => {
                    return Err(argument_error(&format!("The selector cannot be parsed: {error}.")));
                }
            },
            Some(None) => return Err(argument_error("A selector is a string.")),
        };
        Ok(Wishes { session, min_level, selector })
    }
}

/// Whether a filter asks to share a session with other receivers.
fn is_cooperative(key: &Value, value: &Value) -> bool {
    let code = match value {
        Value::Described(described) => described.descriptor.as_u64(),
        _ => None,
    };
    key.as_str().is_some_and(|key| key.starts_with(COOPERATIVE_FILTER)) || code == Some(COOPERATIVE_CODE)
}

/// The selector among a receiver's filters.
fn selector(filters: &Map) -> Option<Value> {
    let is_selector = |key: &Value, value: &Value| {
        let described = match value {
            Value::Described(described) => Some(&described.descriptor),
            _ => None,
        };
        let by_name = |name: &Value| name.as_str().is_some_and(|name| SELECTOR_FILTERS.contains(&name));
        by_name(key)
            || described
                .is_some_and(|descriptor| by_name(descriptor) || descriptor.as_u64() == Some(SELECTOR_CODE))
    };
    filters.iter().find(|(key, value)| is_selector(key, value)).map(|(_, value)| value)
}

/// The filters with the granted session's name in place of what the client asked for: described if
/// the client's was, because some clients can read no other.
fn session_filter(asked: Option<&Map>, session: &SessionId) -> Map {
    let mut builder = MapBuilder::default();
    for (key, value) in asked.into_iter().flat_map(|map| map.iter().collect::<Vec<_>>()) {
        if key.as_str() == Some(SESSION_FILTER) {
            let name = Value::from(session.as_str());
            let value = match value {
                Value::Described(described) => Value::described(described.descriptor, name),
                _ => name,
            };
            builder.push(&Symbol::from_static(SESSION_FILTER), &value);
        } else {
            builder.push(&key, &value);
        }
    }
    builder.finish()
}

fn responses(node: Node, attach: &Attach) -> Responses {
    let address = match &attach.target {
        Some(TargetNode::Node(target)) => target.address.as_ref().map(Text::detached),
        _ => None,
    };
    Responses { node, address, waiting: std::collections::VecDeque::new() }
}

fn parse_address(address: Option<&Text>) -> Result<Address, Told> {
    let Some(text) = address else { return Err(not_allowed("A link needs the address of an entity.")) };
    // A name that no entity can have is the name of an entity that does not exist.
    Address::parse(text.as_str()).map_err(|_| condition::not_found(text.as_str()))
}

fn not_allowed(text: &str) -> Told {
    Told::new(name::NOT_ALLOWED, 400, text)
}

fn argument_error(text: &str) -> Told {
    Told::new(name::ARGUMENT_ERROR, 400, text)
}
