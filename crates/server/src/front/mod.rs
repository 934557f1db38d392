//! The Service Bus front: what AMQP says, in the words of the broker, and back.
//!
//! One [`Door`](door::Door) per connection turns protocol events into requests and answers into
//! frames. It decides nothing about messages: that is the engine's; and nothing about rights: those are
//! checked behind the broker's API, whatever the front believes.

pub(crate) mod address;
mod attach;
mod cbs;
pub(crate) mod condition;
pub mod connection;
mod coordinator;
pub mod door;
mod links;
mod management;
pub mod message;
mod order;
mod passing;
mod pending;
mod receiving;
mod rpc;
mod run;
mod sending;
mod settling;

use vorrang_broker::api::{Answer, Refused};
use vorrang_engine::Reply;

/// What the broker answers when it does not refuse.
#[derive(Debug)]
enum Answered {
    /// Something was done.
    Reply(Reply),
    /// Something was looked up.
    Answer(Answer),
}

/// The broker's answer to a request.
type Outcome = Result<Answered, Refused>;
