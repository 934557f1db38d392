//! The index against stories and against asking every rule.

use proptest::prelude::*;

use super::*;
use crate::{Correlation, MapMessage, Parameters, Sql, SystemProperty, Value};

fn sql(text: &str) -> Filter {
    Sql::parse(text, Parameters::new()).unwrap().into()
}

fn correlation(system: &[(SystemProperty, &str)], user: &[(&str, Value)]) -> Filter {
    let system = system.iter().map(|(property, text)| (*property, (*text).to_owned()));
    let user = user.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    Correlation::new(system, user).unwrap().into()
}

fn found<K: Ord + Clone>(index: &RuleIndex<K>, message: &MapMessage) -> Vec<Match<K>> {
    let mut new_id = || 0;
    let mut out = Vec::new();
    index.matches(message, &mut Environment::new(&mut new_id), &mut out);
    out
}

fn keys<K: Ord + Clone>(index: &RuleIndex<K>, message: &MapMessage) -> Vec<K> {
    found(index, message).into_iter().map(|found| found.key).collect()
}

#[test]
fn matches_and_errors_come_in_the_order_of_keys() {
    let mut index = RuleIndex::new();
    index.insert(5, &sql("a = 1"));
    index.insert(4, &Filter::True);
    index.insert(3, &sql("b LIKE 'x'"));
    index.insert(2, &Filter::False);
    index.insert(1, &correlation(&[], &[("a", 1.0.into())]));
    let message = MapMessage::new().with("a", 1_i64).with("b", 2_i64);
    let outcomes: Vec<(i32, bool)> =
        found(&index, &message).into_iter().map(|found| (found.key, found.outcome.is_ok())).collect();
    assert_eq!(outcomes, [(1, true), (3, false), (4, true), (5, true)]);
}

#[test]
fn rules_with_equalities_are_looked_up_and_only_the_others_scanned() {
    let mut index = RuleIndex::new();
    let looked_up = [
        correlation(&[(SystemProperty::Label, "x")], &[]),
        correlation(&[], &[("a", 1_i64.into())]),
        sql("a = 1"),
        sql("a = 1 AND b = 'x'"),
        sql("b = 'x' AND a = 2 AND c LIKE '%'"),
        sql("sys.Label = 'x'"),
        Filter::False,
    ];
    for (key, filter) in looked_up.iter().enumerate() {
        index.insert(key, filter);
    }
    assert_eq!(index.scanned(), 0);
    assert_eq!(index.shapes.len(), 4);
    for (key, filter) in [Filter::True, sql("a > 1"), sql("a = 1 OR b = 1")].iter().enumerate() {
        index.insert(100 + key, filter);
    }
    assert_eq!(index.scanned(), 3);
    assert_eq!(index.len(), 10);
}

#[test]
fn everything_that_equals_is_found_whatever_its_type() {
    let guid = "00000000-0000-0000-0000-00000000000A";
    let cases: Vec<(Filter, MapMessage, bool)> = vec![
        (sql("a = 1"), MapMessage::new().with("a", 1.0), true),
        (sql("a = 0"), MapMessage::new().with("a", -0.0), true),
        (sql("a = 1"), MapMessage::new().with("a", "1"), false),
        (sql("a = 9007199254740993"), MapMessage::new().with("a", 9_007_199_254_740_992.0), true),
        (sql(&format!("a = '{guid}'")), MapMessage::new().with("a", Value::Guid(10)), true),
        (sql(&format!("a = '{guid}'")), MapMessage::new().with("a", guid), true),
        (sql(&format!("a = '{guid}'")), MapMessage::new().with("a", guid.to_lowercase()), false),
        (correlation(&[], &[("a", guid.into())]), MapMessage::new().with("a", Value::Guid(10)), false),
        (sql("a = '1970-01-01'"), MapMessage::new().with("a", Value::Timestamp(0)), true),
        (sql("a = '1970-01-01'"), MapMessage::new().with("a", "1970-01-01"), true),
        (sql("a = '1970-01-01'"), MapMessage::new().with("a", "1970-01-01T00:00Z"), false),
        (sql("A = 1"), MapMessage::new().with("a", 1_i64), true),
        (sql("A = 1"), MapMessage::new().with("a", 1_i64).with("A", 2_i64), false),
        (sql("a = 1 AND a = 2"), MapMessage::new().with("a", 1_i64), false),
        (
            correlation(&[(SystemProperty::MessageId, "5")], &[]),
            MapMessage::new().with_system(SystemProperty::MessageId, 5_u64),
            true,
        ),
        (sql("sys.MessageId = 5"), MapMessage::new().with_system(SystemProperty::MessageId, 5_u64), true),
        (sql("sys.MessageId = '5'"), MapMessage::new().with_system(SystemProperty::MessageId, 5_u64), false),
    ];
    for (filter, message, matches) in cases {
        let mut index = RuleIndex::new();
        index.insert(0, &filter);
        assert_eq!(index.scanned(), 0, "{filter:?}");
        assert_eq!(!found(&index, &message).is_empty(), matches, "{filter:?} {message:?}");
    }
}

#[test]
fn removed_rules_match_no_more_and_leave_nothing_behind() {
    let mut index = RuleIndex::new();
    let filters = [
        sql("a = 1"),
        sql("a = 1"),
        Filter::True,
        Filter::False,
        sql("a > 0"),
        correlation(&[], &[("a", 1_i64.into())]),
    ];
    for (key, filter) in filters.iter().enumerate() {
        index.insert(key, filter);
    }
    let message = MapMessage::new().with("a", 1_i64);
    assert_eq!(keys(&index, &message), [0, 1, 2, 4, 5]);
    assert!(index.remove(&1));
    assert!(!index.remove(&1));
    assert_eq!(keys(&index, &message), [0, 2, 4, 5]);
    index.insert(0, &sql("a = 2"));
    assert_eq!(keys(&index, &message), [2, 4, 5], "a new filter replaces the old one of its key");
    for key in 0..6 {
        index.remove(&key);
    }
    assert!(index.is_empty());
    assert!(index.scanned.is_empty() && index.shapes.is_empty());
}

#[test]
fn beyond_the_limit_of_shapes_rules_join_a_smaller_shape_or_are_scanned() {
    let mut index = RuleIndex::new();
    for shape in 0..SHAPES_MAX {
        index.insert(shape, &sql(&format!("p{shape} = 1")));
    }
    assert_eq!((index.shapes.len(), index.scanned()), (SHAPES_MAX, 0));
    index.insert(1000, &sql("p0 = 1 AND other = 1"));
    assert_eq!((index.shapes.len(), index.scanned()), (SHAPES_MAX, 0));
    index.insert(1001, &sql("other = 1"));
    assert_eq!((index.shapes.len(), index.scanned()), (SHAPES_MAX, 1));
    let message = MapMessage::new().with("p0", 1_i64).with("other", 1_i64);
    assert_eq!(keys(&index, &message), [0, 1000, 1001]);
    assert_eq!(keys(&index, &MapMessage::new().with("p0", 1_i64)), [0]);
    assert!(index.remove(&1000));
    assert_eq!(keys(&index, &message), [0, 1001]);
}

#[test]
fn a_hundred_thousand_equalities_cost_the_steps_of_those_that_match() {
    let mut index = RuleIndex::new();
    for key in 0..100_000_i64 {
        index.insert(key, &sql(&format!("tenant = {key}")));
    }
    let mut new_id = || 0;
    let mut environment = Environment::new(&mut new_id);
    let mut out = Vec::new();
    index.matches(&MapMessage::new().with("tenant", 77_777_i64), &mut environment, &mut out);
    assert_eq!(out, [Match { key: 77_777, outcome: Ok(()) }]);
    assert!(environment.steps_taken() < 10, "{} steps", environment.steps_taken());
}

fn values() -> impl Strategy<Value = Value> {
    let texts = ["", "1", "x", "1970-01-01", "00000000-0000-0000-0000-000000000001"];
    prop_oneof![
        (0_i64..3).prop_map(Value::from),
        prop::sample::select(vec![0.0, -0.0, 1.0, 1.5, f64::NAN]).prop_map(Value::from),
        prop::sample::select(texts.to_vec()).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (0_u128..2).prop_map(Value::Guid),
        (0_i64..2).prop_map(Value::Timestamp),
    ]
}

fn names() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "A", "b", "c"]).prop_map(str::to_owned)
}

fn filters() -> impl Strategy<Value = Filter> {
    let texts = ["1", "x", "00000000-0000-0000-0000-000000000001"];
    let system = prop::collection::vec(
        (
            prop::sample::select(vec![SystemProperty::Label, SystemProperty::MessageId]),
            prop::sample::select(texts.to_vec()),
        ),
        0..2,
    );
    let user = prop::collection::vec((names(), values()), 1..3);
    let correlations = (system, user).prop_map(|(system, user)| {
        let system = system.into_iter().map(|(property, text)| (property, text.to_owned()));
        Filter::from(Correlation::new(system, user).unwrap())
    });
    let conditions = prop_oneof![
        (names(), 0..3).prop_map(|(name, number)| format!("{name} = {number}")),
        names().prop_map(|name| format!("{name} = 'x'")),
        names().prop_map(|name| format!("'00000000-0000-0000-0000-000000000001' = {name}")),
        names().prop_map(|name| format!("{name} = '1970-01-01'")),
        names().prop_map(|name| format!("{name} = 1.0")),
        names().prop_map(|name| format!("{name} > 0")),
        names().prop_map(|name| format!("{name} LIKE '%x'")),
        names().prop_map(|name| format!("{name} / 1 = 1")),
        names().prop_map(|name| format!("{name} IS NULL")),
        Just("sys.MessageId = 1".to_owned()),
        Just("sys.Label = 'x'".to_owned()),
    ];
    let sqls = prop::collection::vec(conditions, 1..4).prop_map(|conditions| sql(&conditions.join(" AND ")));
    prop_oneof![1 => Just(Filter::True), 1 => Just(Filter::False), 6 => correlations, 8 => sqls]
}

fn messages() -> impl Strategy<Value = MapMessage> {
    let user = prop::collection::vec((names(), prop::option::of(values())), 0..4);
    (user, prop::option::of(values()), prop::option::of(values())).prop_map(|(user, label, id)| {
        let mut message = MapMessage::new();
        for (name, value) in user {
            message = match value {
                Some(value) => message.with(&name, value),
                None => message.with_null(&name),
            };
        }
        if let Some(label) = label {
            message = message.with_system(SystemProperty::Label, label);
        }
        if let Some(id) = id {
            message = message.with_system(SystemProperty::MessageId, id);
        }
        message
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn an_index_finds_what_asking_every_rule_finds(
        changes in prop::collection::vec((0_u8..12, prop::option::weighted(0.8, filters())), 1..30),
        messages in prop::collection::vec(messages(), 1..6),
    ) {
        let mut index = RuleIndex::new();
        let mut rules = BTreeMap::new();
        for (key, change) in changes {
            if let Some(filter) = change {
                index.insert(key, &filter);
                rules.insert(key, filter);
            } else {
                prop_assert_eq!(index.remove(&key), rules.remove(&key).is_some());
            }
        }
        prop_assert_eq!(index.len(), rules.len());
        for message in &messages {
            let mut new_id = || 0;
            let mut environment = Environment::new(&mut new_id);
            let mut expected = Vec::new();
            for (key, filter) in &rules {
                match filter.matches(message, &mut environment) {
                    Ok(false) => {}
                    outcome => expected.push(Match { key: *key, outcome: outcome.map(|_| ()) }),
                }
            }
            prop_assert_eq!(found(&index, message), expected);
        }
    }
}
