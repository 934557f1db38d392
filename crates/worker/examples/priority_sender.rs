//! The sender of the Priority Queue pattern: batches of ten low and ten high messages, told apart by a property.
//!
//! ```text
//! vorrang serve --dev --emulator-config examples/entities.json
//! cargo run -p vorrang-worker --example priority_sender
//! ```

#![allow(clippy::print_stdout, reason = "an example talks on its terminal")]

use std::time::Duration;

use vorrang_client::{Client, Message};

const CONNECTION_STRING: &str = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;\
                                 SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let connection_string =
        std::env::var("VORRANG_CONNECTION_STRING").unwrap_or(CONNECTION_STRING.to_owned());
    let rounds: u32 = std::env::args().nth(1).map_or(Ok(10), |count| count.parse())?;
    let client = Client::connect(&connection_string).await?;
    let sender = client.sender("messages").await?;
    for round in 1..=rounds {
        for priority in ["Low", "High"] {
            let message = |number| {
                Message::text(format!("{priority} message {number} of round {round}"))
                    .with_property("Priority", priority)
            };
            sender.send_all((0..10).map(message)).await?;
            println!("sent ten messages of priority {priority}");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    client.close().await?;
    Ok(())
}
