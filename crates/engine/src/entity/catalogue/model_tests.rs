//! The catalogue against a model so simple that it is plainly right: a list of lower-case names.

use super::tests::{Book, correlation_rule, name, rule, sub};
use super::*;
use crate::entity::name::RuleName;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Rule names of a subscription, with whether each is a correlation rule.
type Rules = Vec<(String, bool)>;

#[derive(Default, Clone, Debug, PartialEq)]
struct Model {
    queues: BTreeSet<String>,
    topics: BTreeMap<String, BTreeMap<String, Rules>>,
}

#[derive(Debug, Clone)]
enum Step {
    Queue(String),
    Topic(String),
    Subscription(String, String),
    Rule(String, String, String, bool),
    Delete(String),
    DeleteSubscription(String, String),
    DeleteRule(String, String, String),
}

impl Step {
    fn request(&self) -> Request {
        match self {
            Step::Queue(text) => Request::CreateQueue { name: name(text), settings: vec![] },
            Step::Topic(text) => Request::CreateTopic { name: name(text), settings: vec![] },
            Step::Subscription(topic, text) => Request::CreateSubscription {
                topic: name(topic),
                name: sub(text),
                settings: vec![],
                first_rule: None,
            },
            Step::Rule(topic, subscription, text, correlation) => Request::CreateRule {
                topic: name(topic),
                subscription: sub(subscription),
                rule: if *correlation { correlation_rule(text) } else { rule(text) },
            },
            Step::Delete(text) => Request::Delete { path: EntityPath::of(name(text)) },
            Step::DeleteSubscription(topic, text) => {
                Request::Delete { path: EntityPath::of_subscription(name(topic), sub(text)) }
            }
            Step::DeleteRule(topic, subscription, text) => Request::DeleteRule {
                topic: name(topic),
                subscription: sub(subscription),
                rule: RuleName::parse(text).unwrap(),
            },
        }
    }
}

impl Model {
    /// Does the step if it is possible, and says whether it was.
    fn step(&mut self, step: &Step) -> bool {
        let low = str::to_lowercase;
        match step {
            Step::Queue(text) if !self.taken(text) => self.queues.insert(low(text)),
            Step::Topic(text) if !self.taken(text) => {
                self.topics.insert(low(text), BTreeMap::new()).is_none()
            }
            Step::Queue(_) | Step::Topic(_) => false,
            Step::Subscription(topic, text) => match self.topics.get_mut(&low(topic)) {
                Some(subscriptions) if !subscriptions.contains_key(&low(text)) => {
                    subscriptions.insert(low(text), vec![("$default".to_owned(), false)]).is_none()
                }
                _ => false,
            },
            Step::Rule(topic, subscription, text, correlation) => match self.rules(topic, subscription) {
                Some(rules) if rules.iter().all(|(existing, _)| *existing != low(text)) => {
                    rules.push((low(text), *correlation));
                    true
                }
                _ => false,
            },
            Step::Delete(text) => self.queues.remove(&low(text)) || self.topics.remove(&low(text)).is_some(),
            Step::DeleteSubscription(topic, text) => {
                self.topics.get_mut(&low(topic)).is_some_and(|found| found.remove(&low(text)).is_some())
            }
            Step::DeleteRule(topic, subscription, text) => {
                self.rules(topic, subscription).is_some_and(|rules| {
                    let before = rules.len();
                    rules.retain(|(existing, _)| *existing != low(text));
                    rules.len() < before
                })
            }
        }
    }

    fn taken(&self, text: &str) -> bool {
        self.queues.contains(&text.to_lowercase()) || self.topics.contains_key(&text.to_lowercase())
    }

    fn rules(&mut self, topic: &str, subscription: &str) -> Option<&mut Rules> {
        self.topics.get_mut(&topic.to_lowercase())?.get_mut(&subscription.to_lowercase())
    }

    /// What the catalogue says, in the model's form.
    fn of(catalogue: &Catalogue) -> Model {
        let mut model = Model::default();
        for entity in catalogue.entities() {
            let key = entity.path.name.key().to_owned();
            if entity.topic().is_none() {
                model.queues.insert(key);
                continue;
            }
            let subscriptions = model.topics.entry(key).or_default();
            for entity in catalogue.subscriptions(entity.id) {
                let rules = entity.subscription().unwrap().rules.values();
                let rules = rules.map(|rule| {
                    let correlation = rule.description.counts().correlation == 1;
                    (rule.description.name.key().to_owned(), correlation)
                });
                let key = entity.path.subscription.as_ref().unwrap().key().to_owned();
                subscriptions.insert(key, rules.collect());
            }
        }
        model
    }
}

fn step() -> impl Strategy<Value = Step> {
    let entity = || proptest::sample::select(vec!["a", "A", "b", "c/d", "C/D"]).prop_map(str::to_owned);
    let part = || proptest::sample::select(vec!["x", "X", "y", "$Default"]).prop_map(str::to_owned);
    prop_oneof![
        1 => entity().prop_map(Step::Queue),
        3 => entity().prop_map(Step::Topic),
        4 => (entity(), part()).prop_map(|(topic, text)| Step::Subscription(topic, text)),
        5 => (entity(), part(), part(), any::<bool>()).prop_map(|(t, s, r, c)| Step::Rule(t, s, r, c)),
        1 => entity().prop_map(Step::Delete),
        1 => (entity(), part()).prop_map(|(topic, text)| Step::DeleteSubscription(topic, text)),
        2 => (entity(), part(), part()).prop_map(|(t, s, r)| Step::DeleteRule(t, s, r)),
    ]
}

proptest! {
    #[test]
    fn the_catalogue_agrees_with_the_model_and_its_counts_with_its_rules(
        steps in proptest::collection::vec(step(), 0..80),
    ) {
        let mut book = Book::new();
        let mut model = Model::default();
        let mut replayed = Catalogue::default();
        for step in steps {
            let request = step.request();
            let change = book.catalogue.decide(&request, &book.limits).ok();
            let possible = book.ask(&request).is_ok();
            prop_assert_eq!(possible, model.step(&step), "{:?}", step);
            if let Some(change) = change {
                prop_assert!(replayed.apply(&change, Timestamp(book.now)).is_some());
            }
            prop_assert_eq!(&Model::of(&book.catalogue), &model);
        }
        prop_assert_eq!(&Model::of(&replayed), &model);
        let mut restored = Catalogue::default();
        let (next_entity, next_rule) = book.catalogue.next_numbers();
        restored.restore_numbers(next_entity, next_rule);
        for (entity, accessed) in book.catalogue.parts() {
            prop_assert_eq!(restored.restore(&entity, accessed), Some(()));
            prop_assert_eq!(restored.restore(&entity, accessed), None);
        }
        prop_assert_eq!(&Model::of(&restored), &model);
        prop_assert_eq!(restored.next_numbers(), book.catalogue.next_numbers());
        prop_assert_eq!(restored.idle().next_due(), book.catalogue.idle().next_due());
        for entity in book.catalogue.entities().chain(restored.entities()).chain(replayed.entities()) {
            let Some(topic) = entity.topic() else { continue };
            let mut counted = FilterCounts::default();
            for entity in book.catalogue.subscriptions(entity.id) {
                let rules = entity.subscription().unwrap().rules.values();
                counted = rules.fold(counted, |sum, rule| sum.plus(rule.description.counts()));
            }
            prop_assert_eq!(topic.filters, counted);
            prop_assert_eq!(topic.index.len(), counted.sql + counted.correlation);
        }
    }
}
