//! Receives the messages of each session in order, counts them in the session's state, and sends a receipt and completes
//! in one transaction.
//!
//! ```text
//! vorrang serve --dev &
//! cargo run -p vorrang-client --example sessions
//! ```
//!
//! With `CONNECTION_STRING ADMIN_URL` it talks to any other broker, also to Service Bus.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::time::Duration;

use vorrang_client::admin::{Admin, QueueProperties};
use vorrang_client::{Client, Error, Message};

const EMULATOR: &str = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;\
                        SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true";

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let connection = arguments.next().unwrap_or_else(|| EMULATOR.to_owned());
    let admin = match arguments.next() {
        Some(url) => Admin::new(&connection)?.with_endpoint(&url)?,
        None => Admin::new(&connection)?,
    };
    admin.create_queue_if_missing(&QueueProperties::new("per-customer").with_sessions()).await?;
    admin.create_queue_if_missing(&QueueProperties::new("receipts")).await?;

    let client = Client::connect(&connection).await?;
    let (sender, receipts) = (client.sender("per-customer").await?, client.sender("receipts").await?);
    for (customer, order) in [("ada", "tea"), ("ben", "milk"), ("ada", "sugar")] {
        sender.send(Message::text(order).with_session(customer)).await?;
    }

    // Until no session has anything for a second.
    loop {
        let mut session = match client.accept_session("per-customer", None, Duration::from_secs(1)).await {
            Ok(session) => session,
            Err(Error::Timeout(_)) => break,
            Err(error) => return Err(error),
        };
        let before = session.state().await?;
        let mut count: u32 =
            before.and_then(|state| String::from_utf8_lossy(&state).parse().ok()).unwrap_or(0);
        while let Some(order) = session.recv_timeout(Duration::from_millis(200)).await? {
            let text = order.text().unwrap_or("not text").to_owned();
            let transaction = client.transaction().await?;
            transaction
                .send(&receipts, Message::text(format!("{} bought {text}", session.session_id())))
                .await?;
            transaction.complete(&session, &order).await?;
            transaction.commit().await?;
            count = count.saturating_add(1);
            println!("{}: {text}, order {count}", session.session_id());
        }
        session.set_state(Some(count.to_string().into())).await?;
        session.close().await?;
    }
    println!("{} receipts", admin.queue("receipts").await?.runtime().active);
    admin.delete_queue("per-customer").await?;
    admin.delete_queue("receipts").await?;
    client.close().await
}
