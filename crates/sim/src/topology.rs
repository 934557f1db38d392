//! The entities every run begins with, each for the sake of some promises.

use crate::history::BoxRules;
use std::sync::Arc;
use vorrang_engine::entity::name::Error;
use vorrang_engine::entity::{
    EntityName, Request, RuleDescription, Setting, SubscriptionName,
    priority::{Policy, Rescue, Share},
};
use vorrang_engine::{EntityId, Span};
use vorrang_filter::{Filter, Parameters, Sql};

/// What an entity is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A queue with levels in strict order.
    Plain,
    /// A queue with sessions.
    Sessions,
    /// A queue with duplicate detection.
    Unique,
    /// A queue to receive and delete from.
    Lossy,
    /// A queue whose messages expire into the dead-letter queue.
    Expiring,
    /// A queue that hands its messages on to the next.
    Hallway,
    /// A queue with ageing, where they arrive.
    Parlour,
    /// A queue in the order of deadlines.
    Office,
    /// A topic.
    Topic,
    /// A subscription that wants everything.
    All,
    /// A subscription that wants messages of kind 1.
    Some,
}

/// The entities of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Topology {
    entities: Vec<(Kind, EntityId)>,
}

/// In the order they are created in.
pub(crate) const KINDS: [Kind; 11] = [
    Kind::Plain,
    Kind::Sessions,
    Kind::Unique,
    Kind::Lossy,
    Kind::Expiring,
    Kind::Parlour,
    Kind::Hallway,
    Kind::Office,
    Kind::Topic,
    Kind::All,
    Kind::Some,
];

impl Topology {
    /// Notes the number an entity was given.
    pub(crate) fn add(&mut self, kind: Kind, entity: EntityId) {
        self.entities.push((kind, entity));
    }

    /// The entity of a kind.
    #[must_use]
    pub(crate) fn of(&self, kind: Kind) -> EntityId {
        let found = self.entities.iter().find(|(known, _)| *known == kind);
        found.map(|(_, entity)| *entity).expect("every kind is created before clients begin")
    }

    /// Everything that can be received from.
    pub(crate) fn receivable(&self) -> impl Iterator<Item = (Kind, EntityId)> {
        self.entities.iter().copied().filter(|(kind, _)| keeps(*kind))
    }

    /// Where a message of this kind, sent there, must come to.
    #[must_use]
    pub(crate) fn targets(&self, kind: Kind, of: u8) -> Vec<EntityId> {
        match kind {
            Kind::Topic if of == 1 => vec![self.of(Kind::All), self.of(Kind::Some)],
            Kind::Topic => vec![self.of(Kind::All)],
            Kind::Hallway => vec![self.of(Kind::Parlour)],
            other => vec![self.of(other)],
        }
    }
}

/// Whether messages wait in an entity of this kind to be received.
fn keeps(kind: Kind) -> bool {
    !matches!(kind, Kind::Topic | Kind::Hallway)
}

/// What is promised about an entity of this kind; none where nothing is received from.
#[must_use]
pub(crate) fn rules(kind: Kind) -> Option<BoxRules> {
    keeps(kind).then(|| BoxRules {
        lock: match kind {
            Kind::Sessions => Span::seconds(20),
            Kind::Unique => Span::seconds(5),
            _ => Span::seconds(10),
        },
        deliveries_max: if kind == Kind::Plain { 3 } else { 6 },
        sessions: kind == Kind::Sessions,
        window: (kind == Kind::Unique).then_some(Span::seconds(30)),
        strict: kind == Kind::Plain,
        // What was handed on keeps its place in time, which is before what came in meanwhile.
        in_line: !matches!(kind, Kind::Office | Kind::Parlour),
        lossy: kind == Kind::Lossy,
        keeps_expired: kind == Kind::Expiring,
    })
}

/// The request that creates an entity of this kind.
pub(crate) fn creation(kind: Kind) -> Result<Request, Error> {
    let mut settings = Vec::new();
    if let Some(rules) = rules(kind) {
        settings.push(Setting::LockDuration(rules.lock));
        settings.push(Setting::MaxDeliveryCount(rules.deliveries_max));
        settings.extend(rules.sessions.then_some(Setting::RequiresSession(true)));
        settings.extend(rules.keeps_expired.then_some(Setting::DeadLetteringOnMessageExpiration(true)));
        if let Some(window) = rules.window {
            settings.push(Setting::RequiresDuplicateDetection(true));
            settings.push(Setting::DuplicateDetectionHistoryTimeWindow(window));
        }
        if rules.strict {
            settings.push(Setting::Rescue(Rescue { after: Span::days(7), share: Share::NONE }));
        }
    }
    match kind {
        Kind::Hallway => settings.push(Setting::ForwardTo(Some(EntityName::parse("parlour")?))),
        Kind::Parlour => settings.push(Setting::Policy(Policy::Aged { step: Span::seconds(2) })),
        Kind::Office => settings.push(Setting::Policy(Policy::Deadline)),
        // Where messages soon count as starving.
        Kind::All => settings.push(Setting::Rescue(Rescue {
            after: Span::seconds(2),
            share: Share::per_mille(300).unwrap_or(Share::NONE),
        })),
        _ => {}
    }
    let topic = EntityName::parse("topic")?;
    let subscription = |name: &str, settings, filter| -> Result<Request, Error> {
        let topic = topic.clone();
        let first_rule = Some(RuleDescription { filter, ..RuleDescription::first() });
        Ok(Request::CreateSubscription { topic, name: SubscriptionName::parse(name)?, settings, first_rule })
    };
    let name = match kind {
        Kind::Plain => "plain",
        Kind::Sessions => "sessions",
        Kind::Unique => "unique",
        Kind::Lossy => "lossy",
        Kind::Expiring => "expiring",
        Kind::Hallway => "hallway",
        Kind::Parlour => "parlour",
        Kind::Office => "office",
        Kind::Topic => return Ok(Request::CreateTopic { name: topic.clone(), settings }),
        Kind::All => return subscription("all", settings, Filter::True),
        Kind::Some => {
            let sql = Sql::parse("kind = 1", Parameters::default()).expect("the condition is plain SQL");
            return subscription("some", settings, Filter::Sql(Arc::new(sql)));
        }
    };
    Ok(Request::CreateQueue { name: EntityName::parse(name)?, settings })
}
