//! Sends that pass another entity on their way.
//!
//! The entity on the way answers for the hand-over: what its target cannot take is not refused, but kept in
//! the transfer dead-letter queue of the entity on the way, with the reason.

use std::sync::Arc;

use smallvec::SmallVec;

use super::draft::Draft;
use crate::command::Send;
use crate::effect::Outcome;
use crate::fact::{Arrival, Details, Fact};
use crate::id::{EntityId, MailboxId, Sequence};
use crate::level::{Level, LevelOrigin};
use crate::message::Overlay;
use crate::refusal::Refusal;
use crate::state::State;
use crate::time::Timestamp;

impl State {
    /// Keeps messages that were refused by their target; refuses them if the target is not to blame, or the
    /// entity on the way has no place for them.
    pub(super) fn keep_at_via(
        &self,
        now: Timestamp,
        send: &Send,
        via: EntityId,
        refusal: Refusal,
        draft: &mut Draft,
        outcome: &mut Outcome,
    ) -> Result<SmallVec<[Sequence; 1]>, Refusal> {
        let (Some(reason), Ok(owner)) = (reason(send.entity, &refusal), self.entity(via)) else {
            return Err(refusal);
        };
        let (Some(intake), true) = (owner.intake(), owner.outlet().is_some()) else { return Err(refusal) };
        let overlay = Arc::new(Overlay::dead_letter(Some(reason), Some(&refusal.to_string())));
        let mut sequences = SmallVec::with_capacity(send.messages.len());
        for message in &send.messages {
            let (size, limit) = (u64::from(message.size()), intake.message_bytes_max());
            if size > limit {
                return Err(Refusal::MessageTooLarge { size, limit });
            }
            let (held, limit) = (draft.charge(self, via, size), intake.size_bytes_max());
            if held.saturating_add(size) > limit {
                return Err(Refusal::QuotaExceeded { entity: via, size: held, limit });
            }
            let (level, origin) = match message.priority {
                Some(priority) => (Level(priority), LevelOrigin::Header),
                None => (Level::NORMAL, LevelOrigin::Default),
            };
            let mut details = Details::new(now);
            details.time_to_live = message.time_to_live.unwrap_or(details.time_to_live);
            details.dead_letter_source = Some(owner.path.to_string().into());
            details.overlay = Some(Arc::clone(&overlay));
            // As everywhere, a dead letter has a number of its entity's own count.
            let sequence = draft.number(self, MailboxId::main(via));
            outcome.facts.push(Fact::Reserved { mailbox: MailboxId::main(via), next: sequence.next() });
            let arrival = Arrival {
                mailbox: MailboxId::transfer_dead_letter(via),
                sequence,
                eligible: now,
                level,
                origin,
                details: Some(Box::new(details)),
            };
            outcome.facts.push(Fact::Enqueued { payload: self.payload_of(message, draft), arrival });
            sequences.push(sequence);
        }
        Ok(sequences)
    }
}

/// The reason a message is dead-lettered with, if it is its target that cannot take it. What is wrong with
/// the message itself is its sender's to know.
fn reason(target: EntityId, refusal: &Refusal) -> Option<&'static str> {
    match refusal {
        Refusal::EntityNotFound { entity } if *entity == target => Some("MessagingEntityNotFound"),
        Refusal::SendDisabled { entity } if *entity == target => Some("MessagingEntityDisabled"),
        Refusal::QuotaExceeded { entity, .. } if *entity == target => Some("QuotaExceeded"),
        Refusal::MessageTooLarge { .. } => Some("MessageSizeExceeded"),
        Refusal::NoMatchingSubscription { .. } => Some("NoMatchingSubscription"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::{Setting, Status};
    use crate::trial::{Trial, large};

    fn send_via(trial: &mut Trial, id: &str, target: EntityId) -> Result<Vec<Sequence>, Refusal> {
        let via = trial.id("via");
        let send = trial.sending("via", vec![(large(id, 2_000), vorrang_filter::MapMessage::new())]);
        trial.submit(Send { entity: target, via: Some(via), ..send })
    }

    #[test]
    fn what_the_target_cannot_take_is_kept_by_the_entity_on_the_way() {
        type Spoil = fn(&mut Trial);
        let cases: [(&str, Spoil); 3] = [
            ("MessagingEntityNotFound", |trial| trial.delete("target")),
            ("MessagingEntityDisabled", |trial| {
                trial.update("target", Setting::Status(Status::SendDisabled));
            }),
            ("MessageSizeExceeded", |trial| trial.update("target", Setting::MaxMessageSizeInKilobytes(1))),
        ];
        for (expected, spoil) in cases {
            let mut trial = Trial::new();
            trial.queue("via", vec![]);
            let target = trial.queue("target", vec![]);
            send_via(&mut trial, "fine", target).unwrap();
            assert_eq!(trial.peeked("target").len(), 1);
            spoil(&mut trial);
            for _ in 0..2 {
                send_via(&mut trial, "stuck", target).unwrap();
            }
            let kept = trial.peeked("via/$Transfer/$DeadLetterQueue");
            let numbers: Vec<_> = kept.iter().map(|delivery| delivery.sequence.0).collect();
            assert_eq!(numbers, [1, 2], "{expected}");
            let overlay = kept[0].overlay.as_deref().unwrap();
            assert!(format!("{overlay:?}").contains(expected), "{overlay:?}");
            assert_eq!(kept[0].dead_letter_source.as_deref(), Some("via"));
            assert_eq!(trial.state.audit(), Vec::<String>::new());
            assert_eq!(trial.replayed().contents(), trial.contents());
            trial.send("via", &["own"]).unwrap();
            assert_eq!(trial.peeked("via")[0].sequence.0, 3, "numbers do not meet");
        }
    }

    #[test]
    fn what_is_wrong_with_the_message_or_the_way_is_refused() {
        let mut trial = Trial::new();
        let via = trial.queue("via", vec![]);
        let target = trial.queue("target", vec![Setting::RequiresSession(true)]);
        let refused = send_via(&mut trial, "without a session", target);
        assert_eq!(refused, Err(Refusal::SessionIdMissing { entity: target }));
        trial.update("via", Setting::Status(Status::SendDisabled));
        let refused = send_via(&mut trial, "nowhere", target);
        assert_eq!(refused, Err(Refusal::SendDisabled { entity: via }));
        assert!(trial.contents().is_empty());
    }
}
