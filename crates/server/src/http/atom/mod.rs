//! Administration as Service Bus does it: entries and feeds of Atom with descriptions in XML.
//!
//! This is what the SDKs' admin clients speak. They differ in what they send and in what they insist on;
//! so reading is patient and writing is exact. Versions of the API differ in nothing that matters here: any
//! is accepted, and everything is always written.

mod description;
mod entry;
pub mod fuzzing;
mod priority;
mod rule;
#[cfg(test)]
mod tests;
mod value;
mod writer;
mod xml;

pub(crate) use entry::Origin;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, IF_MATCH};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use vorrang_broker::api::{Answer, Listed, Operation, Question};
use vorrang_engine::entity::{
    Entity, EntityName, EntityPath, Request, Rule, RuleName, SubQueue, SubscriptionName,
};

use self::description::{Intent, Root};
use self::entry::{Entry, Page};
use super::address::Address;
use super::call::Call;
use super::fault::Fault;
use super::{Site, body};
use crate::caller::Answered;
use crate::date;

/// Entries of one page: what the service gives at most, and what it gives to those who do not ask.
const PAGE_MAX: u64 = 100;

/// Answers an administrative request.
pub(super) async fn serve(call: &Call, address: Address, body: Body) -> Result<Response, Fault> {
    match (call.method.clone(), address) {
        (Method::GET, Address::Namespace) => namespace(call).await,
        (Method::GET, Address::Queues) => entities(call, "$Resources/Queues", "Queues").await,
        (Method::GET, Address::Topics) => entities(call, "$Resources/Topics", "Topics").await,
        (Method::GET, Address::Subscriptions(topic)) => subscriptions(call, topic).await,
        (Method::GET, Address::Rules(topic, subscription)) => rules(call, topic, subscription).await,
        (Method::GET, Address::Rule(topic, subscription, rule)) => {
            let written = rule_entry(call, topic, subscription, rule).await?;
            Ok(document(StatusCode::OK, ENTRY, written))
        }
        (Method::GET, Address::Entity(path)) => {
            let written = entity_entry(call, &main(path)?).await?;
            Ok(document(StatusCode::OK, ENTRY, written))
        }
        (Method::PUT, Address::Entity(path)) => put_entity(call, main(path)?, body).await,
        (Method::PUT, Address::Rule(topic, subscription, rule)) => {
            put_rule(call, topic, subscription, rule, body).await
        }
        (Method::DELETE, Address::Entity(path)) => {
            let path = main(path)?;
            let shown = path.to_string();
            call.administer(Request::Delete { path }, &shown).await?;
            Ok(StatusCode::OK.into_response())
        }
        (Method::DELETE, Address::Rule(topic, subscription, rule)) => {
            let shown = rule_path(&topic, &subscription, &rule);
            call.administer(Request::DeleteRule { topic, subscription, rule }, &shown).await?;
            Ok(StatusCode::OK.into_response())
        }
        (method, _) => {
            Err(Fault::method_not_allowed(format!("The method {method} is not for this resource.")))
        }
    }
}

/// The entity itself: its sub-queues and its `$management` node are not administered.
fn main(path: EntityPath) -> Result<EntityPath, Fault> {
    if path.sub_queue == SubQueue::Main && !path.management {
        Ok(path)
    } else {
        Err(Fault::not_found(&path.to_string()))
    }
}

const ENTRY: &str = "application/atom+xml;type=entry;charset=utf-8";
const FEED: &str = "application/atom+xml;type=feed;charset=utf-8";

fn document(status: StatusCode, kind: &'static str, text: String) -> Response {
    let mut response = (status, text).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

async fn namespace(call: &Call) -> Result<Response, Fault> {
    call.ask(Operation::Ask(Question::Namespace), "$namespaceinfo").await?;
    let Site { namespace, started, .. } = &*call.site;
    let entry = Entry {
        path: "$namespaceinfo".to_owned(),
        title: namespace,
        published: None,
        updated: *started,
        root: "NamespaceInfo",
    };
    let text = entry::document(&call.origin(), &entry, |writer| {
        writer.leaf("CreatedTime", date::rfc3339(*started));
        writer.leaf("MessagingSKU", "Standard");
        writer.leaf("ModifiedTime", date::rfc3339(*started));
        writer.leaf("Name", namespace);
        writer.leaf("NamespaceType", "Messaging");
    });
    Ok(document(StatusCode::OK, ENTRY, text))
}

fn entity_head(listed: &Listed) -> Entry<'_> {
    let Entity { path, created, updated, .. } = &*listed.entity;
    let title = path.subscription.as_ref().map_or(path.name.as_str(), SubscriptionName::as_str);
    let root = Root::of(&listed.entity).name();
    Entry { path: path.to_string(), title, published: Some(*created), updated: *updated, root }
}

/// The entry of one entity, as it is now.
async fn entity_entry(call: &Call, path: &EntityPath) -> Result<String, Fault> {
    let shown = path.to_string();
    let found = call.list(Question::Entity { path: path.clone() }, &shown).await?;
    let listed = found.first().ok_or_else(|| Fault::not_found(&shown))?;
    let origin = call.origin();
    Ok(entry::document(&origin, &entity_head(listed), |writer| {
        description::write(writer, listed, origin.bare_host());
    }))
}

/// The page a list request asks for, and one entry more to see whether there are more.
struct Wanted {
    skip: usize,
    top: usize,
}

impl Wanted {
    fn of(call: &Call) -> Result<Wanted, Fault> {
        let skip = call.query.number("$skip")?.unwrap_or(0);
        let top = call.query.number("$top")?.unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX);
        let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Wanted { skip: place(skip), top: place(top) })
    }

    fn and_one(&self) -> usize {
        self.top.saturating_add(1)
    }

    /// Cuts what was found to the page, and says whether something was cut.
    fn cut<T>(&self, found: &mut Vec<T>) -> bool {
        let more = found.len() > self.top;
        found.truncate(self.top);
        more
    }
}

async fn entities(call: &Call, path: &str, title: &str) -> Result<Response, Fault> {
    let wanted = Wanted::of(call)?;
    let (skip, top) = (wanted.skip, wanted.and_one());
    let question =
        if title == "Queues" { Question::Queues { skip, top } } else { Question::Topics { skip, top } };
    let found = call.list(question, path).await?;
    Ok(entity_feed(call, &wanted, path, title, found))
}

async fn subscriptions(call: &Call, topic: EntityName) -> Result<Response, Fault> {
    let wanted = Wanted::of(call)?;
    let (skip, top) = (wanted.skip, wanted.and_one());
    let shown = topic.to_string();
    let question = Question::Subscriptions { topic: EntityPath::of(topic), skip, top };
    let found = call.list(question, &shown).await?;
    Ok(entity_feed(call, &wanted, &format!("{shown}/Subscriptions"), "Subscriptions", found))
}

fn entity_feed(call: &Call, wanted: &Wanted, path: &str, title: &str, mut found: Vec<Listed>) -> Response {
    let more = wanted.cut(&mut found);
    let updated = found.iter().map(|listed| listed.entity.updated).max().unwrap_or(call.site.started);
    let page = Page { path, title, skip: wanted.skip, top: wanted.top, more, updated };
    let origin = call.origin();
    let text = entry::feed(&origin, &page, &found, entity_head, |listed, writer| {
        description::write(writer, listed, origin.bare_host());
    });
    document(StatusCode::OK, FEED, text)
}

fn rule_path(topic: &EntityName, subscription: &SubscriptionName, rule: &RuleName) -> String {
    format!("{topic}/Subscriptions/{subscription}/Rules/{rule}")
}

fn rule_head<'r>(subscription: &EntityPath, rule: &'r Rule) -> Entry<'r> {
    let name = &rule.description.name;
    Entry {
        path: format!("{subscription}/Rules/{name}"),
        title: name.as_str(),
        published: Some(rule.created),
        updated: rule.created,
        root: Root::Rule.name(),
    }
}

/// A subscription, for its rules.
async fn subscription(
    call: &Call,
    path: EntityPath,
    rule: Option<RuleName>,
) -> Result<std::sync::Arc<Entity>, Fault> {
    let shown = path.to_string();
    let question = Question::RuleDescriptions { subscription: path, rule };
    match call.ask(Operation::Ask(question), &shown).await? {
        Answered::Answer(Answer::Subscription(found)) => Ok(found),
        other => Err(Fault::unexpected(&other)),
    }
}

async fn rule_entry(
    call: &Call,
    topic: EntityName,
    name: SubscriptionName,
    rule: RuleName,
) -> Result<String, Fault> {
    let shown = rule_path(&topic, &name, &rule);
    let found = subscription(call, EntityPath::of_subscription(topic, name), Some(rule.clone())).await?;
    let rule = found.subscription().and_then(|subscription| subscription.rule(&rule));
    let rule = rule.ok_or_else(|| Fault::not_found(&shown))?;
    let entry = rule_head(&found.path, rule);
    Ok(entry::document(&call.origin(), &entry, |writer| rule::write(writer, rule)))
}

async fn rules(call: &Call, topic: EntityName, name: SubscriptionName) -> Result<Response, Fault> {
    let wanted = Wanted::of(call)?;
    let found = subscription(call, EntityPath::of_subscription(topic, name), None).await?;
    let by_name = found.subscription().into_iter().flat_map(|subscription| {
        subscription.rule_names.values().filter_map(|id| subscription.rules.get(id))
    });
    let mut rules: Vec<_> = by_name.skip(wanted.skip).take(wanted.and_one()).collect();
    let more = wanted.cut(&mut rules);
    let path = format!("{}/Rules", found.path);
    let page = Page {
        path: &path,
        title: "Rules",
        skip: wanted.skip,
        top: wanted.top,
        more,
        updated: found.updated,
    };
    let text = entry::feed(
        &call.origin(),
        &page,
        &rules,
        |rule| rule_head(&found.path, rule),
        |rule, writer| rule::write(writer, rule),
    );
    Ok(document(StatusCode::OK, FEED, text))
}

/// The description a PUT brings, and whether it is an update.
async fn put(call: &Call, body: Body, shown: &str) -> Result<(xml::Element, Intent), Fault> {
    let intent = if call.headers.contains_key(IF_MATCH) { Intent::Update } else { Intent::Create };
    let bytes = body::read(body, xml::DOCUMENT_BYTES_MAX).await?;
    let document = xml::parse(&bytes).map_err(|error| {
        Fault::malformed(format!("The description of '{shown}' cannot be read: {error}."))
    })?;
    Ok((document, intent))
}

fn refuse(shown: &str, problems: &[String]) -> Fault {
    Fault::malformed(format!("The description of '{shown}' is not valid: {}.", problems.join("; ")))
}

async fn put_entity(call: &Call, path: EntityPath, body: Body) -> Result<Response, Fault> {
    let shown = path.to_string();
    let (document, intent) = put(call, body, &shown).await?;
    let found = description::find(&document).filter(|(root, _)| match root {
        Root::Queue | Root::Topic => path.subscription.is_none(),
        Root::Subscription => path.subscription.is_some(),
        Root::Rule => false,
    });
    let Some((root, description)) = found else {
        let allowed = if path.subscription.is_some() {
            "SubscriptionDescription"
        } else {
            "QueueDescription or TopicDescription"
        };
        return Err(refuse(&shown, &[format!("an entry with a {allowed} is needed")]));
    };
    let mut problems = Vec::new();
    let settings = description::read_settings(root, description, intent, &mut problems);
    let first_rule = match description.field("DefaultRuleDescription").filter(|rule| !rule.nil) {
        Some(element) if root == Root::Subscription && intent == Intent::Create => {
            let name = element.field("Name").and_then(xml::Element::value);
            match name.map_or_else(|| Ok(RuleName::first()), RuleName::parse) {
                Ok(name) => rule::read(name, element, &mut problems),
                Err(error) => {
                    problems.push(error.to_string());
                    None
                }
            }
        }
        _ => None,
    };
    if !problems.is_empty() {
        return Err(refuse(&shown, &problems));
    }
    let request = match (intent, path.clone()) {
        (Intent::Update, path) => Request::Update { path, settings },
        (Intent::Create, EntityPath { name: topic, subscription: Some(name), .. }) => {
            Request::CreateSubscription { topic, name, settings, first_rule }
        }
        (Intent::Create, EntityPath { name, .. }) if root == Root::Topic => {
            Request::CreateTopic { name, settings }
        }
        (Intent::Create, EntityPath { name, .. }) => Request::CreateQueue { name, settings },
    };
    call.administer(request, &shown).await?;
    Ok(document_of(intent, entity_entry(call, &path).await?))
}

async fn put_rule(
    call: &Call,
    topic: EntityName,
    subscription: SubscriptionName,
    name: RuleName,
    body: Body,
) -> Result<Response, Fault> {
    let shown = rule_path(&topic, &subscription, &name);
    let (document, intent) = put(call, body, &shown).await?;
    let Some((Root::Rule, description)) = description::find(&document) else {
        return Err(refuse(&shown, &["an entry with a RuleDescription is needed".to_owned()]));
    };
    let mut problems = Vec::new();
    let read = rule::read(name.clone(), description, &mut problems);
    let Some(rule) = read.filter(|_| problems.is_empty()) else {
        return Err(refuse(&shown, &problems));
    };
    let (at, of) = (topic.clone(), subscription.clone());
    let request = match intent {
        Intent::Create => Request::CreateRule { topic: at, subscription: of, rule },
        Intent::Update => Request::UpdateRule { topic: at, subscription: of, rule },
    };
    call.administer(request, &shown).await?;
    Ok(document_of(intent, rule_entry(call, topic, subscription, name).await?))
}

fn document_of(intent: Intent, text: String) -> Response {
    let status = if intent == Intent::Create { StatusCode::CREATED } else { StatusCode::OK };
    document(status, ENTRY, text)
}
