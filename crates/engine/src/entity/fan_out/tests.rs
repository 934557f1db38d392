use super::*;
use crate::entity::limits::EntityLimits;
use crate::entity::name::{EntityName, RuleName, SubscriptionName};
use crate::entity::path::EntityPath;
use crate::entity::priority::{ClassName, PriorityRule};
use crate::entity::rule::RuleDescription;
use crate::entity::setting::Setting;
use crate::entity::{Change as EntityChange, Request};
use crate::time::Timestamp;
use proptest::prelude::*;
use vorrang_filter::{Action, Correlation, Filter, MapMessage, Parameters, Sql};

struct Topic {
    catalogue: Catalogue,
    id: EntityId,
}

fn sql(text: &str) -> Filter {
    Sql::parse(text, Parameters::new()).unwrap().into()
}

fn label(text: &str) -> Filter {
    Correlation::new([(SystemProperty::Label, text.to_owned())], []).unwrap().into()
}

fn rule(name: &str, filter: Filter, action: &str) -> RuleDescription {
    let action = (!action.is_empty()).then(|| Arc::new(Action::parse(action, Parameters::new()).unwrap()));
    RuleDescription { name: RuleName::parse(name).unwrap(), filter, action }
}

impl Topic {
    fn new() -> Topic {
        Topic::with(vec![])
    }

    fn with(settings: Vec<Setting>) -> Topic {
        let mut topic = Topic { catalogue: Catalogue::default(), id: EntityId(0) };
        let name = EntityName::parse("t").unwrap();
        topic.ask(&Request::CreateTopic { name, settings });
        topic
    }

    fn ask(&mut self, request: &Request) -> EntityChange {
        let change = self.catalogue.decide(request, &EntityLimits::default()).unwrap();
        self.catalogue.apply(&change, Timestamp(0)).unwrap();
        change
    }

    /// Adds a subscription with exactly these rules.
    fn subscribe(&mut self, name: &str, settings: Vec<Setting>, rules: Vec<RuleDescription>) -> EntityId {
        let (topic, name) = (EntityName::parse("t").unwrap(), SubscriptionName::parse(name).unwrap());
        let mut rules = rules.into_iter();
        let first_rule = rules.next();
        let none = first_rule.is_none();
        self.ask(&Request::CreateSubscription {
            topic: topic.clone(),
            name: name.clone(),
            settings,
            first_rule,
        });
        for rule in rules {
            self.ask(&Request::CreateRule { topic: topic.clone(), subscription: name.clone(), rule });
        }
        if none {
            let rule = RuleName::first();
            self.ask(&Request::DeleteRule { topic: topic.clone(), subscription: name.clone(), rule });
        }
        self.catalogue.find(&EntityPath::of_subscription(topic, name)).unwrap().id
    }

    fn publish(&self, content: &MapMessage) -> Vec<Copy> {
        self.publish_as(&Publication { content, ..self.publication(content) })
    }

    fn publication<'a>(&self, content: &'a MapMessage) -> Publication<'a> {
        Publication {
            topic: self.id,
            content,
            priority: None,
            brought: None,
            session: None,
            time_to_live: Span::FOREVER,
        }
    }

    fn publish_as(&self, publication: &Publication<'_>) -> Vec<Copy> {
        let mut next = 0;
        let mut new_id = || {
            next += 1;
            next
        };
        let mut copies = Vec::new();
        fan_out(&self.catalogue, publication, &mut Environment::new(&mut new_id), &mut copies);
        copies
    }
}

fn user(copy: &Copy, property: &str) -> Option<PropertyChange> {
    copy.overlay.as_ref()?.properties.get(property).cloned()
}

fn set(value: impl Into<Value>) -> PropertyChange {
    PropertyChange::Set(PropertyValue::Typed(value.into()))
}

fn set_text(value: &str) -> PropertyChange {
    set(text(value))
}

#[test]
fn rules_without_action_share_a_copy_and_each_with_action_makes_its_own() {
    let mut topic = Topic::new();
    let id = topic.subscribe(
        "s",
        vec![],
        vec![
            rule("first", Filter::True, ""),
            rule("second", sql("a = 1"), "SET b = 2"),
            rule("third", sql("a = 1"), ""),
            rule("fourth", sql("a = 2"), "SET b = 4"),
            rule("fifth", label("x"), "SET b = 5; REMOVE a"),
        ],
    );
    let message = MapMessage::new().with("a", 1_i64).with_system(SystemProperty::Label, text("x"));
    let copies = topic.publish(&message);
    assert_eq!(copies.len(), 3);
    assert!(copies.iter().all(|copy| copy.mailbox == MailboxId::main(id) && copy.dead_letter.is_none()));
    assert_eq!(copies[0].overlay, None);
    assert_eq!(
        (user(&copies[1], "b"), user(&copies[1], RULE_NAME)),
        (Some(set(2_i64)), Some(set_text("second")))
    );
    assert_eq!(
        (user(&copies[2], "b"), user(&copies[2], RULE_NAME)),
        (Some(set(5_i64)), Some(set_text("fifth")))
    );
    assert_eq!(user(&copies[2], "a"), Some(PropertyChange::Removed));
}

#[test]
fn nobody_gets_what_nobody_wants() {
    let mut topic = Topic::new();
    assert_eq!(topic.publish(&MapMessage::new()), []);
    topic.subscribe("none", vec![], vec![]);
    topic.subscribe("never", vec![], vec![rule("r", Filter::False, "")]);
    topic.subscribe("other", vec![], vec![rule("r", label("y"), "")]);
    assert_eq!(topic.publish(&MapMessage::new().with_system(SystemProperty::Label, text("x"))), []);
    let message = MapMessage::new();
    assert_eq!(topic.publish_as(&Publication { topic: EntityId(77), ..topic.publication(&message) }), []);
}

#[test]
fn a_failing_rule_dead_letters_one_copy_or_does_not_match() {
    for (dead_letters, expected) in [(true, 3), (false, 2)] {
        let mut topic = Topic::new();
        let id = topic.subscribe(
            "s",
            vec![Setting::DeadLetteringOnFilterEvaluationExceptions(dead_letters)],
            vec![
                rule("bad", sql("a / 0 = 1"), ""),
                rule("worse", Filter::True, "SET b = a / 0"),
                rule("good", Filter::True, ""),
                rule("better", Filter::True, "SET b = 1"),
            ],
        );
        let copies = topic.publish(&MapMessage::new().with("a", 1_i64));
        assert_eq!(copies.len(), expected, "{dead_letters}");
        assert_eq!(user(&copies[1], "b"), Some(set(1_i64)));
        if let Some(dead) = copies.get(2) {
            assert_eq!(dead.mailbox, MailboxId::dead_letter(id));
            assert_eq!(dead.dead_letter, Some(DeadLetterCause::FilterError));
            assert_eq!(user(dead, Overlay::REASON), Some(set_text("FilterException")));
            assert_eq!(user(dead, Overlay::DESCRIPTION), Some(set_text("division by zero")));
        }
    }
    let mut topic = Topic::new();
    topic.subscribe("s", vec![], vec![rule("worse", Filter::True, "SET b = a / 0")]);
    let copies = topic.publish(&MapMessage::new().with("a", 1_i64));
    assert_eq!(user(&copies[0], Overlay::REASON), Some(set_text("RuleActionException")));
}

#[test]
fn each_subscription_decides_level_and_life_for_itself() {
    let mut topic = Topic::with(vec![Setting::DefaultMessageTimeToLive(Span::days(3))]);
    let class = ClassName::parse("urgent").unwrap();
    topic.subscribe("plain", vec![], vec![rule("r", Filter::True, "")]);
    topic.subscribe(
        "ruled",
        vec![
            Setting::PriorityRules(vec![PriorityRule { filter: sql("customer = 'gold'"), class }]),
            Setting::DefaultMessageTimeToLive(Span::days(1)),
        ],
        vec![rule("r", Filter::True, "")],
    );
    topic.subscribe(
        "upgraded",
        vec![],
        vec![rule("r", Filter::True, "SET sys.Priority = 200; SET sys.TimeToLive = sys.TimeToLive")],
    );
    topic.subscribe("relabelled", vec![], vec![rule("r", Filter::True, "SET Priority = 'low'")]);
    let content = MapMessage::new().with("customer", text("gold")).with("Priority", 7_i64);
    let publication =
        Publication { priority: Some(2), time_to_live: Span::days(2), ..topic.publication(&content) };
    let copies = topic.publish_as(&publication);
    let found: Vec<_> =
        copies.iter().map(|copy| (copy.level.level.0, copy.level.origin, copy.time_to_live)).collect();
    assert_eq!(
        found,
        [
            (7, LevelOrigin::Property, Span::days(2)),
            (9, LevelOrigin::Rule, Span::days(1)),
            (200, LevelOrigin::Rule, Span::days(2)),
            (1, LevelOrigin::Property, Span::days(2)),
        ]
    );
    // A forwarded message keeps its level, unless the subscription's own rules say otherwise.
    let forwarded = Publication { brought: Some((Level(42), LevelOrigin::Header)), ..publication };
    let levels: Vec<_> = topic.publish_as(&forwarded).iter().map(|copy| copy.level.level.0).collect();
    assert_eq!(levels, [42, 9, 200, 42]);
}

#[test]
fn an_action_may_set_the_session_that_a_subscription_needs() {
    let mut topic = Topic::new();
    let sessions = || vec![Setting::RequiresSession(true)];
    topic.subscribe("plain", sessions(), vec![rule("r", Filter::True, "")]);
    topic.subscribe("set", sessions(), vec![rule("r", Filter::True, "SET sys.SessionId = customer")]);
    topic.subscribe("removed", sessions(), vec![rule("r", Filter::True, "REMOVE sys.SessionId; SET b = 1")]);
    topic.subscribe("without", vec![], vec![rule("r", Filter::True, "")]);
    let content = MapMessage::new().with("customer", text("gold"));
    let sessions = |session: Option<&str>| -> Vec<_> {
        let copies = topic.publish_as(&Publication { session, ..topic.publication(&content) });
        copies
            .into_iter()
            .map(|copy| (copy.session.map(|session| session.to_string()), copy.dead_letter))
            .collect()
    };
    let gold = Some("gold".to_owned());
    let lost = (None, Some(DeadLetterCause::NoSession));
    assert_eq!(
        sessions(Some("own")),
        [(Some("own".to_owned()), None), (gold.clone(), None), lost.clone(), (None, None)]
    );
    assert_eq!(sessions(None), [lost.clone(), (gold, None), lost, (None, None)]);
    let copies = topic.publish(&content);
    assert_eq!(user(&copies[0], Overlay::REASON), Some(set_text("Session id is null.")));
    // A copy that is dead-lettered keeps what its rule changed.
    assert_eq!(user(&copies[2], "b"), Some(set(1_i64)));
}

#[test]
fn time_to_live_set_by_an_action_is_capped_like_any_other() {
    let mut topic = Topic::with(vec![Setting::DefaultMessageTimeToLive(Span::days(3))]);
    topic.subscribe("long", vec![], vec![rule("r", Filter::True, "SET sys.TimeToLive = life")]);
    let day = 864_000_000_000_i64;
    for (ticks, expected) in
        [(day, Span::days(1)), (day * 5, Span::days(3)), (10_000, Span(1)), (i64::MAX, Span::days(3))]
    {
        let copies = topic.publish(&MapMessage::new().with("life", Value::Timespan(ticks)));
        assert_eq!(copies[0].time_to_live, expected, "{ticks}");
    }
}

#[test]
fn a_property_changed_under_two_spellings_is_one_change() {
    let mut topic = Topic::new();
    topic.subscribe(
        "s",
        vec![],
        vec![rule("r", Filter::True, "SET Abc = 1; SET aBC = 2; SET rulename = 'mine'")],
    );
    let copies = topic.publish(&MapMessage::new());
    let overlay = copies[0].overlay.as_ref().unwrap();
    let names: Vec<_> = overlay.properties.keys().map(|name| &**name).collect();
    assert_eq!(names, ["Abc", "rulename"]);
    assert_eq!(user(&copies[0], "Abc"), Some(set(2_i64)));
    assert_eq!(user(&copies[0], "rulename"), Some(set_text("r")));
}

#[test]
fn rule_changes_and_deletions_reach_the_next_message() {
    let mut topic = Topic::new();
    topic.subscribe("s", vec![], vec![rule("r", label("x"), "")]);
    let (name, subscription) = (EntityName::parse("t").unwrap(), SubscriptionName::parse("s").unwrap());
    let message = |text: &str| MapMessage::new().with_system(SystemProperty::Label, super::text(text));
    assert_eq!((topic.publish(&message("x")).len(), topic.publish(&message("y")).len()), (1, 0));
    topic.ask(&Request::UpdateRule {
        topic: name.clone(),
        subscription: subscription.clone(),
        rule: rule("R", label("y"), "SET a = 1"),
    });
    assert_eq!((topic.publish(&message("x")).len(), topic.publish(&message("y")).len()), (0, 1));
    assert_eq!(user(&topic.publish(&message("y"))[0], RULE_NAME), Some(set_text("r")));
    topic.ask(&Request::Delete { path: EntityPath::of_subscription(name, subscription) });
    assert_eq!(topic.publish(&message("y")), []);
}

#[test]
fn a_hundred_thousand_correlation_filters_are_looked_up_not_scanned() {
    let mut topic = Topic::new();
    let rules = (0..50_000).map(|number| rule(&format!("r{number}"), label(&format!("l{number}")), ""));
    let first = topic.subscribe("a", vec![], rules.collect());
    let rules =
        (0..50_000).map(|number| rule(&format!("r{number}"), label(&format!("l{number}")), "SET b = 1"));
    let second = topic.subscribe("b", vec![], rules.collect());
    let index = &topic.catalogue.entity(topic.id).unwrap().topic().unwrap().index;
    assert_eq!((index.len(), index.scanned()), (100_000, 0));
    let copies = topic.publish(&MapMessage::new().with_system(SystemProperty::Label, text("l777")));
    let mailboxes: Vec<_> = copies.iter().map(|copy| copy.mailbox).collect();
    assert_eq!(mailboxes, [MailboxId::main(first), MailboxId::main(second)]);
}

/// What the rules of Service Bus say, one rule after the other, without any index.
fn brute_force(topic: &Topic, message: &MapMessage) -> Vec<(MailboxId, Option<String>)> {
    let mut new_id = || 0;
    let mut environment = Environment::new(&mut new_id);
    let mut expected = Vec::new();
    let mut subscriptions: Vec<_> = topic.catalogue.subscriptions(topic.id).collect();
    subscriptions.sort_by_key(|entity| entity.id);
    for entity in subscriptions {
        let subscription = entity.subscription().unwrap();
        let main = MailboxId::main(entity.id);
        let (mut plain, mut failed, mut own) = (false, false, Vec::new());
        for rule in subscription.rules.values() {
            match (rule.description.filter.matches(message, &mut environment), &rule.description.action) {
                (Err(_), _) => failed = true,
                (Ok(false), _) => {}
                (Ok(true), None) => plain = true,
                (Ok(true), Some(action)) => match action.apply(message, &mut environment) {
                    Ok(_) => own.push((main, Some(rule.description.name.to_string()))),
                    Err(_) => failed = true,
                },
            }
        }
        expected.extend(plain.then_some((main, None)));
        expected.extend(own);
        if failed && subscription.description.dead_letter_on_filter_errors {
            expected.push((MailboxId::dead_letter(entity.id), None));
        }
    }
    expected
}

proptest! {
    #[test]
    fn fan_out_equals_asking_every_rule(
        subscriptions in proptest::collection::vec(
            (any::<bool>(), proptest::collection::vec((0..9_usize, 0..4_usize), 0..6)),
            0..6,
        ),
        messages in proptest::collection::vec((0..4_i64, 0..3_usize), 1..8),
    ) {
        let labels = ["x", "y", "z"];
        let filters = [
            Filter::True, Filter::False, label("x"), label("y"), sql("a = 1"), sql("a > 1 OR sys.Label = 'x'"),
            sql("a / 0 = 1"), sql("a = 2 AND sys.Label = 'z'"), sql("a % 0 = 0 AND sys.Label = 'y'"),
        ];
        let actions = ["", "", "SET b = a + 1", "SET b = 1 / a"];
        let mut topic = Topic::new();
        for (number, (dead_letters, rules)) in subscriptions.iter().enumerate() {
            let rules = rules.iter().enumerate().map(|(number, (filter, action))| {
                rule(&format!("r{number}"), filters[*filter].clone(), actions[*action])
            });
            let settings = vec![Setting::DeadLetteringOnFilterEvaluationExceptions(*dead_letters)];
            topic.subscribe(&format!("s{number}"), settings, rules.collect());
        }
        for (a, label) in messages {
            let message = MapMessage::new().with("a", a).with_system(SystemProperty::Label, text(labels[label]));
            let found: Vec<_> = topic.publish(&message).iter().map(|copy| {
                let rule = match user(copy, RULE_NAME) {
                    Some(PropertyChange::Set(PropertyValue::Typed(Value::String(name)))) => Some(name.to_string()),
                    _ => None,
                };
                (copy.mailbox, rule)
            }).collect();
            prop_assert_eq!(found, brute_force(&topic, &message));
        }
    }
}
