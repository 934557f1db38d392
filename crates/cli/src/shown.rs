//! Properties of entities as people write them: in the form in which the flags take them.

use serde_json::Value;
use vorrang_server::config::{PROPERTIES, Shape};
use vorrang_server::duration;

use crate::properties::camel;

/// The value of a property of an entity, given as the API tells it.
pub(crate) fn property(name: &str, value: &Value) -> String {
    match (name, value) {
        ("classes", Value::Array(classes)) => listed(classes, class),
        ("priorityRules", Value::Array(rules)) => listed(rules, priority_rule),
        ("authorizationRules", Value::Array(rules)) => listed(rules, access_rule),
        ("rescue", rescue) => {
            let after = span(&member(rescue, "after"));
            format!("after {after}, share {}", member(rescue, "share"))
        }
        ("agedStep", value) => span(&plain(value)),
        (name, value) if is_span(name) => span(&plain(value)),
        (_, value) => plain(value),
    }
}

/// A value without quotes where it is plain.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A duration in short, as flags take it.
pub(crate) fn span(text: &str) -> String {
    duration::parse(text).map_or_else(|_| text.to_owned(), duration::to_short)
}

fn is_span(name: &str) -> bool {
    PROPERTIES.iter().any(|property| property.shape == Shape::Span && camel(property.name) == name)
}

fn listed(items: &[Value], each: impl Fn(&Value) -> String) -> String {
    if items.is_empty() { "-".to_owned() } else { items.iter().map(each).collect::<Vec<_>>().join(", ") }
}

fn member(value: &Value, name: &str) -> String {
    value.get(name).map(plain).unwrap_or_default()
}

fn class(class: &Value) -> String {
    let target =
        class.get("targetWait").map(|target| format!(":{}", span(&plain(target)))).unwrap_or_default();
    format!("{}={}{target}", member(class, "name"), member(class, "level"))
}

fn priority_rule(rule: &Value) -> String {
    let filter = rule.get("filter").unwrap_or(&Value::Null);
    let condition = match filter.get("expression") {
        Some(expression) => plain(expression),
        // A correlation filter has no form of its own on the command line.
        None => filter.to_string(),
    };
    format!("{}={condition}", member(rule, "class"))
}

fn access_rule(rule: &Value) -> String {
    let rights = rule.get("rights").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let rights: Vec<String> = rights.iter().map(plain).collect();
    format!("{}={}", member(rule, "keyName"), rights.join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn properties_are_shown_as_flags_take_them() {
        let cases = [
            ("lockDuration", json!("PT30S"), "30s"),
            ("defaultMessageTimeToLive", json!("P10675199DT2H48M5.4775807S"), "forever"),
            ("agedStep", json!("PT10S"), "10s"),
            (
                "classes",
                json!([{ "name": "gold", "level": 8, "targetWait": "PT10S" }, { "name": "low", "level": 1 }]),
                "gold=8:10s, low=1",
            ),
            ("classes", json!([]), "-"),
            (
                "priorityRules",
                json!([{ "class": "gold", "filter": { "type": "sql", "expression": "Fee >= 100" } }]),
                "gold=Fee >= 100",
            ),
            (
                "priorityRules",
                json!([{ "class": "gold", "filter": { "type": "true" } }]),
                "gold={\"type\":\"true\"}",
            ),
            ("rescue", json!({ "after": "PT5M", "share": 0.1 }), "after 5m, share 0.1"),
            (
                "authorizationRules",
                json!([{ "keyName": "shop", "rights": ["Send", "Listen"] }]),
                "shop=Send,Listen",
            ),
            ("userMetadata", json!("PT30S"), "PT30S"),
            ("maxDeliveryCount", json!(3), "3"),
            ("requiresSession", json!(false), "false"),
        ];
        for (name, value, expected) in cases {
            assert_eq!(property(name, &value), expected, "{name}");
        }
    }
}
