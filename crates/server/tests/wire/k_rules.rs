//! K: rules, filters and actions, seen through the subscriptions' copies.

use std::time::Instant;

use vorrang_amqp::value::{Map, Value};
use vorrang_engine::entity::Setting;

use crate::client::Client;
use crate::message::{Draft, message};
use crate::nodes::arguments;
use crate::server::Server;

fn bodies(client: &mut Client, entity: &str) -> Vec<String> {
    client.peek_all(entity).iter().map(crate::message::body).collect()
}

/// A topic with a subscription `s` that takes what this filter takes, and a sender on it.
fn filtered_topic(server: &Server, sql: &str) -> (Client, String) {
    let topic = server.topic([]);
    let subscription = server.subscription(&topic, "s", []);
    server.delete_rule(&topic, "s", "$Default");
    server.rule(&topic, "s", "r", sql, None);
    let mut client = Client::root(server);
    client.sender(1, &topic);
    (client, subscription)
}

#[test]
fn k1_a_new_subscription_takes_everything_until_its_rule_goes() {
    let server = Server::shared();
    let topic = server.topic([]);
    let subscription = server.subscription(&topic, "s", []);
    let mut client = Client::root(&server);
    client.sender(1, &topic);
    client.post(1, message("taken"));
    server.delete_rule(&topic, "s", "$Default");
    client.post(1, message("passed over"));
    assert_eq!(bodies(&mut client, &subscription), ["taken"]);
}

#[test]
fn k2_rules_without_action_share_a_copy_and_those_with_one_have_their_own() {
    let server = Server::shared();
    let topic = server.topic([]);
    let subscription = server.subscription(&topic, "s", []);
    server.rule(&topic, "s", "also", "1=1", None);
    server.rule(&topic, "s", "one", "1=1", Some("SET by = 'one'"));
    server.rule(&topic, "s", "two", "1=1", Some("SET by = 'two'"));
    let mut client = Client::root(&server);
    client.sender(1, &topic);
    client.post(1, message("m"));
    let mut by: Vec<String> = client
        .peek_all(&subscription)
        .iter()
        .map(|copy| {
            let by = copy.application_properties().and_then(|map| map.value("by"));
            by.map_or_else(String::new, |by| by.as_str().unwrap().to_owned())
        })
        .collect();
    by.sort();
    assert_eq!(by, ["", "one", "two"]);
}

#[test]
fn k3_a_correlation_filter_asks_for_all_its_fields() {
    let server = Server::shared();
    let topic = server.topic([]);
    let subscription = server.subscription(&topic, "s", []);
    server.delete_rule(&topic, "s", "$Default");
    let mut client = Client::root(&server);
    let wanted: Map = [(Value::from("n"), Value::Int(1))].into_iter().collect();
    let filter = arguments([("label", Value::from("x")), ("properties", Value::Map(wanted))]);
    let description = arguments([("correlation-filter", Value::Map(filter))]);
    let entries = [("rule-name", Value::from("c")), ("rule-description", Value::Map(description))];
    assert_eq!(client.manage(&subscription, "add-rule", entries).status(), 200);
    client.sender(1, &topic);
    let labelled = |body: &str| {
        let mut draft = message(body);
        draft.properties.subject = Some("x".into());
        draft
    };
    client.post(1, labelled("label alone"));
    client.post(1, message("property alone").property("n", 1_i32));
    client.post(1, labelled("both").property("n", 1_i32));
    client.post(1, labelled("both, as a long").property("n", 1_i64));
    client.post(1, labelled("another number").property("n", 2_i32));
    assert_eq!(bodies(&mut client, &subscription), ["both", "both, as a long"]);
}

fn sample() -> Draft {
    let mut draft = message("m")
        .property("a", 1_i32)
        .property("even", 2_i64)
        .property("s", "abc")
        .property("u", "a_c")
        .property("my-prop", "v")
        .property("q", 1_i32)
        .property("x", "x");
    draft.properties.subject = Some("x".into());
    draft
}

#[test]
fn k4_expressions_that_are_true() {
    let server = Server::shared();
    for sql in [
        "a=1",
        "a<>2",
        "s LIKE 'ab%'",
        "u LIKE 'a!_%' ESCAPE '!'",
        "x IN ('x','y')",
        "missing IS NULL",
        "EXISTS(a)",
        "NOT (a=2)",
        "sys.Label='x'",
        "[my-prop] = 'v'",
        "\"q\" = 1",
        "a + 1 > 1",
        "even % 2 = 0",
        "property('a') = 1",
        "A = 1",
        "user.a = 1",
    ] {
        let (mut client, subscription) = filtered_topic(&server, sql);
        client.post(1, sample());
        assert_eq!(bodies(&mut client, &subscription), ["m"], "{sql}");
    }
}

#[test]
fn k5_what_is_missing_is_neither_true_nor_false() {
    let server = Server::shared();
    let cases = [
        ("b = 1", false),
        ("b <> 1", false),
        ("NOT (b = 1)", false),
        ("b LIKE '%'", false),
        ("b IN (1)", false),
        ("b = 1 OR a = 1", true),
        ("b IS NULL", true),
    ];
    for (sql, matches) in cases {
        let (mut client, subscription) = filtered_topic(&server, sql);
        client.post(1, sample());
        assert_eq!(bodies(&mut client, &subscription).len(), usize::from(matches), "{sql}");
    }
}

#[test]
fn k6_a_rule_that_cannot_be_read_is_refused() {
    let server = Server::shared();
    let topic = server.topic([]);
    let subscription = server.subscription(&topic, "s", []);
    let mut client = Client::root(&server);
    let of_length = |length: usize| format!("a = '{}'", "x".repeat(length - 6));
    let (longest, longer) = (of_length(1_024), of_length(1_025));
    for (expression, expected) in
        [("a = ", 400), ("SELECT 1", 400), ("a = 1)", 400), (&longer, 400), (&longest, 200)]
    {
        let filter = Value::Map(arguments([("expression", Value::from(expression))]));
        let description = Value::Map(arguments([("sql-filter", filter)]));
        let entries = [("rule-name", Value::from("r")), ("rule-description", description)];
        assert_eq!(client.manage(&subscription, "add-rule", entries).status(), expected, "{expression}");
    }
}

#[test]
fn k7_an_action_changes_its_own_copy_alone() {
    let server = Server::shared();
    let topic = server.topic([]);
    let changed = server.subscription(&topic, "changed", []);
    let plain = server.subscription(&topic, "plain", []);
    server.delete_rule(&topic, "changed", "$Default");
    server.rule(&topic, "changed", "r", "1=1", Some("SET x = 'v'; SET sys.Label = 'l'; REMOVE y"));
    let mut client = Client::root(&server);
    client.sender(1, &topic);
    client.post(1, message("m").property("x", "old").property("y", 1_i32));
    let copy = |client: &mut Client, entity: &str| {
        let found = client.peek_all(entity).remove(0);
        let application = found.application_properties().unwrap();
        let label = found.properties().unwrap().and_then(|properties| properties.subject);
        (application.value("x"), application.value("y"), label.map(|label| label.as_str().to_owned()))
    };
    assert_eq!(copy(&mut client, &changed), (Some(Value::from("v")), None, Some("l".to_owned())));
    assert_eq!(copy(&mut client, &plain), (Some(Value::from("old")), Some(Value::Int(1)), None));
}

#[test]
fn k8_an_error_of_one_filter_is_the_matter_of_one_subscription() {
    let server = Server::shared();
    let topic = server.topic([]);
    let strict =
        server.subscription(&topic, "strict", [Setting::DeadLetteringOnFilterEvaluationExceptions(true)]);
    let lenient =
        server.subscription(&topic, "lenient", [Setting::DeadLetteringOnFilterEvaluationExceptions(false)]);
    let plain = server.subscription(&topic, "plain", []);
    for name in ["strict", "lenient"] {
        server.delete_rule(&topic, name, "$Default");
        server.rule(&topic, name, "r", "a / 0 = 1", None);
    }
    let mut client = Client::root(&server);
    client.sender(1, &topic);
    client.post(1, message("m").property("a", 1_i32));
    assert_eq!(bodies(&mut client, &plain), ["m"]);
    for entity in [&strict, &lenient] {
        assert_eq!(bodies(&mut client, entity), Vec::<String>::new());
    }
    let dead = client.peek_all(&format!("{strict}/$DeadLetterQueue"));
    assert_eq!(dead.len(), 1);
    let reason = dead[0].application_properties().unwrap().value("DeadLetterReason").unwrap();
    assert!(reason.as_str().unwrap().contains("Exception"), "{reason:?}");
    assert_eq!(bodies(&mut client, &format!("{lenient}/$DeadLetterQueue")), Vec::<String>::new());
}

#[test]
fn k9_a_hostile_pattern_costs_little() {
    let server = Server::shared();
    let pattern = "%a".repeat(500);
    let (mut client, subscription) = filtered_topic(&server, &format!("text LIKE '{pattern}b'"));
    let started = Instant::now();
    client.post(1, message("m").property("text", "a".repeat(32_000)));
    println!("k9: {:?} from send to accepted", started.elapsed());
    assert_eq!(bodies(&mut client, &subscription), Vec::<String>::new());
}
