//! Handlers that are not Rust: commands, long-lived children, HTTP endpoints.

use std::ffi::OsString;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use vorrang_client::{Message, TlsOptions};
use vorrang_worker::Pool;
use vorrang_worker::external::{CommandHandler, HttpHandler, LineHandler, Target};
use vorrang_worker::pool::Preemption;

use crate::broker::{Broker, PATIENCE, dead_letters, options, send, until};

fn shell(script: &str) -> (&'static str, Vec<OsString>) {
    ("sh", vec!["-c".into(), script.into()])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_gets_body_and_facts_and_its_exit_code_decides() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let out = broker.folder().join("out");
    let script = format!(
        r#"body=$(cat); echo "$VORRANG_MESSAGE_ID $VORRANG_ENTITY $VORRANG_LEVEL $VORRANG_PROPERTY_TIER $body" >> {}
        case "$body" in ok) exit 0;; bad) echo "no such order" >&2; exit 65;; *) exit 75;; esac"#,
        out.display()
    );
    let sender = client.sender("work").await.unwrap();
    for body in ["ok", "bad", "later"] {
        sender
            .send(Message::text(body).with_id(format!("id-{body}")).with_property("tier", "gold"))
            .await
            .unwrap();
    }
    let (program, arguments) = shell(&script);
    let mut pool = options(1, ["work"]);
    pool.retries.attempts_max = 2;
    let pool = Pool::start(&client, pool, CommandHandler::new(program, arguments)).await.unwrap();
    until(&pool, "all are settled", |figures| {
        figures.entities[0].completed == 1 && figures.entities[0].dead_lettered == 2
    })
    .await;
    let mut letters: Vec<(String, String)> = dead_letters(&client, "work", 2)
        .await
        .iter()
        .map(|one| (one.dead_letter_reason().unwrap(), one.dead_letter_description().unwrap()))
        .collect();
    letters.sort();
    let expected = [("RetriesExhausted", "put off 2 times"), ("exit code 65", "no such order")];
    assert_eq!(letters, expected.map(|(reason, description)| (reason.to_owned(), description.to_owned())));
    let lines = std::fs::read_to_string(&out).unwrap();
    assert!(lines.contains("id-ok work 4 gold ok\n"), "{lines}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_set_aside_is_stopped_with_its_children_and_continued() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let ticks = broker.folder().join("ticks");
    // A child of the command does the work, so the whole group must stop.
    let script = format!(
        r#"if [ "$VORRANG_LEVEL" -gt 6 ]; then while [ ! -e {0}.go ]; do sleep 0.05; done; exit 0; fi
        sh -c 'while [ ! -e {0}.end ]; do echo tick >> {0}; sleep 0.02; done'"#,
        ticks.display()
    );
    let file = |suffix: &str| std::path::PathBuf::from(format!("{}{suffix}", ticks.display()));
    let count = || std::fs::read_to_string(&ticks).map_or(0, |text| text.lines().count());
    send(&client, "work", &[("low", 1)]).await;
    let (program, arguments) = shell(&script);
    let mut pool = options(1, ["work"]);
    pool.preemption = Some(Preemption::default());
    let pool = Pool::start(&client, pool, CommandHandler::new(program, arguments)).await.unwrap();
    while count() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    send(&client, "work", &[("urgent", 9)]).await;
    until(&pool, "low is set aside", |figures| figures.set_aside == 1 && figures.running == 1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let stopped = count();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(count(), stopped, "a stopped process does not tick");
    std::fs::write(file(".go"), "").unwrap();
    until(&pool, "low goes on", |figures| figures.entities[0].completed == 1).await;
    while count() < stopped + 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    std::fs::write(file(".end"), "").unwrap();
    until(&pool, "both are done", |figures| figures.entities[0].completed == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_lived_child_handles_many_messages_and_is_replaced_when_it_dies() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let started = broker.folder().join("started");
    let script = format!(
        r#"echo started >> {}
        while read -r line; do
          case "$line" in
            *'"body":"die"'*'"delivery_count":0'*) exit 1;;
            *'"body":"bad"'*) echo '{{"outcome":"dead-letter","reason":"bad","description":"so it says"}}';;
            *) echo '{{"outcome":"complete"}}';;
          esac
        done"#,
        started.display()
    );
    let mut messages: Vec<(String, u8)> = (0..20).map(|number| (format!("m{number}"), 4)).collect();
    messages.extend([("die".to_owned(), 4), ("bad".to_owned(), 4)]);
    let messages: Vec<(&str, u8)> = messages.iter().map(|(text, level)| (text.as_str(), *level)).collect();
    send(&client, "work", &messages).await;
    let (program, arguments) = shell(&script);
    let pool =
        Pool::start(&client, options(1, ["work"]), LineHandler::new(program, arguments)).await.unwrap();
    let figures = until(&pool, "all are settled", |figures| {
        figures.entities[0].completed == 21 && figures.entities[0].dead_lettered == 1
    });
    let figures = figures.await;
    assert_eq!((figures.entities[0].failed, figures.entities[0].retried), (1, 1));
    assert_eq!(
        std::fs::read_to_string(&started).unwrap().lines().count(),
        2,
        "one child, and one after it died"
    );
    assert_eq!(dead_letters(&client, "work", 1).await[0].dead_letter_reason().as_deref(), Some("bad"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http_endpoint_gets_each_message_and_its_status_decides() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(endpoint(listener));
    send(&client, "work", &[("ok", 4), ("bad", 4)]).await;
    let target = Target::parse(&format!("http://127.0.0.1:{port}/handle")).unwrap();
    let mut pool = options(1, ["work"]);
    pool.retries.attempts_max = 2;
    let pool =
        Pool::start(&client, pool, HttpHandler::new(target, PATIENCE, &TlsOptions::default()).unwrap())
            .await
            .unwrap();
    until(&pool, "both are settled", |figures| {
        figures.entities[0].completed == 1 && figures.entities[0].dead_lettered == 1
    })
    .await;
    let letter = &dead_letters(&client, "work", 1).await[0];
    assert_eq!(letter.dead_letter_description().as_deref(), Some("what is this?"));
    pool.stop(PATIENCE).await;
    // An endpoint that is not there is no fault of the message.
    let nowhere = Target::parse("http://127.0.0.1:1/").unwrap();
    send(&client, "high", &[("any", 4)]).await;
    let pool = Pool::start(
        &client,
        options(1, ["high"]),
        HttpHandler::new(nowhere, PATIENCE, &TlsOptions::default()).unwrap(),
    )
    .await
    .unwrap();
    let figures = until(&pool, "it is unavailable", |figures| figures.entities[0].unavailable > 0).await;
    assert_eq!(figures.entities[0].failed, 0);
}

/// The broker's own HTTPS door is the endpoint; that it knows no such path is an answer, too.
#[tokio::test(flavor = "multi_thread")]
async fn an_https_endpoint_must_prove_who_it_is() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let target = Target::parse(&format!("https://localhost:{}/no/such/door", broker.https_port())).unwrap();
    let pem = std::fs::read(broker.folder().join("development-certificate.pem")).unwrap();
    let trusted = TlsOptions::roots_from_pem(&pem).unwrap();
    send(&client, "work", &[("any", 4)]).await;
    let mut once = options(1, ["work"]);
    once.retries.attempts_max = 1;
    let handler = HttpHandler::new(target.clone(), PATIENCE, &trusted).unwrap();
    let pool = Pool::start(&client, once, handler).await.unwrap();
    until(&pool, "it is answered", |figures| figures.entities[0].dead_lettered == 1).await;
    let letter = &dead_letters(&client, "work", 1).await[0];
    let said = format!("{:?} {:?}", letter.dead_letter_reason(), letter.dead_letter_description());
    assert!(said.contains(" 40") || said.contains("\"40"), "{said}");
    // Roots that do not know it: nothing is posted, and the message is not to blame.
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem();
    let stranger = TlsOptions::roots_from_pem(other.as_bytes()).unwrap();
    send(&client, "high", &[("any", 4)]).await;
    let handler = HttpHandler::new(target, PATIENCE, &stranger).unwrap();
    let pool = Pool::start(&client, options(1, ["high"]), handler).await.unwrap();
    let figures = until(&pool, "it is unavailable", |figures| figures.entities[0].unavailable > 0).await;
    assert_eq!(figures.entities[0].failed, 0);
}

/// Answers two requests on one connection, as a kept-alive endpoint does.
async fn endpoint(listener: TcpListener) {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { return };
        tokio::spawn(async move {
            let mut seen = Vec::new();
            let mut chunk = [0; 4_096];
            while let Ok(count @ 1..) = stream.read(&mut chunk).await {
                seen.extend_from_slice(&chunk[..count]);
                let text = String::from_utf8_lossy(&seen).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                assert!(head.contains("vorrang-entity: work"), "{head}");
                let answer = match body {
                    "ok" => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
                    "bad" => "HTTP/1.1 422 No\r\ncontent-length: 13\r\n\r\nwhat is this?",
                    _ => continue,
                };
                stream.write_all(answer.as_bytes()).await.unwrap();
                seen.clear();
            }
        });
    }
}
