//! Names nobody should choose, through every door: AMQP, the JSON API, ATOM, REST, the command line, the log and the
//! metrics. Each is refused with a sentence, or comes back from everywhere as it was given; none becomes a line of
//! a log, a tag of a document or a series of its own.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that meets the unexpected shall stop, and tokens need the time"
)]

mod support;

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use support::Broker;
use support::bench::{Bench, text};
use ureq::Agent;
use vorrang_broker::access::token;
use vorrang_client::{Client, Message};
use vorrang_engine::entity::authorization::Secret;

/// Stands in names that would forge something if they got through as they are.
const MARK: &str = "FORGED";

/// Names that are taken as they are.
const ACCEPTED: &[&str] = &[
    "a/b/c",
    "orders~1",
    "größe",
    "日本",
    "a'b",
    "a;b--",
    "a=b&c=d",
    "&lt;b&gt;",
    "x+y",
    "(a,b)",
    "a:b",
    "-dash.",
    "!",
    "null",
    "CON",
    "api/queues/x",
    "messages/head/x",
];

/// Names that are refused. A slash in front or behind is another spelling of a URL, and not among them.
const REFUSED: &[&str] = &[
    "..",
    "../../etc/passwd",
    "a/../b",
    "a/./b",
    "a//b",
    "a b",
    " a",
    "a\nFORGED level=ERROR",
    "a\r\nFORGED: header",
    "\u{1b}[31mFORGED",
    "a\u{0}FORGED",
    "\u{7}FORGED",
    "<script>FORGED</script>",
    "\"><img src=x onerror=FORGED>",
    "a\"} 1\nFORGED_total{x=\"",
    "a\\FORGED",
    "${jndi:FORGED}",
    "{{FORGED}}",
    "%sFORGED%n",
    "%2e%2e%2fFORGED",
    "a?FORGED=1",
    "a#FORGED",
    "a@FORGED",
    "*FORGED",
    "x\u{202e}DEGROF",
    "x\u{200b}y",
    "\u{feff}x",
    "x\u{2028}FORGED",
    "💥",
    "$management",
    "$cbs",
    "q/$DeadLetterQueue",
    "$FORGED",
];

struct Doors {
    agent: Agent,
    http: String,
}

impl Doors {
    fn of(broker: &Broker) -> Doors {
        // A refused request may leave its body unread, and then the connection ends with the answer.
        let config = Agent::config_builder().http_status_as_error(false).max_idle_connections(0).build();
        Doors { agent: Agent::new_with_config(config), http: format!("http://{}", broker.door("http")) }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let expiry = (now.as_secs() + 600).to_string();
        let resource = encoded(&format!("{}/", self.http));
        let signature = encoded(&token::sign(&Secret::new("SAS_KEY_VALUE"), &resource, &expiry));
        let token = format!(
            "SharedAccessSignature sr={resource}&sig={signature}&se={expiry}&skn=RootManageSharedAccessKey"
        );
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.http))
            .header("authorization", token)
            .body(body.to_owned())
            .unwrap();
        let mut response = self.agent.run(request).unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    }
}

fn encoded(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    text.bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

const ATOM: &str = "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\"><QueueDescription \
    xmlns=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\"/></content></entry>";

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_refused_everywhere_or_the_same_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = support::serve_logging(folder.path(), "debug");
    command.arg("--dev").stderr(File::create(&log).unwrap());
    let bench = Bench { broker: Broker::launch(command), folder };
    let doors = Doors::of(&bench.broker);
    let client = Client::connect(&format!(
        "Endpoint=sb://{};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;\
         UseDevelopmentEmulator=true",
        bench.broker.door("amqp")
    ))
    .await
    .unwrap();
    let long = "n".repeat(260);
    let names = || ACCEPTED.iter().copied().chain([long.as_str()]);
    for name in names() {
        accepted(name, &bench, &doors, &client).await;
    }
    support::until("the metrics name them all", || {
        let (_, metrics) = doors.ask("GET", "/metrics", "");
        // Quotes and backslashes are not in names, so a label is written as it is.
        names().all(|name| metrics.contains(&format!("\nvorrang_receivers{{entity=\"{name}\"}} 0\n")))
    });
    for name in names() {
        bench.ok(&["queue", "delete", "--", name]);
    }
    let (too_long, huge) = ("n".repeat(261), "n".repeat(5_000));
    for name in REFUSED.iter().copied().chain([too_long.as_str(), huge.as_str()]) {
        refused(name, &bench, &doors, &client).await;
    }
    assert_eq!(doors.ask("GET", "/health", "").0, 200);
    let (_, metrics) = doors.ask("GET", "/metrics", "");
    assert!(!metrics.contains(MARK), "nothing refused leaves a series behind");
    client.close().await.unwrap();
    assert_eq!(bench.broker.stop(), Some(0));
    looks_like_a_log(&fs::read_to_string(&log).unwrap());
}

async fn accepted(name: &str, bench: &Bench, doors: &Doors, client: &Client) {
    let path = format!("/api/queues/{}", encoded(name));
    let (status, said) = doors.ask("PUT", &path, "{}");
    assert_eq!(status, 201, "{name}: {said}");
    let shown: Value = serde_json::from_str(&doors.ask("GET", &path, "").1).unwrap();
    assert_eq!(shown["name"], name);
    let (status, atom) = doors.ask("GET", &format!("/{}?api-version=2021-05", encoded(name)), "");
    let title = name.replace('&', "&amp;");
    let titled = atom.contains(&format!(">{title}</title>"))
        || atom.contains(&format!(">{}</title>", title.replace('\'', "&apos;")));
    assert!(status == 200 && titled, "{name}: {atom}");
    client.sender(name).await.unwrap().send(Message::text("over AMQP")).await.unwrap();
    let (status, said) = doors.ask("POST", &format!("/{}/messages", encoded(name)), "over HTTP");
    assert_eq!(status, 201, "{name}: {said}");
    bench.ok(&["send", "--body", "by command", "--", name]);
    assert_eq!(bench.json(&["queue", "show", "--", name])["runtime"]["activeMessageCount"], 3);
    let mut receiver = client.receiver(name).await.unwrap();
    let first = receiver.recv_timeout(Duration::from_secs(20)).await.unwrap().unwrap();
    receiver.complete(&first).await.unwrap();
    receiver.close().await.unwrap();
    let (status, body) = doors.ask("DELETE", &format!("/{}/messages/head?timeout=20", encoded(name)), "");
    assert_eq!((status, body.as_str()), (200, "over HTTP"), "{name}");
    let received = bench.ok(&["receive", "--max", "1", "--wait", "20s", "--", name]);
    assert!(received.contains("by command"), "{name}: {received}");
    assert!(bench.ok(&["queue", "list"]).contains(name), "{name}");
}

async fn refused(name: &str, bench: &Bench, doors: &Doors, client: &Client) {
    let (status, said) = doors.ask("PUT", &format!("/api/queues/{}", encoded(name)), "{}");
    let problem: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(status, 400, "{name:?}: {said}");
    assert!(problem["detail"].as_str().unwrap().contains("name"), "{name:?}: {said}");
    let (status, said) = doors.ask("PUT", &format!("/{}?api-version=2021-05", encoded(name)), ATOM);
    assert!((400..500).contains(&status), "{name:?}: {status} {said}");
    assert!(!said.contains("<script") && !said.contains("<img"), "{name:?}: {said}");
    let (status, said) = doors.ask("POST", &format!("/{}/messages", encoded(name)), "x");
    assert!((400..500).contains(&status), "{name:?}: {status} {said}");
    // An attach with such an address is refused, and the connection lives on.
    if !name.starts_with('$') && !name.contains("/$") {
        assert!(client.sender(name).await.is_err(), "{name:?}");
    }
    // The operating system does not pass on what has an end within.
    if !name.contains('\0') {
        let output = bench.run(&["queue", "create", "--", name]);
        let said = text(&output);
        assert!(matches!(output.status.code(), Some(2 | 6 | 7)), "{name:?}: {said}");
        assert!(!said.contains("panicked"), "{name:?}: {said}");
        let shown = said
            .chars()
            .all(|c| c == '\n' || !(c.is_control() || "\u{202e}\u{200b}\u{feff}\u{2028}".contains(c)));
        assert!(shown, "{name:?} reaches the terminal: {said:?}");
        assert!(!said.lines().any(|line| line.starts_with(MARK)), "{name:?}: {said}");
    }
}

/// Every line was begun by us, and nothing in it moves a cursor.
fn looks_like_a_log(log: &str) {
    assert!(log.lines().count() > 50, "something was logged");
    for line in log.lines() {
        let begun = line.get(..4).is_some_and(|year| year.bytes().all(|byte| byte.is_ascii_digit()))
            && line.get(10..11) == Some("T");
        assert!(begun, "somebody else began this line: {line:?}");
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}' || c == '\u{2028}'), "{line:?}");
    }
    assert!(!log.contains("panicked"));
}
