//! A client for Vorrang, and for every broker that speaks AMQP 1.0 in Azure Service Bus's dialect.
//!
//! ```no_run
//! use vorrang_client::{Client, Message};
//!
//! # async fn example() -> Result<(), vorrang_client::Error> {
//! let client = Client::connect(
//!     "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;\
//!      SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true",
//! )
//! .await?;
//!
//! let sender = client.sender("orders").await?;
//! sender.send(Message::text("one pizza").with_priority(9)).await?;
//!
//! let mut receiver = client.receiver("orders").await?;
//! while let Some(received) = receiver.recv().await {
//!     println!("{}", received.text().unwrap_or("not text"));
//!     receiver.complete(&received).await?;
//! }
//! client.close().await
//! # }
//! ```
//!
//! A [`Client`] is one connection, driven by one task. Senders, receivers, sessions and transactions are cheap
//! handles that speak with that task over bounded channels; nothing in here locks or spawns per message. When the
//! connection is lost the task makes a new one, with growing pauses, and attaches every link again.
//!
//! What must stay true:
//!
//! - **No silent loss, no silent repetition.** A send that was on its way when the connection broke ends in
//!   [`Error::Ambiguous`], unless the sender was told that the entity detects duplicates; then it is sent again.
//! - **Everything is bounded**: bytes in flight per sender, messages held per receiver (its credit), requests that
//!   wait for an answer, pauses between attempts.
//! - **Dropping a handle gives back what it holds**: messages that were fetched but not taken are released, not left
//!   locked until they expire.

#![allow(clippy::disallowed_methods, reason = "a client lives in real time")]

pub mod admin;
mod backoff;
mod call;
mod claim;
mod client;
mod connection_string;
mod driver;
mod entity;
mod error;
mod management;
mod message;
mod received;
mod receiver;
mod rules;
mod sas;
mod sender;
mod session;
mod settle;
mod transaction;
mod transport;
mod wall;

pub use backoff::RetryPolicy;
pub use client::{Authentication, Client, ClientBuilder, IntoConnectionString};
pub use connection_string::{ConnectionString, ConnectionStringError, Credential};
pub use entity::{Source, SubQueue};
pub use error::Error;
pub use message::Message;
pub use received::{MessageState, Received};
pub use receiver::{Credit, ReceiveMode, Receiver, ReceiverOptions};
pub use rules::{CorrelationFilter, Rule, RuleFilter, Rules, Sql};
pub use sender::{Sender, SenderOptions, Submitted};
pub use session::{Session, SessionReceiver};
pub use settle::{Abandon, DeadLetter, Settler};
pub use transaction::Transaction;
pub use transport::{TlsClient, TlsOptions, TransportKind};
pub use vorrang_amqp::value::{Timestamp, Value};
pub use vorrang_amqp::{Symbol, Text, Uuid};
