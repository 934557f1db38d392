//! How fast this client sends and receives, against a broker that is running.
//!
//! ```text
//! cargo run --release -p vorrang-client --example throughput -- "$CONNECTION_STRING" queue 200000 100
//! ```
//!
//! Arguments: connection string, queue, number of messages, bytes per body. Every send is confirmed durable, every
//! received message is completed and the completion confirmed.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example talks to its reader, and this one measures time"
)]

use std::collections::VecDeque;
use std::time::Instant;

use vorrang_client::{Client, Error, Message, ReceiverOptions};

/// Sends on their way at once.
const WINDOW: usize = 2_000;
const PREFETCH: u32 = 4_000;
/// Batches of completions on their way at once.
const COMPLETING_MAX: usize = 8;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [connection, queue, count, bytes] = arguments.as_slice() else {
        println!("usage: throughput CONNECTION_STRING QUEUE MESSAGES BYTES");
        return Ok(());
    };
    let number = |text: &String| text.parse::<usize>().map_err(|error| Error::Body(error.to_string().into()));
    let (count, bytes) = (number(count)?, number(bytes)?);
    let client = Client::connect(connection).await?;

    let sender = client.sender(queue).await?;
    let body = bytes::Bytes::from(vec![b'x'; bytes]);
    let began = Instant::now();
    let mut under_way = VecDeque::new();
    for _ in 0..count {
        if under_way.len() >= WINDOW
            && let Some(oldest) = under_way.pop_front()
        {
            oldest.await?;
        }
        under_way.push_back(sender.submit(Message::new(body.clone())).await?);
    }
    for submitted in under_way {
        submitted.await?;
    }
    report("sent one by one", count, began);

    let began = Instant::now();
    let mut receiver =
        client.receiver_with(queue, ReceiverOptions::default().with_prefetch(PREFETCH)).await?;
    drain(&mut receiver, count).await?;
    report("received and completed", count, began);

    let began = Instant::now();
    sender.send_all((0..count).map(|_| Message::new(body.clone()))).await?;
    report("sent in batches", count, began);
    drain(&mut receiver, count).await?;
    client.close().await
}

/// Receives and completes; several batches of completions are on their way at once.
async fn drain(receiver: &mut vorrang_client::Receiver, count: usize) -> Result<(), Error> {
    let mut got = 0;
    let mut completing = tokio::task::JoinSet::new();
    while got < count {
        let batch = receiver.recv_batch(500, std::time::Duration::from_secs(30)).await?;
        got += batch.len();
        let settler = receiver.settler();
        completing.spawn(async move { settler.complete_all(&batch).await });
        if completing.len() >= COMPLETING_MAX {
            check(completing.join_next().await)?;
        }
    }
    while !completing.is_empty() {
        check(completing.join_next().await)?;
    }
    Ok(())
}

fn check(completed: Option<Result<Vec<Result<(), Error>>, tokio::task::JoinError>>) -> Result<(), Error> {
    completed.into_iter().flatten().flatten().collect()
}

fn report(what: &str, count: usize, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    let rate = f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / seconds;
    println!("{what}: {count} messages in {seconds:.2} s, {rate:.0} per second");
}
