//! What a door can ask.
//!
//! Every operation names its [`Action`] and its place in a `match` without a default, so that one that
//! forgets to cannot be compiled. The place is a path where the asker wrote one, and a number where the
//! broker gave it one before.

use super::develop::Develop;
use crate::access::{Action, Scope};
use bytes::Bytes;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;
use vorrang_engine::command::{ReceiveMode, Selection, Settlement};
use vorrang_engine::entity::{self, EntityPath, RuleName};
use vorrang_engine::survey::Detail;
use vorrang_engine::{
    EntityId, Incoming, Level, LockToken, MailboxId, MessageState, Sequence, SessionId, Span, Timestamp,
    TransactionId,
};
use vorrang_filter::Filter;

/// What a door writes on a request to find the answer again. Counting up makes runs of accepted sends
/// short to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

/// A receiver of a connection, as its door numbers it. A number is used once in a connection's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub u32);

/// Something to do, and the number its answer will bear.
#[derive(Debug)]
pub struct Request {
    /// The door's number for it.
    pub tag: Tag,
    /// What to do.
    pub operation: Operation,
}

impl Request {
    /// Takes the request out of where it lies. What stays there asks for nothing.
    #[must_use]
    pub fn take(&mut self) -> Request {
        let operation = std::mem::replace(&mut self.operation, Operation::Taken { weight: 0 });
        Request { tag: self.tag, operation }
    }
}

/// What an entity is looked up for, which decides who may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To send to it.
    Send,
    /// To receive from it.
    Receive,
    /// To ask about it by whatever right one has, as `$management` links do.
    Inquire,
}

/// How much a sender wants to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// That it was accepted; neighbouring answers are joined ([`Event::Accepted`](super::Event)).
    Plain,
    /// The numbers given to the messages.
    Numbers,
}

/// Everything that can be asked for.
#[derive(Debug)]
pub enum Operation {
    /// Looks an entity up by its path. Answered by [`Answer::Found`](super::Answer).
    Find {
        /// The path.
        path: EntityPath,
        /// What for.
        purpose: Purpose,
    },
    /// Sends messages: all or none.
    Send {
        /// The queue or topic.
        entity: EntityId,
        /// The entity they pass on their way.
        via: Option<EntityId>,
        /// The transaction they belong to.
        transaction: Option<TransactionId>,
        /// The messages, in order.
        messages: SmallVec<[Incoming; 1]>,
        /// What to be told.
        acceptance: Acceptance,
    },
    /// Takes back scheduled messages: all or none.
    Cancel {
        /// Where they were scheduled.
        entity: EntityId,
        /// Their numbers.
        sequences: Vec<Sequence>,
    },
    /// Attaches a receiver.
    Attach {
        /// The door's number for it.
        link: Link,
        /// Where it receives from. Several mailboxes are served strictly in this order.
        mailboxes: SmallVec<[MailboxId; 1]>,
        /// How it takes messages.
        mode: ReceiveMode,
        /// Only messages of this level or higher.
        min_level: Level,
        /// Only messages that match.
        selector: Option<Arc<Filter>>,
    },
    /// Attaches a receiver to a session, waiting for one if need be.
    AcceptSession {
        /// The door's number for the receiver.
        link: Link,
        /// The entity's mailbox.
        mailbox: MailboxId,
        /// The session; none for the next that is free and has messages.
        session: Option<SessionId>,
        /// How it takes messages.
        mode: ReceiveMode,
        /// How long to wait for one.
        wait: Span,
    },
    /// Says how far a receiver may be sent messages. Not answered.
    ///
    /// The bound is counted from the receiver's first delivery, so that deliveries on their way from the
    /// shard to the door while this is on its way to the shard are neither counted twice nor forgotten:
    /// what may be sent now is `limit` less what the shard has handed out so far, in wrapping (serial)
    /// arithmetic; a bound that has been passed already means none.
    Credit {
        /// The receiver.
        link: Link,
        /// How many deliveries in all, replacing what was said before.
        limit: u32,
        /// Whether credit that finds no message is to be given back at once.
        drain: bool,
    },
    /// Says how much of what was delivered has left the connection. One that says so is handed only so much
    /// ahead, whatever its credit; one that never does is bounded by its credit alone.
    Taken {
        /// The [weight](super::weight) of all deliveries that have left, since the connection began.
        weight: u64,
    },
    /// Closes a receiver, or stops waiting for a session. Not answered.
    Detach {
        /// The receiver.
        link: Link,
    },
    /// Settles locked messages: all or none.
    Settle {
        /// The mailbox the locks are in.
        mailbox: MailboxId,
        /// The locks.
        tokens: SmallVec<[LockToken; 1]>,
        /// What to do with them.
        settlement: Settlement,
        /// The transaction this belongs to.
        transaction: Option<TransactionId>,
    },
    /// Renews message locks: all or none.
    Renew {
        /// The mailbox the locks are in.
        mailbox: MailboxId,
        /// The locks.
        tokens: SmallVec<[LockToken; 1]>,
    },
    /// Receives deferred messages by number: all or none.
    ReceiveDeferred {
        /// The mailbox they are in.
        mailbox: MailboxId,
        /// Their numbers.
        sequences: Vec<Sequence>,
        /// Whether to lock or remove them.
        mode: ReceiveMode,
        /// The receiver that holds their session, where they have one.
        link: Option<Link>,
    },
    /// Renews a session lock.
    RenewSession {
        /// The mailbox.
        mailbox: MailboxId,
        /// The session.
        session: SessionId,
        /// The receiver that holds it.
        link: Link,
    },
    /// Sets or clears a session's state.
    SetSessionState {
        /// The mailbox.
        mailbox: MailboxId,
        /// The session.
        session: SessionId,
        /// The receiver that holds it.
        link: Link,
        /// The new state; none clears it.
        state: Option<Bytes>,
    },
    /// Begins a transaction. It is rolled back if the connection ends first.
    Declare,
    /// Ends a transaction.
    Discharge {
        /// Which.
        transaction: TransactionId,
        /// Whether to undo instead of commit.
        rollback: bool,
    },
    /// Deletes waiting messages without delivering them.
    DeleteMessages {
        /// The mailbox.
        mailbox: MailboxId,
        /// Which of them.
        selection: Selection,
        /// Only those enqueued before this time.
        before: Timestamp,
        /// At most so many.
        max: u32,
    },
    /// Gives waiting messages another level.
    Reprioritise {
        /// The mailbox.
        mailbox: MailboxId,
        /// Which of them.
        selection: Selection,
        /// Their new level.
        level: Level,
        /// At most so many.
        max: u32,
        /// Only count what would change.
        dry_run: bool,
    },
    /// Moves a waiting message, as it is or repaired, back to work. Answered by
    /// [`Reply::Sent`](vorrang_engine::Reply::Sent) with its new number; with none if it lies on disk, is
    /// being read now, and must be asked for again.
    Replay {
        /// Where it is.
        mailbox: MailboxId,
        /// Its number there.
        sequence: Sequence,
        /// The queue or topic it goes to, or the subscription whose dead letter it is.
        to: EntityId,
        /// What is stored there.
        message: Box<Incoming>,
        /// Another level than it has.
        level: Option<Level>,
    },
    /// Creates, changes or deletes an entity or a rule.
    Administer(Box<entity::Request>),
    /// Wants to be told of changes to entities and of dead letters from now on, until the connection ends:
    /// [`Event::News`](super::Event::News).
    Watch,
    /// Something only developers do. Those who may manage the namespace may.
    Develop(Develop),
    /// Asks something that changes nothing.
    Ask(Question),
}

/// What messages must be like to be looked at; anything if nothing is said.
#[derive(Debug, Clone, Default)]
pub struct Only {
    /// In this state.
    pub state: Option<MessageState>,
    /// Of this level.
    pub level: Option<Level>,
    /// Matching this filter.
    pub filter: Option<Arc<Filter>>,
}

/// What can be asked without changing anything.
#[derive(Debug)]
pub enum Question {
    /// The namespace itself.
    Namespace,
    /// An entity with its description, rules and counts.
    Entity {
        /// Its path.
        path: EntityPath,
    },
    /// Queues, in the order of their names.
    Queues {
        /// How many to pass over.
        skip: usize,
        /// At most so many.
        top: usize,
    },
    /// Topics, in the order of their names.
    Topics {
        /// How many to pass over.
        skip: usize,
        /// At most so many.
        top: usize,
    },
    /// A topic's subscriptions, in the order of their names.
    Subscriptions {
        /// The topic's path.
        topic: EntityPath,
        /// How many to pass over.
        skip: usize,
        /// At most so many.
        top: usize,
    },
    /// A subscription with its rules, for those who may receive from it.
    Rules {
        /// The subscription's path.
        subscription: EntityPath,
    },
    /// The same for those who administer it: all its rules, or one that a permission may be limited to.
    RuleDescriptions {
        /// The subscription's path.
        subscription: EntityPath,
        /// The one; none for all.
        rule: Option<RuleName>,
    },
    /// Messages by number, whatever their state. Answered by [`Answer::Peeked`](super::Answer).
    Peek {
        /// The mailbox.
        mailbox: MailboxId,
        /// From this number on.
        from: Sequence,
        /// At most so many; the engine bounds it too.
        max: usize,
        /// Only those of one session.
        session: Option<SessionId>,
        /// Only those that are so.
        only: Only,
    },
    /// Why a message waits and what is ahead of it. Answered by [`Answer::Explained`](super::Answer).
    Explain {
        /// The mailbox it is in.
        mailbox: MailboxId,
        /// Its number.
        sequence: Sequence,
    },
    /// How much there is of everything in one entity.
    SurveyEntity {
        /// Its path.
        path: EntityPath,
        /// How much to tell.
        detail: Detail,
    },
    /// The same of all entities, page by page. Answered by [`Answer::Surveyed`](super::Answer), which says
    /// where to go on.
    Survey {
        /// Those after this path.
        after: Option<EntityPath>,
        /// At most so many; more than a thousand are cut.
        top: usize,
        /// How much to tell of each.
        detail: Detail,
    },
    /// How the shard itself is doing. Answered by [`Answer::Condition`](super::Answer).
    Condition,
    /// A session's state, for its holder.
    SessionState {
        /// The mailbox.
        mailbox: MailboxId,
        /// The session.
        session: SessionId,
        /// The receiver that holds it.
        link: Link,
    },
    /// The sessions of a mailbox, in the order of their names.
    Sessions {
        /// The mailbox.
        mailbox: MailboxId,
        /// Those whose state was set after this time; else those with messages or state.
        updated_after: Option<Timestamp>,
        /// Only names after this one.
        after: Option<SessionId>,
        /// How many to pass over.
        skip: usize,
        /// At most so many.
        top: usize,
    },
}

/// Where an operation takes place: what permission is looked up for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A path, as the asker wrote it.
    At(Scope),
    /// An entity that was looked up before, and one that is passed on the way there.
    Entity(EntityId, Option<EntityId>),
    /// Mailboxes of entities that were looked up before; each must be permitted.
    Mailboxes(SmallVec<[MailboxId; 1]>),
    /// A mailbox that something leaves, and an entity it is sent to.
    Between(MailboxId, EntityId),
    /// The connection's own receiver: permitted when it was attached.
    Own,
    /// Nowhere in particular.
    Anywhere,
}

impl Operation {
    /// What this asks permission for.
    #[must_use]
    pub fn action(&self) -> Action {
        match self {
            Operation::Find { purpose: Purpose::Send, .. } | Operation::Send { .. } => Action::Send,
            Operation::Cancel { .. } => Action::CancelScheduled,
            Operation::Find { purpose: Purpose::Receive, .. }
            | Operation::Attach { .. }
            | Operation::Credit { .. }
            | Operation::Taken { .. }
            | Operation::Detach { .. }
            | Operation::ReceiveDeferred { .. } => Action::Receive,
            Operation::Find { purpose: Purpose::Inquire, .. } => Action::Inquire,
            Operation::Settle { .. } | Operation::Renew { .. } => Action::Settle,
            Operation::AcceptSession { .. }
            | Operation::RenewSession { .. }
            | Operation::SetSessionState { .. } => Action::UseSession,
            Operation::Declare | Operation::Discharge { .. } => Action::Transact,
            Operation::DeleteMessages { .. } => Action::DeleteMessages,
            Operation::Reprioritise { .. } => Action::Reprioritise,
            Operation::Replay { .. } => Action::Replay,
            Operation::Administer(request) => administration_action(request),
            Operation::Watch => Action::Observe,
            Operation::Develop(_) => Action::Develop,
            Operation::Ask(question) => question.action(),
        }
    }

    /// The transaction it is part of, or ends.
    pub(crate) fn transaction(&self) -> Option<TransactionId> {
        match self {
            Operation::Send { transaction, .. } | Operation::Settle { transaction, .. } => *transaction,
            Operation::Discharge { transaction, .. } => Some(*transaction),
            _ => None,
        }
    }

    /// Bytes of the messages it brings.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Operation::Send { messages, .. } => messages.iter().map(|message| message.payload.len()).sum(),
            Operation::Replay { message, .. } => message.payload.len(),
            Operation::Develop(Develop::Restore { image }) => image.len(),
            _ => 0,
        }
    }

    /// Has the message it brings fetched from memory, if it is a single one.
    #[inline]
    pub(crate) fn fetch(&self) {
        if let Operation::Send { messages, .. } = self
            && let [message] = messages.as_slice()
        {
            vorrang_memory::fetch(&message.payload);
        }
    }

    /// Whether carrying it out takes little time, whatever waits where.
    pub(crate) fn is_brief(&self) -> bool {
        matches!(
            self,
            Operation::Send { .. }
                | Operation::Settle { .. }
                | Operation::Renew { .. }
                | Operation::Taken { .. }
        )
    }

    /// Whether carrying this out adds to what is stored.
    pub(crate) fn grows(&self) -> bool {
        match self {
            Operation::Send { .. }
            | Operation::Replay { .. }
            | Operation::Develop(Develop::Restore { .. })
            | Operation::SetSessionState { state: Some(_), .. } => true,
            Operation::Administer(request) => {
                !matches!(**request, entity::Request::Delete { .. } | entity::Request::DeleteRule { .. })
            }
            Operation::Find { .. }
            | Operation::Cancel { .. }
            | Operation::Attach { .. }
            | Operation::AcceptSession { .. }
            | Operation::Credit { .. }
            | Operation::Taken { .. }
            | Operation::Detach { .. }
            | Operation::Settle { .. }
            | Operation::Renew { .. }
            | Operation::ReceiveDeferred { .. }
            | Operation::RenewSession { .. }
            | Operation::SetSessionState { state: None, .. }
            | Operation::Declare
            | Operation::Discharge { .. }
            | Operation::DeleteMessages { .. }
            | Operation::Reprioritise { .. }
            | Operation::Watch
            | Operation::Develop(_)
            | Operation::Ask(_) => false,
        }
    }

    pub(crate) fn place(&self) -> Place {
        match self {
            Operation::Find { path, .. } => Place::At(Scope::of_entity(path)),
            Operation::Send { entity, via, .. } => Place::Entity(*entity, *via),
            Operation::Cancel { entity, .. } => Place::Entity(*entity, None),
            Operation::Attach { mailboxes, .. } => Place::Mailboxes(mailboxes.clone()),
            Operation::Credit { .. } | Operation::Taken { .. } | Operation::Detach { .. } => Place::Own,
            Operation::AcceptSession { mailbox, .. }
            | Operation::Settle { mailbox, .. }
            | Operation::Renew { mailbox, .. }
            | Operation::ReceiveDeferred { mailbox, .. }
            | Operation::RenewSession { mailbox, .. }
            | Operation::SetSessionState { mailbox, .. }
            | Operation::DeleteMessages { mailbox, .. }
            | Operation::Reprioritise { mailbox, .. } => Place::Mailboxes(smallvec![*mailbox]),
            Operation::Replay { mailbox, to, .. } => Place::Between(*mailbox, *to),
            Operation::Declare | Operation::Discharge { .. } => Place::Anywhere,
            Operation::Administer(request) => Place::At(administration_scope(request)),
            Operation::Watch | Operation::Develop(_) => Place::At(Scope::namespace()),
            Operation::Ask(question) => question.place(),
        }
    }
}

impl Question {
    fn action(&self) -> Action {
        match self {
            Question::Namespace
            | Question::Entity { .. }
            | Question::RuleDescriptions { .. }
            | Question::SurveyEntity { .. } => Action::ReadEntity,
            Question::Queues { .. }
            | Question::Topics { .. }
            | Question::Subscriptions { .. }
            | Question::Survey { .. } => Action::ListEntities,
            Question::Explain { .. } => Action::Explain,
            Question::Condition => Action::Observe,
            Question::Rules { .. } => Action::ListRules,
            Question::Peek { .. } => Action::Peek,
            Question::SessionState { .. } => Action::UseSession,
            Question::Sessions { .. } => Action::ListSessions,
        }
    }

    fn place(&self) -> Place {
        match self {
            Question::Entity { path }
            | Question::SurveyEntity { path, .. }
            | Question::Rules { subscription: path } => Place::At(Scope::of_entity(path)),
            Question::Survey { .. } | Question::Condition => Place::At(Scope::namespace()),
            Question::RuleDescriptions { subscription, rule } => {
                Place::At(rule_scope(&Scope::of_entity(subscription), rule.as_ref()))
            }
            Question::Namespace => Place::At(Scope::namespace().join("$namespaceinfo")),
            Question::Queues { .. } => Place::At(Scope::resources("queues")),
            Question::Topics { .. } => Place::At(Scope::resources("topics")),
            Question::Subscriptions { topic, .. } => Place::At(Scope::of_entity(topic).join("subscriptions")),
            Question::Peek { mailbox, .. }
            | Question::Explain { mailbox, .. }
            | Question::SessionState { mailbox, .. }
            | Question::Sessions { mailbox, .. } => Place::Mailboxes(smallvec![*mailbox]),
        }
    }
}

fn administration_action(request: &entity::Request) -> Action {
    match request {
        entity::Request::CreateQueue { .. }
        | entity::Request::CreateTopic { .. }
        | entity::Request::CreateSubscription { .. } => Action::CreateEntity,
        entity::Request::Update { .. } => Action::UpdateEntity,
        entity::Request::Delete { .. } => Action::DeleteEntity,
        entity::Request::CreateRule { .. }
        | entity::Request::UpdateRule { .. }
        | entity::Request::DeleteRule { .. } => Action::ChangeRules,
    }
}

/// A rule is a place of its own within its subscription: some clients sign a token for just one.
fn administration_scope(request: &entity::Request) -> Scope {
    let (path, rule) = match request {
        entity::Request::CreateQueue { name, .. } | entity::Request::CreateTopic { name, .. } => {
            (EntityPath::of(name.clone()), None)
        }
        entity::Request::CreateSubscription { topic, name, .. } => {
            (EntityPath::of_subscription(topic.clone(), name.clone()), None)
        }
        entity::Request::CreateRule { topic, subscription, rule }
        | entity::Request::UpdateRule { topic, subscription, rule } => {
            (EntityPath::of_subscription(topic.clone(), subscription.clone()), Some(&rule.name))
        }
        entity::Request::DeleteRule { topic, subscription, rule } => {
            (EntityPath::of_subscription(topic.clone(), subscription.clone()), Some(rule))
        }
        entity::Request::Update { path, .. } | entity::Request::Delete { path } => (path.clone(), None),
    };
    let scope = Scope::of_entity(&path);
    match rule {
        None => scope,
        Some(rule) => rule_scope(&scope, Some(rule)),
    }
}

/// The place of a subscription's rules, or of one of them.
fn rule_scope(subscription: &Scope, rule: Option<&RuleName>) -> Scope {
    let rules = subscription.join("rules");
    match rule {
        None => rules,
        Some(rule) => rules.join(rule.key()),
    }
}

/// Entities that an administrative request makes others send to: whoever asks must be allowed to send
/// there.
pub(crate) fn forward_targets(request: &entity::Request) -> Vec<Scope> {
    let settings = match request {
        entity::Request::CreateQueue { settings, .. }
        | entity::Request::CreateTopic { settings, .. }
        | entity::Request::CreateSubscription { settings, .. }
        | entity::Request::Update { settings, .. } => settings,
        entity::Request::CreateRule { .. }
        | entity::Request::UpdateRule { .. }
        | entity::Request::Delete { .. }
        | entity::Request::DeleteRule { .. } => return Vec::new(),
    };
    let target = |setting: &entity::Setting| match setting {
        entity::Setting::ForwardTo(name) | entity::Setting::ForwardDeadLetteredMessagesTo(name) => {
            name.clone()
        }
        _ => None,
    };
    settings.iter().filter_map(target).map(|name| Scope::of_entity(&EntityPath::of(name))).collect()
}
