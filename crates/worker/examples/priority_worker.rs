//! The workers of the Priority Queue pattern: a topic with a subscription and a pool for each priority.
//!
//! `High` and `Low` share everything but their handler; how many of each run is configuration:
//! `HIGH_INSTANCES` and `LOW_INSTANCES`. Adding a priority is adding a subscription and a pool.

#![allow(clippy::print_stdout, reason = "an example talks on its terminal")]

use std::time::Duration;

use vorrang_client::{Client, Received};
use vorrang_worker::plan::size::Size;
use vorrang_worker::{Context, Handler, Options, Outcome, Pool};

const CONNECTION_STRING: &str = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;\
                                 SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true";

/// What both have in common: read the text, do the work, say how it went.
async fn process(role: &str, message: &Received, work: Duration) -> Outcome {
    let Some(text) = message.text() else { return Outcome::dead_letter("NotText", "the body is not text") };
    tokio::time::sleep(work).await;
    println!("{role:>4}: {text}");
    Outcome::Complete
}

struct High;

impl Handler for High {
    async fn handle(&self, _context: Context, message: Received) -> Outcome {
        process("High", &message, Duration::from_millis(20)).await
    }
}

struct Low;

impl Handler for Low {
    async fn handle(&self, _context: Context, message: Received) -> Outcome {
        process("Low", &message, Duration::from_millis(200)).await
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let connection_string =
        std::env::var("VORRANG_CONNECTION_STRING").unwrap_or(CONNECTION_STRING.to_owned());
    let client = Client::connect(&connection_string).await?;
    let high = Options::new(instances("HIGH_INSTANCES", "4")?, ["messages/Subscriptions/HighPriority"]);
    let low = Options::new(instances("LOW_INSTANCES", "1")?, ["messages/Subscriptions/LowPriority"]);
    let high = Pool::start(&client, high, High).await?;
    let low = Pool::start(&client, low, Low).await?;
    println!("working; interrupt to stop");
    tokio::signal::ctrl_c().await?;
    high.begin_stop(Duration::from_secs(10)).await;
    low.stop(Duration::from_secs(10)).await;
    high.stopped().await;
    for pool in [&high, &low] {
        for entity in pool.figures().snapshot().entities {
            println!("{}: {} completed", entity.entity, entity.completed);
        }
    }
    client.close().await?;
    Ok(())
}

fn instances(variable: &str, default: &str) -> Result<Size, vorrang_worker::plan::size::Error> {
    Size::parse(&std::env::var(variable).unwrap_or(default.to_owned()))
}
