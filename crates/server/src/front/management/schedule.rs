//! Messages sent for later, and taken back in time.

use smallvec::SmallVec;
use vorrang_amqp::value::{Array, Value};
use vorrang_broker::api::{Acceptance, Operation};
use vorrang_engine::{EntityId, Sequence};

use super::arguments::{Arguments, not_allowed};
use super::plan::{Context, Plan, Reading};
use super::response::Response;
use crate::front::condition::Told;
use crate::front::links::Managed;
use crate::front::message::read_incoming;
use crate::front::sending::unreadable;

/// `schedule-message`: all the messages or none. When each is due is in its own annotations.
pub(super) fn schedule(arguments: &Arguments, context: &Context<'_>) -> Result<Plan, Told> {
    let entity = destination(context.managed)?;
    let encoded = arguments.items("messages", "maps with a 'message' of type binary", |item| {
        item.as_map()?.value("message").as_ref().and_then(Value::as_binary).cloned()
    })?;
    let mut messages = SmallVec::with_capacity(encoded.len());
    for payload in encoded {
        messages.push(read_incoming(payload).map_err(|error| unreadable(&error))?);
    }
    let transaction = context.transaction;
    let operation =
        Operation::Send { entity, via: None, transaction, messages, acceptance: Acceptance::Numbers };
    Ok(Plan::new(operation, Reading::Numbers))
}

/// The numbers by which scheduled messages can be cancelled, in order.
pub(super) fn scheduled(sequences: &[Sequence]) -> Response {
    let numbers = sequences.iter().map(|sequence| i64::try_from(sequence.0).unwrap_or(i64::MAX));
    Response::of("sequence-numbers", Array::of(numbers))
}

/// `cancel-scheduled-message`: all the messages or none.
pub(super) fn cancel(arguments: &Arguments, context: &Context<'_>) -> Result<Plan, Told> {
    let entity = destination(context.managed)?;
    let operation = Operation::Cancel { entity, sequences: arguments.sequences()?.into_vec() };
    Ok(Plan::new(operation, Reading::Nothing))
}

/// The entity messages are sent to, which is never a dead-letter queue.
fn destination(managed: &Managed) -> Result<EntityId, Told> {
    if managed.mailbox.is_main() {
        return Ok(managed.entity);
    }
    Err(not_allowed("Messages cannot be scheduled in a dead-letter queue."))
}
