//! Who may do what over HTTP: every action there is, on every way the ATOM door, the data plane and the JSON API
//! have to it, with every kind of claim.
//!
//! The table of actions is the broker's own: an action without a line here does not compile. The API's paths are
//! its own document's: one without a row here fails.

use tokio::io::AsyncReadExt as _;
use vorrang_broker::access::{Action, Need};
use vorrang_engine::entity::authorization::Rights;

use crate::server::{KEY, Server, token, token_for};

const ROOT: &str = "RootManageSharedAccessKey";
const LONG_AGO: &str = "1000000000";
const FAR_AWAY: &str = "4102444800";
const LOCK: &str = "01234567-89ab-cdef-0123-456789abcdef";

/// What a client can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// No token.
    None,
    /// A key of the place itself.
    Own(&'static str, Rights),
    /// A key of another place that permits everything there, signed for there.
    Elsewhere,
    /// The same key, signed for here.
    Borrowed,
    /// Everything, once.
    Expired,
    /// The name of a key that permits everything, and another key.
    WrongSignature,
    /// The namespace's own key.
    Root,
}

const CLAIMS: [Claim; 9] = [
    Claim::None,
    Claim::Own("send", Rights { send: true, listen: false, manage: false }),
    Claim::Own("listen", Rights { send: false, listen: true, manage: false }),
    Claim::Own("manage", Rights { send: true, listen: true, manage: true }),
    Claim::Elsewhere,
    Claim::Borrowed,
    Claim::Expired,
    Claim::WrongSignature,
    Claim::Root,
];

impl Claim {
    /// Whether this is enough for all of these at a place; nobody but the root has rights in the whole namespace.
    fn suffices(self, place: &str, needs: &[Need]) -> bool {
        match self {
            Claim::Own(_, rights) => !place.is_empty() && needs.iter().all(|need| need.is_met_by(rights)),
            Claim::Root => true,
            Claim::None | Claim::Elsewhere | Claim::Borrowed | Claim::Expired | Claim::WrongSignature => {
                false
            }
        }
    }

    fn token(self, place: &str) -> Option<String> {
        // Who has no right in the namespace as a whole asks with the right at a queue.
        let place = if place.is_empty() { "q" } else { place };
        let resource = format!("https%3A%2F%2Flocalhost%2F{place}");
        Some(match self {
            Claim::None => return None,
            Claim::Own(name, _) => token_for(name, &format!("{name}-key"), place),
            Claim::Elsewhere => token_for("other", "other-key", "other"),
            Claim::Borrowed => token_for("other", "other-key", place),
            Claim::Expired => token("manage", "manage-key", &resource, LONG_AGO),
            Claim::WrongSignature => token("manage", "send-key", &resource, FAR_AWAY),
            Claim::Root => token_for(ROOT, KEY, ""),
        })
    }
}

/// A way to an action.
struct Way {
    method: &'static str,
    path: String,
    body: &'static str,
    update: bool,
    /// Where the right is needed; nothing for the namespace as a whole.
    place: &'static str,
    /// What is needed beside the action's own right.
    beside: Option<Need>,
}

fn way(method: &'static str, place: &'static str, path: impl Into<String>) -> Way {
    Way { method, path: path.into(), body: "", update: false, place, beside: None }
}

impl Way {
    fn with(self, body: &'static str) -> Way {
        Way { body, ..self }
    }

    fn updating(self, body: &'static str) -> Way {
        Way { body, update: true, ..self }
    }

    fn beside(self, need: Need) -> Way {
        Way { beside: Some(need), ..self }
    }
}

/// Every way HTTP has to an action.
fn ways(action: Action) -> Vec<Way> {
    let all = r#"{"select": {"all": true}}"#;
    let outlets = [("q", "/api/queues/q"), ("t", "/api/topics/t/subscriptions/s")];
    let entities = [("q", "/api/queues/q"), ("t", "/api/topics/t"), ("t", "/api/topics/t/subscriptions/s")];
    let rule = "/api/topics/t/subscriptions/s/rules/r";
    match action {
        Action::Send => vec![
            way("POST", "q", "/q/messages").with("hello"),
            way("POST", "t", "/t/messages").with("hello"),
            way("POST", "q", "/api/queues/q/messages").with("{}"),
            way("POST", "t", "/api/topics/t/messages").with("{}"),
        ],
        Action::Receive => ["q", "q/$DeadLetterQueue", "t/Subscriptions/s"]
            .into_iter()
            .flat_map(|path| {
                let place = if path.starts_with('t') { "t" } else { "q" };
                ["POST", "DELETE"]
                    .map(|method| way(method, place, format!("/{path}/messages/head?timeout=0")))
            })
            .collect(),
        Action::Settle => {
            ["POST", "PUT", "DELETE"].map(|method| way(method, "q", format!("/q/messages/1/{LOCK}"))).into()
        }
        Action::Peek => outlets
            .into_iter()
            .flat_map(|(place, path)| {
                ["main/messages", "main/messages/1", "deadletter/groups"]
                    .map(|what| way("GET", place, format!("{path}/mailboxes/{what}")))
            })
            .collect(),
        Action::ListSessions => {
            outlets.map(|(place, path)| way("GET", place, format!("{path}/sessions"))).into()
        }
        Action::DeleteMessages => outlets
            .map(|(place, path)| way("POST", place, format!("{path}/mailboxes/deadletter/purge")).with(all))
            .into(),
        Action::Reprioritise => outlets
            .map(|(place, path)| {
                way("POST", place, format!("{path}/mailboxes/main/reprioritise"))
                    .with(r#"{"select": {"all": true}, "level": 7}"#)
            })
            .into(),
        // Back to where they came from, where the right to send is needed too.
        Action::Replay => outlets
            .map(|(place, path)| {
                way("POST", place, format!("{path}/mailboxes/deadletter/replay")).with(all).beside(Need::Send)
            })
            .into(),
        Action::Explain => outlets
            .map(|(place, path)| way("GET", place, format!("{path}/mailboxes/main/messages/1/explanation")))
            .into(),
        Action::ListRules => {
            vec![way("GET", "t", "/api/topics/t/subscriptions/s/rules"), way("GET", "t", rule)]
        }
        Action::ChangeRules => vec![
            way("PUT", "t", "/t/Subscriptions/s/Rules/r").with("<RuleDescription/>"),
            way("PUT", "t", "/t/Subscriptions/s/Rules/r").updating("<RuleDescription/>"),
            way("DELETE", "t", "/t/Subscriptions/s/Rules/r"),
            way("PUT", "t", rule).with("{}"),
            way("PATCH", "t", rule).with("{}"),
            way("DELETE", "t", rule),
        ],
        Action::CreateEntity => {
            let mut ways = vec![
                way("PUT", "q", "/q").with("<QueueDescription/>"),
                way("PUT", "t", "/t").with("<TopicDescription/>"),
                way("PUT", "t", "/t/Subscriptions/s").with("<SubscriptionDescription/>"),
            ];
            ways.extend(entities.map(|(place, path)| way("PUT", place, path).with("{}")));
            ways
        }
        Action::UpdateEntity => {
            let mut ways = vec![
                way("PUT", "q", "/q").updating("<QueueDescription/>"),
                way("PUT", "t", "/t").updating("<TopicDescription/>"),
                way("PUT", "t", "/t/Subscriptions/s").updating("<SubscriptionDescription/>"),
            ];
            ways.extend(entities.map(|(place, path)| way("PATCH", place, path).with("{}")));
            ways.extend(outlets.map(|(place, path)| way("POST", place, format!("{path}/pause"))));
            ways.extend(outlets.map(|(place, path)| way("POST", place, format!("{path}/resume"))));
            ways
        }
        Action::DeleteEntity => {
            let mut ways = vec![
                way("DELETE", "q", "/q"),
                way("DELETE", "t", "/t"),
                way("DELETE", "t", "/t/Subscriptions/s"),
            ];
            ways.extend(entities.map(|(place, path)| way("DELETE", place, path)));
            ways
        }
        Action::ReadEntity => {
            let mut ways = vec![
                way("GET", "", "/$namespaceinfo"),
                way("GET", "", "/api/namespace"),
                way("GET", "q", "/q"),
                way("GET", "t", "/t"),
                way("GET", "t", "/t/Subscriptions/s"),
                way("GET", "t", "/t/Subscriptions/s/Rules"),
                way("GET", "t", "/t/Subscriptions/s/Rules/$Default"),
            ];
            ways.extend(entities.map(|(place, path)| way("GET", place, path)));
            ways.extend(outlets.map(|(place, path)| way("GET", place, format!("{path}/live"))));
            ways
        }
        Action::ListEntities => vec![
            way("GET", "", "/$Resources/Queues"),
            way("GET", "", "/$Resources/Topics"),
            way("GET", "t", "/t/Subscriptions"),
            way("GET", "", "/api/queues"),
            way("GET", "", "/api/topics"),
            way("GET", "t", "/api/topics/t/subscriptions"),
            way("GET", "", "/api/definitions"),
            way("POST", "", "/api/definitions?dryRun=true").with("{}"),
        ],
        Action::Observe => vec![
            way("GET", "", "/api/connections"),
            way("GET", "", "/api/connections/0"),
            way("DELETE", "", "/api/connections/0"),
            way("DELETE", "", "/api/connections/0/links/0"),
            way("GET", "", "/api/targets"),
            way("GET", "", "/api/$events"),
        ],
        Action::Develop => vec![
            way("GET", "", "/dev/clock"),
            way("POST", "", "/dev/clock/advance").with(r#"{"by": "1ms"}"#),
            way("POST", "", "/dev/reset"),
            way("PUT", "", "/dev/snapshots/n"),
            way("GET", "", "/dev/snapshots"),
            way("POST", "", "/dev/snapshots/n/restore"),
            way("DELETE", "", "/dev/snapshots/n"),
            way("POST", "", "/dev/faults").with(r#"{"kind": "serverBusy", "entity": "other"}"#),
            way("GET", "", "/dev/faults"),
            way("DELETE", "", "/dev/faults/1"),
            way("DELETE", "", "/dev/faults"),
            way("POST", "", "/dev/stall").with(r#"{"for": "1ms"}"#),
            way("POST", "", "/dev/drop").with(r#"{"entity": "other"}"#),
        ],
        // AMQP alone has these.
        Action::CancelScheduled | Action::UseSession | Action::Transact | Action::Inquire => vec![],
    }
}

/// Makes the entities of the table, where they are not there.
async fn prepare(server: &Server) {
    let key = |name: &str, rights: &str| {
        format!(r#"{{"keyName": "{name}", "rights": [{rights}], "primaryKey": "{name}-key"}}"#)
    };
    let every = r#""Send", "Listen", "Manage""#;
    let keys = [key("send", r#""Send""#), key("listen", r#""Listen""#), key("manage", every)].join(",");
    let body = |keys: &str| format!(r#"{{"authorizationRules": [{keys}]}}"#);
    for (path, body) in [
        ("/api/queues/q", body(&keys)),
        ("/api/topics/t", body(&keys)),
        ("/api/topics/t/subscriptions/s", "{}".to_owned()),
        ("/api/queues/other", body(&key("other", every))),
    ] {
        let made = server.ask("PUT", &format!("{path}?ifMissing=true"), &[], &body).await;
        assert!([200, 201].contains(&made.status), "{path}: {} {}", made.status, made.body);
    }
}

/// The status alone: some answers do not end.
async fn status(server: &Server, way: &Way, token: Option<&str>) -> u16 {
    let mut headers = Vec::new();
    headers.extend(token.map(|token| ("Authorization", token)));
    headers.extend(way.update.then_some(("If-Match", "*")));
    let mut stream = server.send(way.method, &way.path, &headers, way.body).await;
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.unwrap();
    std::str::from_utf8(&line).unwrap().strip_prefix("HTTP/1.1 ").unwrap().parse().unwrap()
}

#[tokio::test]
async fn every_action_on_every_way_asks_for_its_right() {
    let server = Server::start().await;
    prepare(&server).await;
    let mut tried = 0;
    for action in Action::ALL.iter().copied() {
        for way in ways(action) {
            let needs: Vec<Need> = [action.need()].into_iter().chain(way.beside).collect();
            for claim in CLAIMS {
                let token = claim.token(way.place);
                let status = status(&server, &way, token.as_deref()).await;
                let allowed = status != 401;
                let shown = format!("{action:?} by {} {} with {claim:?}: {status}", way.method, way.path);
                assert_eq!(allowed, claim.suffices(way.place, &needs), "{shown}");
                assert!(status < 500, "{shown}");
                if allowed && matches!(action, Action::DeleteEntity) {
                    prepare(&server).await;
                }
                tried += 1;
            }
        }
    }
    assert!(tried >= 600, "{tried} combinations");
    server.stop().await;
}

#[tokio::test]
async fn every_path_of_the_api_is_in_the_table() {
    let server = Server::start().await;
    let document = server.raw("GET", "/api/openapi.json", &[], "").await;
    let document: serde_json::Value = serde_json::from_str(&document.body).unwrap();
    let rows: Vec<Way> = Action::ALL.iter().copied().flat_map(ways).collect();
    let covers = |row: &Way, method: &str, template: &str| {
        let path = row.path.split('?').next().unwrap();
        let same = |(wanted, found): (&str, &str)| wanted.starts_with('{') || wanted == found;
        row.method.eq_ignore_ascii_case(method)
            && template.split('/').count() == path.split('/').count()
            && template.split('/').zip(path.split('/')).all(same)
    };
    for (template, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let open = template == "/api/openapi.json";
            let known = rows.iter().any(|row| covers(row, method, template));
            assert_eq!(known, !open, "{method} {template}");
        }
    }
    server.stop().await;
}
