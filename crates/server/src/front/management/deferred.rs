//! Deferred messages, received by their numbers.

use vorrang_amqp::Uuid;
use vorrang_amqp::value::{ListBuilder, MapBuilder};
use vorrang_broker::api::{Operation, Received};
use vorrang_engine::command::ReceiveMode;
use vorrang_engine::message::Delivery;

use super::arguments::{Arguments, argument_error, out_of_range};
use super::browse::{shown, written};
use super::plan::{Bodies, Context, Plan, Reaction, Reading};
use super::response::Response;
use super::sessions;
use crate::front::condition::{Told, name};

/// Messages in one response, in bytes: it is made in memory. Locked messages that do not fit are
/// unlocked and the request is refused; for messages that are removed there is no way back, so fewer
/// numbers are taken in the first place.
const RESPONSE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// `receive-by-sequence-number`: all the messages or none.
pub(super) fn receive(arguments: &Arguments, context: &Context<'_>) -> Result<Plan, Told> {
    let sequences = arguments.sequences()?.into_vec();
    let mode = match arguments.required_integer("receiver-settle-mode")? {
        0 => ReceiveMode::ReceiveAndDelete,
        1 => ReceiveMode::PeekLock,
        _ => return Err(argument_error("'receiver-settle-mode' must be 0 or 1.")),
    };
    let at_once =
        RESPONSE_BYTES_MAX.checked_div(context.managed.message_bytes_max).unwrap_or(u64::MAX).max(1);
    let count = u64::try_from(sequences.len()).unwrap_or(u64::MAX);
    if mode == ReceiveMode::ReceiveAndDelete && count > at_once {
        let text =
            format!("{count} messages cannot be received and deleted at once: allowed are 1 to {at_once}.");
        return Err(out_of_range(text));
    }
    let session = arguments.session()?;
    let link = (context.holder)(session.as_ref());
    if session.is_some() && link.is_none() {
        return Err(sessions::lock_lost());
    }
    let operation = Operation::ReceiveDeferred { mailbox: context.managed.mailbox, sequences, mode, link };
    Ok(Plan::new(operation, Reading::Received { mode }))
}

/// The messages, in the order of the numbers; or their locks given back if they cannot be sent.
pub(super) fn received(messages: &[Received], mode: ReceiveMode, bodies: Bodies<'_>) -> Reaction {
    match listed(messages, mode, bodies) {
        Ok(response) => response.into(),
        Err(told) => Reaction {
            response: told.into(),
            give_back: messages.iter().filter_map(|received| received.delivery.token).collect(),
        },
    }
}

fn listed(messages: &[Received], mode: ReceiveMode, bodies: Bodies<'_>) -> Result<Response, Told> {
    let size: u64 = messages.iter().map(|received| u64::from(received.delivery.size)).sum();
    if mode == ReceiveMode::PeekLock && size > RESPONSE_BYTES_MAX {
        let text =
            format!("The messages have {size} bytes: at most {RESPONSE_BYTES_MAX} are received at once.");
        return Err(out_of_range(text));
    }
    let mut list = ListBuilder::default();
    for Received { delivery, body } in messages {
        let message = match body {
            Some(body) => written(delivery, false, body.clone()),
            None => shown(delivery, false, bodies),
        };
        let message = message.map_err(|reason| unreadable(delivery, &reason))?;
        let mut entry = MapBuilder::default();
        entry.push(&"message", &message);
        if let Some(token) = delivery.token {
            entry.push(&"lock-token", &Uuid::from_bytes(token.0.to_be_bytes()));
        }
        list.push(&entry.finish());
    }
    Ok(Response::of("messages", list.finish()))
}

fn unreadable(delivery: &Delivery, reason: &str) -> Told {
    let sequence = delivery.sequence;
    tracing::error!(sequence = sequence.0, reason, "a stored message cannot be read");
    Told::new(name::INTERNAL_ERROR, 500, format!("Message {sequence} cannot be read: {reason}."))
}
