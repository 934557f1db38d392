//! A subscription's rules: added, removed, listed.

use vorrang_amqp::value::{ListBuilder, Map, Value};
use vorrang_broker::api::{Operation, Question};
use vorrang_engine::entity::{self, Entity, EntityName, EntityPath, RuleName, SubscriptionName};

use super::arguments::{Arguments, argument_error, not_allowed};
use super::plan::{Context, Plan, Reading};
use super::response::Response;
use super::rule_description;
use crate::front::condition::Told;
use crate::front::links::Managed;

/// `add-rule`.
pub(super) fn add(arguments: &Arguments, context: &Context<'_>) -> Result<Plan, Told> {
    let (topic, subscription) = subscription(context.managed)?;
    let description = match arguments.value("rule-description") {
        Some(Value::Map(map)) => Arguments::new(map),
        _ => return Err(argument_error("The request needs 'rule-description', a map.")),
    };
    let name = match arguments.text("rule-name")? {
        Some(name) => name,
        None => description.required_text("rule-name")?,
    };
    let rule = rule_description::read(rule_name(name.as_str())?, &description)?;
    let request = entity::Request::CreateRule { topic, subscription, rule };
    Ok(Plan::new(Operation::Administer(Box::new(request)), Reading::Nothing))
}

/// `remove-rule`.
pub(super) fn remove(arguments: &Arguments, context: &Context<'_>) -> Result<Plan, Told> {
    let (topic, subscription) = subscription(context.managed)?;
    let rule = rule_name(arguments.required_text("rule-name")?.as_str())?;
    let reading = Reading::RuleRemoved { rule: rule.as_str().into() };
    let request = entity::Request::DeleteRule { topic, subscription, rule };
    Ok(Plan::new(Operation::Administer(Box::new(request)), reading))
}

/// `enumerate-rules`.
pub(super) fn list(arguments: &Arguments, context: &Context<'_>) -> Result<Plan, Told> {
    let (topic, subscription) = subscription(context.managed)?;
    let skip = arguments.count("skip")?.unwrap_or(0);
    let top = arguments.count("top")?.unwrap_or(u32::MAX);
    let question = Question::Rules { subscription: EntityPath::of_subscription(topic, subscription) };
    Ok(Plan::new(Operation::Ask(question), Reading::Rules { skip, top }))
}

/// A page of rules, in the order of their creation.
pub(super) fn listed(found: &Entity, skip: u32, top: u32) -> Response {
    let rules = found.subscription().into_iter().flat_map(|subscription| subscription.rules.values());
    let place = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let mut list = ListBuilder::default();
    for rule in rules.skip(place(skip)).take(place(top)) {
        let described = rule_description::write(rule);
        list.push(&std::iter::once(("rule-description", described)).collect::<Map>());
    }
    let list = list.finish();
    if list.is_empty() { Response::nothing() } else { Response::of("rules", list) }
}

/// The subscription whose rules are meant.
fn subscription(managed: &Managed) -> Result<(EntityName, SubscriptionName), Told> {
    let path = EntityPath::parse(&managed.path).ok().filter(|_| managed.mailbox.is_main());
    match path {
        Some(EntityPath { name, subscription: Some(subscription), .. }) => Ok((name, subscription)),
        _ => Err(not_allowed("Only subscriptions have rules.")),
    }
}

fn rule_name(text: &str) -> Result<RuleName, Told> {
    RuleName::parse(text).map_err(|error| argument_error(format!("'rule-name' is not valid: {error}.")))
}
