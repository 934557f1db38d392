//! A subscription's rules.

use axum::http::StatusCode;
use axum::response::Response;
use vorrang_engine::entity::{Entity, EntityPath, Request, RuleDescription, RuleName, SubscriptionName};

use super::asker::Asker;
use super::call::{BODY_BYTES_MAX, Call, answer, done, ok};
use super::complaint::Complaints;
use super::failure::Failure;
use super::model::{Page, RuleDefinition};
use super::translation::filter;

/// Rules on one page, unless the query says otherwise.
const PAGE: usize = 100;

/// A page of rules, in the order of their creation.
pub(super) async fn list(call: Call) -> Result<Response, Failure> {
    let path = call.entity()?;
    let entity = call.asker()?.subscription(&path).await?;
    let rules = entity.subscription().map(|subscription| &subscription.rules);
    let skip: usize = call.query.number("skip").unwrap_or(0);
    let top: usize = call.query.number("top").unwrap_or(PAGE);
    let all = rules.map_or(0, std::collections::BTreeMap::len);
    let next = skip.saturating_add(top);
    let page = rules.into_iter().flat_map(|rules| rules.values()).skip(skip).take(top);
    ok(&Page {
        items: page.map(|rule| filter::rule_shown(rule)).collect(),
        next: (next < all).then(|| format!("{}?{}", call.path, call.query.with("skip", &next.to_string()))),
    })
}

/// One rule.
pub(super) async fn show(call: Call) -> Result<Response, Failure> {
    let (path, rule) = (call.entity()?, call.rule()?);
    shown(&call.asker()?, &path, &rule, StatusCode::OK).await
}

async fn shown(
    asker: &Asker,
    path: &EntityPath,
    name: &RuleName,
    status: StatusCode,
) -> Result<Response, Failure> {
    let entity = asker.subscription(path).await?;
    let rule = entity.subscription().and_then(|subscription| subscription.rule(name));
    let rule =
        rule.ok_or_else(|| Failure::not_found(format!("the rule '{name}' of '{path}' does not exist")))?;
    answer(status, &filter::rule_shown(rule))
}

/// Creates a rule.
pub(super) async fn create(mut call: Call) -> Result<Response, Failure> {
    let (path, rule) = (call.entity()?, read(&mut call).await?);
    let asker = call.asker()?;
    let name = rule.name.clone();
    let (topic, subscription) = (path.name.clone(), subscription(&path)?);
    let request = Request::CreateRule { topic, subscription, rule };
    let status = match asker.administer(request, &path.to_string()).await {
        Ok(_) => StatusCode::CREATED,
        Err(failure) if failure.is_conflict() && call.query.flag("ifMissing") => StatusCode::OK,
        Err(failure) => return Err(failure),
    };
    shown(&asker, &path, &name, status).await
}

/// Gives a rule another filter and action.
pub(super) async fn update(mut call: Call) -> Result<Response, Failure> {
    let (path, rule) = (call.entity()?, read(&mut call).await?);
    let asker = call.asker()?;
    let name = rule.name.clone();
    let (topic, subscription) = (path.name.clone(), subscription(&path)?);
    asker.administer(Request::UpdateRule { topic, subscription, rule }, &path.to_string()).await?;
    shown(&asker, &path, &name, StatusCode::OK).await
}

/// Deletes a rule.
pub(super) async fn delete(call: Call) -> Result<Response, Failure> {
    let (path, rule) = (call.entity()?, call.rule()?);
    let (topic, subscription) = (path.name.clone(), subscription(&path)?);
    let request = Request::DeleteRule { topic, subscription, rule };
    call.asker()?.administer(request, &path.to_string()).await?;
    Ok(done())
}

async fn read(call: &mut Call) -> Result<RuleDescription, Failure> {
    let name = call.rule()?;
    let given: RuleDefinition = call.json(BODY_BYTES_MAX).await?;
    let mut complaints = Complaints::default();
    let rule = filter::read_rule(name, &given, "", &mut complaints);
    complaints.finish(())?;
    rule.ok_or_else(|| Failure::malformed("the rule cannot be read"))
}

fn subscription(path: &EntityPath) -> Result<SubscriptionName, Failure> {
    path.subscription.clone().ok_or_else(|| Failure::malformed("rules belong to subscriptions"))
}

/// Brings a subscription's rules to `wanted`. New ones come before old ones go, so that no message falls
/// between.
pub(super) async fn replace(
    asker: &Asker,
    path: &EntityPath,
    before: &Entity,
    wanted: Vec<RuleDescription>,
) -> Result<(), Failure> {
    let Some(known) = before.subscription() else { return Ok(()) };
    let shown = path.to_string();
    let names: Vec<RuleName> = wanted.iter().map(|rule| rule.name.clone()).collect();
    for rule in wanted {
        let (topic, subscription) = (path.name.clone(), subscription(path)?);
        let request = match known.rule(&rule.name) {
            Some(old) if old.description == rule => continue,
            Some(_) => Request::UpdateRule { topic, subscription, rule },
            None => Request::CreateRule { topic, subscription, rule },
        };
        asker.administer(request, &shown).await?;
    }
    for old in known.rules.values() {
        let rule = old.description.name.clone();
        if !names.contains(&rule) {
            let (topic, subscription) = (path.name.clone(), subscription(path)?);
            asker.administer(Request::DeleteRule { topic, subscription, rule }, &shown).await?;
        }
    }
    Ok(())
}
