//! Rules of subscriptions, and filters wherever they stand: `filter` in SQL, or `correlation` by fields.

use std::collections::BTreeSet;
use std::sync::Arc;

use vorrang_engine::entity::{RuleDescription, RuleName};
use vorrang_filter::{Action, Correlation, Filter, Parameters, Sql, SystemProperty, Value as Property};

use super::document::Value;
use super::entities;
use super::problem::{Mistake, nearest};
use super::reader::{Place, Reader, Table};
use super::shape::Shape;

/// The system fields a correlation filter compares, as the file writes them.
pub(super) const FIELDS: [(&str, SystemProperty); 8] = [
    ("content_type", SystemProperty::ContentType),
    ("correlation_id", SystemProperty::CorrelationId),
    ("label", SystemProperty::Label),
    ("message_id", SystemProperty::MessageId),
    ("reply_to", SystemProperty::ReplyTo),
    ("reply_to_session_id", SystemProperty::ReplyToSessionId),
    ("session_id", SystemProperty::SessionId),
    ("to", SystemProperty::To),
];

/// The rules of a subscription.
pub(super) fn read(reader: &mut Reader, subscription: &Table<'_>) -> Vec<RuleDescription> {
    let mut names = BTreeSet::new();
    let mut rules = Vec::new();
    for table in &reader.tables(subscription, "rule") {
        reader.refuse_unknown(table, ["name", "filter", "correlation", "action"]);
        let name = entities::name(reader, table, &mut names, RuleName::parse, RuleName::key);
        let filter = filter(reader, table);
        let action = match table.find("action") {
            Some(place) => {
                let action = reader.parsed(&place, |text| Action::parse(text, Parameters::default()));
                let Some(action) = action else { continue };
                Some(Arc::new(action))
            }
            None => None,
        };
        rules.extend(name.zip(filter).map(|(name, filter)| RuleDescription { name, filter, action }));
    }
    rules
}

/// The one filter of a table.
pub(super) fn filter(reader: &mut Reader, table: &Table<'_>) -> Option<Filter> {
    match (table.find("filter"), table.find("correlation")) {
        (Some(place), None) => {
            reader.parsed(&place, |text| Sql::parse(text, Parameters::default())).map(Filter::from)
        }
        (None, Some(place)) => {
            let fields = reader.table(&place)?;
            correlation(reader, &fields).map(Filter::from)
        }
        (None, None) => {
            let allowed = "an SQL condition like \"Priority = 'High'\", or a table named correlation";
            let mistake = Mistake::Missing { allowed: allowed.to_owned() };
            reader.problem(table.line, &table.key_of("filter"), mistake);
            None
        }
        (Some(_), Some(place)) => {
            let text = "stands beside filter; a rule has one of the two".to_owned();
            reader.problem(place.line, &place.key, Mistake::Other(text));
            None
        }
    }
}

fn correlation(reader: &mut Reader, table: &Table<'_>) -> Option<Correlation> {
    let (mut system, mut user) = (Vec::new(), Vec::new());
    for (name, place) in table.places() {
        if name == "properties" {
            let properties = reader.table(&place)?;
            for (name, place) in properties.places() {
                user.push((name.to_owned(), property(reader, &place)?));
            }
        } else if let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) {
            let text =
                reader.plain(&place, Shape::Text("a text"), |given| given.text().map(str::to_owned))?;
            system.push((*field, text));
        } else {
            let known = FIELDS.iter().map(|(known, _)| *known).chain(["properties"]);
            let mistake = Mistake::Unknown { nearest: nearest(name, known) };
            reader.problem(place.line, &place.key, mistake);
            return None;
        }
    }
    match Correlation::new(system, user) {
        Ok(filter) => Some(filter),
        Err(error) => {
            reader.problem(table.line, &table.key, Mistake::Other(format!("cannot be used: {error}")));
            None
        }
    }
}

fn property(reader: &mut Reader, place: &Place<'_>) -> Option<Property> {
    match place.value {
        Value::Text(text) => Some(Property::String(text.as_str().into())),
        Value::Integer(number) => Some(Property::Int(*number)),
        Value::Float(number) => Some(Property::Double(*number)),
        Value::Switch(switch) => Some(Property::Bool(*switch)),
        Value::Other(_) | Value::List(_) | Value::Table(_) => {
            let allowed = "a text, a number, true or false".to_owned();
            let mistake = Mistake::Value { value: place.value.kind().to_owned(), allowed };
            reader.problem(place.line, &place.key, mistake);
            None
        }
    }
}
