//! What a message must be to be accepted, in the order in which Service Bus checks it.

use super::draft::Draft;
use crate::command::Send;
use crate::entity::{Entity, catalogue::Kind};
use crate::limits::Limits;
use crate::message::Incoming;
use crate::refusal::{Countable, KeyKind, Refusal};
use crate::state::State;

impl State {
    /// Checks everything about a send but duplicates, which are not refused.
    pub(super) fn check_send(&self, send: &Send, draft: &mut Draft) -> Result<&Entity, Refusal> {
        let entity = self.entity(send.entity)?;
        let Some(intake) = entity.intake() else { return Err(Refusal::WrongKind { entity: entity.id }) };
        if send.messages.len() > self.limits.batch_messages_max {
            return Err(Refusal::RequestSize {
                what: Countable::Messages,
                count: u64::try_from(send.messages.len()).unwrap_or(u64::MAX),
                limit: u64::try_from(self.limits.batch_messages_max).unwrap_or(u64::MAX),
            });
        }
        let size_max = intake.message_bytes_max();
        for message in &send.messages {
            let size = u64::from(message.size());
            if size > size_max {
                return Err(Refusal::MessageTooLarge { size, limit: size_max });
            }
        }
        if !entity.shared().status.allows_send() {
            return Err(Refusal::SendDisabled { entity: entity.id });
        }
        let limit = intake.size_bytes_max();
        for message in &send.messages {
            let size = u64::from(message.size());
            let held = draft.charge(self, entity.id, size);
            if held.saturating_add(size) > limit {
                return Err(Refusal::QuotaExceeded { entity: entity.id, size: held, limit });
            }
        }
        for message in &send.messages {
            check_keys(message, entity, &self.limits)?;
        }
        Ok(entity)
    }
}

pub(super) fn check_keys(message: &Incoming, entity: &Entity, limits: &Limits) -> Result<(), Refusal> {
    if let Kind::Queue(queue) = &entity.kind
        && queue.outlet.requires_session
        && message.session_id.is_none()
    {
        return Err(Refusal::SessionIdMissing { entity: entity.id });
    }
    let keys = [
        (&message.message_id, KeyKind::MessageId),
        (&message.session_id, KeyKind::SessionId),
        (&message.partition_key, KeyKind::PartitionKey),
    ];
    let limit = limits.key_chars_max;
    for (key, what) in keys {
        if key.as_ref().is_some_and(|key| !key.fits(&message.payload, limit)) {
            return Err(Refusal::KeyTooLong { what, limit });
        }
    }
    match (&message.session_id, &message.partition_key) {
        (Some(session), Some(partition)) if message.read(session) != message.read(partition) => {
            Err(Refusal::PartitionKeyDiffers)
        }
        _ => Ok(()),
    }
}
