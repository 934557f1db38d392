//! Calls a service through a queue and waits for its answer.
//!
//! ```text
//! cargo run -p vorrang-client --example request_reply -- "$CONNECTION_STRING" requests replies
//! ```
//!
//! The queue `replies` must require sessions.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::time::Duration;

use vorrang_client::{Client, Error, Message};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [connection, requests, replies] = arguments.as_slice() else {
        println!("usage: request_reply CONNECTION_STRING REQUEST_QUEUE REPLY_QUEUE");
        return Ok(());
    };
    let client = Client::builder(connection)?.reply_queue(replies).connect().await?;

    let service = client.clone();
    let mut receiver = service.receiver(requests).await?;
    let serving = tokio::spawn(async move {
        while let Some(request) = receiver.recv().await {
            let answer = request.text().unwrap_or_default().to_uppercase();
            service.reply(&request, Message::text(answer)).await?;
            receiver.complete(&request).await?;
        }
        Ok::<(), Error>(())
    });

    for question in ["good morning", "how are you"] {
        let reply = client.call(requests, question, Duration::from_secs(10)).await?;
        println!("{question} -> {}", reply.text().unwrap_or("not text"));
    }
    client.close().await?;
    serving.await.unwrap_or(Ok(()))
}
