//! Who may do what: every action there is, on every way AMQP has to it, with every kind of claim.
//!
//! The table of actions is the broker's own; an action without a line here does not compile.

use vorrang_amqp::message::put_value;
use vorrang_amqp::performative::{
    Attach, Coordinator, DeliveryState, Outcome, Role, SaslCode, Source, TargetNode,
};
use vorrang_amqp::value::{List, Timestamp, Value};
use vorrang_amqp::{Text, Uuid};
use vorrang_broker::access::{Action, Need};
use vorrang_engine::entity::Setting;
use vorrang_engine::entity::authorization::Rights;

use crate::client::Client;
use crate::links::{receiver, sender, session_receiver, waiting};
use crate::message::{message, now};
use crate::nodes::{arguments, millis, numbers, token, tokens};
use crate::server::{Server, key};

const UNAUTHORIZED: &str = "amqp:unauthorized-access";

/// Whether the door let something through; what came of it behind the door is another matter.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Allowed,
    Denied,
}

/// The entities of one row.
struct Place {
    queue: String,
    sessions: String,
    topic: String,
}

/// What a client can show.
#[derive(Debug, Clone, Copy)]
enum Claim {
    None,
    Key(&'static str, Rights),
    /// Everything, on another entity.
    Elsewhere,
    /// Everything, once.
    Expired,
    /// The name of a key that permits everything, and another key.
    WrongKey,
}

/// How a client proves what it claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// Tokens at `$cbs`.
    Cbs,
    /// The key itself, in SASL PLAIN.
    Plain,
}

const CLAIMS: [Claim; 7] = [
    Claim::None,
    Claim::Key("send", Rights { send: true, listen: false, manage: false }),
    Claim::Key("listen", Rights { send: false, listen: true, manage: false }),
    Claim::Key("manage", Rights { send: true, listen: true, manage: true }),
    Claim::Elsewhere,
    Claim::Expired,
    Claim::WrongKey,
];

/// A way to an action: asks for it, and says whether it was let through.
type Way = fn(&mut Client, &Place) -> Verdict;

/// Every way AMQP has to an action. Those without one are asked for over HTTP alone.
fn ways(action: Action) -> Vec<(&'static str, Way)> {
    match action {
        Action::Send => vec![
            ("a sender", |client, place| attach(client, sender(1, &place.queue))),
            ("schedule-message", |client, place| {
                let at = now() + 600_000;
                let draft = message("m").scheduled(at).encode();
                let entry = Value::Map(arguments([("message", Value::Binary(draft))]));
                manage(
                    client,
                    &place.queue,
                    "schedule-message",
                    [("messages", Value::List([entry].into_iter().collect()))],
                )
            }),
        ],
        Action::CancelScheduled => vec![("cancel-scheduled-message", |client, place| {
            manage(client, &place.queue, "cancel-scheduled-message", [("sequence-numbers", numbers(&[1]))])
        })],
        Action::Receive => vec![
            ("a receiver", |client, place| attach(client, receiver(1, &place.queue))),
            ("a receiver of dead letters", |client, place| {
                attach(client, receiver(1, &format!("{}/$DeadLetterQueue", place.queue)))
            }),
            ("a receiver of a subscription", |client, place| {
                attach(client, receiver(1, &format!("{}/Subscriptions/s", place.topic)))
            }),
            ("receive-by-sequence-number", |client, place| {
                let entries = [("sequence-numbers", numbers(&[1])), ("receiver-settle-mode", Value::Uint(1))];
                manage(client, &place.queue, "receive-by-sequence-number", entries)
            }),
        ],
        Action::Settle => vec![
            ("update-disposition", |client, place| {
                let entries = [("disposition-status", Value::from("completed")), ("lock-tokens", unknown())];
                manage(client, &place.queue, "update-disposition", entries)
            }),
            ("renew-lock", |client, place| {
                manage(client, &place.queue, "renew-lock", [("lock-tokens", unknown())])
            }),
        ],
        Action::Peek => vec![("peek-message", |client, place| {
            let entries = [("from-sequence-number", Value::Long(1)), ("message-count", Value::Int(1))];
            manage(client, &place.queue, "peek-message", entries)
        })],
        Action::UseSession => vec![
            ("a session", |client, place| attach(client, session_receiver(1, &place.sessions, Some("mine")))),
            ("the next session", |client, place| {
                attach(client, waiting(session_receiver(1, &place.sessions, None), millis(0)))
            }),
        ],
        Action::ListSessions => vec![("get-message-sessions", |client, place| {
            let entries = [
                ("last-updated-time", Value::from(Timestamp(253_402_300_800_000))),
                ("skip", Value::Int(0)),
                ("top", Value::Int(1)),
            ];
            manage(client, &place.sessions, "get-message-sessions", entries)
        })],
        Action::DeleteMessages => vec![("batch-delete-messages", |client, place| {
            manage(client, &place.queue, "batch-delete-messages", [("message-count", Value::Int(1))])
        })],
        Action::Transact => vec![("declare", |client, _| declare(client))],
        Action::Inquire => vec![("a request link", |client, place| {
            attach(client, sender(1, &format!("{}/$management", place.queue)))
        })],
        Action::ListRules => vec![("enumerate-rules", |client, place| {
            let subscription = format!("{}/Subscriptions/s", place.topic);
            manage(
                client,
                &subscription,
                "enumerate-rules",
                [("top", Value::Int(1)), ("skip", Value::Int(0))],
            )
        })],
        Action::ChangeRules => vec![
            ("add-rule", |client, place| {
                let filter = Value::Map(arguments([("expression", Value::from("1=0"))]));
                let description = Value::Map(arguments([("sql-filter", filter)]));
                let entries = [("rule-name", Value::from("r")), ("rule-description", description)];
                manage(client, &format!("{}/Subscriptions/s", place.topic), "add-rule", entries)
            }),
            ("remove-rule", |client, place| {
                let entries = [("rule-name", Value::from("nobody"))];
                manage(client, &format!("{}/Subscriptions/s", place.topic), "remove-rule", entries)
            }),
        ],
        Action::CreateEntity
        | Action::UpdateEntity
        | Action::DeleteEntity
        | Action::ReadEntity
        | Action::ListEntities
        | Action::Reprioritise
        | Action::Replay
        | Action::Explain
        | Action::Observe
        | Action::Develop => vec![],
    }
}

fn unknown() -> Value {
    tokens(&[Uuid::from_bytes([1; 16])])
}

fn attach(client: &mut Client, wanted: Attach) -> Verdict {
    let (handle, role) = (wanted.handle, wanted.role);
    let reply = client.attach(wanted);
    let refused = match role {
        Role::Sender => reply.target.is_none(),
        Role::Receiver => reply.source.is_none(),
    };
    if refused && client.detached(handle).condition == UNAUTHORIZED {
        Verdict::Denied
    } else {
        Verdict::Allowed
    }
}

/// Asks `$management`. Its links may be refused, or, where any right opens them, the operation.
fn manage<const N: usize>(
    client: &mut Client,
    entity: &str,
    operation: &str,
    entries: [(&str, Value); N],
) -> Verdict {
    let address = format!("{entity}/$management");
    if !client.nodes.contains_key(&address) && attach(client, receiver(900, &address)) == Verdict::Denied {
        return Verdict::Denied;
    }
    let response = client.manage(entity, operation, entries);
    if response.told() == (401, UNAUTHORIZED.to_owned()) { Verdict::Denied } else { Verdict::Allowed }
}

fn declare(client: &mut Client) -> Verdict {
    let wanted = Attach {
        source: Some(Source::at("client")),
        target: Some(TargetNode::Coordinator(Coordinator { capabilities: None })),
        ..Attach::new(Text::from("coordinator"), 1, Role::Sender)
    };
    if attach(client, wanted) == Verdict::Denied {
        return Verdict::Denied;
    }
    let mut payload = Vec::new();
    put_value(&mut payload, &Value::described(0x31_u64, List::from_iter([Value::Null])));
    let id = client.transfer(1, payload);
    match client.outcome(id) {
        DeliveryState::Outcome(Outcome::Rejected { error: Some(error) })
            if error.condition == UNAUTHORIZED =>
        {
            Verdict::Denied
        }
        _ => Verdict::Allowed,
    }
}

impl Claim {
    /// Whether this is enough for an action at the places of the row.
    fn suffices(self, need: Need) -> bool {
        match self {
            Claim::None | Claim::Expired | Claim::WrongKey => false,
            Claim::Key(_, rights) => need.is_met_by(rights),
            Claim::Elsewhere => need == Need::AnyWhere,
        }
    }

    /// A client that shows it; none if it does not get as far as asking.
    fn client(self, proof: Proof, server: &Server, place: &Place, other: &str) -> Option<Client> {
        match proof {
            Proof::Cbs => Some(self.with_tokens(server, place, other)),
            Proof::Plain => self.with_password(server),
        }
    }

    fn with_password(self, server: &Server) -> Option<Client> {
        let (name, password) = match self {
            Claim::None => ("", String::new()),
            Claim::Key(name, _) => (name, format!("{name}-primary")),
            Claim::Elsewhere => ("elsewhere", "elsewhere-primary".to_owned()),
            // A key has no end.
            Claim::Expired | Claim::WrongKey => ("manage", "send-primary".to_owned()),
        };
        let mut client = Client::connect(server);
        if client.log_in_plain(name, &password) != SaslCode::Ok {
            return None;
        }
        client.open(&Client::opening());
        client.begin(0);
        Some(client)
    }

    fn with_tokens(self, server: &Server, place: &Place, other: &str) -> Client {
        let mut client = Client::anonymous(server);
        let (name, seconds) = match self {
            Claim::None => return client,
            Claim::Key(name, _) => (name, 600),
            Claim::Elsewhere => ("elsewhere", 600),
            // Five minutes of differing clocks are allowed; one second is left of them.
            Claim::Expired => ("manage", -299),
            Claim::WrongKey => ("manage", 600),
        };
        let places = match self {
            Claim::Elsewhere => vec![other],
            _ => vec![place.queue.as_str(), place.sessions.as_str(), place.topic.as_str()],
        };
        for entity in places {
            let signer = if matches!(self, Claim::WrongKey) { "send" } else { name };
            let sas = token(name, &format!("{signer}-primary"), &format!("localhost%2F{entity}"), seconds);
            let status = if signer == name { 202 } else { 401 };
            assert_eq!(client.put_token(&format!("sb://localhost/{entity}"), &sas).0, status, "{self:?}");
        }
        client
    }
}

#[test]
fn every_action_on_every_way_asks_for_its_right() {
    let server = Server::shared();
    let rules = || {
        Setting::AuthorizationRules(vec![
            key("send", true, false, false),
            key("listen", false, true, false),
            key("manage", true, true, true),
        ])
    };
    let place = Place {
        queue: server.queue([rules()]),
        sessions: server.queue([rules(), Setting::RequiresSession(true)]),
        topic: server.topic([rules()]),
    };
    server.subscription(&place.topic, "s", []);
    let other = server.queue([Setting::AuthorizationRules(vec![key("elsewhere", true, true, true)])]);
    let mut tried = 0;
    let rows = || {
        let named = Action::ALL.iter().flat_map(|action| ways(*action).into_iter().map(|way| (*action, way)));
        named.flat_map(|row| [Proof::Cbs, Proof::Plain].map(|proof| (row, proof)))
    };
    // Links that were attached in time are no way around: the operations ask again.
    let expired: Vec<_> = rows()
        .map(|(row, proof)| (row, proof, Claim::Expired.client(proof, &server, &place, &other)))
        .collect();
    let over = now() + 1_500;
    let verdict = |client: Option<Client>, way: Way| {
        client.map_or(Verdict::Denied, |mut client| way(&mut client, &place))
    };
    for ((action, (name, way)), proof) in rows() {
        for claim in CLAIMS.into_iter().filter(|claim| !matches!(claim, Claim::Expired)) {
            let expected = if claim.suffices(action.need()) { Verdict::Allowed } else { Verdict::Denied };
            let found = verdict(claim.client(proof, &server, &place, &other), way);
            assert_eq!(found, expected, "{action:?} by {name} with {claim:?} by {proof:?}");
            tried += 1;
        }
    }
    while now() < over {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    for ((action, (name, way)), proof, client) in expired {
        assert_eq!(verdict(client, way), Verdict::Denied, "{action:?} by {name}, expired, by {proof:?}");
        tried += 1;
    }
    println!("{tried} combinations");
    assert!(tried >= 2 * 19 * CLAIMS.len());
}

#[test]
fn a_management_link_that_was_attached_in_time_does_nothing_once_the_token_is_over() {
    let server = Server::shared();
    let queue = server.queue([Setting::AuthorizationRules(vec![key("listen", false, true, false)])]);
    let mut client = Client::anonymous(&server);
    let sas = token("listen", "listen-primary", &format!("localhost%2F{queue}"), -298);
    assert_eq!(client.put_token(&queue, &sas).0, 202);
    let peek = |client: &mut Client| {
        let entries = [("from-sequence-number", Value::Long(1)), ("message-count", Value::Int(1))];
        client.manage(&queue, "peek-message", entries)
    };
    assert_eq!(peek(&mut client).status(), 204);
    let refused = loop {
        let response = peek(&mut client);
        if response.status() != 204 {
            break response;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    assert_eq!(refused.told(), (401, UNAUTHORIZED.to_owned()));
}

#[test]
fn what_is_absent_and_what_is_not_yours_look_the_same() {
    let server = Server::shared();
    let hidden = server.queue([]);
    let own = server.queue([Setting::AuthorizationRules(vec![key("manage", true, true, true)])]);
    let mut client = Client::anonymous(&server);
    let sas = token("manage", "manage-primary", &format!("localhost%2F{own}"), 600);
    assert_eq!(client.put_token(&own, &sas).0, 202);
    let absent = "q".repeat(hidden.len());
    for make in [sender, receiver] {
        let there = client.refused(make(1, &hidden));
        let not_there = client.refused(make(1, &absent));
        assert_eq!(there.condition, not_there.condition);
        let (there, not_there) = (there.description.unwrap(), not_there.description.unwrap());
        assert_eq!(there.as_str().replace(&hidden, "X"), not_there.as_str().replace(&absent, "X"));
    }
}
