//! `/metrics`: everything that is counted, in Prometheus' text format.
//!
//! All of it is read when it is asked for: the engine by surveys, page by page, and the rest from the
//! counters beside it. A text serves everybody who asks within a second, so that asking often costs
//! little. Who may ask: whoever is on loopback, whoever has a token with the right to manage the namespace,
//! and everybody where the operator said so.
//!
//! The number of series is bounded ([`rows`]), whatever clients create.

mod broker;
mod entities;
mod rows;
mod text;

#[cfg(test)]
mod parser;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use bytes::Bytes;
use tokio::sync::Mutex;
use vorrang_broker::api::{Answer, Condition, Detail, Operation, Question};
use vorrang_engine::entity::EntityPath;

use super::fault::Fault;
use super::{Peer, Site, sas};
use crate::caller::{Answered, Caller};
use crate::front::connection::wall_time;
use rows::Rows;
use text::Text;

/// How long a text is good for.
const FRESH: Duration = Duration::from_secs(1);
/// Entities asked for at once: the shard is held up for a fraction of a millisecond.
const PAGE: usize = 200;
const FORMAT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The text made last, and when. Making one holds the lock, so that many who ask make one.
#[derive(Debug, Default)]
pub struct Scrapes(Mutex<Option<(Instant, Bytes)>>);

pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new().route("/metrics", get(metrics))
}

async fn metrics(
    State(site): State<Arc<Site>>,
    Extension(Peer { address, .. }): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Response, Fault> {
    if !address.ip().to_canonical().is_loopback() && !site.watch.metrics_open {
        // The one door decides, on the question that needs most.
        let caller = Caller::connect(&site.broker, sas::principal(&site, &headers, None)?)
            .map_err(|stopped| Fault::unavailable(stopped.to_string()))?;
        condition(&caller).await?;
    }
    let mut last = site.watch.scrapes.0.lock().await;
    let text = match &*last {
        Some((made, text)) if made.elapsed() < FRESH => text.clone(),
        _ => {
            let text = Bytes::from(scrape(&site).await?);
            *last = Some((Instant::now(), text.clone()));
            text
        }
    };
    Ok(([(CONTENT_TYPE, FORMAT)], text).into_response())
}

async fn scrape(site: &Site) -> Result<String, Fault> {
    let caller = Caller::operator(&site.broker).map_err(|stopped| Fault::unavailable(stopped.to_string()))?;
    let condition = condition(&caller).await?;
    let mut rows = Rows::new(condition.now);
    let mut after: Option<EntityPath> = None;
    loop {
        let question = Question::Survey { after, top: PAGE, detail: Detail::Levels };
        match ask(&caller, question).await? {
            Answer::Surveyed(survey) => {
                for entity in &survey.entities {
                    rows.add(entity);
                }
                after = survey.next;
            }
            other => return Err(Fault::unexpected(&other)),
        }
        if after.is_none() {
            break;
        }
    }
    let mut text = Text::default();
    broker::process(&mut text, site);
    entities::write(&mut text, &rows);
    entities::targets(&mut text, &site.watch.targets.all(), &rows);
    broker::shard(&mut text, site, &condition, site.broker.time(wall_time()));
    broker::connections(&mut text, &site.watch);
    broker::telemetry(&mut text, &site.watch);
    Ok(text.finish())
}

async fn condition(caller: &Caller) -> Result<Box<Condition>, Fault> {
    match ask(caller, Question::Condition).await? {
        Answer::Condition(condition) => Ok(condition),
        other => Err(Fault::unexpected(&other)),
    }
}

async fn ask(caller: &Caller, question: Question) -> Result<Answer, Fault> {
    match caller.ask(Operation::Ask(question)).await? {
        Ok(Answered::Answer(answer)) => Ok(answer),
        Ok(other @ Answered::Reply(_)) => Err(Fault::unexpected(&other)),
        Err(refused) => Err(Fault::refused(&refused, "")),
    }
}
