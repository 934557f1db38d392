//! `[[queue]]`, `[[topic]]`, `[[topic.subscription]]` and what belongs to them.
//!
//! Each entity is also put together as the engine would, so that a value out of bounds is found by
//! `config check` and not at the start.

use std::collections::BTreeSet;

use vorrang_engine::entity::priority::{Class, ClassName, PriorityRule, Rescue};
use vorrang_engine::entity::{
    Description, EntityLimits, EntityName, Problem as Refused, QueueDescription, Setting,
    SubscriptionDescription, SubscriptionName, TopicDescription,
};
use vorrang_engine::level::Level;

use super::problem::Mistake;
use super::property::{EntityKind, PROPERTIES, TABLES, key_of};
use super::reader::{Reader, Table};
use super::shape::Shape;
use super::{access, rules};
use crate::definitions::{Definitions, QueueDefinition, SubscriptionDefinition, TopicDefinition};

const LEVEL: Shape = Shape::Number(0, 255);
const CLASS: Shape = Shape::Text("a letter, then at most 49 letters, digits, '-', '_' and '.'");

/// Reads every entity of the file.
pub(super) fn read(reader: &mut Reader, root: &Table<'_>) -> Definitions {
    let queues = reader.tables(root, "queue");
    let topics = reader.tables(root, "topic");
    let mut names = BTreeSet::new();
    let mut definitions = Definitions::default();
    for table in &queues {
        let settings = settings(reader, table, EntityKind::Queue, &[]);
        check(reader, table, QueueDescription::create(&settings, &EntityLimits::default()).err());
        if let Some(name) = name(reader, table, &mut names, EntityName::parse, EntityName::key) {
            definitions.queues.push(QueueDefinition { name, settings });
        }
    }
    for table in &topics {
        let settings = settings(reader, table, EntityKind::Topic, &["subscription"]);
        check(reader, table, TopicDescription::create(&settings, &EntityLimits::default()).err());
        let subscriptions = subscriptions(reader, table);
        if let Some(name) = name(reader, table, &mut names, EntityName::parse, EntityName::key) {
            definitions.topics.push(TopicDefinition { name, settings, subscriptions });
        }
    }
    definitions
}

fn subscriptions(reader: &mut Reader, topic: &Table<'_>) -> Vec<SubscriptionDefinition> {
    let mut names = BTreeSet::new();
    let mut subscriptions = Vec::new();
    for table in &reader.tables(topic, "subscription") {
        let settings = settings(reader, table, EntityKind::Subscription, &["rule"]);
        check(reader, table, SubscriptionDescription::create(&settings, &EntityLimits::default()).err());
        let rules = rules::read(reader, table);
        if let Some(name) = name(reader, table, &mut names, SubscriptionName::parse, SubscriptionName::key) {
            subscriptions.push(SubscriptionDefinition { name, settings, rules });
        }
    }
    subscriptions
}

/// The name of a thing, which must not be among those before it.
pub(super) fn name<N, E: std::fmt::Display>(
    reader: &mut Reader,
    table: &Table<'_>,
    taken: &mut BTreeSet<String>,
    parse: impl FnOnce(&str) -> Result<N, E>,
    key: impl FnOnce(&N) -> &str,
) -> Option<N> {
    let place = reader.needed(table, "name", "a name")?;
    let name = reader.parsed(&place, parse)?;
    if taken.insert(key(&name).to_owned()) {
        return Some(name);
    }
    let text = format!("cannot be {}: it is defined twice", place.value.shown());
    reader.problem(place.line, &place.key, Mistake::Other(text));
    None
}

/// The properties of an entity, and with them its unknown keys.
fn settings(
    reader: &mut Reader,
    table: &Table<'_>,
    kind: EntityKind,
    children: &[&'static str],
) -> Vec<Setting> {
    let plain = PROPERTIES.iter().filter(|property| property.on.includes(kind));
    let tables = TABLES.iter().filter(|(_, on)| on.includes(kind)).map(|(name, _)| *name);
    let known = ["name"].into_iter().chain(children.iter().copied());
    reader.refuse_unknown(table, known.chain(plain.clone().map(|property| property.name)).chain(tables));
    let mut settings = Vec::new();
    for property in plain {
        if let Some(place) = table.find(property.name) {
            settings.extend(reader.plain(&place, property.shape, property.read));
        }
    }
    if kind != EntityKind::Topic {
        settings.extend(classes(reader, table));
        settings.extend(rescue(reader, table));
        settings.extend(priority_rules(reader, table));
    }
    if kind != EntityKind::Subscription && table.find("authorization_rule").is_some() {
        settings.push(Setting::AuthorizationRules(access::read(reader, table, "authorization_rule")));
    }
    settings
}

fn classes(reader: &mut Reader, table: &Table<'_>) -> Option<Setting> {
    table.find("class")?;
    let tables = reader.tables(table, "class");
    Some(Setting::Classes(tables.iter().filter_map(|table| class(reader, table)).collect()))
}

fn class(reader: &mut Reader, table: &Table<'_>) -> Option<Class> {
    reader.refuse_unknown(table, ["name", "level", "target_wait"]);
    let name = class_name(reader, table, "name");
    let level = reader.needed(table, "level", &LEVEL.allowed());
    let level = level.and_then(|place| reader.plain(&place, LEVEL, |given| given.number(LEVEL)));
    let target_wait = match table.find("target_wait") {
        Some(place) => Some(reader.span(&place)?),
        None => None,
    };
    Some(Class { name: name?, level: Level(level?), target_wait })
}

fn class_name(reader: &mut Reader, table: &Table<'_>, key: &str) -> Option<ClassName> {
    let place = reader.needed(table, key, &CLASS.allowed())?;
    reader.plain(&place, CLASS, |given| given.text().and_then(ClassName::parse))
}

fn rescue(reader: &mut Reader, table: &Table<'_>) -> Option<Setting> {
    let place = table.find("rescue")?;
    let table = reader.table(&place)?;
    reader.refuse_unknown(&table, ["after", "share"]);
    let mut rescue = Rescue::default();
    if let Some(place) = table.find("after") {
        rescue.after = reader.span(&place)?;
    }
    if let Some(place) = table.find("share") {
        rescue.share = reader.share(&place)?;
    }
    Some(Setting::Rescue(rescue))
}

fn priority_rules(reader: &mut Reader, table: &Table<'_>) -> Option<Setting> {
    table.find("priority_rule")?;
    let tables = reader.tables(table, "priority_rule");
    let mut read = Vec::new();
    for table in &tables {
        reader.refuse_unknown(table, ["class", "filter", "correlation"]);
        let class = class_name(reader, table, "class");
        let filter = rules::filter(reader, table);
        read.extend(class.zip(filter).map(|(class, filter)| PriorityRule { filter, class }));
    }
    Some(Setting::PriorityRules(read))
}

/// Reports what the engine would refuse, each at the line of its key.
fn check(reader: &mut Reader, table: &Table<'_>, refused: Option<Vec<Refused>>) {
    for Refused { property, value, allowed } in refused.unwrap_or_default() {
        let key = key_of(property);
        let line = table.find(&key).map_or(table.line, |place| place.line);
        reader.problem(line, &table.key_of(&key), Mistake::Value { value, allowed });
    }
}
