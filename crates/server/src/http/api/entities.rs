//! Queues, topics and subscriptions: list, get, create, change, delete, pause.

use axum::http::StatusCode;
use axum::response::Response;
use vorrang_broker::api::Question;
use vorrang_engine::Timestamp;
use vorrang_engine::entity::{EntityPath, Request, RuleDescription, RuleName, Setting};
use vorrang_filter::Filter;

use super::asker::Asker;
use super::call::{self, BODY_BYTES_MAX, Call, answer, done, ok};
use super::complaint::Complaints;
use super::failure::Failure;
use super::model::{self, Namespace, Page, Properties};
use super::rules;
use super::translation::{live, properties};
use crate::date;
use crate::front::connection::wall_time;
use crate::http::fault::Fault;

/// Entities on one page, unless the query says otherwise.
const PAGE: usize = 100;

/// What the namespace is.
pub(super) async fn namespace(call: Call) -> Result<Response, Failure> {
    let asker = call.asker()?;
    let entities = match asker.question(Question::Namespace, "").await? {
        vorrang_broker::api::Answer::Namespace { entities } => entities,
        other => return Err(Fault::unexpected(&other).into()),
    };
    ok(&Namespace {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        name: call.site.namespace.clone(),
        entity_count: u64::try_from(entities).unwrap_or(u64::MAX),
        started_at: date::rfc3339(call.site.started),
        now: date::rfc3339(call.site.broker.time(wall_time())),
    })
}

/// A page of queues.
pub(super) async fn queues(call: Call) -> Result<Response, Failure> {
    list(&call, |skip, top| Question::Queues { skip, top }).await
}

/// A page of topics.
pub(super) async fn topics(call: Call) -> Result<Response, Failure> {
    list(&call, |skip, top| Question::Topics { skip, top }).await
}

/// A page of a topic's subscriptions.
pub(super) async fn subscriptions(call: Call) -> Result<Response, Failure> {
    let topic = call.entity()?;
    list(&call, |skip, top| Question::Subscriptions { topic: topic.clone(), skip, top }).await
}

async fn list(call: &Call, question: impl Fn(usize, usize) -> Question) -> Result<Response, Failure> {
    let (skip, top) = (call.query.number("skip").unwrap_or(0), call.query.number("top").unwrap_or(PAGE));
    // One more than wanted tells whether there is a next page.
    let mut found = call.asker()?.listed(question(skip, top.saturating_add(1)), &call.path).await?;
    let more = found.len() > top;
    found.truncate(top);
    let next = skip.saturating_add(top).to_string();
    ok(&Page {
        items: found.iter().map(live::entity_shown).collect(),
        next: more.then(|| format!("{}?{}", call.path, call.query.with("skip", &next))),
    })
}

/// One entity.
pub(super) async fn show(call: Call) -> Result<Response, Failure> {
    let path = call.entity()?;
    shown(&call, &call.asker()?, &path, StatusCode::OK).await
}

async fn shown(
    call: &Call,
    asker: &Asker,
    path: &EntityPath,
    status: StatusCode,
) -> Result<Response, Failure> {
    let found = live::entity_shown(&asker.entity(path).await?);
    // A topic is no queue, though both answer to the name.
    let asked = match (call.segments.contains_key("queue"), &path.subscription) {
        (true, _) => model::EntityKind::Queue,
        (false, None) => model::EntityKind::Topic,
        (false, Some(_)) => model::EntityKind::Subscription,
    };
    if found.kind != asked {
        return Err(Fault::not_found(&path.to_string()).into());
    }
    answer(status, &found)
}

/// Creates an entity.
pub(super) async fn create(mut call: Call) -> Result<Response, Failure> {
    let path = call.entity()?;
    let given: Properties = call.json(BODY_BYTES_MAX).await?;
    let mut complaints = Complaints::default();
    let settings = properties::read(&given, None, "", &mut complaints);
    let rules = given.rules.as_ref().map(|rules| properties::read_rules(rules, "", &mut complaints));
    if rules.is_some() && path.subscription.is_none() {
        complaints.add("rules", "are a subscription's alone");
    }
    complaints.finish(())?;
    let asker = call.asker()?;
    let created = if path.subscription.is_some() {
        create_subscription(&asker, &path, settings, rules).await
    } else {
        let name = path.name.clone();
        let request = if call.segments.contains_key("queue") {
            Request::CreateQueue { name, settings }
        } else {
            Request::CreateTopic { name, settings }
        };
        asker.administer(request, &path.to_string()).await.map(|_| ())
    };
    match created {
        Ok(()) => shown(&call, &asker, &path, StatusCode::CREATED).await,
        // The name may be that of another kind of entity: then what there is, is not what was asked for.
        Err(conflict) if conflict.is_conflict() && call.query.flag("ifMissing") => {
            let found = shown(&call, &asker, &path, StatusCode::OK).await;
            found.map_err(|failure| if failure.is_not_found() { conflict } else { failure })
        }
        Err(failure) => Err(failure),
    }
}

/// Creates a subscription with its rules. If one of them is refused, there is no subscription either.
pub(super) async fn create_subscription(
    asker: &Asker,
    path: &EntityPath,
    settings: Vec<Setting>,
    rules: Option<Vec<RuleDescription>>,
) -> Result<(), Failure> {
    let Some(name) = path.subscription.clone() else { return Err(Failure::malformed("no subscription")) };
    let shown = path.to_string();
    let topic = path.name.clone();
    let mut more = Vec::new();
    let first_rule = match rules {
        None => None,
        Some(mut rules) if !rules.is_empty() => {
            more = rules.split_off(1);
            rules.pop()
        }
        // Without any rule it takes nothing; until then, one that matches nothing stands in.
        Some(_) => {
            let name = RuleName::parse("$Default").map_err(|error| Failure::malformed(error.to_string()))?;
            Some(RuleDescription { name, filter: Filter::False, action: None })
        }
    };
    let stand_in = first_rule.as_ref().is_some_and(|rule| rule.filter == Filter::False) && more.is_empty();
    let (subscription, only) = (name.clone(), first_rule.clone());
    asker
        .administer(Request::CreateSubscription { topic: topic.clone(), name, settings, first_rule }, &shown)
        .await?;
    for rule in more {
        let (topic, subscription) = (topic.clone(), subscription.clone());
        if let Err(failure) =
            asker.administer(Request::CreateRule { topic, subscription, rule }, &shown).await
        {
            asker.administer(Request::Delete { path: path.clone() }, &shown).await?;
            return Err(failure);
        }
    }
    if stand_in && let Some(rule) = only.map(|rule| rule.name) {
        asker.administer(Request::DeleteRule { topic, subscription, rule }, &shown).await?;
    }
    Ok(())
}

/// Changes an entity: what the body says, and nothing else.
pub(super) async fn update(mut call: Call) -> Result<Response, Failure> {
    let path = call.entity()?;
    let given: Properties = call.json(BODY_BYTES_MAX).await?;
    let asker = call.asker()?;
    // Keys that are not given are kept, so what is there must be known.
    let before = asker.entity(&path).await?;
    let mut complaints = Complaints::default();
    let settings = properties::read(&given, Some(&before.entity), "", &mut complaints);
    let rules = given.rules.as_ref().map(|rules| properties::read_rules(rules, "", &mut complaints));
    if rules.is_some() && path.subscription.is_none() {
        complaints.add("rules", "are a subscription's alone");
    }
    complaints.finish(())?;
    if !settings.is_empty() {
        asker.administer(Request::Update { path: path.clone(), settings }, &path.to_string()).await?;
    }
    if let Some(rules) = rules {
        rules::replace(&asker, &path, &before.entity, rules).await?;
    }
    shown(&call, &asker, &path, StatusCode::OK).await
}

/// Deletes an entity with everything in it.
pub(super) async fn delete(call: Call) -> Result<Response, Failure> {
    let path = call.entity()?;
    let asker = call.asker()?;
    let shown = path.to_string();
    asker.administer(Request::Delete { path }, &shown).await?;
    Ok(done())
}

/// Holds deliveries back; sending goes on.
pub(super) async fn pause(call: Call) -> Result<Response, Failure> {
    set_paused(&call, true).await
}

/// Lets deliveries go on.
pub(super) async fn resume(call: Call) -> Result<Response, Failure> {
    set_paused(&call, false).await
}

async fn set_paused(call: &Call, paused: bool) -> Result<Response, Failure> {
    let path = call.entity()?;
    let asker = call.asker()?;
    let settings = vec![Setting::Paused(paused)];
    asker.administer(Request::Update { path: path.clone(), settings }, &path.to_string()).await?;
    shown(call, &asker, &path, StatusCode::OK).await
}

/// An entity's mailboxes, class by class.
pub(super) async fn live(call: Call) -> Result<Response, Failure> {
    let path = call.entity()?;
    let question =
        Question::SurveyEntity { path: path.clone(), detail: vorrang_engine::survey::Detail::Levels };
    let shown = path.to_string();
    let now: Timestamp = call.site.broker.time(wall_time());
    match call.asker()?.question(question, &shown).await? {
        vorrang_broker::api::Answer::Surveyed(survey) => match survey.entities.first() {
            Some(found) => call::ok(&live::shown(found, now)),
            None => Err(Fault::not_found(&shown).into()),
        },
        other => Err(Fault::unexpected(&other).into()),
    }
}
