//! Filters, actions and rules between JSON and the engine.

use std::sync::Arc;

use vorrang_engine::entity::{Rule, RuleDescription, RuleName};
use vorrang_filter::{Action, Correlation, Filter, Parameters, Sql, SystemProperty};

use super::value;
use crate::date;
use crate::http::api::complaint::Complaints;
use crate::http::api::model;

/// A rule as it is told.
pub(crate) fn rule_shown(rule: &Rule) -> model::Rule {
    model::Rule {
        name: rule.description.name.to_string(),
        definition: definition_shown(&rule.description),
        created_at: date::rfc3339(rule.created),
    }
}

/// What a rule does, as it is told.
pub(crate) fn definition_shown(rule: &RuleDescription) -> model::RuleDefinition {
    let action = rule.action.as_ref().map(|action| sql_shown(action.text(), action.parameters()));
    model::RuleDefinition { filter: filter_shown(&rule.filter), action }
}

/// A filter as it is told.
pub(crate) fn filter_shown(filter: &Filter) -> model::Filter {
    match filter {
        Filter::True => model::Filter::True,
        Filter::False => model::Filter::False,
        Filter::Sql(sql) => model::Filter::Sql(sql_shown(sql.text(), sql.parameters())),
        Filter::Correlation(correlation) => model::Filter::Correlation(correlation_shown(correlation)),
    }
}

fn sql_shown(text: &str, parameters: &Parameters) -> model::SqlText {
    let parameters = parameters.iter().map(|(name, found)| (name.clone(), value::shown(found.as_ref())));
    model::SqlText { expression: text.to_owned(), parameters: parameters.collect() }
}

fn correlation_shown(correlation: &Correlation) -> model::Correlation {
    let mut shown = model::Correlation {
        properties: correlation
            .user()
            .map(|(name, found)| (name.to_owned(), value::shown(found.as_ref())))
            .collect(),
        ..model::Correlation::default()
    };
    for (property, text) in correlation.system() {
        if let Some((_, field)) = fields(&mut shown).into_iter().find(|(known, _)| *known == property) {
            *field = Some(text.to_owned());
        }
    }
    shown
}

/// The fields of a correlation filter and what they mean.
fn fields(correlation: &mut model::Correlation) -> [(SystemProperty, &mut Option<String>); 8] {
    [
        (SystemProperty::CorrelationId, &mut correlation.correlation_id),
        (SystemProperty::MessageId, &mut correlation.message_id),
        (SystemProperty::To, &mut correlation.to),
        (SystemProperty::ReplyTo, &mut correlation.reply_to),
        (SystemProperty::Label, &mut correlation.subject),
        (SystemProperty::SessionId, &mut correlation.session_id),
        (SystemProperty::ReplyToSessionId, &mut correlation.reply_to_session_id),
        (SystemProperty::ContentType, &mut correlation.content_type),
    ]
}

/// Reads a rule of this name.
pub(crate) fn read_rule(
    name: RuleName,
    definition: &model::RuleDefinition,
    field: &str,
    complaints: &mut Complaints,
) -> Option<RuleDescription> {
    let filter = read_filter(&definition.filter, &join(field, "filter"), complaints);
    let action = match &definition.action {
        None => Some(None),
        Some(text) => {
            let field = join(field, "action");
            let parameters = read_parameters(text, &field, complaints);
            let parsed = Action::parse(&text.expression, parameters?);
            complaints.check(&join(&field, "expression"), parsed).map(|action| Some(Arc::new(action)))
        }
    };
    Some(RuleDescription { name, filter: filter?, action: action? })
}

/// Reads a filter.
pub(crate) fn read_filter(
    filter: &model::Filter,
    field: &str,
    complaints: &mut Complaints,
) -> Option<Filter> {
    match filter {
        model::Filter::True => Some(Filter::True),
        model::Filter::False => Some(Filter::False),
        model::Filter::Sql(text) => {
            let parameters = read_parameters(text, field, complaints)?;
            let parsed = Sql::parse(&text.expression, parameters);
            complaints.check(&join(field, "expression"), parsed).map(Filter::from)
        }
        model::Filter::Correlation(correlation) => read_correlation(correlation, field, complaints),
    }
}

fn read_parameters(text: &model::SqlText, field: &str, complaints: &mut Complaints) -> Option<Parameters> {
    let mut parameters = Parameters::new();
    let mut complete = true;
    for (name, given) in &text.parameters {
        let field = format!("{}.{name}", join(field, "parameters"));
        match value::read(given) {
            Ok(Some(value)) => {
                parameters.insert(name.clone(), value);
            }
            Ok(None) => {
                complaints.add(field, "cannot be null: leave it out");
                complete = false;
            }
            Err(error) => {
                complaints.add(field, error);
                complete = false;
            }
        }
    }
    complete.then_some(parameters)
}

fn read_correlation(
    correlation: &model::Correlation,
    field: &str,
    complaints: &mut Complaints,
) -> Option<Filter> {
    let mut given = correlation.clone();
    let system: Vec<(SystemProperty, String)> = fields(&mut given)
        .into_iter()
        .filter_map(|(property, text)| Some((property, text.take()?)))
        .collect();
    let mut user = Vec::new();
    for (name, found) in &correlation.properties {
        let place = format!("{}.{name}", join(field, "properties"));
        match value::read(found) {
            Ok(Some(value)) => user.push((name.clone(), value)),
            Ok(None) => complaints.add(place, "cannot be null: no message matches that"),
            Err(error) => complaints.add(place, error),
        }
    }
    if user.len() < correlation.properties.len() {
        return None;
    }
    complaints.check(field, Correlation::new(system, user)).map(Filter::from)
}

/// `field.part`, or the part alone at the top.
pub(crate) fn join(field: &str, part: &str) -> String {
    if field.is_empty() { part.to_owned() } else { format!("{field}.{part}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<(Filter, model::Filter), String> {
        let given: model::Filter = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let mut complaints = Complaints::default();
        let filter = read_filter(&given, "filter", &mut complaints);
        match complaints.finish(filter) {
            Ok(filter) => Ok((filter.unwrap(), given)),
            Err(failure) => Err(failure.detail().to_owned()),
        }
    }

    #[test]
    fn filters_are_told_as_they_were_given() {
        for json in [
            r#"{"type":"true"}"#,
            r#"{"type":"false"}"#,
            r#"{"type":"sql","expression":"a = @b","parameters":{"@b":{"type":"guid","value":"00000000-0000-0000-0000-000000000007"}}}"#,
            r#"{"type":"correlation","subject":"s","messageId":"m","properties":{"n":1,"t":"x","f":true}}"#,
        ] {
            let (filter, given) = read(json).unwrap();
            assert_eq!(filter_shown(&filter), given, "{json}");
        }
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let cases = [
            (r#"{"type":"sql","expression":"a ="}"#, "filter.expression: "),
            (r#"{"type":"sql","expression":"a = @b","parameters":{"@b":null}}"#, "filter.parameters.@b: "),
            (
                r#"{"type":"correlation","properties":{"x":{"type":"char","value":"ab"}}}"#,
                "filter.properties.x: ",
            ),
            (r#"{"type":"correlation"}"#, "filter: "),
            (r#"{"type":"regex"}"#, "unknown variant `regex`"),
        ];
        for (json, expected) in cases {
            let error = read(json).unwrap_err();
            assert!(error.contains(expected), "{json}: {error}");
        }
    }
}
