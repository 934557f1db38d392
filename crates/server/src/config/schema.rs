//! The JSON Schema of the file, for editors and for people who want to see every key in one place.

use serde_json::{Map, Value, json};

use super::KEYS;
use super::property::{EntityKind, PROPERTIES, TABLES};
use super::rules::FIELDS;
use super::shape::Shape;

/// The whole schema.
#[must_use]
pub fn schema() -> Value {
    let mut properties = Map::new();
    for key in KEYS {
        properties.insert(key.name.to_owned(), described(key.shape, key.help));
    }
    properties.insert("key".to_owned(), list(&authorization_rule()));
    properties.insert("queue".to_owned(), list(&entity(EntityKind::Queue, Map::new())));
    let rule = table(
        [
            ("name", json!({ "type": "string" })),
            ("filter", json!({ "type": "string", "description": "An SQL condition" })),
            ("correlation", correlation()),
            ("action", json!({ "type": "string", "description": "An SQL action" })),
        ],
        &["name"],
    );
    let subscription = entity(EntityKind::Subscription, one("rule", list(&rule)));
    let topic = entity(EntityKind::Topic, one("subscription", list(&subscription)));
    properties.insert("topic".to_owned(), list(&topic));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "vorrang.toml",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    })
}

fn entity(kind: EntityKind, mut properties: Map<String, Value>) -> Value {
    properties.insert("name".to_owned(), json!({ "type": "string" }));
    for property in PROPERTIES.iter().filter(|property| property.on.includes(kind)) {
        properties.insert(property.name.to_owned(), described(property.shape, property.help));
    }
    for (name, _) in TABLES.iter().filter(|(_, on)| on.includes(kind)) {
        let schema = match *name {
            "class" => list(&class()),
            "rescue" => table([("after", Shape::Span.schema()), ("share", Shape::Share.schema())], &[]),
            "priority_rule" => list(&table(
                [
                    ("class", json!({ "type": "string" })),
                    ("filter", json!({ "type": "string" })),
                    ("correlation", correlation()),
                ],
                &["class"],
            )),
            _ => list(&authorization_rule()),
        };
        properties.insert((*name).to_owned(), schema);
    }
    json!({ "type": "object", "additionalProperties": false, "required": ["name"], "properties": properties })
}

fn class() -> Value {
    table(
        [
            ("name", json!({ "type": "string", "maxLength": 50 })),
            ("level", Shape::Number(0, 255).schema()),
            ("target_wait", Shape::Span.schema()),
        ],
        &["name", "level"],
    )
}

fn correlation() -> Value {
    let mut properties: Map<String, Value> =
        FIELDS.iter().map(|(name, _)| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    let plain = json!({ "type": ["string", "number", "boolean"] });
    properties.insert("properties".to_owned(), json!({ "type": "object", "additionalProperties": plain }));
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn authorization_rule() -> Value {
    let text = || json!({ "type": "string" });
    table(
        [
            ("name", text()),
            ("rights", json!({ "type": "array", "minItems": 1, "items": super::access::RIGHTS.schema() })),
            ("primary_key", text()),
            ("primary_key_file", text()),
            ("secondary_key", text()),
            ("secondary_key_file", text()),
        ],
        &["name", "rights"],
    )
}

fn described(shape: Shape, help: &str) -> Value {
    let mut schema = shape.schema();
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), Value::from(help));
    }
    schema
}

fn table<const N: usize>(properties: [(&str, Value); N], required: &[&str]) -> Value {
    let properties: Map<String, Value> =
        properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn one(name: &str, schema: Value) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), schema)])
}
