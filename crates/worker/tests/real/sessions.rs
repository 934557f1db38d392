//! Pools over sessions: order within, several at once, state, patience, and what becomes of them at the end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use vorrang_client::{Client, Error, Message, Received, TlsOptions};
use vorrang_worker::external::{CommandHandler, HttpHandler, LineHandler, Target};
use vorrang_worker::pool::Sessions;
use vorrang_worker::{Context, Options, Outcome, Pool};

use crate::broker::{Broker, PATIENCE, Reports, options, text, until};

const QUEUE: &str = "ordered";

/// By session: what was handled, and whether something is at it.
type Seen = BTreeMap<String, (Vec<String>, bool)>;

fn serving(size: u32) -> Options {
    let mut options = options(size, [QUEUE]);
    options.sessions = Some(Sessions { idle: Duration::from_millis(50) });
    options
}

async fn send(client: &Client, session: &str, texts: &[&str]) {
    let sender = client.sender(QUEUE).await.unwrap();
    sender.send_all(texts.iter().map(|text| Message::text(*text).with_session(session))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn few_slots_serve_many_sessions_each_in_order_and_one_message_at_a_time() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let texts: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for session in ["a", "b", "c", "d", "e", "f"] {
        send(&client, session, &texts).await;
    }
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let most = Arc::new(Mutex::new(0));
    let handler = {
        let (seen, most) = (Arc::clone(&seen), Arc::clone(&most));
        move |context: Context, message: Received| {
            let (seen, most) = (Arc::clone(&seen), Arc::clone(&most));
            async move {
                let session = context.session().unwrap().id().to_owned();
                assert_eq!(message.session_id(), Some(session.as_str()));
                {
                    let mut seen = seen.lock().unwrap();
                    let entry = seen.entry(session.clone()).or_default();
                    assert!(!entry.1, "two messages of {session} at once");
                    entry.0.push(text(&message));
                    entry.1 = true;
                    let running = seen.values().filter(|entry| entry.1).count();
                    let mut most = most.lock().unwrap();
                    *most = running.max(*most);
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
                seen.lock().unwrap().get_mut(&session).unwrap().1 = false;
            }
        }
    };
    let pool = Pool::start(&client, serving(3), handler).await.unwrap();
    until(&pool, "all are completed", |figures| figures.entities[0].completed == 60).await;
    pool.stop(PATIENCE).await;
    for (session, (handled, _)) in &*seen.lock().unwrap() {
        assert_eq!(handled, &texts, "session {session}");
    }
    assert_eq!((seen.lock().unwrap().len(), *most.lock().unwrap()), (6, 3));
    let rest = client.accept_session(QUEUE, None, Duration::from_millis(100)).await;
    assert!(matches!(rest, Err(Error::Timeout(_))), "no session has anything left: {rest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_fails_is_tried_again_before_those_behind_it() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "s", &["a", "b", "c"]).await;
    let mut reports = Reports::new();
    let to = reports.sender();
    let handler = move |_: Context, message: Received| {
        to.send(format!("{} {}", text(&message), message.delivery_count())).unwrap();
        async move {
            match (message.text(), message.delivery_count()) {
                (Some("b"), 0) => Outcome::Failed("not yet".to_owned()),
                (Some("b"), 1) => panic!("not yet either"),
                (Some("c"), 0) => Outcome::Retry(Some(Duration::from_millis(5))),
                _ => Outcome::Complete,
            }
        }
    };
    let pool = Pool::start(&client, serving(1), handler).await.unwrap();
    for expected in ["a 0", "b 0", "b 1", "b 2", "c 0", "c 1"] {
        assert_eq!(reports.next().await, expected);
    }
    let figures = until(&pool, "all are completed", |figures| figures.entities[0].completed == 3).await;
    assert_eq!((figures.entities[0].failed, figures.entities[0].panicked), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sessions_state_goes_with_it_from_message_to_message() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "sum", &["1", "2", "3", "4"]).await;
    let handler = |context: Context, message: Received| async move {
        let session = context.session().unwrap();
        let state = session.state().await.map_err(|error| error.to_string())?;
        let sum: u32 = state.map_or(0, |state| String::from_utf8_lossy(&state).parse().unwrap());
        let sum = sum + text(&message).parse::<u32>().unwrap();
        session.set_state(Some(Bytes::from(sum.to_string()))).await.map_err(|error| error.to_string())
    };
    let pool = Pool::start(&client, serving(2), handler).await.unwrap();
    until(&pool, "all are completed", |figures| figures.entities[0].completed == 4).await;
    pool.stop(PATIENCE).await;
    // The last message's session is let go by the stop; somebody who comes later finds the sum.
    send(&client, "sum", &["0"]).await;
    let session = client.accept_session(QUEUE, Some("sum"), PATIENCE).await.unwrap();
    assert_eq!(session.state().await.unwrap().as_deref(), Some(&b"10"[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_kept_locked_while_its_handler_runs() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "s", &["long", "next"]).await;
    // The lock lasts five seconds.
    let handler = |context: Context, message: Received| async move {
        if message.text() == Some("long") {
            tokio::time::sleep(Duration::from_secs(6)).await;
        }
        assert!(!context.is_cancelled());
    };
    let pool = Pool::start(&client, serving(2), handler).await.unwrap();
    let figures = until(&pool, "both are completed", |figures| figures.entities[0].completed == 2).await;
    assert!(figures.entities[0].renewed >= 1);
    assert_eq!((figures.entities[0].received, figures.entities[0].locks_lost), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_gives_an_unfinished_message_back_uncounted_and_its_session_with_it() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "s", &["stuck"]).await;
    let stuck = |_: Context, _: Received| std::future::pending::<Outcome>();
    let pool = Pool::start(&client, serving(1), stuck).await.unwrap();
    until(&pool, "it runs", |figures| figures.running == 1).await;
    pool.stop(Duration::ZERO).await;
    assert_eq!(pool.figures().snapshot().entities[0].given_back, 1);
    let mut reports = Reports::new();
    let to = reports.sender();
    let handler = move |_: Context, message: Received| {
        to.send(format!("{} {}", text(&message), message.delivery_count())).unwrap();
        async {}
    };
    let pool = Pool::start(&client, serving(1), handler).await.unwrap();
    assert_eq!(reports.next().await, "stuck 0");
    // A paused pool lets its sessions go and takes none.
    pool.pause().await;
    send(&client, "t", &["later"]).await;
    let other = client.accept_session(QUEUE, None, PATIENCE).await.unwrap();
    assert_eq!(other.session_id(), "t");
    other.close().await.unwrap();
    pool.resume().await;
    assert_eq!(reports.next().await, "later 0");
}

/// Adds the numbers of a session up in its state, and fails the message that says so, once, after having written.
async fn sum(pool_of: impl AsyncFnOnce(&Broker, &Client) -> Pool) {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "sum", &["1", "2", "fail", "4"]).await;
    let pool = pool_of(&broker, &client).await;
    until(&pool, "all are completed", |figures| figures.entities[0].completed == 4).await;
    assert_eq!(pool.figures().snapshot().entities[0].failed, 1);
    pool.stop(PATIENCE).await;
    send(&client, "sum", &["0"]).await;
    let session = client.accept_session(QUEUE, Some("sum"), PATIENCE).await.unwrap();
    assert_eq!(session.state().await.unwrap().as_deref(), Some(&b"7"[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_finds_the_state_in_a_file_and_what_it_leaves_is_stored_after_success() {
    sum(async |broker, client| {
        let paths = broker.folder().join("paths");
        let script = format!(
            r#"echo "$VORRANG_SESSION_ID $VORRANG_SESSION_STATE" >> {}
            read -r number; sum=$(cat "$VORRANG_SESSION_STATE")
            if [ "$number" = fail ]; then
              [ "$VORRANG_DELIVERY_COUNT" = 0 ] || exit 0
              echo 999 > "$VORRANG_SESSION_STATE"; exit 1
            fi
            printf %s $(( ${{sum:-0}} + number )) > "$VORRANG_SESSION_STATE""#,
            paths.display()
        );
        let handler = CommandHandler::new("sh", ["-c".into(), script.into()]);
        let pool = Pool::start(client, serving(1), handler).await.unwrap();
        until(&pool, "all are completed", |figures| figures.entities[0].completed == 4).await;
        let paths = std::fs::read_to_string(paths).unwrap();
        assert_eq!(paths.lines().count(), 5);
        for line in paths.lines() {
            let (session, path) = line.split_once(' ').unwrap();
            assert_eq!(session, "sum");
            assert!(!std::path::Path::new(path).exists(), "{path} is gone with its message");
        }
        pool
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_lived_child_is_told_the_state_and_says_the_next() {
    sum(async |_, client| {
        let script = r#"while read -r line; do
            number=$(expr "$line" : '.*"body":"\([0-9]*\)"'); sum=$(expr "$line" : '.*"session_state":"\([0-9]*\)"')
            case "$line" in
              *'"body":"fail"'*'"delivery_count":0'*) echo '{"outcome":"failed","session_state":"999"}';;
              *'"body":"fail"'*) echo '{"outcome":"complete"}';;
              *) echo "{\"outcome\":\"complete\",\"session_state\":\"$(( ${sum:-0} + number ))\"}";;
            esac
          done"#;
        let handler = LineHandler::new("sh", ["-c".into(), script.into()]);
        Pool::start(client, serving(1), handler).await.unwrap()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_gets_the_state_as_a_header_and_sets_it_by_one() {
    sum(async |_, client| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(adding_endpoint(listener));
        let target = Target::parse(&format!("http://127.0.0.1:{port}/")).unwrap();
        let handler = HttpHandler::new(target, PATIENCE, &TlsOptions::default()).unwrap();
        Pool::start(client, serving(1), handler).await.unwrap()
    })
    .await;
}

/// Answers each request on its connection with the sum so far, in base64, as its next state.
async fn adding_endpoint(listener: TcpListener) {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { return };
        tokio::spawn(async move {
            let (mut seen, mut chunk) = (Vec::new(), [0; 4_096]);
            while let Ok(count @ 1..) = stream.read(&mut chunk).await {
                seen.extend_from_slice(&chunk[..count]);
                let text = String::from_utf8_lossy(&seen).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let header =
                    |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                if body.len() < header("content-length: ").unwrap().parse().unwrap() {
                    continue;
                }
                assert_eq!(header("vorrang-session-id: ").as_deref(), Some("sum"));
                let sum: u32 = header("vorrang-session-state: ").map_or(0, |state| {
                    String::from_utf8(STANDARD.decode(state).unwrap()).unwrap().parse().unwrap()
                });
                let first = header("vorrang-delivery-count: ").as_deref() == Some("0");
                let (status, next) = match body {
                    "fail" if first => ("500 No", Some(999)),
                    "fail" => ("200 OK", None),
                    number => ("200 OK", Some(sum + number.parse::<u32>().unwrap())),
                };
                let next = next.map(|sum: u32| {
                    format!("vorrang-session-state: {}\r\n", STANDARD.encode(sum.to_string()))
                });
                let answer =
                    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n{}\r\n", next.unwrap_or_default());
                stream.write_all(answer.as_bytes()).await.unwrap();
                seen.clear();
            }
        });
    }
}
