//! A whole server in this process, on free ports with a temporary folder, and a client of plain sockets.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::Value as Json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use vorrang_broker::access::token;
use vorrang_engine::entity::authorization::Secret;
use vorrang_server::serve;
use vorrang_server::settings::{Ports, Settings};
use vorrang_server::stop::StopSwitch;

const KEY_NAME: &str = "RootManageSharedAccessKey";
const KEY: &str = "SAS_KEY_VALUE";
/// Far enough in the future for every test.
const EXPIRY: &str = "4102444800";

pub(crate) struct Server {
    pub(crate) amqp: SocketAddr,
    http: SocketAddr,
    switch: StopSwitch,
    running: JoinHandle<()>,
    _folder: TempDir,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Server {
    pub(crate) async fn start() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(folder.path().join("data"));
        settings.dev = true;
        settings.ports = Ports { amqp: 0, amqps: 0, http: 0, https: 0 };
        let (switch, stop) = StopSwitch::new();
        let (sender, ready) = oneshot::channel();
        let running = tokio::spawn(async move {
            serve(settings, stop, |ready, _| sender.send((ready.amqp, ready.http)).unwrap()).await.unwrap();
        });
        let (amqp, http) = ready.await.unwrap();
        Server { amqp, http, switch, running, _folder: folder }
    }

    /// Stops in good order; a server that cannot is a failed test.
    pub(crate) async fn stop(self) {
        self.switch.stop();
        self.running.await.unwrap();
    }

    /// Asks with the namespace's own key.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        self.ask_as(&token(KEY_NAME, KEY, ""), method, path, body).await
    }

    /// Asks with this token.
    pub(crate) async fn ask_as(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        let mut stream = self.send(token, method, path, body).await;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        Answer::parse(&bytes)
    }

    /// Sends a request and leaves the answer in the socket.
    pub(crate) async fn send(&self, token: &str, method: &str, path: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.http).await.unwrap();
        let token = if token.is_empty() { String::new() } else { format!("Authorization: {token}\r\n") };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{token}", self.http);
        let length = body.len();
        stream.write_all(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes()).await.unwrap();
        stream
    }

    /// Asks, and takes nothing but success.
    pub(crate) async fn fine(&self, method: &str, path: &str, body: &str) -> Json {
        let answer = self.ask(method, path, body).await;
        assert!((200..300).contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.body);
        answer.json()
    }

    /// Asks, and takes nothing but this refusal.
    pub(crate) async fn refused(&self, status: u16, method: &str, path: &str, body: &str) -> Json {
        let answer = self.ask(method, path, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        assert_eq!(answer.headers["content-type"], "application/problem+json", "{method} {path}");
        answer.json()
    }

    /// Makes dead letters of messages with these ids: they expire at once.
    pub(crate) async fn bury(&self, send_to: &str, entity: &str, ids: &[&str]) {
        let path = format!("/api/{entity}/mailboxes/deadletter/groups");
        let before = self.fine("GET", &path, "").await["lookedAt"].as_u64().unwrap();
        let message = |id: &&str| {
            format!(
                r#"{{"messageId": "{id}", "timeToLive": "1ms", "level": 200, "body": {{"json": {{"n": 1}}}},
                         "properties": {{"colour": "red", "id": "{id}"}}}}"#
            )
        };
        let messages: Vec<String> = ids.iter().map(message).collect();
        self.fine("POST", &format!("/api/{send_to}/messages"), &format!("[{}]", messages.join(","))).await;
        let wanted = before + u64::try_from(ids.len()).unwrap();
        for _ in 0..2_000 {
            if self.fine("GET", &path, "").await["lookedAt"] == wanted {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("the messages do not expire");
    }
}

/// A token of a key for a place of the namespace.
pub(crate) fn token(name: &str, key: &str, place: &str) -> String {
    let resource = format!("https%3A%2F%2Flocalhost%2F{place}");
    let signature = token::sign(&Secret::new(key), &resource, EXPIRY);
    let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    format!("SharedAccessSignature sr={resource}&sig={signature}&se={EXPIRY}&skn={name}")
}

impl Answer {
    fn parse(bytes: &[u8]) -> Answer {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").expect("a response has a head");
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        let headers: BTreeMap<String, String> = lines.filter_map(header).collect();
        let chunked = headers.get("transfer-encoding").is_some_and(|value| value == "chunked");
        let body = if chunked { dechunked(body) } else { body.to_owned() };
        Answer { status, headers, body }
    }

    pub(crate) fn json(&self) -> Json {
        if self.body.is_empty() { Json::Null } else { serde_json::from_str(&self.body).expect(&self.body) }
    }

    /// The last of several lines.
    pub(crate) fn last_line(&self) -> Json {
        serde_json::from_str(self.body.lines().last().expect("there are lines")).unwrap()
    }
}

fn dechunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, tail)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body.push_str(&tail[..size]);
        rest = &tail[size + 2..];
        if size == 0 {
            break;
        }
    }
    body
}
