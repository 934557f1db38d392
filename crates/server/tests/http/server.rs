//! A whole server in this process, on free ports with a temporary folder, and a client of plain sockets.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use vorrang_broker::access::token;
use vorrang_broker::shard::Broker;
use vorrang_engine::entity::authorization::Secret;
use vorrang_server::settings::{Ports, Settings};
use vorrang_server::stop::StopSwitch;
use vorrang_server::{Ready, serve};

const KEY_NAME: &str = "RootManageSharedAccessKey";
pub(crate) const KEY: &str = "SAS_KEY_VALUE";
/// Far enough in the future for every test.
const EXPIRY: &str = "4102444800";

pub(crate) struct Server {
    pub(crate) http: SocketAddr,
    switch: StopSwitch,
    running: JoinHandle<()>,
    _folder: TempDir,
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
            let tell = |ready: &Ready, _: &Broker| sender.send(ready.http).unwrap();
            serve(settings, stop, tell).await.unwrap();
        });
        Server { http: ready.await.unwrap(), switch, running, _folder: folder }
    }

    /// Stops in good order; a server that cannot is a failed test.
    pub(crate) async fn stop(self) {
        self.switch.stop();
        self.running.await.unwrap();
    }

    /// A request signed for the whole namespace with its own key.
    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let token = token(KEY_NAME, KEY, "https%3A%2F%2Flocalhost%2F", EXPIRY);
        let mut all = vec![("Authorization", token.as_str())];
        all.extend_from_slice(headers);
        self.raw(method, path, &all, body).await
    }

    /// A request with these headers and no others.
    pub(crate) async fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = self.send(method, path, headers, body).await;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        Answer::parse(&bytes)
    }

    /// Sends a request and leaves the answer in the socket.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TcpStream {
        let mut stream = TcpStream::connect(self.http).await.unwrap();
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.http);
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }
}

/// A token of a key for an encoded resource until a time.
pub(crate) fn token(name: &str, key: &str, resource: &str, expiry: &str) -> String {
    let signature = token::sign(&Secret::new(key), resource, expiry);
    let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    format!("SharedAccessSignature sr={resource}&sig={signature}&se={expiry}&skn={name}")
}

/// A token for one place of the namespace.
pub(crate) fn token_for(name: &str, key: &str, place: &str) -> String {
    token(name, key, &format!("https%3A%2F%2Flocalhost%2F{place}"), EXPIRY)
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The head as it was written.
    pub(crate) head: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Answer {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").expect("a response has a head");
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        let headers = lines.filter_map(header).collect();
        Answer { status, head: head.to_owned(), headers, body: body.to_owned() }
    }

    /// The text of the first element of this name.
    pub(crate) fn element(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.body.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
    }

    pub(crate) fn properties(&self) -> serde_json::Value {
        serde_json::from_str(&self.headers["brokerproperties"]).unwrap()
    }
}
