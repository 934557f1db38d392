//! Rules, from the request through the catalogue to the response.

use std::sync::Arc;

use vorrang_amqp::value::Timestamp as AmqpTimestamp;
use vorrang_broker::api::{Answer, Operation, Question, Refused};
use vorrang_engine::Refusal;
use vorrang_engine::entity::{self, Catalogue, EntityLimits, EntityName, EntityPath, SubscriptionName};

use super::*;
use crate::front::Answered;
use crate::front::condition::name;

/// A catalogue with one subscription, which is asked through requests.
struct Rules(Catalogue);

impl Rules {
    fn new() -> Rules {
        let mut rules = Rules(Catalogue::default());
        let topic = EntityName::parse("news").unwrap();
        let settings = Vec::new;
        rules
            .administer(&entity::Request::CreateTopic { name: topic.clone(), settings: settings() })
            .unwrap();
        let name = SubscriptionName::parse("all").unwrap();
        let request =
            entity::Request::CreateSubscription { topic, name, settings: settings(), first_rule: None };
        rules.administer(&request).unwrap();
        rules
    }

    fn administer(&mut self, request: &entity::Request) -> Result<(), entity::Refusal> {
        let change = self.0.decide(request, &EntityLimits::default())?;
        self.0.apply(&change, Timestamp(42));
        Ok(())
    }

    /// Status and condition of a request that changes rules.
    fn change(&mut self, operation: &str, arguments: Map) -> (i32, Option<String>) {
        let plan = match ask(&subscription(), operation, arguments) {
            Ok(plan) => plan,
            Err(told) => return (told.status, Some(told.condition.to_owned())),
        };
        let Operation::Administer(request) = &plan.operation else { panic!("{:?}", plan.operation) };
        let (status, condition, body) = match self.administer(request) {
            Ok(()) => {
                let reply = vorrang_engine::Reply::Administered { entity: EntityId(1) };
                read_reaction(&plan.reading.react(Answered::Reply(reply), &|_| Err(String::new())))
            }
            Err(refusal) => {
                let refused = Refused::Impossible(Refusal::Entity(refusal));
                read_back(&plan.reading.refused(&refused, &subscription().path).into())
            }
        };
        assert_eq!(body, Map::EMPTY);
        (status, condition)
    }

    fn add(&mut self, name: &str, description: Map) -> (i32, Option<String>) {
        let arguments =
            map([("rule-name", Value::from(name)), ("rule-description", Value::Map(description))]);
        self.change("add-rule", arguments)
    }

    fn list(&self, arguments: Map) -> Vec<Value> {
        let plan = ask(&subscription(), "enumerate-rules", arguments).unwrap();
        let Operation::Ask(Question::Rules { subscription: path }) = plan.operation else { panic!() };
        assert_eq!(path, EntityPath::parse("news/subscriptions/all").unwrap());
        let found = Arc::new(self.0.find(&path).unwrap().clone());
        let answered = Answered::Answer(Answer::Subscription(found));
        let (status, _, body) = read_reaction(&plan.reading.react(answered, &|_| Err(String::new())));
        if status == 204 {
            assert_eq!(body, Map::EMPTY);
            return Vec::new();
        }
        let Some(Value::List(rules)) = body.value("rules") else { panic!("rules are a list: {body:?}") };
        rules.iter().map(|rule| rule.as_map().unwrap().value("rule-description").unwrap()).collect()
    }

    /// Filter, action and name of the only rule that was added.
    fn added(&self) -> [Value; 3] {
        let rules = self.list(map([("skip", Value::Int(1)), ("top", Value::Int(100))]));
        assert_eq!(rules.len(), 1, "{rules:?}");
        let fields = fields(&rules[0], 1_335_734_829_060);
        assert_eq!(fields[3], Value::Timestamp(AmqpTimestamp(42)));
        [fields[0].clone(), fields[1].clone(), fields[2].clone()]
    }
}

/// The fields of a described list with this descriptor.
fn fields(value: &Value, descriptor: u64) -> Vec<Value> {
    let Value::Described(described) = value else { panic!("{value:?} is not described") };
    assert_eq!(described.descriptor, Value::Ulong(descriptor));
    described.value.as_list().unwrap().iter().collect()
}

fn sql(key: &'static str, expression: &str) -> (&'static str, Value) {
    (key, Value::Map(map([("expression", Value::from(expression))])))
}

fn condition(status: i32, condition: &str) -> (i32, Option<String>) {
    (status, Some(condition.to_owned()))
}

#[test]
fn the_first_rule_is_a_true_filter_without_action() {
    let rules = Rules::new().list(Map::EMPTY);
    let [rule] = rules.as_slice() else { panic!("{rules:?}") };
    let rule = fields(rule, 0x0000_0137_0000_0004);
    assert_eq!(fields(&rule[0], 83_483_426_823), []);
    assert_eq!(fields(&rule[1], 1_335_734_829_061), [], "an action is never null");
    assert_eq!(rule[2], Value::from("$Default"));
}

#[test]
fn a_sql_rule_comes_back_with_its_texts() {
    let mut rules = Rules::new();
    let description = map([sql("sql-filter", "a = 1"), sql("sql-rule-action", "SET b = 2")]);
    assert_eq!(rules.add("r", description), (200, None));
    let [filter, action, name] = rules.added();
    assert_eq!(fields(&filter, 83_483_426_822), [Value::from("a = 1"), Value::Int(20)]);
    assert_eq!(fields(&action, 1_335_734_829_062), [Value::from("SET b = 2"), Value::Int(20)]);
    assert_eq!(name, Value::from("r"));
}

#[test]
fn the_expression_of_a_true_filter_stays_sql() {
    let mut rules = Rules::new();
    assert_eq!(
        rules.add("r", map([sql("sql-filter", "1=1"), ("sql-rule-action", Value::Null)])),
        (200, None)
    );
    let [filter, action, _] = rules.added();
    assert_eq!(fields(&filter, 83_483_426_822)[0], Value::from("1=1"));
    assert_eq!(fields(&action, 1_335_734_829_061), []);
}

#[test]
fn a_correlation_rule_comes_back_with_nine_fields() {
    let all = map([
        ("correlation-id", Value::from("c")),
        ("message-id", Value::from("m")),
        ("to", Value::from("t")),
        ("reply-to", Value::from("r")),
        ("label", Value::from("l")),
        ("session-id", Value::from("s")),
        ("reply-to-session-id", Value::from("rs")),
        ("content-type", Value::symbol("ct")),
        ("properties", Value::Map(map([("n", Value::Int(1)), ("none", Value::Null)]))),
    ]);
    let some = map([("label", Value::from("")), ("to", Value::Null), ("properties", Value::Null)]);
    let text = |texts: [&str; 8]| texts.map(Value::from).to_vec();
    let mut label_only = vec![Value::Null; 8];
    label_only[4] = Value::from("");
    let one = Value::Map(map([("n", Value::Long(1))]));
    let cases = [
        (all, [text(["c", "m", "t", "r", "l", "s", "rs", "ct"]), vec![one]].concat()),
        (some, [label_only, vec![Value::Map(Map::EMPTY)]].concat()),
    ];
    for (filter, expected) in cases {
        let mut rules = Rules::new();
        assert_eq!(rules.add("r", map([("correlation-filter", Value::Map(filter))])), (200, None));
        let [filter, ..] = rules.added();
        assert_eq!(fields(&filter, 83_483_426_825), expected);
    }
}

#[test]
fn the_name_may_stand_in_the_description_alone() {
    let mut rules = Rules::new();
    let description = map([("rule-name", Value::from("inner")), sql("sql-filter", "a = 1")]);
    assert_eq!(rules.change("add-rule", map([("rule-description", Value::Map(description))])), (200, None));
    assert_eq!(rules.added()[2], Value::from("inner"));
}

#[test]
fn bad_rules_are_refused() {
    let properties = |properties: Map| {
        map([("correlation-filter", Value::Map(map([("properties", Value::Map(properties))])))])
    };
    let many: Map = (0..65).map(|number| (Value::from(format!("p{number}")), Value::Int(1))).collect();
    let cases = [
        ("no filter", Map::EMPTY),
        ("null filters", map([("sql-filter", Value::Null), ("correlation-filter", Value::Null)])),
        ("a filter that is no map", map([("sql-filter", Value::from("a = 1"))])),
        ("no expression", map([("sql-filter", Value::Map(Map::EMPTY))])),
        ("syntax", map([sql("sql-filter", "a = = 1")])),
        ("length", map([sql("sql-filter", &format!("a = '{}'", "x".repeat(1_024)))])),
        ("action", map([sql("sql-filter", "a = 1"), sql("sql-rule-action", "DROP x")])),
        ("two filters", map([sql("sql-filter", "a = 1"), ("correlation-filter", Value::Map(Map::EMPTY))])),
        ("no field", map([("correlation-filter", Value::Map(Map::EMPTY))])),
        ("a property that is a list", properties(map([("p", Value::List([1_i32].into_iter().collect()))]))),
        (
            "a property without a text for a name",
            properties([(Value::Int(1), Value::Int(1))].into_iter().collect()),
        ),
        ("too many properties", properties(many)),
    ];
    for (case, description) in cases {
        let mut rules = Rules::new();
        assert_eq!(rules.add("r", description), condition(400, name::ARGUMENT_ERROR), "{case}");
    }
    let mut rules = Rules::new();
    let name_too_long = rules.add(&"n".repeat(51), map([sql("sql-filter", "a = 1")]));
    assert_eq!(name_too_long, condition(400, name::ARGUMENT_ERROR));
    assert_eq!(rules.change("add-rule", Map::EMPTY), condition(400, name::ARGUMENT_ERROR));
}

#[test]
fn a_rule_is_added_once_and_removed_once() {
    let mut rules = Rules::new();
    let description = || map([sql("sql-filter", "a = 1")]);
    assert_eq!(rules.add("r", description()), (200, None));
    assert_eq!(rules.add("R", description()), condition(409, "com.microsoft:entity-already-exists"));
    let by_name = || map([("rule-name", Value::symbol("r"))]);
    assert_eq!(rules.change("remove-rule", by_name()), (200, None));
    assert_eq!(rules.change("remove-rule", by_name()), condition(404, "amqp:not-found"));
    assert_eq!(rules.list(Map::EMPTY).len(), 1);
    assert_eq!(rules.change("remove-rule", map([("rule-name", Value::from("$Default"))])), (200, None));
    assert_eq!(rules.list(Map::EMPTY), []);
}

#[test]
fn a_missing_rule_is_told_in_the_words_sdks_look_for() {
    let plan = ask(&subscription(), "remove-rule", map([("rule-name", Value::from("r"))])).unwrap();
    let Operation::Administer(request) = &plan.operation else { panic!("{:?}", plan.operation) };
    let refusal = Rules::new().administer(request).unwrap_err();
    let told = plan.reading.refused(&Refused::Impossible(Refusal::Entity(refusal)), &subscription().path);
    assert_eq!(told.text, "The messaging entity 'news/Subscriptions/all/Rules/r' could not be found.");
}

#[test]
fn rules_are_listed_in_pages() {
    let mut rules = Rules::new();
    for name in ["a", "b", "c"] {
        assert_eq!(rules.add(name, map([sql("sql-filter", "a = 1")])), (200, None));
    }
    let page =
        |skip: i32, top: i32| rules.list(map([("skip", Value::Int(skip)), ("top", Value::Int(top))])).len();
    let cases = [(0, i32::MAX, 4), (0, 2, 2), (2, 2, 2), (3, 2, 1), (4, 2, 0), (i32::MAX, 1, 0), (0, 0, 0)];
    for (skip, top, expected) in cases {
        assert_eq!(page(skip, top), expected, "skip {skip} top {top}");
    }
}

#[test]
fn only_subscriptions_have_rules() {
    let dead_letters = Managed {
        path: "news/Subscriptions/all/$DeadLetterQueue".into(),
        mailbox: MailboxId::dead_letter(EntityId(3)),
        ..queue()
    };
    for managed in [queue(), dead_letters] {
        for operation in ["add-rule", "remove-rule", "enumerate-rules"] {
            let told = ask(&managed, operation, Map::EMPTY).unwrap_err();
            assert_eq!((told.status, told.condition), (400, name::NOT_ALLOWED), "{operation}");
        }
    }
}
