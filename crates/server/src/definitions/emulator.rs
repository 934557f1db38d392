//! The official emulator's `Config.json`, as it is: comments, trailing commas, any case of keys.
//!
//! Every mistake is reported, each with the JSON path where it stands, and none is passed over in
//! silence: an unknown filter type or a malformed duration stops the start.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use vorrang_engine::entity::{
    Description as _, EntityLimits, EntityName, Problem as Refused, QueueDescription, RuleDescription,
    RuleName, Setting, SubscriptionDescription, SubscriptionName, TopicDescription,
};
use vorrang_filter::{Action, Correlation, Filter, Parameters, Sql, SystemProperty, Value as Property};

use super::{Definitions, QueueDefinition, SubscriptionDefinition, TopicDefinition};
use crate::config::{read_bounded, shown};
use crate::duration;

/// What is wrong with a file, all of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Problems(pub Vec<String>);

/// Why a `Config.json` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is wrong.
    #[error("{} cannot be used:\n{problems}", path.display())]
    Wrong {
        /// Which.
        path: PathBuf,
        /// Everything that is wrong with it.
        problems: Problems,
    },
}

/// Reads a `Config.json`.
pub fn read(path: &Path) -> Result<Definitions, FileError> {
    let text =
        read_bounded(path).map_err(|source| FileError::Unreadable { path: path.to_path_buf(), source })?;
    parse(&text).map_err(|problems| FileError::Wrong { path: path.to_path_buf(), problems })
}

/// Reads the text of a `Config.json`.
pub fn parse(text: &str) -> Result<Definitions, Problems> {
    // The tolerant defaults are just what is wanted: comments and trailing commas.
    let options = jsonc_parser::ParseOptions::default();
    let value: Value = jsonc_parser::parse_to_serde_value(text, &options)
        .map_err(|error| Problems(vec![format!("not valid JSON: {error}")]))?;
    let mut reader = Reader::default();
    let definitions = reader.file(&value);
    if reader.problems.is_empty() { Ok(definitions) } else { Err(Problems(reader.problems)) }
}

/// Walks the document, collecting what is wrong on the way.
#[derive(Default)]
struct Reader {
    problems: Vec<String>,
}

/// A JSON value and where it stands.
#[derive(Clone)]
struct Place<'v> {
    value: &'v Value,
    path: String,
}

impl<'v> Place<'v> {
    /// The member of that name, in any case; null counts as absent.
    fn member(&self, name: &str) -> Option<Place<'v>> {
        let (_, value) = self.value.as_object()?.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        (!value.is_null()).then(|| Place { value, path: format!("{}.{name}", self.path) })
    }

    /// The elements of the list of that name; an absent list is empty.
    fn elements(&self, name: &str) -> Vec<Place<'v>> {
        let Some(list) = self.member(name) else { return Vec::new() };
        let Some(items) = list.value.as_array() else { return Vec::new() };
        let place = |(index, value)| Place { value, path: format!("{}[{index}]", list.path) };
        items.iter().enumerate().map(place).collect()
    }

    fn members(&self) -> impl Iterator<Item = (&'v str, Place<'v>)> {
        let members: Option<&'v Map<String, Value>> = self.value.as_object();
        let path = self.path.clone();
        members
            .into_iter()
            .flatten()
            .filter(|(_, value)| !value.is_null())
            .map(move |(key, value)| (key.as_str(), Place { value, path: format!("{path}.{key}") }))
    }
}

impl Reader {
    fn problem(&mut self, place: &Place<'_>, text: impl std::fmt::Display) {
        self.tell(&format!("{}: {text}", place.path));
    }

    /// Notes a mistake. Names and values of the file are part of it, and must not forge a line of our output.
    fn tell(&mut self, text: &str) {
        let mut line = String::with_capacity(text.len());
        for character in text.chars() {
            if character.is_control() {
                line.extend(character.escape_default());
            } else {
                line.push(character);
            }
        }
        self.problems.push(line);
    }

    fn file(&mut self, value: &Value) -> Definitions {
        let root = Place { value, path: "$".to_owned() };
        let Some(config) = root.member("UserConfig") else {
            self.problem(&root, "has no UserConfig; this is not an emulator configuration");
            return Definitions::default();
        };
        let mut definitions = Definitions::default();
        for namespace in config.elements("Namespaces") {
            for place in namespace.elements("Queues") {
                definitions.queues.extend(self.queue(&place));
            }
            for place in namespace.elements("Topics") {
                definitions.topics.extend(self.topic(&place));
            }
        }
        self.refuse_twins(&definitions);
        definitions
    }

    fn refuse_twins(&mut self, definitions: &Definitions) {
        let queues = definitions.queues.iter().map(|queue| &queue.name);
        let topics = definitions.topics.iter().map(|topic| &topic.name);
        let mut seen = std::collections::BTreeSet::new();
        for name in queues.chain(topics) {
            if !seen.insert(name.key().to_owned()) {
                let text = format!(
                    "$.UserConfig: '{}' is defined twice; queues and topics share their names",
                    name.as_str()
                );
                self.tell(&text);
            }
        }
        for topic in &definitions.topics {
            let mut seen = std::collections::BTreeSet::new();
            for subscription in &topic.subscriptions {
                if !seen.insert(subscription.name.key().to_owned()) {
                    let (name, topic) = (subscription.name.as_str(), topic.name.as_str());
                    let text =
                        format!("$.UserConfig: subscription '{name}' of topic '{topic}' is defined twice");
                    self.tell(&text);
                }
            }
        }
    }

    fn queue(&mut self, place: &Place<'_>) -> Option<QueueDefinition> {
        let settings = self.settings(place);
        self.check(place, QueueDescription::create(&settings, &EntityLimits::default()).err());
        let name = self.name(place, EntityName::parse)?;
        Some(QueueDefinition { name, settings })
    }

    fn topic(&mut self, place: &Place<'_>) -> Option<TopicDefinition> {
        let settings = self.settings(place);
        self.check(place, TopicDescription::create(&settings, &EntityLimits::default()).err());
        let subscriptions = place.elements("Subscriptions");
        let subscriptions = subscriptions.iter().filter_map(|place| self.subscription(place)).collect();
        let name = self.name(place, EntityName::parse)?;
        Some(TopicDefinition { name, settings, subscriptions })
    }

    fn subscription(&mut self, place: &Place<'_>) -> Option<SubscriptionDefinition> {
        let settings = self.settings(place);
        self.check(place, SubscriptionDescription::create(&settings, &EntityLimits::default()).err());
        let rules = place.elements("Rules");
        let rules = rules.iter().filter_map(|place| self.rule(place)).collect();
        let name = self.name(place, SubscriptionName::parse)?;
        Some(SubscriptionDefinition { name, settings, rules })
    }

    fn rule(&mut self, place: &Place<'_>) -> Option<RuleDescription> {
        let name = self.name(place, RuleName::parse);
        let Some(properties) = place.member("Properties") else {
            self.problem(place, "a rule needs Properties with a FilterType");
            return None;
        };
        let filter = self.filter(&properties);
        let action = match properties.member("Action") {
            Some(action) => {
                Some(Arc::new(self.sql(&action, |text| Action::parse(text, Parameters::default()))?))
            }
            None => None,
        };
        Some(RuleDescription { name: name?, filter: filter?, action })
    }

    fn filter(&mut self, properties: &Place<'_>) -> Option<Filter> {
        let kind = self.text_member(properties, "FilterType")?;
        match kind.to_ascii_lowercase().as_str() {
            "true" | "truefilter" => Some(Filter::True),
            "false" | "falsefilter" => Some(Filter::False),
            "sql" | "sqlfilter" => {
                let filter = self.needed(properties, "SqlFilter")?;
                self.sql(&filter, |text| Sql::parse(text, Parameters::default())).map(Filter::from)
            }
            "correlation" | "correlationfilter" => {
                let filter = self.needed(properties, "CorrelationFilter")?;
                self.correlation(&filter).map(Filter::from)
            }
            _ => {
                let text =
                    format!("FilterType '{kind}' is unknown; it may be Sql, Correlation, True or False");
                self.problem(properties, text);
                None
            }
        }
    }

    /// Parses the `SqlExpression` of a filter or an action.
    fn sql<T, E: std::fmt::Display>(
        &mut self,
        place: &Place<'_>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let member = self.needed(place, "SqlExpression")?;
        let text = self.text(&member)?;
        parse(&text).map_err(|error| self.problem(&member, error)).ok()
    }

    fn correlation(&mut self, place: &Place<'_>) -> Option<Correlation> {
        let mut system = Vec::new();
        let mut user = Vec::new();
        for (key, member) in place.members() {
            if key.eq_ignore_ascii_case("Properties") {
                user.extend(
                    member
                        .members()
                        .filter_map(|(key, value)| Some((key.to_owned(), self.property(&value)?))),
                );
                continue;
            }
            match (SystemProperty::parse(key), member.value.as_str()) {
                (Some(property), Some(text)) => system.push((property, text.to_owned())),
                (Some(_), None) => self.refuse(&member, "a string"),
                (None, _) => self.problem(&member, "is not a field of a correlation filter"),
            }
        }
        match Correlation::new(system, user) {
            Ok(filter) => Some(filter),
            Err(error) => {
                self.problem(place, error);
                None
            }
        }
    }

    fn property(&mut self, place: &Place<'_>) -> Option<Property> {
        let value = match place.value {
            Value::String(text) => Some(Property::String(text.as_str().into())),
            Value::Bool(value) => Some(Property::Bool(*value)),
            Value::Number(number) => {
                number.as_i64().map(Property::Int).or_else(|| number.as_f64().map(Property::Double))
            }
            _ => None,
        };
        if value.is_none() {
            self.refuse(place, "a string, a number or a boolean");
        }
        value
    }

    fn settings(&mut self, place: &Place<'_>) -> Vec<Setting> {
        let Some(properties) = place.member("Properties") else { return Vec::new() };
        let members: Vec<(&str, Place<'_>)> = properties.members().collect();
        members.iter().filter_map(|(key, member)| self.setting(key, member)).collect()
    }

    /// Reports what the engine would refuse.
    fn check(&mut self, place: &Place<'_>, refused: Option<Vec<Refused>>) {
        for Refused { property, value, allowed } in refused.unwrap_or_default() {
            self.tell(&format!(
                "{}.Properties.{property}: cannot be {value}: allowed is {allowed}",
                place.path
            ));
        }
    }

    fn setting(&mut self, key: &str, place: &Place<'_>) -> Option<Setting> {
        match key.to_ascii_lowercase().as_str() {
            "lockduration" => self.span(place).map(Setting::LockDuration),
            "defaultmessagetimetolive" => self.span(place).map(Setting::DefaultMessageTimeToLive),
            "duplicatedetectionhistorytimewindow" => {
                self.span(place).map(Setting::DuplicateDetectionHistoryTimeWindow)
            }
            "autodeleteonidle" => self.span(place).map(Setting::AutoDeleteOnIdle),
            "requiresduplicatedetection" => self.flag(place).map(Setting::RequiresDuplicateDetection),
            "requiressession" => self.flag(place).map(Setting::RequiresSession),
            "deadletteringonmessageexpiration" => {
                self.flag(place).map(Setting::DeadLetteringOnMessageExpiration)
            }
            "enablebatchedoperations" => self.flag(place).map(Setting::EnableBatchedOperations),
            "maxdeliverycount" => self.number(place).map(Setting::MaxDeliveryCount),
            "maxsizeinmegabytes" => self.number(place).map(Setting::MaxSizeInMegabytes),
            "maxmessagesizeinkilobytes" => self.number(place).map(Setting::MaxMessageSizeInKilobytes),
            "forwardto" => self.target(place, Setting::ForwardTo),
            "forwarddeadletteredmessagesto" => self.target(place, Setting::ForwardDeadLetteredMessagesTo),
            "usermetadata" => self.text(place).map(|text| Setting::UserMetadata(Some(text.as_str().into()))),
            "enablepartitioning" | "enableexpress" => None, // accepted and without effect, as in the service's reports
            _ => {
                self.problem(place, "is not a property of this entity");
                None
            }
        }
    }

    fn name<N, E: std::fmt::Display>(
        &mut self,
        place: &Place<'_>,
        parse: impl Fn(&str) -> Result<N, E>,
    ) -> Option<N> {
        let text = self.text_member(place, "Name")?;
        match parse(&text) {
            Ok(name) => Some(name),
            Err(error) => {
                self.problem(place, error);
                None
            }
        }
    }

    fn needed<'v>(&mut self, place: &Place<'v>, name: &str) -> Option<Place<'v>> {
        let member = place.member(name);
        if member.is_none() {
            self.problem(place, format_args!("{name} is missing"));
        }
        member
    }

    fn text_member(&mut self, place: &Place<'_>, name: &str) -> Option<String> {
        let member = self.needed(place, name)?;
        self.text(&member)
    }

    fn text(&mut self, place: &Place<'_>) -> Option<String> {
        let text = place.value.as_str().map(str::to_owned);
        if text.is_none() {
            self.refuse(place, "a string");
        }
        text
    }

    /// Reports a value that is not of the kind it should be.
    fn refuse(&mut self, place: &Place<'_>, allowed: &str) {
        let value = match place.value {
            Value::String(text) => shown(text),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "an object".to_owned(),
            plain => plain.to_string(),
        };
        self.problem(place, format_args!("cannot be {value}: allowed is {allowed}"));
    }

    fn span(&mut self, place: &Place<'_>) -> Option<vorrang_engine::Span> {
        let text = self.text(place)?;
        duration::parse(&text).map_err(|error| self.problem(place, error)).ok()
    }

    fn flag(&mut self, place: &Place<'_>) -> Option<bool> {
        let flag = match place.value {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => text.to_ascii_lowercase().parse().ok(),
            _ => None,
        };
        if flag.is_none() {
            self.refuse(place, "true or false");
        }
        flag
    }

    fn number<N: TryFrom<u64>>(&mut self, place: &Place<'_>) -> Option<N> {
        let number = match place.value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        let number = number.and_then(|number| N::try_from(number).ok());
        if number.is_none() {
            self.refuse(place, "a whole number");
        }
        number
    }

    /// A forward target: a name or an absolute URI; the empty string means none.
    fn target(
        &mut self,
        place: &Place<'_>,
        setting: impl Fn(Option<EntityName>) -> Setting,
    ) -> Option<Setting> {
        let text = self.text(place)?;
        if text.is_empty() {
            return Some(setting(None));
        }
        let name = match text.split_once("://") {
            Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
            None => &text,
        };
        match EntityName::parse(name) {
            Ok(name) => Some(setting(Some(name))),
            Err(error) => {
                self.problem(place, error);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
