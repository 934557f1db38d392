//! One receiver over several queues in strict order, and an express receiver beside it that only takes what is urgent.
//!
//! ```text
//! cargo run -p vorrang-client --example express -- "$CONNECTION_STRING" high normal low
//! ```
//!
//! Both are extensions of Vorrang.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::time::Duration;

use vorrang_client::{Client, Credit, Error, Message, ReceiverOptions, Source};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let (connection, queues) = (arguments.next().unwrap_or_default(), arguments.collect::<Vec<_>>());
    let client = Client::connect(&connection).await?;
    for (queue, priority) in queues.iter().rev().zip([1, 5, 9]) {
        let sender = client.sender(queue).await?;
        sender.send(Message::text(format!("to {queue}")).with_priority(priority)).await?;
    }

    // Urgent messages get a link of their own: they never wait behind what was fetched before them.
    let urgent = ReceiverOptions { min_level: Some(9), ..ReceiverOptions::default() };
    let mut express = client.receiver_with(Source::ordered(&queues), urgent).await?;
    if let Some(received) = express.recv_timeout(Duration::from_secs(1)).await? {
        println!("express: {}", received.text().unwrap_or_default());
        express.complete(&received).await?;
    }

    // One message per free slot, and the choice of which is made when the slot is free.
    let by_hand = ReceiverOptions { credit: Credit::Manual, ..ReceiverOptions::default() };
    let mut receiver = client.receiver_with(Source::ordered(&queues), by_hand).await?;
    for _ in &queues {
        receiver.add_credit(1).await?;
        let Some(received) = receiver.recv_timeout(Duration::from_secs(1)).await? else { break };
        println!("{}: {}", received.source().unwrap_or_default(), received.text().unwrap_or_default());
        receiver.complete(&received).await?;
    }
    client.close().await
}
