//! The client against a server of another make: sends, is refused, receives, settles in every way.
//!
//! ```text
//! interop_client PORT [USER PASSWORD]
//! ```
//!
//! Prints a line for each step it got through. The conformance suites of Qpid Proton and rhea run it against their servers.

#![allow(clippy::print_stdout, reason = "an example talks on its terminal")]

use std::time::Duration;

use vorrang_client::{Abandon, Authentication, Client, DeadLetter, Error, Message, RetryPolicy};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let port = words.next().ok_or("which port?")?;
    let login = match (words.next(), words.next()) {
        (Some(user), Some(password)) => format!("SharedAccessKeyName={user};SharedAccessKey={password};"),
        _ => String::new(),
    };
    let text = format!("Endpoint=sb://127.0.0.1:{port};{login}UseDevelopmentEmulator=true");
    let retry = RetryPolicy { pause_min: Duration::from_millis(10), ..RetryPolicy::default() };
    let client = Client::builder(&text)?.authentication(Authentication::Plain).retry(retry).connect().await?;
    println!("connected");

    let sender = client.sender("echo").await?;
    sender.send(Message::text("small").with_id("s").with_property("n", 7)).await?;
    println!("sent small");
    sender.send(Message::text("x".repeat(100_000)).with_id("l")).await?;
    println!("sent large");
    // The server refuses this one at first, and says that it is busy.
    sender.send(Message::text("busy").with_id("b")).await?;
    println!("sent busy");

    let mut receiver = client.receiver("echo").await?;
    for _ in 0..3 {
        let received = receiver.recv_timeout(Duration::from_secs(10)).await?.ok_or("nothing came")?;
        let id = received.message_id().unwrap_or_default();
        let settled = match id.as_str() {
            "s" => {
                let intact = received.text() == Some("small")
                    && received.property("n").and_then(|number| number.as_i64()) == Some(7);
                if !intact {
                    return Err("the small message has changed".into());
                }
                receiver.complete(&received).await?;
                "completed"
            }
            "l" => {
                if received.body().len() != 100_000 {
                    return Err("the large message has changed".into());
                }
                receiver.abandon(&received, Abandon::default()).await?;
                "abandoned"
            }
            _ => {
                receiver.dead_letter(&received, DeadLetter::because("enough")).await?;
                "dead-lettered"
            }
        };
        println!("received {id}: {settled}");
    }
    if receiver.recv_timeout(Duration::from_millis(100)).await?.is_none() {
        println!("drained");
    }
    match client.receiver("refused").await {
        Err(Error::NotFound(text)) => println!("refused: {text}"),
        other => return Err(format!("expected a refusal, not {other:?}").into()),
    }
    client.close().await?;
    println!("closed");
    Ok(())
}
