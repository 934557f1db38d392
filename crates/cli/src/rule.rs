//! `vorrang rule create|list|show|update|delete`: the rules of a subscription.

use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Map, Value, json};
use vorrang_server::http::api::model::{Filter, Rule};

use crate::api::{Api, subscription_path};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, Table};
use crate::percent;
use crate::properties::camel;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add a rule to a subscription
    Create {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        definition: Definition,
        /// If it exists already, leave it as it is and succeed
        #[arg(long)]
        if_missing: bool,
    },
    /// List the rules of a subscription
    List {
        /// The topic
        topic: String,
        /// The subscription
        subscription: String,
    },
    /// Show a rule
    Show(Place),
    /// Give a rule another filter and action
    Update {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        definition: Definition,
    },
    /// Delete a rule
    Delete {
        #[command(flatten)]
        place: Place,
        /// If it does not exist, succeed
        #[arg(long)]
        if_exists: bool,
    },
}

/// Which rule.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The topic
    topic: String,
    /// The subscription
    subscription: String,
    /// The rule
    name: String,
}

/// What a rule does.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("condition").args(["filter", "correlation"]))]
pub(crate) struct Definition {
    /// Take messages for which this SQL condition holds; without a filter, every message
    #[arg(long, value_name = "SQL")]
    filter: Option<String>,
    /// Take messages whose field has this value, such as label=red or property:shop=7; may be repeated
    #[arg(long, value_name = "FIELD=VALUE")]
    correlation: Vec<String>,
    /// What to do to each copy, in SQL
    #[arg(long, value_name = "SQL")]
    action: Option<String>,
}

pub(crate) fn run(command: Command, api: &Api, format: Format) -> Outcome {
    match command {
        Command::Create { place, definition, if_missing } => {
            let query = if if_missing { "?ifMissing=true" } else { "" };
            let rule: Rule = api.put(&format!("{}{query}", path(&place)), &definition.body()?)?;
            done(&rule, "is there", format)
        }
        Command::List { topic, subscription } => {
            let path = format!("{}/rules", subscription_path(&topic, &subscription));
            list(&api.list::<Rule>(&path, None)?, format)
        }
        Command::Show(place) => {
            let rule: Rule = api.get(&path(&place))?;
            match format {
                Format::Json => output::json(&rule),
                Format::Table => list(&[rule], format),
            }
        }
        Command::Update { place, definition } => {
            let rule: Rule = api.patch(&path(&place), &definition.body()?)?;
            done(&rule, "is changed", format)
        }
        Command::Delete { place, if_exists } => match api.delete(&path(&place)) {
            Err(Failure::NotFound(_)) if if_exists => Ok(()),
            other => other,
        },
    }
}

impl Definition {
    fn body(&self) -> Result<Value, Failure> {
        let fields = if self.correlation.is_empty() { None } else { Some(correlation(&self.correlation)?) };
        Ok(definition(self.filter.as_deref(), fields, self.action.as_deref()))
    }
}

/// The body that makes a rule.
pub(crate) fn definition(
    filter: Option<&str>,
    correlation: Option<Map<String, Value>>,
    action: Option<&str>,
) -> Value {
    let filter = match (filter, correlation) {
        (Some(expression), _) => json!({ "type": "sql", "expression": expression }),
        (None, Some(mut fields)) => {
            fields.insert("type".to_owned(), Value::from("correlation"));
            Value::Object(fields)
        }
        (None, None) => json!({ "type": "true" }),
    };
    let mut body = json!({ "filter": filter });
    if let (Some(expression), Some(fields)) = (action, body.as_object_mut()) {
        fields.insert("action".to_owned(), json!({ "expression": expression }));
    }
    body
}

/// Fields of a correlation filter. A property's value is a number or a truth value if it reads as one.
fn correlation(fields: &[String]) -> Result<Map<String, Value>, Failure> {
    let (mut system, mut user) = (Map::new(), Map::new());
    for field in fields {
        let Some((name, value)) = field.split_once('=') else {
            let text =
                format!("--correlation {field:?} has no '='; it looks like label=red or property:shop=7");
            return Err(Failure::Usage(text));
        };
        if let Some(name) = name.strip_prefix("property:") {
            let typed = serde_json::from_str::<Value>(value).ok();
            let typed = typed.filter(|value| value.is_number() || value.is_boolean());
            user.insert(name.to_owned(), typed.unwrap_or_else(|| Value::from(value)));
        } else {
            let name = if name == "label" { "subject" } else { name };
            system.insert(camel(&name.replace('-', "_")), Value::from(value));
        }
    }
    if !user.is_empty() {
        system.insert("properties".to_owned(), Value::Object(user));
    }
    Ok(system)
}

fn path(place: &Place) -> String {
    let subscription = subscription_path(&place.topic, &place.subscription);
    format!("{subscription}/rules/{}", percent::encode(&place.name))
}

fn done(rule: &Rule, what: &str, format: Format) -> Outcome {
    match format {
        Format::Json => output::json(rule),
        Format::Table => output::line(&format!("rule {} {what}", output::printable(&rule.name))),
    }
}

fn list(rules: &[Rule], format: Format) -> Outcome {
    if format == Format::Json {
        return output::json(&rules);
    }
    let mut table = Table::new(&["name", "filter", "action"]);
    for rule in rules {
        let action = rule.definition.action.as_ref().map_or("", |action| action.expression.as_str());
        table.row(vec![rule.name.as_str().into(), filter(&rule.definition.filter).into(), action.into()]);
    }
    table.print()
}

fn filter(filter: &Filter) -> String {
    match filter {
        Filter::True => "every message".to_owned(),
        Filter::False => "no message".to_owned(),
        Filter::Sql(sql) => sql.expression.clone(),
        Filter::Correlation(fields) => serde_json::to_string(fields).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlation_fields_keep_their_types() {
        let fields =
            ["label=red", "content-type=a/b", "property:shop=7", "property:open=true", "property:x=seven"];
        let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        assert_eq!(
            Value::Object(correlation(&fields).unwrap()),
            json!({ "subject": "red", "contentType": "a/b", "properties": { "shop": 7, "open": true, "x": "seven" } })
        );
        assert!(correlation(&["label".to_owned()]).is_err());
    }
}
