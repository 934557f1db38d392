//! Who is connected, and closing by hand.

use axum::response::Response;

use super::call::{Call, done, ok};
use super::events::may_observe;
use super::failure::Failure;
use super::model::{Connection, Link, LinkRole, Page};
use crate::date;
use crate::registry::{ClientId, LinkKind, LinkView, View, Wish};
use crate::transport::Transport;

/// Connections on one page, unless the query says otherwise.
const PAGE: usize = 100;

/// A page of connections, in the order of arrival.
pub(super) async fn list(call: Call) -> Result<Response, Failure> {
    may_observe(&call.asker()?).await?;
    let top: usize = call.query.number("top").unwrap_or(PAGE);
    let after = call.query.number("after").map(ClientId);
    let mut clients = call.site.watch.registry.list(after, top.saturating_add(1));
    let more = clients.len() > top;
    clients.truncate(top);
    let last = clients.last().filter(|_| more).map(|client| client.id().0.to_string());
    let next = last.map(|last| format!("{}?{}", call.path, call.query.with("after", &last)));
    ok(&Page { items: clients.iter().map(|client| shown(&client.view())).collect(), next })
}

/// One connection.
pub(super) async fn show(call: Call) -> Result<Response, Failure> {
    let id = call.number("id")?;
    may_observe(&call.asker()?).await?;
    let client = call.site.watch.registry.find(ClientId(id)).ok_or_else(|| missing(id))?;
    ok(&shown(&client.view()))
}

/// Closes a connection: its client is told that it was closed by the operator, and may come back.
pub(super) async fn close(call: Call) -> Result<Response, Failure> {
    let id = call.number("id")?;
    may_observe(&call.asker()?).await?;
    let client = call.site.watch.registry.find(ClientId(id)).ok_or_else(|| missing(id))?;
    client.ask(Wish::Close("the connection was closed by an operator"));
    Ok(done())
}

/// Closes one link of a connection: its client is told that it was detached by force, and may attach again.
pub(super) async fn close_link(call: Call) -> Result<Response, Failure> {
    let (id, link) = (call.number("id")?, call.number("link")?);
    may_observe(&call.asker()?).await?;
    let client = call.site.watch.registry.find(ClientId(id)).ok_or_else(|| missing(id))?;
    let found = client.link(link).ok_or_else(|| {
        let detail =
            format!("connection {id} has no link {link}; GET /api/connections/{id} lists those it has");
        Failure::not_found(detail)
    })?;
    client.ask(Wish::Detach(found.id(), "it was closed by an operator"));
    Ok(done())
}

fn missing(id: u64) -> Failure {
    Failure::not_found(format!("there is no connection {id}; GET /api/connections lists those there are"))
}

fn shown(view: &View) -> Connection {
    let transport = match view.transport {
        Transport::Plain => "plain",
        Transport::Tls => "tls",
        Transport::WebSocket => "webSocket",
    };
    Connection {
        id: view.id.0,
        peer: view.peer.to_string(),
        transport: transport.to_owned(),
        container: view.container.as_deref().map(str::to_owned),
        connected_at: date::rfc3339(view.since),
        links: view.links.iter().filter_map(link).collect(),
    }
}

/// A link that carries messages; those for requests and transactions are the protocol's own.
fn link(view: &LinkView) -> Option<Link> {
    let role = match view.kind {
        LinkKind::Sender => LinkRole::Sender,
        LinkKind::Receiver => LinkRole::Receiver,
        LinkKind::Requests | LinkKind::Coordinator => return None,
    };
    Some(Link {
        id: view.id,
        name: view.name.to_string(),
        role,
        entity: view.entity.to_string(),
        credit: Some(u64::from(view.credit)),
        deliveries: Some(view.deliveries),
    })
}
