//! The properties of entities as flags, made from the same table as the keys of `vorrang.toml`:
//! `lock_duration` there is `--lock-duration` here and `lockDuration` in the API.

use std::marker::PhantomData;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::{Map, Value, json};
use vorrang_server::config::{EntityKind, PROPERTIES, Property, Shape};
use vorrang_server::duration;

/// A kind of entity, as a type.
pub(crate) trait Kind {
    const KIND: EntityKind;
}

#[derive(Debug, Clone)]
pub(crate) struct Queue;
#[derive(Debug, Clone)]
pub(crate) struct Topic;
#[derive(Debug, Clone)]
pub(crate) struct Subscription;

impl Kind for Queue {
    const KIND: EntityKind = EntityKind::Queue;
}
impl Kind for Topic {
    const KIND: EntityKind = EntityKind::Topic;
}
impl Kind for Subscription {
    const KIND: EntityKind = EntityKind::Subscription;
}

/// The properties that were given, in the words of the API.
#[derive(Debug, Clone)]
pub(crate) struct Properties<K> {
    pub(crate) body: Map<String, Value>,
    kind: PhantomData<K>,
}

const HEADING: &str = "Properties";
const PRIORITY: &str = "Priority";

impl<K: Kind> Args for Properties<K> {
    fn augment_args(command: Command) -> Command {
        let plain = PROPERTIES.iter().filter(|property| property.on.includes(K::KIND)).map(flag);
        let command = command.args(plain);
        let command = match K::KIND {
            EntityKind::Topic => command,
            EntityKind::Queue | EntityKind::Subscription => command.args(priority_flags()),
        };
        match K::KIND {
            EntityKind::Subscription => command,
            EntityKind::Queue | EntityKind::Topic => command.arg(
                many("authorization_rule", "NAME=RIGHTS:FILE", access_rule)
                    .help("A key for this entity alone: its name, Send,Listen,Manage, and the file that holds it")
                    .help_heading(HEADING),
            ),
        }
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<K: Kind> FromArgMatches for Properties<K> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut body = Map::new();
        for property in PROPERTIES.iter().filter(|property| property.on.includes(K::KIND)) {
            if let Some(value) = matches.get_one::<Value>(property.name) {
                insert(&mut body, property, value);
            }
        }
        if K::KIND != EntityKind::Topic {
            lists(&mut body, matches, "class", "classes");
            lists(&mut body, matches, "priority_rule", "priorityRules");
            let (after, share) =
                (matches.get_one::<Value>("rescue_after"), matches.get_one::<Value>("rescue_share"));
            match (after, share) {
                (None, None) => {}
                (Some(after), Some(share)) => {
                    body.insert("rescue".to_owned(), json!({ "after": after, "share": share }));
                }
                _ => {
                    let text = "--rescue-after and --rescue-share go together\n";
                    return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, text));
                }
            }
        }
        if K::KIND != EntityKind::Subscription {
            lists(&mut body, matches, "authorization_rule", "authorizationRules");
        }
        Ok(Properties { body, kind: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn flag(property: &'static Property) -> Arg {
    let argument = Arg::new(property.name)
        .long(property.name.replace('_', "-"))
        .help(property.help)
        .help_heading(HEADING)
        .value_parser(move |text: &str| value(property, text));
    match property.shape {
        Shape::Switch => {
            argument.value_name("BOOL").num_args(0..=1).require_equals(true).default_missing_value("true")
        }
        Shape::Number(..) => argument.value_name("NUMBER"),
        Shape::Span => argument.value_name("DURATION"),
        Shape::Word(words) => argument.value_name("WORD").hide_possible_values(false).long_help(format!(
            "{} [{}]",
            property.help,
            words.join(", ")
        )),
        Shape::Share => argument.value_name("SHARE"),
        Shape::Text(_) | Shape::Secret(_) => argument.value_name("TEXT"),
    }
}

fn priority_flags() -> [Arg; 4] {
    [
        many("class", "NAME=LEVEL[:TARGET]", class)
            .help("A class of messages: its name, its level, and how long they should wait at most; may be repeated")
            .help_heading(PRIORITY),
        many("priority_rule", "CLASS=SQL", priority_rule)
            .help("Messages for which this holds are of that class; the first match counts; may be repeated")
            .help_heading(PRIORITY),
        Arg::new("rescue_after")
            .long("rescue-after")
            .value_name("DURATION")
            .value_parser(|text: &str| span(text).map(Value::from))
            .help("Under the policy strict: the wait after which a message is rescued")
            .help_heading(PRIORITY),
        Arg::new("rescue_share")
            .long("rescue-share")
            .value_name("SHARE")
            .value_parser(share)
            .help("The part of deliveries that goes to rescued messages; 0 switches it off")
            .help_heading(PRIORITY),
    ]
}

fn many(
    name: &'static str,
    placeholder: &'static str,
    parse: impl Fn(&str) -> Result<Value, String> + Clone + Send + Sync + 'static,
) -> Arg {
    Arg::new(name)
        .long(name.replace('_', "-"))
        .value_name(placeholder)
        .action(ArgAction::Append)
        .value_parser(parse)
}

fn lists(body: &mut Map<String, Value>, matches: &ArgMatches, name: &str, field: &str) {
    if let Some(values) = matches.get_many::<Value>(name) {
        body.insert(field.to_owned(), values.cloned().collect());
    }
}

/// One value, in the API's words.
fn value(property: &'static Property, text: &str) -> Result<Value, String> {
    let refused = || format!("allowed is {}", property.shape.allowed());
    if !property.allows(text) {
        return Err(refused());
    }
    match property.shape {
        Shape::Switch => {
            Ok(Value::from(matches!(text.to_ascii_lowercase().as_str(), "true" | "1" | "yes" | "on")))
        }
        Shape::Number(..) => text.parse::<u64>().map(Value::from).map_err(|_| refused()),
        Shape::Span => span(text).map(Value::from),
        Shape::Word(words) => {
            let word = words.iter().find(|word| word.eq_ignore_ascii_case(text));
            word.map(|word| Value::from(*word)).ok_or_else(refused)
        }
        Shape::Share => share(text),
        Shape::Text(_) | Shape::Secret(_) => Ok(Value::from(text)),
    }
}

fn insert(body: &mut Map<String, Value>, property: &Property, value: &Value) {
    // The API has the step of the aged policy beside it.
    if property.name == "policy"
        && let Some((word, step)) = value.as_str().and_then(|text| text.split_once(':'))
    {
        body.insert("policy".to_owned(), Value::from(word.to_ascii_lowercase()));
        body.insert("agedStep".to_owned(), Value::from(step));
        return;
    }
    let value = match (property.name, value.as_str()) {
        ("policy", Some(word)) => Value::from(word.to_ascii_lowercase()),
        _ => value.clone(),
    };
    body.insert(camel(property.name), value);
}

/// `lock_duration` as `lockDuration`.
pub(crate) fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut camel, word| {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
        camel
    })
}

fn span(text: &str) -> Result<String, String> {
    duration::parse(text).map(duration::to_iso).map_err(|error| error.to_string())
}

fn share(text: &str) -> Result<Value, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.map(Value::from).ok_or_else(|| format!("allowed is {}", Shape::Share.allowed()))
}

fn class(text: &str) -> Result<Value, String> {
    let form = || "a class looks like gold=7 or, with a target, gold=7:10s".to_owned();
    let (name, rest) = text.split_once('=').ok_or_else(form)?;
    let (level, target) = rest.split_once(':').map_or((rest, None), |(level, target)| (level, Some(target)));
    let level: u8 = level.trim().parse().map_err(|_| "a level is a whole number from 0 to 255".to_owned())?;
    let mut class = json!({ "name": name.trim(), "level": level });
    if let (Some(target), Some(fields)) = (target, class.as_object_mut()) {
        fields.insert("targetWait".to_owned(), Value::from(span(target)?));
    }
    Ok(class)
}

fn priority_rule(text: &str) -> Result<Value, String> {
    let form = || "a priority rule looks like \"gold=Fee > 100\"".to_owned();
    let (class, condition) = text.split_once('=').ok_or_else(form)?;
    let filter = json!({ "type": "sql", "expression": condition.trim() });
    Ok(json!({ "class": class.trim(), "filter": filter }))
}

fn access_rule(text: &str) -> Result<Value, String> {
    let form = || "a key looks like shop=Send,Listen:/path/of/a/file".to_owned();
    let (name, rest) = text.split_once('=').ok_or_else(form)?;
    let (rights, file) = rest.split_once(':').ok_or_else(form)?;
    let known = ["Send", "Listen", "Manage"];
    let rights = rights
        .split(',')
        .map(|right| {
            let found = known.iter().copied().find(|known| known.eq_ignore_ascii_case(right.trim()));
            found.ok_or_else(|| format!("a right is one of {}", known.join(", ")))
        })
        .collect::<Result<Vec<&str>, String>>()?;
    let key = std::fs::read_to_string(Path::new(file))
        .map_err(|error| format!("{file} cannot be read: {error}"))?;
    let key = key.trim();
    Ok(json!({ "keyName": name, "rights": rights, "primaryKey": key, "secondaryKey": key }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body<K: Kind>(arguments: &[&str]) -> Result<Value, String> {
        let command = Properties::<K>::augment_args(Command::new("test").no_binary_name(true));
        let matches = command.try_get_matches_from(arguments).map_err(|error| error.to_string())?;
        let properties = Properties::<K>::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        Ok(Value::Object(properties.body))
    }

    #[test]
    fn flags_are_the_properties_in_kebab_case() {
        let arguments = "--max-delivery-count 3 --lock-duration 30s --requires-session --requires-duplicate-detection \
                         --duplicate-detection-history-time-window PT20S --status active --policy aged:10s \
                         --class gold=7:10s --class slow=2 --rescue-after 1m --rescue-share 0.2";
        let arguments: Vec<&str> =
            arguments.split_whitespace().chain(["--priority-rule", "gold=Fee >= 100"]).collect();
        assert_eq!(
            body::<Queue>(&arguments).unwrap(),
            json!({
                "maxDeliveryCount": 3, "lockDuration": "PT30S", "requiresSession": true,
                "requiresDuplicateDetection": true, "duplicateDetectionHistoryTimeWindow": "PT20S",
                "status": "Active", "policy": "aged", "agedStep": "10s",
                "classes": [{ "name": "gold", "level": 7, "targetWait": "PT10S" }, { "name": "slow", "level": 2 }],
                "rescue": { "after": "PT1M", "share": 0.2 },
                "priorityRules": [{ "class": "gold", "filter": { "type": "sql", "expression": "Fee >= 100" } }],
            })
        );
        assert_eq!(
            body::<Topic>(&["--requires-duplicate-detection=false"]).unwrap(),
            json!({ "requiresDuplicateDetection": false })
        );
    }

    #[test]
    fn wrong_values_are_told_with_what_is_allowed() {
        let cases: [(&[&str], &str); 7] = [
            (&["--lock-duration", "soon"], "allowed is a duration like"),
            (&["--max-delivery-count", "0"], "allowed is a whole number from 1"),
            (&["--status", "asleep"], "Active, Disabled"),
            (&["--class", "gold"], "looks like gold=7"),
            (&["--class", "gold=300"], "0 to 255"),
            (&["--rescue-after", "1m"], "go together"),
            (&["--authorization-rule", "a=Fly:/x"], "Send, Listen, Manage"),
        ];
        for (arguments, expected) in cases {
            let error = body::<Queue>(arguments).unwrap_err();
            assert!(error.contains(expected), "{arguments:?}: {error}");
        }
        assert!(body::<Topic>(&["--lock-duration", "30s"]).is_err());
    }
}
