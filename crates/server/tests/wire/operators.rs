//! What operators do to clients that are connected.

use serde_json::Value as Json;

use crate::client::Client;
use crate::message::message;
use crate::server::{ROOT, Server};

/// The number of the connection that has a link to this entity, and of its link there.
fn link_to(server: &Server, entity: &str) -> (u64, u64) {
    let connections = server.fine("GET", "/api/connections", "");
    let links = |connection: &Json| connection["links"].as_array().unwrap().clone();
    let found = connections["items"].as_array().unwrap().iter().find_map(|connection| {
        let link = links(connection).into_iter().find(|link| link["entity"] == entity)?;
        Some((connection["id"].as_u64().unwrap(), link["id"].as_u64().unwrap()))
    });
    found.expect("the link is listed")
}

#[test]
fn one_link_is_closed_with_its_condition_and_the_connection_lives_on() {
    let server = Server::start();
    let (first, second) = (server.queue([]), server.queue([]));
    let mut client = Client::root(&server);
    client.sender(1, &first);
    client.post(1, message("waits"));
    client.receiver(2, &second);
    client.receiver(3, &first);
    let held = client.receive(3);
    let (connection, link) = link_to(&server, &second);
    server.fine("DELETE", &format!("/api/connections/{connection}/links/{link}"), "");
    let error = client.detached(2);
    assert_eq!(error.condition.as_str(), "amqp:link:detach-forced");
    let text = error.description.unwrap();
    assert!(text.as_str().contains("closed by an operator"), "{}", text.as_str());
    // The other links do not notice, and the same name may attach again.
    client.complete(&held);
    client.post(1, message("still here"));
    client.receiver(4, &second);
    let gone = format!("/api/connections/{connection}/links/{link}");
    assert!(server.refused(404, "DELETE", &gone, "").contains("has no link"));
}

#[test]
fn a_message_that_a_closed_receiver_held_stays_locked_and_is_not_lost() {
    let server = Server::start();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.post(1, message("held"));
    client.receiver(2, &queue);
    let held = client.receive(2);
    let connections = server.fine("GET", "/api/connections", "");
    let links = connections["items"][0]["links"].as_array().unwrap();
    let receiver = links.iter().find(|link| link["role"] == "receiver").unwrap();
    let path = format!("/api/connections/{}/links/{}", connections["items"][0]["id"], receiver["id"]);
    server.fine("DELETE", &path, "");
    client.detached(2);
    // The lock outlives the link, as in Service Bus: the message is neither lost nor given out twice.
    client.receiver(3, &queue);
    assert_eq!(client.drained(3).len(), 0);
    let shown = server.fine("GET", &format!("/api/queues/{queue}/mailboxes/main/messages"), "");
    assert_eq!(shown["items"][0]["sequenceNumber"], held.sequence(), "{shown}");
}

#[test]
fn only_links_that_carry_messages_can_be_closed_and_only_by_who_may_manage() {
    let server = Server::start();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    let (connection, link) = link_to(&server, &queue);
    for (path, status) in [
        (format!("/api/connections/{connection}/links/{}", link + 100), 404),
        (format!("/api/connections/{}/links/{link}", connection + 100), 404),
        (format!("/api/connections/{connection}/links/first"), 400),
    ] {
        server.refused(status, "DELETE", &path, "");
    }
    let path = format!("/api/connections/{connection}/links/{link}");
    let (status, _) = server.api_as((ROOT, "another key"), "DELETE", &path, "");
    assert_eq!(status, 401);
    client.post(1, message("lives"));
}
