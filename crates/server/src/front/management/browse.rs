//! Messages looked at without taking them, and deleted without looking at them.

use bytes::Bytes;
use vorrang_amqp::encode::{Output as _, Sheet};
use vorrang_amqp::message::Message;
use vorrang_amqp::value::{ListBuilder, Map};
use vorrang_broker::api::{Only, Operation, Question};
use vorrang_broker::shard::Body;
use vorrang_engine::Sequence;
use vorrang_engine::command::Selection;
use vorrang_engine::message::Delivery;

use super::arguments::{Arguments, clamped};
use super::plan::{Bodies, Context, Plan, Reading};
use super::response::Response;
use crate::front::condition::Told;
use crate::front::message::{Purpose, write_outgoing, write_without_body};

/// Messages in one response, in bytes, where the entity takes larger ones: a response is made in memory.
/// What does not fit is left for the next request; one message always fits.
const RESPONSE_BYTES_MAX: u64 = 1024 * 1024;

/// `peek-message`.
pub(super) fn peek(arguments: &Arguments, context: &Context<'_>) -> Result<Plan, Told> {
    let question = Question::Peek {
        mailbox: context.managed.mailbox,
        from: Sequence(clamped(arguments.required_integer("from-sequence-number")?)),
        max: usize::try_from(arguments.required_count("message-count")?).unwrap_or(usize::MAX),
        session: arguments.session()?,
        only: Only::default(),
    };
    let reading = Reading::Peeked {
        omit_body: arguments.flag("omit-message-body")?,
        bytes_max: context.managed.message_bytes_max.min(RESPONSE_BYTES_MAX),
    };
    Ok(Plan::new(Operation::Ask(question), reading))
}

/// What was found, as far as it fits. A message that cannot be read is passed over: most likely it has
/// been settled since it was found.
pub(super) fn peeked(messages: &[Delivery], omit_body: bool, bytes_max: u64, bodies: Bodies<'_>) -> Response {
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let mut list = ListBuilder::default();
    let mut bytes = 0_usize;
    for delivery in messages {
        let message = match shown(delivery, omit_body, bodies) {
            Ok(message) => message,
            Err(reason) => {
                tracing::warn!(sequence = delivery.sequence.0, reason, "a message cannot be shown");
                continue;
            }
        };
        bytes = bytes.saturating_add(message.len());
        if bytes > bytes_max && bytes > message.len() {
            break;
        }
        list.push(&std::iter::once(("message", message)).collect::<Map>());
    }
    let list = list.finish();
    if list.is_empty() { Response::nothing() } else { Response::of("messages", list) }
}

/// A stored message as a client is shown it, encoded.
pub(super) fn shown(delivery: &Delivery, omit_body: bool, bodies: Bodies<'_>) -> Result<Bytes, String> {
    written(delivery, omit_body, bodies(delivery)?)
}

/// The same, with the message's bytes at hand.
pub(super) fn written(delivery: &Delivery, omit_body: bool, body: Body) -> Result<Bytes, String> {
    let message = Message::parse(body.bytes).map_err(|error| error.to_string())?;
    let mut out = Sheet::default();
    if omit_body {
        write_without_body(delivery, &message, body.assigned_id, &mut out);
    } else {
        let rest = write_outgoing(delivery, &message, body.assigned_id, Purpose::Show, &mut out);
        out.put(rest);
    }
    Ok(out.into_bytes())
}

/// `batch-delete-messages`.
pub(super) fn delete(arguments: &Arguments, context: &Context<'_>) -> Result<Plan, Told> {
    let operation = Operation::DeleteMessages {
        mailbox: context.managed.mailbox,
        selection: arguments.session()?.map_or(Selection::All, Selection::Session),
        before: arguments.time("enqueued-time-utc")?.unwrap_or(context.now),
        max: arguments.required_count("message-count")?,
    };
    Ok(Plan::new(operation, Reading::Deleted))
}

/// How many were deleted.
pub(super) fn deleted(count: u32) -> Response {
    if count == 0 {
        return Response::nothing();
    }
    Response::of("message-count", i32::try_from(count).unwrap_or(i32::MAX))
}
