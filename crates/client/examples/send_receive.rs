//! Sends a few messages of different importance and receives them, the most important first.
//!
//! ```text
//! vorrang serve --dev --data /tmp/example &
//! cargo run -p vorrang-client --example send_receive -- "$CONNECTION_STRING" orders
//! ```
//!
//! Without arguments it talks to the emulator's address and the queue `orders`, which must exist.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::time::Duration;

use vorrang_client::{Client, Error, Message};

const EMULATOR: &str = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;\
                        SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true";

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let connection = arguments.next().unwrap_or_else(|| EMULATOR.to_owned());
    let queue = arguments.next().unwrap_or_else(|| "orders".to_owned());
    let client = Client::connect(&connection).await?;

    let sender = client.sender(&queue).await?;
    sender.send(Message::text("a postcard").with_priority(1)).await?;
    sender.send(Message::text("an invoice").with_class("high")).await?;
    sender.send_all(["one letter", "another letter"]).await?;

    let mut receiver = client.receiver(&queue).await?;
    loop {
        let batch = receiver.recv_batch(10, Duration::from_secs(1)).await?;
        if batch.is_empty() {
            break;
        }
        for received in &batch {
            println!("level {}: {}", received.level(), received.text().unwrap_or("not text"));
        }
        for outcome in receiver.complete_all(&batch).await {
            outcome?;
        }
    }
    client.close().await
}
