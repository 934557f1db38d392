//! Message locks: renewed, and settled without the link they came on.

use vorrang_amqp::value::{Array, Timestamp as AmqpTimestamp, Value};
use vorrang_broker::api::Operation;
use vorrang_engine::Timestamp;
use vorrang_engine::command::Settlement;
use vorrang_engine::message::Overlay;

use super::arguments::{Arguments, argument_error};
use super::plan::{Context, Plan, Reading};
use super::response::Response;
use crate::front::condition::Told;
use crate::front::settling::{abandon, changes};

/// `renew-lock`: all the locks or none.
pub(super) fn renew(arguments: &Arguments, context: &Context<'_>) -> Result<Plan, Told> {
    let operation = Operation::Renew { mailbox: context.managed.mailbox, tokens: arguments.tokens()? };
    Ok(Plan::new(operation, Reading::Expirations))
}

/// When the renewed locks end, in the order of the tokens.
pub(super) fn renewed(until: &[Timestamp]) -> Response {
    Response::of("expirations", Array::of(until.iter().copied().map(wire_time)))
}

/// `update-disposition`: settles messages however and wherever they were received.
pub(super) fn settle(arguments: &Arguments, context: &Context<'_>) -> Result<Plan, Told> {
    let settlement = settlement(arguments)?;
    let session = arguments.session()?;
    let operation = Operation::Settle {
        mailbox: context.managed.mailbox,
        tokens: arguments.tokens()?,
        settlement,
        transaction: context.transaction,
    };
    let session_gone = session.is_some_and(|session| (context.holder)(Some(&session)).is_none());
    Ok(Plan::new(operation, Reading::Settled { session_gone }))
}

fn settlement(arguments: &Arguments) -> Result<Settlement, Told> {
    let status = arguments.required_text("disposition-status")?;
    let modified = arguments.value("properties-to-modify");
    let modified = match &modified {
        None => None,
        Some(Value::Map(map)) => Some(map),
        Some(_) => return Err(argument_error("'properties-to-modify' must be a map.")),
    };
    Ok(match status.as_str() {
        "completed" => Settlement::Complete,
        "abandoned" => abandon(modified),
        // Service Bus writes it with one r.
        "defered" | "deferred" => Settlement::Defer { changes: changes(modified, &[]) },
        "suspended" => Settlement::DeadLetter {
            reason: arguments.kept_text("deadletter-reason")?,
            description: arguments.kept_text("deadletter-description")?,
            changes: changes(modified, &[Overlay::REASON, Overlay::DESCRIPTION]),
        },
        _ => {
            let text = "'disposition-status' must be 'completed', 'abandoned', 'defered' or 'suspended'.";
            return Err(argument_error(text));
        }
    })
}

/// A point in time as the wire has it.
pub(super) fn wire_time(at: Timestamp) -> AmqpTimestamp {
    AmqpTimestamp(i64::try_from(at.0).unwrap_or(i64::MAX))
}
