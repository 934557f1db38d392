use super::*;
use crate::entity::limits::EntityLimits;
use crate::entity::rule::{RuleDescription, RuleId};
use crate::entity::setting::{Property, Setting};
use crate::entity::status::Status;
use crate::time::Span;
use vorrang_filter::{Correlation, Filter, SystemProperty};

pub(super) fn name(text: &str) -> EntityName {
    EntityName::parse(text).unwrap()
}

pub(super) fn sub(text: &str) -> SubscriptionName {
    SubscriptionName::parse(text).unwrap()
}

pub(super) fn rule(text: &str) -> RuleDescription {
    RuleDescription { name: RuleName::parse(text).unwrap(), filter: Filter::True, action: None }
}

pub(super) fn correlation_rule(text: &str) -> RuleDescription {
    let fields = [(SystemProperty::Label, text.to_owned())];
    RuleDescription {
        filter: Filter::Correlation(Arc::new(Correlation::new(fields, []).unwrap())),
        ..rule(text)
    }
}

/// A catalogue with its limits and a clock that ticks with each change.
pub(super) struct Book {
    pub(super) catalogue: Catalogue,
    pub(super) limits: EntityLimits,
    pub(super) now: u64,
}

impl Book {
    pub(super) fn new() -> Book {
        Book { catalogue: Catalogue::default(), limits: EntityLimits::default(), now: 1_000 }
    }

    pub(super) fn ask(&mut self, request: &Request) -> Result<Removed, Refusal> {
        let change = self.catalogue.decide(request, &self.limits)?;
        self.now += 1;
        let removed = self.catalogue.apply(&change, Timestamp(self.now));
        Ok(removed.expect("a change just decided fits"))
    }

    fn queue(&mut self, text: &str, settings: Vec<Setting>) -> Result<Removed, Refusal> {
        self.ask(&Request::CreateQueue { name: name(text), settings })
    }

    fn topic(&mut self, text: &str) -> Result<Removed, Refusal> {
        self.ask(&Request::CreateTopic { name: name(text), settings: vec![] })
    }

    fn subscribe(&mut self, topic: &str, text: &str, settings: Vec<Setting>) -> Result<Removed, Refusal> {
        self.ask(&Request::CreateSubscription {
            topic: name(topic),
            name: sub(text),
            settings,
            first_rule: None,
        })
    }

    fn add_rule(
        &mut self,
        topic: &str,
        subscription: &str,
        rule: RuleDescription,
    ) -> Result<Removed, Refusal> {
        self.ask(&Request::CreateRule { topic: name(topic), subscription: sub(subscription), rule })
    }

    fn update(&mut self, path: &str, setting: Setting) -> Result<Removed, Refusal> {
        self.ask(&Request::Update { path: EntityPath::parse(path).unwrap(), settings: vec![setting] })
    }

    fn delete(&mut self, path: &str) -> Result<Removed, Refusal> {
        self.ask(&Request::Delete { path: EntityPath::parse(path).unwrap() })
    }

    fn entity(&self, path: &str) -> Option<&Entity> {
        self.catalogue.find(&EntityPath::parse(path).unwrap())
    }

    fn filters(&self, topic: &str) -> (usize, usize) {
        let FilterCounts { sql, correlation } = self.entity(topic).unwrap().topic().unwrap().filters;
        (sql, correlation)
    }
}

fn forward(target: &str) -> Setting {
    Setting::ForwardTo(Some(name(target)))
}

#[test]
fn queues_and_topics_share_one_name_space_without_case() {
    let mut book = Book::new();
    book.queue("Orders", vec![]).unwrap();
    for taken in ["Orders", "orders", "ORDERS"] {
        assert!(matches!(book.queue(taken, vec![]), Err(Refusal::AlreadyExists { .. })), "{taken}");
        assert!(matches!(book.topic(taken), Err(Refusal::AlreadyExists { .. })), "{taken}");
    }
    assert_eq!(book.entity("oRDERS").unwrap().path.to_string(), "Orders");
    assert!(matches!(book.subscribe("orders", "s", vec![]), Err(Refusal::NotATopic { .. })));
    assert!(matches!(book.subscribe("absent", "s", vec![]), Err(Refusal::NotFound { .. })));
}

#[test]
fn numbers_are_never_used_again() {
    let mut book = Book::new();
    book.queue("a", vec![]).unwrap();
    let first = book.entity("a").unwrap().id;
    assert_eq!(book.delete("a").unwrap(), [first]);
    assert!(book.entity("a").is_none());
    book.queue("a", vec![]).unwrap();
    let second = book.entity("a").unwrap().id;
    assert!(second > first);
    assert!(book.catalogue.entity(first).is_none());
}

#[test]
fn deleting_a_topic_takes_its_subscriptions_along() {
    let mut book = Book::new();
    book.topic("t").unwrap();
    book.subscribe("t", "a", vec![]).unwrap();
    book.subscribe("t", "b", vec![]).unwrap();
    let ids: Vec<_> =
        ["t", "t/subscriptions/a", "t/subscriptions/b"].map(|path| book.entity(path).unwrap().id).into();
    assert_eq!(book.delete("t").unwrap(), ids);
    for id in ids {
        assert!(book.catalogue.entity(id).is_none());
        assert!(book.catalogue.idle().accessed(id).is_none());
    }
    assert!(book.catalogue.is_empty());
    assert!(matches!(book.delete("t"), Err(Refusal::NotFound { .. })));
}

#[test]
fn a_subscription_starts_with_one_rule_its_own_or_the_default() {
    let mut book = Book::new();
    book.topic("t").unwrap();
    book.subscribe("t", "s", vec![]).unwrap();
    book.ask(&Request::CreateSubscription {
        topic: name("t"),
        name: sub("own"),
        settings: vec![],
        first_rule: Some(correlation_rule("mine")),
    })
    .unwrap();
    let names = |book: &Book, path: &str| {
        let rules = &book.entity(path).unwrap().subscription().unwrap().rules;
        rules.values().map(|rule| rule.description.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&book, "t/subscriptions/s"), ["$Default"]);
    assert_eq!(names(&book, "t/subscriptions/own"), ["mine"]);
    assert_eq!(book.filters("t"), (1, 1));
    for text in ["b", "a"] {
        book.add_rule("t", "s", rule(text)).unwrap();
    }
    assert_eq!(names(&book, "t/subscriptions/s"), ["$Default", "b", "a"]);
    assert!(matches!(book.add_rule("t", "s", rule("A")), Err(Refusal::RuleAlreadyExists { .. })));
    book.ask(&Request::DeleteRule {
        topic: name("t"),
        subscription: sub("s"),
        rule: RuleName::parse("$default").unwrap(),
    })
    .unwrap();
    assert_eq!(names(&book, "t/subscriptions/s"), ["b", "a"]);
    assert_eq!(book.filters("t"), (2, 1));
    book.ask(&Request::UpdateRule { topic: name("t"), subscription: sub("s"), rule: correlation_rule("B") })
        .unwrap();
    assert_eq!(names(&book, "t/subscriptions/s"), ["b", "a"]);
    assert_eq!(book.filters("t"), (1, 2));
    book.delete("t/subscriptions/s").unwrap();
    assert_eq!(book.filters("t"), (0, 1));
}

#[test]
fn limits_refuse_one_more_and_no_fewer() {
    let mut book = Book::new();
    book.limits.entities_max = 2;
    book.limits.subscriptions_per_topic_max = 2;
    book.limits.sql_filters_per_topic_max = 3;
    book.limits.correlation_filters_per_topic_max = 1;
    book.topic("t").unwrap();
    book.queue("q", vec![]).unwrap();
    assert_eq!(book.queue("r", vec![]), Err(Refusal::TooManyEntities { limit: 2 }));
    book.subscribe("t", "a", vec![]).unwrap();
    book.subscribe("t", "b", vec![]).unwrap();
    assert!(matches!(book.subscribe("t", "c", vec![]), Err(Refusal::TooManySubscriptions { limit: 2, .. })));
    book.add_rule("t", "a", rule("third")).unwrap();
    assert!(matches!(
        book.add_rule("t", "b", rule("fourth")),
        Err(Refusal::TooManyFilters { kind: "SQL", limit: 3, .. })
    ));
    book.add_rule("t", "b", correlation_rule("first")).unwrap();
    let second = book.add_rule("t", "b", correlation_rule("second"));
    assert!(matches!(second, Err(Refusal::TooManyFilters { kind: "correlation", limit: 1, .. })));
    book.delete("t/subscriptions/b").unwrap();
    book.delete("q").unwrap();
    book.queue("r", vec![]).unwrap();
    assert_eq!(book.filters("t"), (2, 0));
}

#[test]
fn a_hundred_thousand_correlation_rules_fit_and_not_one_more() {
    let mut book = Book::new();
    book.topic("t").unwrap();
    book.subscribe("t", "s", vec![]).unwrap();
    for number in 0..100_000 {
        book.add_rule("t", "s", correlation_rule(&format!("r{number}"))).unwrap();
    }
    assert_eq!(book.filters("t"), (1, 100_000));
    assert!(book.add_rule("t", "s", correlation_rule("more")).is_err());
}

#[test]
fn a_forward_target_must_exist_and_must_not_be_the_source() {
    let mut book = Book::new();
    book.queue("target", vec![]).unwrap();
    book.topic("t").unwrap();
    assert!(matches!(
        book.queue("q", vec![forward("absent")]),
        Err(Refusal::TargetMissing { property: Property::ForwardTo, .. })
    ));
    assert!(matches!(book.queue("q", vec![forward("Q")]), Err(Refusal::TargetIsSource { .. })));
    assert!(matches!(
        book.queue("q", vec![Setting::ForwardDeadLetteredMessagesTo(Some(name("absent")))]),
        Err(Refusal::TargetMissing { property: Property::ForwardDeadLetteredMessagesTo, .. })
    ));
    assert!(matches!(book.subscribe("t", "s", vec![forward("t")]), Err(Refusal::TargetIsSource { .. })));
    book.queue("q", vec![forward("TARGET")]).unwrap();
    // The target may go; its name stays, and unrelated updates still work.
    book.delete("target").unwrap();
    book.update("q", Setting::MaxDeliveryCount(3)).unwrap();
    let forwards_to = |book: &Book| book.entity("q").unwrap().outlet().unwrap().forward_to.clone();
    assert_eq!(forwards_to(&book), Some(name("target")));
    assert!(book.update("q", forward("also-absent")).is_err());
    book.update("q", Setting::ForwardTo(None)).unwrap();
    assert_eq!(forwards_to(&book), None);
}

#[test]
fn forwarding_in_a_circle_is_refused_however_it_would_be_closed() {
    let mut book = Book::new();
    book.queue("a", vec![]).unwrap();
    book.queue("b", vec![forward("a")]).unwrap();
    book.queue("c", vec![forward("b")]).unwrap();
    assert!(matches!(book.update("a", forward("c")), Err(Refusal::ForwardLoop { .. })));
    assert!(matches!(book.update("a", forward("b")), Err(Refusal::ForwardLoop { .. })));
    // Through a topic and one of its subscriptions.
    book.topic("t").unwrap();
    book.subscribe("t", "quiet", vec![]).unwrap();
    book.subscribe("t", "loud", vec![forward("c")]).unwrap();
    assert!(matches!(book.update("a", forward("t")), Err(Refusal::ForwardLoop { .. })));
    book.delete("t/subscriptions/loud").unwrap();
    book.update("a", forward("t")).unwrap();
    assert!(matches!(book.update("t/subscriptions/quiet", forward("c")), Err(Refusal::ForwardLoop { .. })));
    // By creating the missing link anew.
    book.delete("a").unwrap();
    assert!(matches!(book.queue("a", vec![forward("c")]), Err(Refusal::ForwardLoop { .. })));
    // Dead letters may come back: every round takes a failed delivery.
    book.queue("a", vec![]).unwrap();
    book.update("a", Setting::ForwardDeadLetteredMessagesTo(Some(name("b")))).unwrap();
}

#[test]
fn times_of_creation_change_and_use_are_kept() {
    let mut book = Book::new();
    book.queue("q", vec![]).unwrap();
    let created = Timestamp(book.now);
    book.now = 50_000;
    book.update("q", Setting::Status(Status::Disabled)).unwrap();
    let entity = book.entity("q").unwrap();
    assert_eq!((entity.created, entity.updated), (created, Timestamp(50_001)));
    let id = entity.id;
    assert_eq!(book.catalogue.idle().accessed(id), Some(Timestamp(50_001)));
    book.catalogue.touch(id, Timestamp(60_000));
    assert_eq!(book.catalogue.idle().accessed(id), Some(Timestamp(60_000)));
}

#[test]
fn idle_entities_become_due_unless_they_forward() {
    let mut book = Book::new();
    let idle = Setting::AutoDeleteOnIdle(Span::minutes(5));
    book.queue("plain", vec![idle.clone()]).unwrap();
    book.queue("forwarding", vec![idle, forward("plain")]).unwrap();
    let plain = book.entity("plain").unwrap().id;
    let due: Vec<_> = book.catalogue.idle().due(Timestamp(u64::MAX)).collect();
    assert_eq!(due, [plain]);
    book.update("forwarding", Setting::ForwardTo(None)).unwrap();
    assert_eq!(book.catalogue.idle().due(Timestamp(u64::MAX)).count(), 2);
}

#[test]
fn a_change_that_does_not_fit_changes_nothing() {
    let mut book = Book::new();
    book.queue("q", vec![]).unwrap();
    book.topic("t").unwrap();
    book.subscribe("t", "s", vec![]).unwrap();
    let queue = book.entity("q").unwrap().id;
    let topic = book.entity("t").unwrap().id;
    let subscription = book.entity("t/subscriptions/s").unwrap().id;
    let description = || Box::new(QueueDescription::default());
    let misfits = [
        Change::QueueCreated { entity: queue, name: name("new"), description: description() },
        Change::QueueCreated { entity: EntityId(99), name: name("Q"), description: description() },
        Change::QueueCreated { entity: EntityId(u32::MAX), name: name("new"), description: description() },
        Change::QueueUpdated { entity: topic, description: description() },
        Change::QueueUpdated { entity: EntityId(99), description: description() },
        Change::TopicUpdated { entity: queue, description: Box::default() },
        Change::SubscriptionUpdated { entity: queue, description: Box::default() },
        Change::SubscriptionCreated {
            entity: EntityId(99),
            topic: queue,
            name: sub("x"),
            description: Box::default(),
            rule: RuleId(99),
            first_rule: Box::new(RuleDescription::first()),
        },
        Change::SubscriptionCreated {
            entity: EntityId(99),
            topic,
            name: sub("S"),
            description: Box::default(),
            rule: RuleId(99),
            first_rule: Box::new(RuleDescription::first()),
        },
        Change::RuleCreated { subscription: queue, rule: RuleId(99), description: Box::new(rule("r")) },
        Change::RuleCreated { subscription, rule: RuleId(0), description: Box::new(rule("r")) },
        Change::RuleCreated { subscription, rule: RuleId(99), description: Box::new(rule("$default")) },
        Change::RuleUpdated { subscription, rule: RuleId(99), description: Box::new(rule("r")) },
        Change::RuleDeleted { subscription, rule: RuleId(99) },
        Change::RuleDeleted { subscription: queue, rule: RuleId(0) },
        Change::Deleted { entity: EntityId(99) },
    ];
    let before = format!("{:?} {:?}", book.catalogue.names, book.catalogue.entity(topic));
    for misfit in misfits {
        assert_eq!(book.catalogue.apply(&misfit, Timestamp(9)), None, "{misfit:?}");
        let after = format!("{:?} {:?}", book.catalogue.names, book.catalogue.entity(topic));
        assert_eq!(before, after, "{misfit:?}");
    }
    assert_eq!(book.filters("t"), (1, 0));
}
