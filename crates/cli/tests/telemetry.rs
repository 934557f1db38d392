//! Spans of deliveries at a real collector: an HTTP server that reads what OTLP over HTTP in JSON says.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that meets the unexpected shall stop"
)]

mod support;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use support::{Broker, until};
use vorrang_client::{Client, Message};

const PATIENCE: Duration = Duration::from_secs(20);
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A collector: its address, and what it is told, request by request.
fn collector() -> (String, Receiver<Value>) {
    let (port, requests) = listen(|stream, told| {
        while let Some((_, request)) = request(&mut &stream) {
            // Whoever started it may be gone already.
            let _ = told.send(request);
        }
    });
    (format!("http://127.0.0.1:{port}"), requests)
}

/// A collector behind TLS, with the heads of its requests: its certificate is of an authority of its own.
fn private_collector(folder: &Path) -> (String, PathBuf, Receiver<(Vec<String>, Value)>) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let file = folder.join("authority.pem");
    std::fs::write(&file, authority.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = names.signed_by(&key, &authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.serialize_der().try_into().unwrap());
    let config = Arc::new(config.unwrap());
    let (port, requests) = listen(move |stream, told| {
        let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
        while let Some(request) = request(&mut stream) {
            let _ = told.send(request);
        }
    });
    (format!("https://localhost:{port}"), file, requests)
}

/// Serves one connection after the other at a free port.
fn listen<T: Send + 'static>(serve: impl Fn(TcpStream, &Sender<T>) + Send + 'static) -> (u16, Receiver<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.unwrap(), &told);
        }
    });
    (port, requests)
}

/// One request of a connection, its head in lower case and its body, answered; nothing when it ends.
fn request<S: Read + Write>(stream: &mut S) -> Option<(Vec<String>, Value)> {
    let mut reader = BufReader::new(&mut *stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_ascii_lowercase());
    }
    assert_eq!(head[0], "post /v1/traces http/1.1");
    assert!(head.contains(&"content-type: application/json".to_owned()), "{head:?}");
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        .unwrap();
    Some((head, serde_json::from_slice(&body).unwrap()))
}

/// The spans of a request.
fn spans(request: &Value) -> Vec<Value> {
    assert_eq!(attribute(&request["resourceSpans"][0]["resource"], "service.name"), "vorrang");
    request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
}

fn attribute(owner: &Value, key: &str) -> String {
    let attributes = owner["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == key).unwrap();
    let value = &found["value"];
    value["stringValue"].as_str().or(value["intValue"].as_str()).unwrap().to_owned()
}

fn metric(broker: &Broker, start: &str) -> Option<u64> {
    let mut socket = TcpStream::connect(broker.door("http")).unwrap();
    socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    text.lines().find_map(|line| line.strip_prefix(start)?.trim().parse().ok())
}

async fn connect(broker: &Broker) -> Client {
    let text = format!(
        "Endpoint=sb://{};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;\
         UseDevelopmentEmulator=true",
        broker.door("amqp")
    );
    Client::connect(&text).await.unwrap()
}

/// A broker that tells this collector, with a queue `q`.
fn start(folder: &std::path::Path, endpoint: &str) -> Broker {
    let mut command = support::serve_queues(folder, folder, &["q"]);
    command.args(["--otlp-endpoint", endpoint]);
    Broker::launch(command)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_of_a_traced_message_is_a_span_and_the_message_is_as_it_was_sent() {
    let folder = tempfile::tempdir().unwrap();
    let (endpoint, requests) = collector();
    let broker = start(folder.path(), &endpoint);
    let client = connect(&broker).await;
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let sender = client.sender("q").await.unwrap();
    let traced = |name: &str| {
        Message::text("x")
            .with_id("m-1")
            .with_property(name, parent.as_str())
            .with_property("tracestate", "a=1")
    };
    sender.send(traced("traceparent")).await.unwrap();
    sender.send(traced("Diagnostic-Id")).await.unwrap();
    sender.send(Message::text("untraced")).await.unwrap();
    let unsampled = format!("00-{TRACE}-{PARENT}-00");
    sender.send(Message::text("x").with_property("traceparent", unsampled.as_str())).await.unwrap();
    let mut receiver = client.receiver("q").await.unwrap();
    for number in 0..4 {
        let received = receiver.recv_timeout(PATIENCE).await.unwrap().unwrap();
        if let Some(name) = ["traceparent", "Diagnostic-Id"].get(number) {
            let found = received.property(name).and_then(|value| value.as_str().map(str::to_owned));
            assert_eq!(found.as_deref(), Some(parent.as_str()), "{name}");
        }
        receiver.complete(&received).await.unwrap();
    }
    let mut found = Vec::new();
    while found.len() < 2 {
        found.extend(spans(&requests.recv_timeout(PATIENCE).unwrap()));
    }
    assert_eq!(found.len(), 2, "neither the untraced nor the unsampled one: {found:?}");
    for span in &found {
        assert_eq!((&span["traceId"], &span["parentSpanId"]), (&TRACE.into(), &PARENT.into()));
        assert_eq!(span["spanId"].as_str().unwrap().len(), 16);
        assert_eq!((&span["name"], &span["traceState"]), (&"wait q".into(), &"a=1".into()));
        assert_eq!(attribute(span, "messaging.destination.name"), "q");
        assert_eq!(attribute(span, "messaging.message.id"), "m-1");
        let nanos = |name: &str| span[name].as_str().unwrap().parse::<u128>().unwrap();
        let waited = nanos("endTimeUnixNano") - nanos("startTimeUnixNano");
        assert_eq!(attribute(span, "vorrang.time_in_queue_ms"), (waited / 1_000_000).to_string());
    }
    assert_ne!(found[0]["spanId"], found[1]["spanId"]);
    until("they are counted", || metric(&broker, "vorrang_spans_exported_total") == Some(2));
    // What is told shortly before the end is not lost.
    sender.send(traced("traceparent")).await.unwrap();
    let last = receiver.recv_timeout(PATIENCE).await.unwrap().unwrap();
    receiver.complete(&last).await.unwrap();
    client.close().await.unwrap();
    assert_eq!(broker.stop(), Some(0));
    assert_eq!(spans(&requests.recv_timeout(PATIENCE).unwrap()).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_not_there_costs_spans_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let broker = start(folder.path(), &format!("http://{nobody}"));
    let client = connect(&broker).await;
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let message = Message::text("x").with_property("traceparent", parent.as_str());
    client.sender("q").await.unwrap().send(message).await.unwrap();
    let mut receiver = client.receiver("q").await.unwrap();
    let received = receiver.recv_timeout(PATIENCE).await.unwrap().unwrap();
    receiver.complete(&received).await.unwrap();
    let dropped = "vorrang_spans_dropped_total{reason=\"collector\"}";
    until("the span is counted as dropped", || metric(&broker, dropped) == Some(1));
    client.close().await.unwrap();
    assert_eq!(broker.stop(), Some(0));
}

#[test]
fn the_variable_of_opentelemetry_names_the_collector_and_ours_is_stronger() {
    let shown = |variables: &[(&str, &str)]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_vorrang"));
        command.args(["config", "show"]).envs(variables.iter().copied());
        let output = command.current_dir(tempfile::tempdir().unwrap().path()).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        text.lines().filter(|line| line.contains("otlp_")).collect::<Vec<_>>().join("\n")
    };
    let (theirs, ours) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "VORRANG_OTLP_ENDPOINT");
    assert!(shown(&[]).contains("is not set"));
    assert!(shown(&[(theirs, "http://a:4318")]).contains("\"http://a:4318\""));
    assert!(shown(&[(theirs, "http://a:4318"), (ours, "http://b:4318/")]).contains("\"http://b:4318\""));
    let refused = shown(&[(ours, "http://user:hunter2@b:4318")]);
    assert!(refused.contains("without user") && !refused.contains("hunter2"), "{refused}");
    let rest = shown(&[
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "authority.pem"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hunter2"),
    ]);
    assert!(rest.contains("otlp_ca_file = \"authority.pem\""), "{rest}");
    assert!(rest.contains("otlp_headers = \"***\"") && !rest.contains("hunter2"), "{rest}");
    let refused = shown(&[("VORRANG_OTLP_HEADERS", "hunter2")]);
    assert!(refused.contains("a list like") && !refused.contains("hunter2"), "{refused}");
}

/// Sends a traced message and receives it.
async fn pass_one(broker: &Broker) {
    let client = connect(broker).await;
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let message = Message::text("x").with_property("traceparent", parent.as_str());
    client.sender("q").await.unwrap().send(message).await.unwrap();
    let mut receiver = client.receiver("q").await.unwrap();
    let received = receiver.recv_timeout(PATIENCE).await.unwrap().unwrap();
    receiver.complete(&received).await.unwrap();
    client.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_of_a_private_authority_is_told_with_its_key_and_nobody_else_learns_it() {
    let folder = tempfile::tempdir().unwrap();
    let (endpoint, authority, requests) = private_collector(folder.path());
    let logged = folder.path().join("log");
    let config = folder.path().join("broker.toml");
    let text = format!(
        "otlp_endpoint = \"{endpoint}\"\notlp_ca_file = \"{}\"\n\
         otlp_headers = \"authorization=Bearer%20hunter2,x-key=hunter2\"\n[[queue]]\nname = \"q\"\n",
        authority.display()
    );
    std::fs::write(&config, text).unwrap();
    let mut command = support::serve_logging(folder.path(), "trace");
    command.arg("--dev").arg("--config").arg(&config).stderr(File::create(&logged).unwrap());
    let broker = Broker::launch(command);
    pass_one(&broker).await;
    let (head, body) = requests.recv_timeout(PATIENCE).unwrap();
    assert_eq!(spans(&body).len(), 1);
    for line in ["authorization: bearer hunter2", "x-key: hunter2"] {
        assert!(head.iter().any(|found| found == line), "{line}: {head:?}");
    }
    until("it is counted", || metric(&broker, "vorrang_spans_exported_total") == Some(1));
    assert_eq!(broker.stop(), Some(0));
    let log = String::from_utf8(std::fs::read(&logged).unwrap()).unwrap();
    assert!(log.contains("spans of deliveries are sent"), "{log}");
    let line = log.lines().find(|line| line.to_ascii_lowercase().contains("hunter2"));
    assert_eq!(line, None, "the log shows the key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_of_an_authority_nobody_named_is_not_told_anything() {
    let folder = tempfile::tempdir().unwrap();
    let (endpoint, _, requests) = private_collector(folder.path());
    let mut command = support::serve_queues(folder.path(), folder.path(), &["q"]);
    command.args(["--otlp-endpoint", &endpoint, "--otlp-headers", "x-key=hunter2"]);
    let broker = Broker::launch(command);
    pass_one(&broker).await;
    let dropped = "vorrang_spans_dropped_total{reason=\"collector\"}";
    until("the span is counted as dropped", || metric(&broker, dropped) == Some(1));
    assert_eq!(broker.stop(), Some(0));
    assert!(requests.try_recv().is_err());
}

#[test]
fn a_file_of_authorities_that_cannot_be_used_is_named_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("absent.pem", None), ("empty.pem", Some("")), ("other.pem", Some("hello"))] {
        let file = folder.path().join(name);
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let mut command = support::serve_queues(folder.path(), folder.path(), &["q"]);
        command.args(["--otlp-endpoint", "https://localhost:1", "--otlp-ca-file"]).arg(&file);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{name}: {said}");
        assert!(said.contains(name) && said.contains("otlp_ca_file") && said.contains("PEM"), "{said}");
    }
}
