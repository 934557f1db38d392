//! Facts of every kind, made from a stream of bytes: for round trips, and for the record of the format.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use vorrang_engine::command::Relocation;
use vorrang_engine::entity::authorization::{AuthorizationRule, Rights, Secret};
use vorrang_engine::entity::catalogue::{Subscription, Topic};
use vorrang_engine::entity::description::{Intake, Outlet, Shared};
use vorrang_engine::entity::priority::{
    Class, ClassName, Policy, PriorityRule, PrioritySettings, Rescue, Share,
};
use vorrang_engine::entity::{
    Change, Entity, EntityName, EntityPath, Kind, QueueDescription, Rule, RuleDescription, RuleId, RuleName,
    Status, SubscriptionDescription, SubscriptionName, TopicDescription,
};
use vorrang_engine::fact::{
    Arrival, DeadLetterCause, Details, Fact, Payload, ReceiveMode, RelayCause, RemovalCause, RestoredGaps,
    RestoredMailbox, RestoredMessage, RestoredRun, RestoredSession, ReturnCause, Standing,
};
use vorrang_engine::message::{PropertyChange, PropertyValue};
use vorrang_engine::{
    ColdRecord, EntityId, Level, LevelOrigin, Location, LockToken, MailboxId, Overlay, ReceiverId, Region,
    RunId, Sequence, SessionId, Span, Timestamp,
};
use vorrang_filter::{Action, Correlation, Decimal, Filter, Sql, SystemProperty, Value};

/// How many kinds [`Source::fact`] makes.
pub(crate) const FACTS: u8 = 35;

/// Draws everything from bytes; when they are used up, zeros follow.
pub(crate) struct Source<'a>(pub(crate) &'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    fn small(&mut self) -> u32 {
        u32::from(self.byte()) * 257
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.number()) << 64 | u128::from(self.number())
    }

    fn flag(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()].clone()
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.flag() { Some(make(self)) } else { None }
    }

    fn several<T>(&mut self, make: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.byte() % 4).map(|_| make(self)).collect()
    }

    fn text(&mut self) -> String {
        (0..self.byte() % 12).map(|_| self.pick(&['a', 'b', 'Z', 'é', '漢', '0'])).collect()
    }

    fn name(&mut self) -> String {
        format!("n{}", self.text())
    }

    fn at(&mut self) -> Timestamp {
        Timestamp(self.number())
    }

    fn span(&mut self) -> Span {
        Span(self.number())
    }

    fn mailbox(&mut self) -> MailboxId {
        MailboxId(self.small())
    }

    fn entity(&mut self) -> EntityId {
        EntityId(self.small())
    }

    fn sequence(&mut self) -> Sequence {
        Sequence(self.number())
    }

    fn session(&mut self) -> SessionId {
        SessionId::from(&*self.text())
    }

    fn shared_text(&mut self) -> Arc<str> {
        Arc::from(self.text())
    }

    fn value(&mut self) -> Value {
        match self.byte() % 10 {
            0 => Value::String(self.text().into()),
            1 => Value::Bool(self.flag()),
            2 => Value::Int(i64::from_le_bytes(self.number().to_le_bytes())),
            3 => Value::Double(f64::from(self.small()) / 7.0),
            4 => Value::Decimal(Decimal::new(i128::from(self.number()), self.byte() % 20).unwrap()),
            5 => Value::Guid(self.wide()),
            6 => Value::Timestamp(i64::from(self.small())),
            7 => Value::Timespan(-i64::from(self.small())),
            8 => Value::Char(self.pick(&['x', '漢'])),
            _ => Value::Binary(self.text().into_bytes().into()),
        }
    }

    fn overlay(&mut self) -> Arc<Overlay> {
        let property = |source: &mut Self| {
            let change = match source.byte() % 3 {
                0 => PropertyChange::Removed,
                1 => PropertyChange::Set(PropertyValue::Typed(source.value())),
                _ => PropertyChange::Set(PropertyValue::Encoded(Bytes::from(source.text()))),
            };
            (source.shared_text(), change)
        };
        let system = |source: &mut Self| {
            (source.pick(&SystemProperty::all().collect::<Vec<_>>()), source.maybe(Self::value))
        };
        Arc::new(Overlay {
            properties: self.several(property).into_iter().collect(),
            system: self.several(system).into_iter().collect(),
        })
    }

    fn filter(&mut self) -> Filter {
        match self.byte() % 4 {
            0 => Filter::True,
            1 => Filter::False,
            2 => {
                let user = (self.text(), self.value());
                Filter::from(Correlation::new([(SystemProperty::Label, self.text())], [user]).unwrap())
            }
            _ => {
                let parameters = BTreeMap::from([("@p".to_owned(), self.value())]);
                Filter::from(Sql::parse("a = @p AND sys.Label LIKE 'x%'", parameters).unwrap())
            }
        }
    }

    fn priority(&mut self) -> PrioritySettings {
        let class = |source: &mut Self| Class {
            name: ClassName::parse(&source.name()).unwrap(),
            level: Level(source.byte()),
            target_wait: source.maybe(Self::span),
        };
        let rule = |source: &mut Self| PriorityRule {
            filter: source.filter(),
            class: ClassName::parse(&source.name()).unwrap(),
        };
        let step = self.span();
        PrioritySettings {
            classes: self.several(class),
            policy: self.pick(&[Policy::Strict, Policy::Aged { step }, Policy::Deadline, Policy::Fifo]),
            rescue: Rescue { after: self.span(), share: Share::per_mille(u16::from(self.byte())).unwrap() },
            rules: self.several(rule),
            default_level: Level(self.byte()),
            lift: self.flag(),
            prefetch_share: Share::per_mille(u16::from(self.byte())).unwrap(),
            paused: self.flag(),
        }
    }

    fn shared(&mut self) -> Shared {
        Shared {
            default_time_to_live: self.span(),
            auto_delete_on_idle: self.span(),
            status: self.pick(&Status::ALL),
            enable_batched_operations: self.flag(),
            user_metadata: self.maybe(Self::shared_text),
        }
    }

    fn intake(&mut self) -> Intake {
        let rule = |source: &mut Self| AuthorizationRule {
            key_name: source.shared_text(),
            primary_key: Secret::new(&source.text()),
            secondary_key: Secret::new(&source.text()),
            rights: Rights { send: source.flag(), listen: source.flag(), manage: source.flag() },
        };
        Intake {
            max_size_megabytes: self.number(),
            max_message_kilobytes: self.number(),
            requires_duplicate_detection: self.flag(),
            duplicate_window: self.span(),
            support_ordering: self.flag(),
            authorization_rules: self.several(rule),
        }
    }

    fn entity_name(&mut self) -> EntityName {
        EntityName::parse(&self.name()).unwrap()
    }

    fn subscription_name(&mut self) -> SubscriptionName {
        SubscriptionName::parse(&self.name()).unwrap()
    }

    fn outlet(&mut self) -> Outlet {
        Outlet {
            lock_duration: self.span(),
            requires_session: self.flag(),
            dead_letter_on_expiry: self.flag(),
            max_delivery_count: self.small(),
            forward_to: self.maybe(Self::entity_name),
            forward_dead_lettered_to: self.maybe(Self::entity_name),
            priority: self.priority(),
        }
    }

    fn queue(&mut self) -> QueueDescription {
        QueueDescription { shared: self.shared(), intake: self.intake(), outlet: self.outlet() }
    }

    fn topic(&mut self) -> TopicDescription {
        TopicDescription {
            shared: self.shared(),
            intake: self.intake(),
            filtering_before_publishing: self.flag(),
        }
    }

    fn subscription(&mut self) -> SubscriptionDescription {
        SubscriptionDescription {
            shared: self.shared(),
            outlet: self.outlet(),
            dead_letter_on_filter_errors: self.flag(),
        }
    }

    fn rule(&mut self) -> RuleDescription {
        let action = self.maybe(|source| {
            let parameters = BTreeMap::from([("@p".to_owned(), source.value())]);
            Arc::new(Action::parse("SET a = @p; REMOVE b", parameters).unwrap())
        });
        RuleDescription { name: RuleName::parse(&self.name()).unwrap(), filter: self.filter(), action }
    }

    fn change(&mut self) -> Change {
        let entity = self.entity();
        let rule = RuleId(self.small());
        match self.byte() % 10 {
            0 => {
                Change::QueueCreated { entity, name: self.entity_name(), description: Box::new(self.queue()) }
            }
            1 => {
                Change::TopicCreated { entity, name: self.entity_name(), description: Box::new(self.topic()) }
            }
            2 => Change::SubscriptionCreated {
                entity,
                topic: self.entity(),
                name: self.subscription_name(),
                description: Box::new(self.subscription()),
                rule,
                first_rule: Box::new(self.rule()),
            },
            3 => Change::QueueUpdated { entity, description: Box::new(self.queue()) },
            4 => Change::TopicUpdated { entity, description: Box::new(self.topic()) },
            5 => Change::SubscriptionUpdated { entity, description: Box::new(self.subscription()) },
            6 => Change::RuleCreated { subscription: entity, rule, description: Box::new(self.rule()) },
            7 => Change::RuleUpdated { subscription: entity, rule, description: Box::new(self.rule()) },
            8 => Change::RuleDeleted { subscription: entity, rule },
            _ => Change::Deleted { entity },
        }
    }

    fn whole_entity(&mut self) -> Arc<Entity> {
        let name = self.entity_name();
        let (path, kind) = match self.byte() % 3 {
            0 => (EntityPath::of(name), Kind::Queue(self.queue())),
            1 => {
                let topic = Topic::new(self.topic());
                (EntityPath::of(name), Kind::Topic(topic))
            }
            _ => {
                let rule = Rule { id: RuleId(self.small()), created: self.at(), description: self.rule() };
                let subscription = Subscription::new(self.subscription(), self.entity(), [rule]);
                let path = EntityPath::of_subscription(name, self.subscription_name());
                (path, Kind::Subscription(subscription))
            }
        };
        Arc::new(Entity { id: self.entity(), path, created: self.at(), updated: self.at(), kind })
    }

    fn payload(&mut self) -> Payload {
        let bytes = Bytes::from(self.text());
        let size = u32::try_from(bytes.len()).unwrap();
        Payload { bytes, size, location: Location::NOWHERE, assigned_id: self.maybe(Self::wide) }
    }

    fn details(&mut self) -> Details {
        Details {
            enqueued: self.at(),
            time_to_live: self.span(),
            expires: self.at(),
            session: self.maybe(Self::session),
            first_sequence: self.maybe(Self::sequence),
            deadline: self.maybe(Self::at),
            overlay: self.maybe(Self::overlay),
            dead_letter_source: self.maybe(Self::shared_text),
            hops: self.byte(),
        }
    }

    fn arrival(&mut self) -> Arrival {
        use LevelOrigin::{Default, Header, Operator, Property, Rule};
        Arrival {
            mailbox: self.mailbox(),
            sequence: self.sequence(),
            eligible: self.at(),
            level: Level(self.byte()),
            origin: self.pick(&[Rule, Property, Header, Default, Operator]),
            details: self.maybe(|source| Box::new(source.details())),
        }
    }

    fn receiver(&mut self) -> ReceiverId {
        ReceiverId(self.number())
    }

    fn mode(&mut self) -> ReceiveMode {
        self.pick(&[ReceiveMode::PeekLock, ReceiveMode::ReceiveAndDelete])
    }

    fn cold(&mut self) -> ColdRecord {
        ColdRecord {
            sequence: self.sequence(),
            eligible: self.at(),
            expires: self.at(),
            location: Location(self.number()),
            size: self.small(),
        }
    }

    fn standing(&mut self) -> Standing {
        match self.byte() % 5 {
            0 => Standing::Ready,
            1 => Standing::Deferred,
            2 => Standing::Scheduled { due: self.at() },
            3 => Standing::Delayed { until: self.at() },
            _ => Standing::Locked {
                token: LockToken(self.wide()),
                since: self.at(),
                until: self.at(),
                deferred: self.flag(),
            },
        }
    }

    /// A fact of the kind `which`, counted from one.
    pub(crate) fn fact(&mut self, which: u8) -> Fact {
        let (mailbox, sequence, at) = (self.mailbox(), self.sequence(), self.at());
        match which {
            1 => Fact::Created { seed: self.wide(), at },
            2 => Fact::Recovered { generation: self.number(), at },
            3 => Fact::Administered { change: Box::new(self.change()), at },
            4 => Fact::Enqueued { payload: self.payload(), arrival: self.arrival() },
            5 => Fact::Published {
                topic: self.entity(),
                sequence,
                at,
                payload: self.payload(),
                copies: self.several(Self::arrival),
            },
            6 => Fact::Scheduled { payload: self.payload(), arrival: self.arrival(), due: at },
            7 => Fact::Reserved { mailbox, next: sequence },
            8 => Fact::IdSeen { entity: self.entity(), key: self.wide(), at },
            9 => {
                use RelayCause::{Activated, DeadLetterForwarded, Forwarded};
                let cause = self.pick(&[Activated, Forwarded, DeadLetterForwarded]);
                Fact::Relayed { mailbox, sequence, cause, at, copies: self.several(Self::arrival) }
            }
            10 => Fact::Locked {
                mailbox,
                sequence,
                token: LockToken(self.wide()),
                at,
                until: self.at(),
                receiver: self.maybe(Self::receiver),
                rescue: u16::from(self.byte()),
            },
            11 => Fact::Taken { mailbox, sequence, at, receiver: self.maybe(Self::receiver), rescue: 7 },
            12 => Fact::Renewed { mailbox, sequence, at, until: self.at() },
            13 => {
                use RemovalCause::{Cancelled, Completed, Deleted, Expired};
                let cause = self.pick(&[Completed, Expired, Cancelled, Deleted]);
                Fact::Removed { mailbox, sequence, cause, at }
            }
            14 => {
                use ReturnCause::{
                    Abandoned, DelayOver, LockExpired, Released, SessionClosed, SessionExpired, Suspended,
                };
                let causes =
                    [Abandoned, Released, Suspended, LockExpired, SessionExpired, SessionClosed, DelayOver];
                Fact::Returned {
                    mailbox,
                    sequence,
                    cause: self.pick(&causes),
                    at,
                    counted: self.flag(),
                    overlay: self.maybe(Self::overlay),
                    not_before: self.maybe(Self::at),
                }
            }
            15 => Fact::Deferred { mailbox, sequence, at, overlay: self.maybe(Self::overlay) },
            16 => {
                use DeadLetterCause::{
                    Application, Expired, FilterError, MaxDeliveries, MaxHops, NoSession, Undeliverable,
                };
                let causes =
                    [Application, MaxDeliveries, Expired, MaxHops, Undeliverable, FilterError, NoSession];
                Fact::DeadLettered {
                    mailbox,
                    sequence,
                    to: self.mailbox(),
                    cause: self.pick(&causes),
                    at,
                    counted: self.flag(),
                    source: self.shared_text(),
                    overlay: self.maybe(Self::overlay),
                }
            }
            17 => Fact::Reprioritised { mailbox, sequence, level: Level(self.byte()) },
            18 => Fact::SessionLocked {
                mailbox,
                session: self.session(),
                receiver: self.receiver(),
                mode: self.mode(),
                at,
                until: self.at(),
                rescue: u16::from(self.byte()),
            },
            19 => Fact::SessionRenewed { mailbox, session: self.session(), until: at },
            20 => Fact::SessionUnlocked { mailbox, session: self.session(), at },
            21 => {
                let state = self.maybe(|source| Bytes::from(source.text()));
                Fact::SessionStateSet { mailbox, session: self.session(), state, at }
            }
            22 => {
                let moved = |source: &mut Self| Relocation {
                    mailbox: source.mailbox(),
                    sequence: source.sequence(),
                    from: Location(source.number()),
                    to: Location(source.number()),
                };
                Fact::Moved { moves: self.several(moved) }
            }
            23 => Fact::Chilled {
                mailbox,
                level: Level(self.byte()),
                run: RunId(self.number()),
                records: self.several(Self::cold),
            },
            24 => Fact::Warmed { run: RunId(self.number()), records: self.several(Self::cold) },
            25 => Fact::RestoredNamespace {
                seed: self.wide(),
                generation: self.number(),
                tokens: self.number(),
                next_entity: self.small(),
                next_rule: self.small(),
                now: at,
            },
            26 => Fact::RestoredEntity { entity: self.whole_entity(), accessed: at },
            27 => {
                let ids_seen = self.several(|source| (source.wide(), source.at()));
                let rescue = u16::from(self.byte());
                Fact::RestoredMailbox(Box::new(RestoredMailbox {
                    mailbox,
                    next_sequence: sequence,
                    rescue,
                    ids_seen,
                }))
            }
            28 => Fact::RestoredSession(Box::new(RestoredSession {
                mailbox,
                session: self.session(),
                state: self.maybe(|source| Bytes::from(source.text())),
                updated: at,
                locked_until: self.maybe(Self::at),
            })),
            29 => Fact::RestoredMessage(Box::new(RestoredMessage {
                arrival: self.arrival(),
                location: Location(self.number()),
                size: self.small(),
                deliveries: u16::from(self.byte()),
                standing: self.standing(),
            })),
            31 => Fact::Plucked {
                run: RunId(self.number()),
                records: self.several(|source| (source.small(), source.cold())),
                soonest: at,
            },
            32 => Fact::RestoredGaps(Box::new(RestoredGaps {
                run: RunId(self.number()),
                soonest: at,
                gaps: self.several(Self::number),
            })),
            33 => Fact::Rehoused {
                run: RunId(self.number()),
                to: RunId(self.number()),
                region: Region(self.small()),
            },
            34 => Fact::Cleared { at },
            35 => Fact::ClockAdvanced { ahead: self.span() },
            _ => Fact::RestoredRun(Box::new(RestoredRun {
                mailbox,
                level: Level(self.byte()),
                run: RunId(self.number()),
                count: self.small(),
                consumed: self.small(),
                from: (self.at(), self.sequence()),
                last: (at, sequence),
                bytes: self.number(),
                regions: self.several(|source| (Region(source.small()), source.small())),
            })),
        }
    }
}
