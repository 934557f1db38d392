//! The door to the namespace: what no other door has a path for is an entity's.
//!
//! Administration and the data plane share their paths in Service Bus; [`Address`] tells them apart.
//! Every request is authenticated before its body is read.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderName;
use axum::response::{IntoResponse, Response};
use vorrang_broker::access::Scope;

use super::address::Address;
use super::call::{Call, Query};
use super::fault::Fault;
use super::spelling::Spelling;
use super::{Peer, Site, atom, sas};
use crate::caller::{Caller, Unanswered};

/// What a client calls its request by; it gets it back.
const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");

/// Everything that has no route of its own, and methods that other doors do not have for theirs.
pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new().fallback(serve)
}

/// Answers a request about the namespace or what is in it.
pub(super) async fn serve(State(site): State<Arc<Site>>, request: Request) -> Response {
    let id = request.headers().get(CLIENT_REQUEST_ID).cloned();
    let mut response = answer(site, request).await.unwrap_or_else(IntoResponse::into_response);
    if let Some(id) = id {
        response.headers_mut().insert(CLIENT_REQUEST_ID, id);
    }
    response
}

async fn answer(site: Arc<Site>, request: Request) -> Result<Response, Fault> {
    let (head, body) = request.into_parts();
    let address = Address::parse(&head.method, &head.uri)?;
    let url = Address::audience(&head.uri)?;
    let principal = match &address {
        // The messages of an entity are part of it: who may use the URL may use the entity.
        Address::Messages(path, _) => {
            sas::principal_within(&site, &head.headers, &url, &Scope::of_entity(path))?
        }
        _ => sas::principal(&site, &head.headers, Some(&url))?,
    };
    let caller = Caller::connect(&site.broker, principal).map_err(Unanswered::from)?;
    let (method, headers, query) = (head.method, head.headers, Query::of(&head.uri));
    let spelling = head.extensions.get::<Spelling>().cloned().unwrap_or_default();
    let tls = head.extensions.get::<Peer>().is_some_and(|peer| peer.tls);
    let call = Call { site, caller, method, headers, spelling, query, tls };
    match address {
        Address::Messages(path, verb) => super::rest::serve(&call, path, verb, body).await,
        address => atom::serve(&call, address, body).await,
    }
}
