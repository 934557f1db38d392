//! What the worker costs, measured against a durable broker in the same process.
//!
//! ```text
//! cargo run --release -p vorrang-worker --example bench [messages]
//! ```
//!
//! 1. Messages per second through a raw receiver and through a pool with an empty handler, alternating, and their ratio.
//! 2. From sending a higher message (and from its acknowledgement) to its handler running, while all slots are busy.
//! 3. Frames that an idle pool over sixteen queues exchanges with the broker in five seconds.

#![allow(clippy::print_stdout, reason = "a benchmark talks on its terminal")]
#![allow(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use vorrang_client::{Client, Message, Received, ReceiverOptions};
use vorrang_server::settings::{Ports, Settings};
use vorrang_server::stop::StopSwitch;
use vorrang_worker::plan::size::Size;
use vorrang_worker::pool::Preemption;
use vorrang_worker::{Context, Options, Outcome, Pool};

const WINDOW: u32 = 1_000;

#[tokio::main]
async fn main() {
    let messages: usize = std::env::args().nth(1).map_or(50_000, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let queues: Vec<String> = (0..16).map(|number| format!(r#"{{ "Name": "q{number}" }}"#)).collect();
    let entities = format!(
        r#"{{ "UserConfig": {{ "Namespaces": [ {{ "Name": "n", "Queues": [ {} ] }} ] }} }}"#,
        queues.join(",")
    );
    std::fs::write(folder.path().join("entities.json"), entities).unwrap();
    let settings = Settings {
        ports: Ports { amqp: 0, amqps: 0, http: 0, https: 0 },
        dev: true,
        emulator_config: Some(folder.path().join("entities.json")),
        ..Settings::new(folder.path().to_path_buf())
    };
    let (switch, stop) = StopSwitch::new();
    let (told, ready) = oneshot::channel();
    let broker = tokio::spawn(async move {
        vorrang_server::serve(settings, stop, |ready, _| told.send(ready.amqp.port()).unwrap())
            .await
            .unwrap();
    });
    let port = ready.await.unwrap();
    throughput(port, messages).await;
    preemption(port).await;
    idle(port).await;
    switch.stop();
    broker.await.unwrap();
}

async fn connect(port: u16) -> Client {
    let text = format!(
        "Endpoint=sb://localhost:{port};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;\
         UseDevelopmentEmulator=true"
    );
    Client::connect(&text).await.unwrap()
}

async fn throughput(port: u16, messages: usize) {
    let client = connect(port).await;
    let (mut raw_best, mut pump_best) = (0_u128, 0_u128);
    for round in 1..=3 {
        fill(&client, messages).await;
        let begin = Instant::now();
        raw(&client, messages).await;
        let raw = per_second(messages, begin.elapsed());
        fill(&client, messages).await;
        let begin = Instant::now();
        pump(&client, messages).await;
        let pump = per_second(messages, begin.elapsed());
        println!("round {round}: raw receiver {raw}/s, pump {pump}/s");
        (raw_best, pump_best) = (raw_best.max(raw), pump_best.max(pump));
    }
    println!("pump / raw receiver: {} %", pump_best * 100 / raw_best.max(1));
}

async fn fill(client: &Client, messages: usize) {
    let sender = client.sender("q0").await.unwrap();
    let body = vec![7_u8; 256];
    sender.send_all((0..messages).map(|_| Message::new(body.clone()))).await.unwrap();
}

/// The fastest honest use of a receiver: batches received and completed while the next are on their way.
async fn raw(client: &Client, messages: usize) {
    let options = ReceiverOptions::default().with_prefetch(WINDOW);
    let mut receiver = client.receiver_with("q0", options).await.unwrap();
    let settler = receiver.settler();
    let mut settling = tokio::task::JoinSet::new();
    let mut received = 0;
    while received < messages {
        let batch = receiver.recv_batch(256, Duration::from_secs(10)).await.unwrap();
        received += batch.len();
        let settler = settler.clone();
        settling.spawn(async move { assert!(settler.complete_all(&batch).await.iter().all(Result::is_ok)) });
    }
    while settling.join_next().await.is_some() {}
}

async fn pump(client: &Client, messages: usize) {
    let mut options = Options::new(Size::Fixed(256), ["q0"]);
    options.prefetch = usize::try_from(WINDOW).unwrap();
    let pool =
        Pool::start(client, options, |_: Context, _: Received| async { Outcome::Complete }).await.unwrap();
    let wanted = u64::try_from(messages).unwrap();
    while pool.figures().snapshot().entities.first().map_or(0, |entity| entity.completed) < wanted {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    pool.stop(Duration::from_secs(10)).await;
}

fn per_second(messages: usize, elapsed: Duration) -> u128 {
    u128::try_from(messages).unwrap() * 1_000_000 / elapsed.as_micros().max(1)
}

async fn preemption(port: u16) {
    let client = connect(port).await;
    let sender = client.sender("q1").await.unwrap();
    for _ in 0..8 {
        sender.send(Message::text("low").with_priority(1)).await.unwrap();
    }
    let (started, mut starts) = mpsc::unbounded_channel();
    let handler = move |context: Context, _: Received| {
        let started = started.clone();
        async move {
            if context.level() < 7 {
                std::future::pending::<()>().await;
            }
            started.send(Instant::now()).unwrap();
        }
    };
    let mut options = Options::new(Size::Fixed(8), ["q1"]);
    let mut preempting = Preemption::default();
    preempting.guards.preemptions_max = u32::MAX;
    options.preemption = Some(preempting);
    options.grace = Duration::from_millis(10);
    let pool = Pool::start(&client, options, handler).await.unwrap();
    while pool.figures().snapshot().running < 8 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (mut from_send, mut from_accept) = (Vec::new(), Vec::new());
    for _ in 0..2_000 {
        while pool.figures().snapshot().running < 8 {
            tokio::task::yield_now().await;
        }
        let sent = Instant::now();
        sender.send(Message::text("urgent").with_priority(9)).await.unwrap();
        let accepted = Instant::now();
        let start = starts.recv().await.unwrap();
        from_send.push(start.saturating_duration_since(sent));
        from_accept.push(start.saturating_duration_since(accepted));
    }
    shown("preemption, from send to handler", from_send);
    shown("preemption, from acknowledgement to handler", from_accept);
    println!("preempted {} times", pool.figures().snapshot().preempted);
    pool.stop(Duration::ZERO).await;
}

fn shown(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() * percent / 100).min(times.len() - 1)).copied().unwrap();
    println!("{what}: p50 {:?}, p99 {:?}, max {:?}", at(50), at(99), at(100));
}

/// Puts a counting proxy between worker and broker.
async fn idle(port: u16) {
    let bytes = Arc::new(AtomicU64::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap().port();
    let counted = Arc::clone(&bytes);
    let accepting = tokio::spawn(async move {
        while let Ok((from, _)) = listener.accept().await {
            let to = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let ((from_read, from_write), (to_read, to_write)) = (from.into_split(), to.into_split());
            tokio::spawn(copy(from_read, to_write, Arc::clone(&counted)));
            tokio::spawn(copy(to_read, from_write, Arc::clone(&counted)));
        }
    });
    let client = connect(proxy).await;
    let queues: Vec<String> = (0..16).map(|number| format!("q{number}")).collect();
    let options = Options::new(Size::Fixed(8), queues);
    let pool =
        Pool::start(&client, options, |_: Context, _: Received| async { Outcome::Complete }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = bytes.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let exchanged = bytes.load(Ordering::SeqCst) - before;
    println!(
        "an idle pool over 16 queues: {exchanged} bytes in 5 s, {} frames of a heartbeat's 8 bytes",
        exchanged / 8
    );
    pool.stop(Duration::from_secs(1)).await;
    accepting.abort();
}

async fn copy(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    counted: Arc<AtomicU64>,
) {
    let mut buffer = vec![0; 16 * 1_024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        counted.fetch_add(u64::try_from(count).unwrap(), Ordering::SeqCst);
        if to.write_all(buffer.get(..count).unwrap()).await.is_err() {
            return;
        }
    }
}
