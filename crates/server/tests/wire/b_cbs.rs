//! B: `$cbs`, where tokens become rights.

use bytes::Bytes;
use vorrang_amqp::message::MessageId;
use vorrang_amqp::performative::{Source, Target, TargetNode};
use vorrang_amqp::value::{Map, Timestamp, Value};
use vorrang_amqp::{Text, Uuid};
use vorrang_engine::entity::Setting;

use crate::client::Client;
use crate::links::{receiver, sender};
use crate::message::{message, now};
use crate::nodes::{cbs_told, request, token};
use crate::server::{ROOT, ROOT_KEY, Server, key};

const UNAUTHORIZED: &str = "amqp:unauthorized-access";

fn accepted() -> (i32, String) {
    (202, String::new())
}

fn refused() -> (i32, String) {
    (401, UNAUTHORIZED.to_owned())
}

fn put_token(audience: &str, kind: &str, expiration: Option<Value>) -> Map {
    let mut entries = vec![
        ("operation", Value::from("put-token")),
        ("type", Value::from(kind)),
        ("name", Value::from(audience)),
    ];
    entries.extend(expiration.map(|at| ("expiration", at)));
    entries.into_iter().map(|(key, value)| (Value::from(key), value)).collect()
}

#[test]
fn b1_token_links_need_no_rights_and_there_may_be_several() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::anonymous(&server);
    for channel in 0..4_u16 {
        if channel > 0 {
            client.begin(channel);
        }
        for pair in 0..2_u32 {
            let handle = u32::from(channel) * 10 + pair * 2;
            for attach in [sender(handle, "$cbs"), receiver(handle + 1, "$cbs")] {
                let (name, role) = (attach.name.clone(), attach.role);
                client.send(channel, vorrang_amqp::FrameBody::Attach(Box::new(attach)));
                let reply = client.attached(&name, role);
                assert!(reply.source.is_some() && reply.target.is_some());
            }
        }
    }
    let (audience, sas) = (format!("sb://host/{queue}"), token(ROOT, ROOT_KEY, "sb%3A%2F%2Fhost", 600));
    assert_eq!(client.put_token(&audience, &sas), accepted());
}

#[test]
fn b2_a_signature_is_answered_with_an_int() {
    let server = Server::shared();
    let mut client = Client::anonymous(&server);
    let sas = token(ROOT, ROOT_KEY, "sb%3A%2F%2Flocalhost%2F", 600);
    assert_eq!(client.put_token("sb://localhost/q", &sas), accepted());
    // 0x54 or 0x71 behind the key: nothing else is an int.
    let raw = client.raw.iter().rev().find(|frame| find(frame, b"status-code").is_some()).unwrap();
    let place = find(raw, b"status-code").unwrap() + b"status-code".len();
    assert!([0x54, 0x71].contains(&raw[place]), "{:02x}", raw[place]);
}

fn find(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|window| window == word)
}

#[test]
fn b3_a_signature_called_jwt_is_still_a_signature() {
    let server = Server::shared();
    let mut client = Client::anonymous(&server);
    let sas = token(ROOT, ROOT_KEY, "sb%3A%2F%2Flocalhost", 600);
    let response = client.ask("$cbs", &put_token("sb://localhost/q", "jwt", None), &Value::from(sas));
    assert_eq!(cbs_told(&response), accepted());
    // What is really a web token is refused in words that say so.
    let jwt = Value::from("eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJ4In0.c2ln");
    let response = client.ask("$cbs", &put_token("sb://localhost/q", "jwt", None), &jwt);
    assert_eq!(cbs_told(&response), refused());
    let text = response.application.value("status-description").unwrap();
    assert!(text.as_str().unwrap().contains("SharedAccessSignature"), "{text:?}");
}

#[test]
fn b4_an_expiration_may_be_anything_or_nothing() {
    let server = Server::shared();
    let mut client = Client::anonymous(&server);
    let sas = Value::from(token(ROOT, ROOT_KEY, "sb%3A%2F%2Flocalhost", 600));
    let seconds = (now() / 1_000 + 600).to_string();
    for expiration in [None, Some(Value::from(Timestamp(now() + 600_000))), Some(Value::from(seconds))] {
        let asked = put_token("sb://localhost/q", "servicebus.windows.net:sastoken", expiration);
        assert_eq!(cbs_told(&client.ask("$cbs", &asked, &sas)), accepted());
    }
}

#[test]
fn b5_the_correlation_id_is_the_message_id_in_type_and_value() {
    let server = Server::shared();
    let mut client = Client::anonymous(&server);
    let (asking, answering) = client.node("$cbs");
    let sas = Value::from(token(ROOT, ROOT_KEY, "sb%3A%2F%2Flocalhost", 600));
    let ids = [
        MessageId::String("1".into()),
        MessageId::Uuid(Uuid::from_bytes([7; 16])),
        MessageId::Ulong(1),
        MessageId::Binary(Bytes::from_static(b"1")),
    ];
    for id in ids {
        let asked = put_token("sb://localhost/q", "servicebus.windows.net:sastoken", None);
        let payload = request(id.clone(), Some(&format!("reply-{answering}")), &asked, &sas);
        client.transfer(asking, payload);
        let response = client.response("$cbs");
        assert_eq!(response.message.properties().unwrap().unwrap().correlation_id, Some(id));
        assert!(response.settled, "nobody settles responses");
    }
}

#[test]
fn b6_a_response_finds_its_link_by_address_by_name_or_without_either() {
    let server = Server::shared();
    let sas = Value::from(token(ROOT, ROOT_KEY, "sb%3A%2F%2Flocalhost", 600));
    let asked = put_token("sb://localhost/q", "servicebus.windows.net:sastoken", None);
    let mut client = Client::anonymous(&server);
    client.sender(1, "$cbs");
    let answering = |handle: u32, name: &str, address: Option<&str>| {
        let mut attach = receiver(handle, "$cbs");
        attach.name = Text::from(name);
        attach.target = Some(TargetNode::Node(address.map_or_else(Target::default, Target::at)));
        attach
    };
    for (handle, name, address) in
        [(10, "one", Some("here")), (11, "two", None), (12, "three", Some("there"))]
    {
        client.attach(answering(handle, name, address));
        client.credit(handle, 10);
    }
    // By its address; by its name; and without either to the newest.
    for (reply_to, handle) in
        [(Some("here"), 10), (Some("two"), 11), (Some("there"), 12), (None, 12), (Some("nowhere"), 12)]
    {
        client.transfer(1, request(MessageId::Ulong(1), reply_to, &asked, &sas));
        client.delivery(handle);
    }
}

#[test]
fn b7_the_same_reply_address_on_two_connections_is_two_addresses() {
    let server = Server::shared();
    let sas = Value::from(token(ROOT, ROOT_KEY, "sb%3A%2F%2Flocalhost", 600));
    let asked = put_token("sb://localhost/q", "servicebus.windows.net:sastoken", None);
    let mut clients = [Client::anonymous(&server), Client::anonymous(&server)];
    for client in &mut clients {
        client.sender(1, "$cbs");
        let mut attach = receiver(2, "$cbs");
        attach.target = Some(TargetNode::Node(Target::at("$cbs")));
        attach.source = Some(Source::at("$cbs"));
        client.attach(attach);
        client.credit(2, 10);
    }
    for (number, client) in clients.iter_mut().enumerate().rev() {
        let id = MessageId::Ulong(u64::try_from(number).unwrap());
        client.transfer(1, request(id, Some("$cbs"), &asked, &sas));
    }
    for (number, client) in clients.iter_mut().enumerate() {
        let properties = client.delivery(2).message.properties().unwrap().unwrap();
        assert_eq!(properties.correlation_id, Some(MessageId::Ulong(u64::try_from(number).unwrap())));
        assert_eq!(client.left(|body| matches!(body, vorrang_amqp::FrameBody::Transfer(..))), 0);
    }
}

#[test]
fn b8_a_bad_token_is_refused_and_the_link_stays() {
    let server = Server::shared();
    let queue = server.queue([]);
    let audience = format!("sb://localhost/{queue}");
    let resource = format!("sb%3A%2F%2Flocalhost%2F{queue}");
    let good = token(ROOT, ROOT_KEY, &resource, 600);
    let mut client = Client::anonymous(&server);
    let cases = [
        ("wrong signature", token(ROOT, "another key", &resource, 600)),
        ("expired", token(ROOT, ROOT_KEY, &resource, -301)),
        ("unknown key", token("nobody", ROOT_KEY, &resource, 600)),
        ("of another entity", token(ROOT, ROOT_KEY, "sb%3A%2F%2Flocalhost%2Fanother", 600)),
        (
            "of an entity whose name begins the same",
            token(ROOT, ROOT_KEY, &resource[..resource.len() - 1], 600),
        ),
        ("expiry changed", good.replace("&se=1", "&se=9")),
        ("no token at all", "SharedAccessSignature".to_owned()),
        ("an empty text", String::new()),
    ];
    for (case, sas) in cases {
        assert_eq!(client.put_token(&audience, &sas), refused(), "{case}");
    }
    assert_eq!(client.put_token(&audience, &good), accepted(), "on the same links");
}

#[test]
fn b9_the_signature_covers_the_resource_as_it_stands() {
    let server = Server::shared();
    let mut client = Client::anonymous(&server);
    for resource in [
        "sb%3a%2f%2flocalhost%2fqueue.1",
        "sb%3A%2F%2Flocalhost%2Fqueue.1",
        "localhost%2Fqueue.1",
        "localhost",
        "http%3A%2F%2Flocalhost%3A5300%2Fqueue.1%2F",
        "amqps%3A%2F%2Flocalhost%2F",
        "sb://localhost/queue.1",
    ] {
        let sas = token(ROOT, ROOT_KEY, resource, 600);
        assert_eq!(client.put_token("sb://localhost/queue.1", &sas), accepted(), "{resource}");
    }
}

#[test]
fn b10_key_names_in_any_escape_fields_in_any_order_either_key() {
    let server = Server::shared();
    let queue = server.queue([Setting::AuthorizationRules(vec![key("a b", false, true, false)])]);
    let audience = format!("sb://localhost/{queue}");
    let resource = format!("localhost%2F{queue}");
    for name in ["a b", "a%20b", "a%2520b"] {
        for text in ["a b-primary", "a b-secondary"] {
            let mut client = Client::anonymous(&server);
            assert_eq!(client.put_token(&audience, &token(name, text, &resource, 600)), accepted(), "{name}");
        }
    }
    let sas = token(ROOT, ROOT_KEY, &resource, 600);
    let mut fields: Vec<&str> = sas["SharedAccessSignature ".len()..].split('&').collect();
    let mut client = Client::anonymous(&server);
    for _ in 0..4 {
        fields.rotate_left(1);
        let turned = format!("SharedAccessSignature {}", fields.join("&"));
        assert_eq!(client.put_token(&audience, &turned), accepted(), "{turned}");
    }
}

#[test]
fn b11_a_token_covers_what_is_inside_its_audience() {
    let server = Server::shared();
    let queue = server.queue([]);
    let topic = server.topic([]);
    let subscription = server.subscription(&topic, "s", []);
    let sas = token(ROOT, ROOT_KEY, "localhost", 600);
    let cases = [
        ("sb://localhost/".to_owned(), vec![queue.clone(), subscription.clone()]),
        (
            format!("sb://localhost/{topic}"),
            vec![subscription, format!("{topic}/Subscriptions/s/$DeadLetterQueue")],
        ),
        (
            format!("sb://localhost/{queue}"),
            vec![format!("{queue}/$DeadLetterQueue"), format!("{queue}/$management"), queue],
        ),
    ];
    for (audience, addresses) in cases {
        let mut client = Client::anonymous(&server);
        assert_eq!(client.put_token(&audience, &sas), accepted());
        for (handle, address) in (1..).zip(&addresses) {
            let reply = client.attach(receiver(handle, address));
            assert!(reply.source.is_some(), "{audience} covers {address}");
        }
    }
}

#[test]
fn b12_audiences_differ_in_their_paths_alone() {
    let server = Server::shared();
    let queue = server.queue([]);
    let sas = token(ROOT, ROOT_KEY, "localhost", 600);
    for audience in [
        format!("amqp://other:5672/{queue}"),
        format!("amqps://localhost/{}/", queue.to_uppercase()),
        format!("http://127.0.0.1:5300/{queue}/$management"),
        queue.clone(),
    ] {
        let mut client = Client::anonymous(&server);
        assert_eq!(client.put_token(&audience, &sas), accepted());
        client.receiver(1, &queue);
    }
}

#[test]
fn b13_listening_is_not_sending() {
    let server = Server::shared();
    let rules = vec![key("send", true, false, false), key("listen", false, true, false)];
    let queue = server.queue([Setting::AuthorizationRules(rules)]);
    let resource = format!("localhost%2F{queue}");
    let audience = format!("sb://localhost/{queue}");
    for (name, may_send) in [("send", true), ("listen", false)] {
        let mut client = Client::anonymous(&server);
        let sas = token(name, &format!("{name}-primary"), &resource, 600);
        assert_eq!(client.put_token(&audience, &sas), accepted());
        if may_send {
            client.sender(1, &queue);
            assert_eq!(client.refused(receiver(2, &queue)).condition, UNAUTHORIZED);
        } else {
            client.receiver(1, &queue);
            let error = client.refused(sender(2, &queue));
            assert_eq!(error.condition, UNAUTHORIZED);
            assert!(error.description.unwrap().as_str().contains("'Send' claim"));
        }
    }
}

#[test]
fn b14_without_a_token_nothing_is_attached() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::anonymous(&server);
    // What exists and what does not are told apart by those only who may know.
    for address in [queue.as_str(), "no such queue"] {
        assert_eq!(client.refused(sender(1, address)).condition, UNAUTHORIZED, "{address}");
        assert_eq!(client.refused(receiver(2, address)).condition, UNAUTHORIZED, "{address}");
        let managed = format!("{address}/$management");
        assert_eq!(client.refused(sender(3, &managed)).condition, UNAUTHORIZED, "{address}");
    }
}

/// A token that counts for two more seconds: five minutes of differing clocks are allowed.
const NEARLY_OVER: i64 = -298;

#[test]
fn b15_a_newer_token_keeps_links_alive_and_without_one_they_end() {
    let server = Server::shared();
    let queue = server.queue([]);
    let audience = "sb://localhost/";
    let short = token(ROOT, ROOT_KEY, "localhost", NEARLY_OVER);
    let mut renewed = Client::anonymous(&server);
    let mut lapsing = Client::anonymous(&server);
    for client in [&mut renewed, &mut lapsing] {
        assert_eq!(client.put_token(audience, &short), accepted());
        client.sender(1, &queue);
        client.receiver(2, &queue);
    }
    assert_eq!(renewed.put_token(audience, &token(ROOT, ROOT_KEY, "localhost", 600)), accepted());
    for handle in [1, 2] {
        let error = lapsing.detached(handle);
        assert_eq!(error.condition, UNAUTHORIZED);
        assert!(error.description.unwrap().as_str().contains("ExpiredToken"));
    }
    // By now the first token is over for both; the one with a newer token goes on.
    renewed.post(1, message("still here"));
    assert_eq!(renewed.receive(2).body(), "still here");
    assert_eq!(lapsing.put_token(audience, &token(ROOT, ROOT_KEY, "localhost", 600)), accepted());
    lapsing.sender(4, &queue);
}

#[test]
fn b16_the_known_signature_verifies() {
    let server = Server::shared();
    let mut client = Client::anonymous(&server);
    let sas = "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Fqueue.1\
               &sig=wduqmEEk0Rid871vHtLJ2BpFfGGaRgXGFXFla6QakaY%3D&se=1893456000\
               &skn=RootManageSharedAccessKey";
    assert_eq!(client.put_token("sb://localhost/queue.1", sas), accepted());
}
