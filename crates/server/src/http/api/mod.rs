//! The JSON API under `/api/`: everything the command line and a console need.
//!
//! Entity names may contain `/`; in a path each name is one segment, percent-encoded. `{entity}` below is
//! `queues/{queue}` or `topics/{topic}/subscriptions/{subscription}`; `{mailbox}` is `main`, `deadletter`
//! or `transferdeadletter`. Bodies and answers are the types of [`model`].
//!
//! | method and path | body → answer |
//! |---|---|
//! | `GET /api/openapi.json` | this table for programs |
//! | `GET /api/namespace` | [`Namespace`](model::Namespace) |
//! | `GET /api/queues?skip&top`, `/api/topics`, `/api/topics/{topic}/subscriptions` | [`Page`](model::Page) of [`Entity`](model::Entity) |
//! | `GET /api/queues/{queue}`, `/api/topics/{topic}`, `…/subscriptions/{subscription}` | [`Entity`](model::Entity) |
//! | `PUT` the same, `?ifMissing=true` | [`Properties`](model::Properties) → 201 [`Entity`](model::Entity); 409 if it exists, or 200 as it is with `ifMissing` |
//! | `PATCH` the same | [`Properties`](model::Properties) → [`Entity`](model::Entity) |
//! | `DELETE` the same | 204 |
//! | `GET …/subscriptions/{subscription}/rules` | [`Page`](model::Page) of [`Rule`](model::Rule) |
//! | `GET`, `PUT ?ifMissing`, `PATCH`, `DELETE …/rules/{rule}` | [`RuleDefinition`](model::RuleDefinition) → [`Rule`](model::Rule) |
//! | `POST /api/{entity}/pause`, `POST /api/{entity}/resume` | [`Entity`](model::Entity) |
//! | `GET /api/{entity}/live` | [`Live`](model::Live) |
//! | `GET /api/{entity}/sessions?after&top` | [`Page`](model::Page) of [`Session`](model::Session) |
//! | `POST /api/queues/{queue}/messages`, `POST /api/topics/{topic}/messages` | list of [`NewMessage`](model::NewMessage) → [`Sent`](model::Sent) |
//! | `GET /api/{entity}/mailboxes/{mailbox}/messages?from&top&filter&state&level&session&body` | [`Page`](model::Page) of [`Message`](model::Message) |
//! | `GET …/messages/{sequence}` | [`Message`](model::Message) with its body |
//! | `GET …/messages/{sequence}/explanation` | [`Explanation`](model::Explanation) |
//! | `GET /api/{entity}/mailboxes/{mailbox}/groups` | [`Groups`](model::Groups) |
//! | `POST …/{mailbox}/replay` | [`ReplayRequest`](model::ReplayRequest) → lines of [`WorkReport`](model::WorkReport) |
//! | `POST …/{mailbox}/purge` | [`PurgeRequest`](model::PurgeRequest) → lines of [`WorkReport`](model::WorkReport) |
//! | `POST …/{mailbox}/reprioritise` | [`ReprioritiseRequest`](model::ReprioritiseRequest) → [`ReprioritiseReport`](model::ReprioritiseReport) |
//! | `GET /api/connections?after&top`, `GET /api/connections/{id}` | [`Page`](model::Page) of [`Connection`](model::Connection), one of them |
//! | `DELETE /api/connections/{id}`, `DELETE /api/connections/{id}/links/{link}` | 204 |
//! | `GET /api/targets` | [`Page`](model::Page) of [`Target`](model::Target) |
//! | `GET /api/definitions` | [`Definitions`](model::Definitions) |
//! | `POST /api/definitions?prune&dryRun` | [`Definitions`](model::Definitions) → [`ApplyReport`](model::ApplyReport) |
//! | `GET /api/$events` | server-sent [`Event`](model::Event)s |
//! | `GET /dev/clock`, `POST /dev/clock/advance` | [`AdvanceRequest`](model::AdvanceRequest) → [`Clock`](model::Clock) |
//! | `POST /dev/reset` | [`ResetRequest`](model::ResetRequest) → 204 |
//! | `GET /dev/snapshots`, `PUT`, `DELETE /dev/snapshots/{name}`, `POST …/{name}/restore` | [`Snapshot`](model::Snapshot)s |
//! | `GET`, `POST`, `DELETE /dev/faults`, `DELETE /dev/faults/{id}` | [`NewFault`](model::NewFault) → [`Fault`](model::Fault)s |
//! | `POST /dev/stall` | [`StallRequest`](model::StallRequest) → 204 |
//! | `POST /dev/drop` | [`DropRequest`](model::DropRequest) → [`Dropped`](model::Dropped) |
//!
//! What is under `/dev/` is there in development mode alone.
//!
//! Every error is a [`Problem`](model::Problem) as `application/problem+json`.

mod asker;
mod call;
mod complaint;
mod connections;
mod definitions;
mod dev;
mod endpoint;
mod entities;
mod events;
mod failure;
mod feed;
pub mod fuzzing;
mod messages;
pub mod model;
mod openapi;
mod query;
mod rules;
mod sessions;
mod table;
mod targets;
mod translation;
mod workbench;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{RawPathParams, Request, State};
use axum::http::header::ALLOW;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, any, on};

pub use self::call::unquoted;
pub use self::feed::Feed;

use self::call::Call;
use self::endpoint::Endpoint;
use self::failure::Failure;
use self::query::Query;
use super::{Site, sas};

/// Everything under `/api/`, and what developers have under `/dev/`.
pub(super) fn routes() -> Router<Arc<Site>> {
    let mut paths: BTreeMap<String, Vec<Endpoint>> = BTreeMap::new();
    for endpoint in table::endpoints() {
        paths.entry(endpoint.path.clone()).or_default().push(endpoint);
    }
    let mut router = Router::new().route("/api", any(unknown)).route("/api/{*rest}", any(unknown));
    for (path, endpoints) in paths {
        router = router.route(&path, methods(endpoints));
    }
    router
}

/// The methods of one path; others are refused with the list of these.
fn methods(endpoints: Vec<Endpoint>) -> MethodRouter<Arc<Site>> {
    let allowed = endpoints.iter().map(|endpoint| endpoint.method.as_str()).collect::<Vec<_>>().join(", ");
    let mut router = MethodRouter::new();
    for endpoint in endpoints {
        let Ok(filter) = MethodFilter::try_from(endpoint.method.clone()) else { continue };
        let endpoint = Arc::new(endpoint);
        let handler = move |State(site): State<Arc<Site>>,
                            segments: Result<RawPathParams, _>,
                            request: Request| {
            let endpoint = Arc::clone(&endpoint);
            async move {
                let segments: RawPathParams = match segments {
                    Ok(segments) => segments,
                    Err(_) => {
                        return Failure::malformed("the path is not percent-encoded UTF-8").into_response();
                    }
                };
                serve(&endpoint, site, &segments, request).await
            }
        };
        router = router.merge(on(filter, handler));
    }
    router.fallback(move |method: Method| {
        let allowed = allowed.clone();
        async move { not_allowed(&method, &allowed) }
    })
}

async fn serve(endpoint: &Endpoint, site: Arc<Site>, segments: &RawPathParams, request: Request) -> Response {
    let (head, body) = request.into_parts();
    // A stranger's body is not read: some may be large. The handlers ask again, as whom they act.
    if !endpoint.open
        && let Err(fault) = sas::principal(&site, &head.headers, None)
    {
        return Failure::from(fault).into_response();
    }
    let query = match Query::read(head.uri.query().unwrap_or_default(), endpoint.parameters) {
        Ok(query) => query,
        Err(failure) => return failure.into_response(),
    };
    let call = Call {
        site,
        headers: head.headers,
        segments: segments.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        query,
        path: head.uri.path().to_owned(),
        body: Mutex::new(body),
    };
    (endpoint.handler)(call).await.unwrap_or_else(IntoResponse::into_response)
}

fn not_allowed(method: &Method, allowed: &str) -> Response {
    let detail = format!("{method} is not for this path; it takes {allowed}");
    let failure =
        Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method", "The method is not for this path", detail);
    let mut response = failure.into_response();
    if let Ok(allowed) = HeaderValue::from_str(allowed) {
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}

async fn unknown() -> Failure {
    Failure::not_found(
        "there is no such path; /api/openapi.json lists them all, and names with '/' are one segment: a%2Fb",
    )
}
