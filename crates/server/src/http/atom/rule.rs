//! Rules as `RuleDescription`: filters, actions and their parameters.

use std::sync::Arc;

use vorrang_engine::entity::{Rule, RuleDescription, RuleName};
use vorrang_filter::{Action, Correlation, Filter, Parameters, Sql, SystemProperty};

use super::value;
use super::writer::Writer;
use super::xml::Element;
use crate::date;

/// The version of the language that Service Bus writes beside an expression.
const COMPATIBILITY_LEVEL: u8 = 20;

/// The fields of a correlation filter, in the order of the schema.
const FIELDS: [SystemProperty; 8] = [
    SystemProperty::CorrelationId,
    SystemProperty::MessageId,
    SystemProperty::To,
    SystemProperty::ReplyTo,
    SystemProperty::Label,
    SystemProperty::SessionId,
    SystemProperty::ReplyToSessionId,
    SystemProperty::ContentType,
];

/// Reads a rule; the name is that of the URL. A rule without a filter takes every message.
pub(crate) fn read(
    name: RuleName,
    description: &Element,
    problems: &mut Vec<String>,
) -> Option<RuleDescription> {
    let filter = match description.field("Filter") {
        Some(filter) => read_filter(filter, problems)?,
        None => Filter::True,
    };
    let action = match description.field("Action").map(|action| (action, action.kind.as_deref())) {
        None | Some((_, None | Some("EmptyRuleAction"))) => None,
        Some((action, Some("SqlRuleAction"))) => {
            let (text, parameters) = expression(action, problems)?;
            Some(Arc::new(parsed("Action", Action::parse(&text, parameters), problems)?))
        }
        Some((_, Some(other))) => {
            problems.push(format!("Action cannot be a {other}: allowed is SqlRuleAction or EmptyRuleAction"));
            return None;
        }
    };
    Some(RuleDescription { name, filter, action })
}

/// Reads a filter of whichever kind its type names.
pub(crate) fn read_filter(element: &Element, problems: &mut Vec<String>) -> Option<Filter> {
    match element.kind.as_deref() {
        Some("TrueFilter") => Some(Filter::True),
        Some("FalseFilter") => Some(Filter::False),
        Some("SqlFilter") => {
            let (text, parameters) = expression(element, problems)?;
            parsed("Filter", Sql::parse(&text, parameters), problems).map(Filter::from)
        }
        Some("CorrelationFilter") => {
            let system = FIELDS.into_iter().filter_map(|property| {
                let field = child(element, property.name()).filter(|field| !field.nil)?;
                Some((property, field.text.clone()))
            });
            let system: Vec<_> = system.collect();
            let user = child(element, "Properties").map(|pairs| value::pairs(pairs, problems));
            let filter = Correlation::new(system, user.unwrap_or_default());
            parsed("Filter", filter, problems).map(Filter::from)
        }
        other => {
            let kind = other.unwrap_or("filter without a type");
            problems.push(format!(
                "Filter cannot be a {kind}: allowed is SqlFilter, CorrelationFilter, TrueFilter or FalseFilter"
            ));
            None
        }
    }
}

fn child<'e>(element: &'e Element, name: &str) -> Option<&'e Element> {
    element.children.iter().find(|child| value::is_ours(child) && child.name == name)
}

fn expression(element: &Element, problems: &mut Vec<String>) -> Option<(String, Parameters)> {
    let parameters = child(element, "Parameters").map(|pairs| value::pairs(pairs, problems));
    let Some(text) = child(element, "SqlExpression").and_then(Element::value) else {
        problems.push(format!("{} needs an SqlExpression", element.name));
        return None;
    };
    Some((text.to_owned(), parameters.unwrap_or_default().into_iter().collect()))
}

fn parsed<T, E: std::fmt::Display>(
    what: &str,
    result: Result<T, E>,
    problems: &mut Vec<String>,
) -> Option<T> {
    result.map_err(|error| problems.push(format!("{what} is not valid: {error}"))).ok()
}

/// Writes a rule's description. Filter and action carry their type even when they have nothing else:
/// clients look into both without asking.
pub(crate) fn write(writer: &mut Writer, rule: &Rule) {
    let RuleDescription { name, filter, action } = &rule.description;
    write_filter(writer, filter);
    match action {
        None => writer.element("Action", &[("i:type", "EmptyRuleAction")], |_| {}),
        Some(action) => writer.element("Action", &[("i:type", "SqlRuleAction")], |writer| {
            write_sql(writer, action.text(), action.parameters());
        }),
    }
    writer.leaf("CreatedAt", date::rfc3339(rule.created));
    writer.leaf("Name", name);
}

/// Writes a filter. True and false filters carry their expression: JavaScript knows them by it.
pub(crate) fn write_filter(writer: &mut Writer, filter: &Filter) {
    let none = Parameters::default();
    let kind = |kind: &'static str| [("i:type", kind)];
    match filter {
        Filter::True => {
            writer.element("Filter", &kind("TrueFilter"), |writer| write_sql(writer, "1=1", &none));
        }
        Filter::False => {
            writer.element("Filter", &kind("FalseFilter"), |writer| write_sql(writer, "1=0", &none));
        }
        Filter::Sql(sql) => writer.element("Filter", &kind("SqlFilter"), |writer| {
            write_sql(writer, sql.text(), sql.parameters());
        }),
        Filter::Correlation(correlation) => {
            writer.element("Filter", &kind("CorrelationFilter"), |writer| {
                for property in FIELDS {
                    let found = correlation.system().find(|(field, _)| *field == property);
                    writer.leaf_if(property.name(), found.map(|(_, text)| text));
                }
                value::write_pairs(writer, "Properties", correlation.user());
            });
        }
    }
}

fn write_sql(writer: &mut Writer, text: &str, parameters: &Parameters) {
    writer.leaf("SqlExpression", text);
    writer.leaf("CompatibilityLevel", COMPATIBILITY_LEVEL);
    let pairs = parameters.iter().map(|(key, value)| (key.as_str(), value));
    value::write_pairs(writer, "Parameters", pairs);
}
