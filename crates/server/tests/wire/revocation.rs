//! Keys that are changed or taken away: what rests on them ends, and nothing else.

use vorrang_amqp::performative::SaslCode;
use vorrang_engine::entity::Setting;
use vorrang_engine::entity::authorization::{AuthorizationRule, Secret};

use crate::client::Client;
use crate::links::{receiver, sender, session_receiver, waiting};
use crate::message::message;
use crate::nodes::{millis, token};
use crate::server::{Server, key};

const UNAUTHORIZED: &str = "amqp:unauthorized-access";

fn rules(rules: &[&AuthorizationRule]) -> Setting {
    Setting::AuthorizationRules(rules.iter().map(|rule| (*rule).clone()).collect())
}

/// A client that proved a key at `$cbs`.
fn with_token(server: &Server, queue: &str, name: &str, key: &str) -> Client {
    let mut client = Client::anonymous(server);
    let sas = token(name, key, &format!("localhost%2F{queue}"), 600);
    assert_eq!(client.put_token(&format!("sb://localhost/{queue}"), &sas).0, 202);
    client
}

#[test]
fn a_key_that_is_taken_away_ends_the_links_that_rest_on_it() {
    let server = Server::shared();
    let (leaving, staying) = (key("leaving", true, true, false), key("staying", true, true, false));
    let other_keys = AuthorizationRule {
        primary_key: Secret::new("another"),
        secondary_key: Secret::new("and another"),
        ..leaving.clone()
    };
    for (case, after) in [("removed", rules(&[&staying])), ("replaced", rules(&[&other_keys, &staying]))] {
        let queue = server.queue([rules(&[&leaving, &staying])]);
        let mut by_token = with_token(&server, &queue, "leaving", "leaving-secondary");
        let mut by_password = Client::plain(&server, "leaving", "leaving-primary");
        let mut bystander = with_token(&server, &queue, "staying", "staying-primary");
        for client in [&mut by_token, &mut by_password, &mut bystander] {
            client.sender(1, &queue);
            client.receiver(2, &queue);
        }
        server.update(&queue, [after]);
        for client in [&mut by_token, &mut by_password] {
            for handle in [1, 2] {
                let error = client.detached(handle);
                assert_eq!(error.condition, UNAUTHORIZED, "{case}");
            }
            for wanted in [sender(3, &queue), receiver(4, &queue)] {
                assert_eq!(client.refused(wanted).condition, UNAUTHORIZED, "{case}");
            }
        }
        bystander.post(1, message("still here"));
        assert_eq!(bystander.receive(2).body(), "still here");
        // The connection lives, and another key opens the door again.
        let sas = token("staying", "staying-primary", &format!("localhost%2F{queue}"), 600);
        assert_eq!(by_token.put_token(&queue, &sas).0, 202);
        by_token.sender(5, &queue);
        let mut refused = Client::connect(&server);
        assert_eq!(refused.log_in_plain("leaving", "leaving-primary"), SaslCode::Auth);
    }
}

#[test]
fn a_key_that_is_moved_to_second_place_ends_nothing() {
    let server = Server::shared();
    let before = key("rolling", true, true, false);
    let after = AuthorizationRule {
        primary_key: Secret::new("new"),
        secondary_key: before.primary_key.clone(),
        ..before.clone()
    };
    let queue = server.queue([rules(&[&before])]);
    let mut client = with_token(&server, &queue, "rolling", "rolling-primary");
    client.sender(1, &queue);
    client.receiver(2, &queue);
    server.update(&queue, [rules(&[&after])]);
    client.post(1, message("as before"));
    assert_eq!(client.receive(2).body(), "as before");
}

#[test]
fn a_key_that_permits_less_ends_what_it_no_longer_permits() {
    let server = Server::shared();
    let queue = server.queue([rules(&[&key("narrowed", true, true, false)])]);
    let mut client = with_token(&server, &queue, "narrowed", "narrowed-primary");
    client.sender(1, &queue);
    client.receiver(2, &queue);
    server.update(&queue, [rules(&[&key("narrowed", false, true, false)])]);
    assert_eq!(client.detached(1).condition, UNAUTHORIZED);
    let mut root = Client::root(&server);
    root.sender(1, &queue);
    root.post(1, message("for who may listen"));
    assert_eq!(client.receive(2).body(), "for who may listen");
}

#[test]
fn who_waits_for_a_session_waits_no_longer_than_the_key_is_there() {
    let server = Server::shared();
    let queue = server.queue([rules(&[&key("waiting", false, true, false)]), Setting::RequiresSession(true)]);
    let mut client = with_token(&server, &queue, "waiting", "waiting-primary");
    let wanted = waiting(session_receiver(1, &queue, None), millis(600_000));
    let (name, role) = (wanted.name.clone(), wanted.role);
    client.send(0, vorrang_amqp::FrameBody::Attach(Box::new(wanted)));
    // A second link is answered only behind the first one's request: now that one waits.
    client.node(&format!("{queue}/$management"));
    server.update(&queue, [rules(&[])]);
    assert!(client.attached(&name, role).source.is_none());
    assert_eq!(client.detached(1).condition, UNAUTHORIZED);
}
