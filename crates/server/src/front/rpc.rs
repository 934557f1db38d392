//! Responses to requests: which link they go out on, and when.
//!
//! A response belongs to the connection its request came on: the same reply address is used by every
//! process of some SDKs. Clients name the response link by its target address, by its name, or not at
//! all; and some give one credit per request, so responses wait their turn.

use bytes::{Bytes, BytesMut};
use vorrang_amqp::Text;
use vorrang_amqp::connection::{Connection, LinkId, Outgoing, SendError, SessionId};
use vorrang_amqp::performative::DeliveryTag;

use super::links::{Links, Node, Role};

/// Responses that may wait for credit on one link, and their bytes. A client that asks on without taking
/// answers loses the oldest; the newest waits whatever its size.
const WAITING_MAX: usize = 4_096;
const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Finds the link a response goes out on.
pub(super) fn route(
    links: &Links,
    node: &Node,
    reply_to: Option<&Text>,
    session: SessionId,
) -> Option<LinkId> {
    let of_node = || {
        links.iter().filter_map(|entry| match &entry.role {
            Role::Responses(responses) if responses.node == *node => Some((entry, responses)),
            _ => None,
        })
    };
    let newest = |on_session: bool| {
        of_node()
            .filter(|(entry, _)| !on_session || entry.session == session)
            .max_by_key(|(entry, _)| entry.since)
            .map(|(entry, _)| entry.id)
    };
    let named = reply_to.and_then(|reply_to| {
        let by_address = of_node().find(|(_, responses)| responses.address.as_ref() == Some(reply_to));
        by_address.or_else(|| of_node().find(|(entry, _)| entry.name == *reply_to)).map(|(entry, _)| entry.id)
    });
    named.or_else(|| newest(true)).or_else(|| newest(false))
}

/// Sends a response, now or when there is credit for it.
pub(super) fn respond(amqp: &mut Connection, links: &mut Links, link: LinkId, response: BytesMut) {
    let Some(Role::Responses(responses)) = links.role(link) else { return };
    let mut bytes = responses.waiting.iter().map(Bytes::len).fold(response.len(), usize::saturating_add);
    while responses.waiting.len() >= WAITING_MAX || bytes > WAITING_BYTES_MAX {
        let Some(oldest) = responses.waiting.pop_front() else { break };
        bytes = bytes.saturating_sub(oldest.len());
    }
    responses.waiting.push_back(response.freeze());
    flush(amqp, links, link);
}

/// Sends what waits, as far as credit and window go.
pub(super) fn flush(amqp: &mut Connection, links: &mut Links, link: LinkId) {
    let Some(Role::Responses(responses)) = links.role(link) else { return };
    while let Some(response) = responses.waiting.front() {
        let outgoing = Outgoing {
            tag: DeliveryTag::from(0_u64),
            message_format: 0,
            settled: true,
            state: None,
            head: &[],
            tail: response,
            key: 0,
        };
        match amqp.send(link, &outgoing) {
            Ok(_) => drop::<Option<Bytes>>(responses.waiting.pop_front()),
            Err(SendError::Gone) => responses.waiting.clear(),
            Err(_) => return,
        }
    }
}
