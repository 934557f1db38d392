//! The Competing Consumers pattern: many consumers on one queue, each message to one of them.
//!
//! Creates the queue if it is missing, sends a batch, pumps it with ten concurrent calls, pauses, goes on, and stops gently.

#![allow(clippy::print_stdout, reason = "an example talks on its terminal")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use vorrang_client::admin::QueueProperties;
use vorrang_client::{Client, Message, Received};
use vorrang_worker::plan::size::Size;
use vorrang_worker::{Context, Options, Outcome, Pool, Problem};

const CONNECTION_STRING: &str = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;\
                                 SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true";
const ADMIN: &str = "http://localhost:5300";
const QUEUE: &str = "competing";
const MESSAGES: usize = 100;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let connection_string =
        std::env::var("VORRANG_CONNECTION_STRING").unwrap_or(CONNECTION_STRING.to_owned());
    let client = Client::connect(&connection_string).await?;
    let admin = client.admin(&std::env::var("VORRANG_ADMIN").unwrap_or(ADMIN.to_owned()))?;
    admin.create_queue_if_missing(&QueueProperties::new(QUEUE).with_max_delivery_count(3)).await?;
    let sender = client.sender(QUEUE).await?;
    sender.send_all((0..MESSAGES).map(|number| Message::text(format!("order {number}")))).await?;
    println!("sent {MESSAGES} messages in batches");

    let handled = Arc::new(AtomicUsize::new(0));
    let handler = {
        let handled = Arc::clone(&handled);
        move |_context: Context, message: Received| {
            let handled = Arc::clone(&handled);
            async move {
                tokio::time::sleep(Duration::from_millis(10)).await;
                println!("handled {}", message.text().unwrap_or("something that is not text"));
                handled.fetch_add(1, Ordering::Relaxed);
                Outcome::Complete
            }
        }
    };
    let pool = Pool::builder(&client, Options::new(Size::Fixed(10), [QUEUE]))
        .on_problem(Arc::new(|problem: &Problem| println!("problem: {problem}")))
        .start(handler)
        .await?;
    tokio::time::sleep(Duration::from_millis(30)).await;
    pool.pause().await;
    println!("paused after {}", handled.load(Ordering::Relaxed));
    tokio::time::sleep(Duration::from_millis(200)).await;
    pool.resume().await;
    println!("resumed");
    while handled.load(Ordering::Relaxed) < MESSAGES {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    pool.stop(Duration::from_secs(10)).await;
    println!("{} messages handled, ten at a time", handled.load(Ordering::Relaxed));
    client.close().await?;
    Ok(())
}
