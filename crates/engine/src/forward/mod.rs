//! Forwarding: messages of an entity that hands them on to another.
//!
//! A message leaves one mailbox and enters others in one fact, so it is never in both or in neither. It
//! keeps its level, its place in time and its first number; its number and its deliveries begin anew
//! where it arrives. Each step is one hop. A message that has made too many, or whose target cannot take
//! it, goes to the transfer dead-letter queue of the entity that would have handed it on; if that may pass,
//! because the target is full or disabled, only after it was tried for a while.
//!
//! Forwarding happens when the mailbox is served, one message at a time and in the order of delivery,
//! and not within the send: a topic with a thousand forwarding subscriptions must not make one send a
//! thousand times as long.

use std::sync::Arc;

use vorrang_filter::{Message, SystemProperty};

use crate::browse::Stored;
use crate::effect::Outcome;
use crate::entity::catalogue::{Entity, Kind};
use crate::entity::fan_out::Publication;
use crate::entity::{EntityName, SubQueue};
use crate::fact::{Arrival, DeadLetterCause, Details, Fact, RelayCause};
use crate::id::{MailboxId, Sequence, SessionId};
use crate::level::Level;
use crate::message::{Delivery, Overlay};
use crate::payloads::Payloads;
use crate::refusal::Refusal;
use crate::send::draft::Draft;
use crate::state::{Pump, State};
use crate::store::Record;
use crate::time::{Span, Timestamp};

/// How soon a message is tried again that its target cannot take now, and for how long. Those behind it wait.
const RETRY_AFTER: Span = Span::seconds(1);
const RETRY_FOR: Span = Span::seconds(30);

/// Why a message cannot be handed on: the reason and description it is dead-lettered with.
struct Undeliverable {
    cause: DeadLetterCause,
    reason: &'static str,
    description: String,
    /// Whether it may be otherwise soon.
    passing: bool,
}

impl Undeliverable {
    fn new(reason: &'static str, description: String) -> Undeliverable {
        Undeliverable { cause: DeadLetterCause::Undeliverable, reason, description, passing: false }
    }

    /// The target cannot take it now.
    fn for_now(reason: &'static str, description: String) -> Undeliverable {
        Undeliverable { passing: true, ..Undeliverable::new(reason, description) }
    }

    fn without_session() -> Undeliverable {
        Undeliverable {
            cause: DeadLetterCause::NoSession,
            reason: "Session id is null.",
            description: "Session enabled entity doesn't allow a message whose session identifier is null."
                .to_owned(),
            passing: false,
        }
    }

    fn too_many_hops() -> Undeliverable {
        Undeliverable {
            cause: DeadLetterCause::MaxHops,
            reason: "MaxTransferHopCountExceeded",
            description: "The maximum number of allowed hops when forwarding between entities has been exceeded. Messages moved to dead letter queue.".to_owned(),
            passing: false,
        }
    }
}

impl State {
    /// Hands on the next message of a mailbox that forwards: the one that would be delivered next.
    pub(crate) fn decide_forward(
        &self,
        now: Timestamp,
        id: MailboxId,
        payloads: &dyn Payloads,
        outcome: &mut Outcome,
    ) {
        let Some(mailbox) = self.mailboxes.get(&id) else { return };
        let Some(source) = self.catalogue.entity(id.entity()) else { return };
        let Some(target) = target_of(source, id.part()) else { return };
        let Some(choice) = self.choose_from(mailbox, now, Level(0)) else { return };
        let Some((_, record)) = self.chosen(now, (id, mailbox), choice, outcome) else { return };
        let relay = Relay { state: self, now, source, target, record, known: self.delivery_of(record) };
        relay.decide(payloads, outcome);
    }
}

impl State {
    /// The next message of a mailbox cannot be handed on now.
    pub(crate) fn apply_forward_stalled(
        &mut self,
        id: MailboxId,
        at: Timestamp,
        until: Timestamp,
    ) -> Option<()> {
        let mailbox = self.mailboxes.get_mut(&id)?;
        mailbox.stalled.get_or_insert(at);
        mailbox.waits = true;
        self.timers.stalled.insert((until, id));
        self.served(Pump::Mailbox(id));
        Some(())
    }

    /// It is time to try again.
    pub(crate) fn apply_forward_resumed(&mut self, id: MailboxId, until: Timestamp) {
        self.timers.stalled.remove(&(until, id));
        // It may have been deleted meanwhile.
        if let Some(mailbox) = self.mailboxes.get_mut(&id) {
            mailbox.waits = false;
            self.touch(id);
        }
    }
}

/// Where a mailbox hands its messages on to.
fn target_of(source: &Entity, part: SubQueue) -> Option<&EntityName> {
    let outlet = source.outlet()?;
    match part {
        SubQueue::Main => outlet.forward_to.as_ref(),
        SubQueue::DeadLetter => outlet.forward_dead_lettered_to.as_ref(),
        SubQueue::TransferDeadLetter => None,
    }
}

/// One message on its way from one entity to the next.
struct Relay<'a> {
    state: &'a State,
    now: Timestamp,
    source: &'a Entity,
    target: &'a EntityName,
    record: &'a Record,
    known: Delivery,
}

impl Relay<'_> {
    fn decide(&self, payloads: &dyn Payloads, outcome: &mut Outcome) {
        let before = outcome.facts.len();
        let fact = match self.relay(payloads, &mut Draft::default(), outcome) {
            Ok(copies) => Fact::Relayed {
                mailbox: self.record.mailbox,
                sequence: self.record.sequence,
                cause: match self.record.mailbox.part() {
                    SubQueue::Main => RelayCause::Forwarded,
                    SubQueue::DeadLetter | SubQueue::TransferDeadLetter => RelayCause::DeadLetterForwarded,
                },
                at: self.now,
                copies,
            },
            Err(undeliverable) => {
                outcome.facts.truncate(before);
                let mailbox = self.record.mailbox;
                let stalled = self.state.mailboxes.get(&mailbox).and_then(|mailbox| mailbox.stalled);
                let tried_long = stalled.is_some_and(|since| self.now.since(since) >= RETRY_FOR);
                if undeliverable.passing && !tried_long {
                    Fact::ForwardStalled { mailbox, at: self.now, until: self.now.after(RETRY_AFTER) }
                } else {
                    self.dead_letter(&undeliverable)
                }
            }
        };
        outcome.facts.push(fact);
    }

    fn dead_letter(&self, why: &Undeliverable) -> Fact {
        let reason = Arc::new(Overlay::dead_letter(Some(why.reason), Some(&why.description)));
        Fact::DeadLettered {
            mailbox: self.record.mailbox,
            sequence: self.record.sequence,
            to: MailboxId::transfer_dead_letter(self.source.id),
            cause: why.cause,
            at: self.now,
            counted: false,
            source: self.source.path.to_string().into(),
            overlay: Overlay::merged(self.known.overlay.as_ref(), Some(&reason)),
        }
    }

    /// The copies the target takes, none if it has seen the message before or nobody there wants it.
    fn relay(
        &self,
        payloads: &dyn Payloads,
        draft: &mut Draft,
        outcome: &mut Outcome,
    ) -> Result<Vec<Arrival>, Undeliverable> {
        if self.hops() >= self.state.limits.hops_max {
            return Err(Undeliverable::too_many_hops());
        }
        let target = self.check_target(draft)?;
        let needs_content = match &target.kind {
            Kind::Queue(queue) => queue.outlet.requires_session || queue.intake.requires_duplicate_detection,
            Kind::Topic(_) | Kind::Subscription(_) => true,
        };
        if !needs_content {
            return Ok(vec![self.arrival(target, None, draft)]);
        }
        let unreadable =
            || Undeliverable::new("PayloadUnavailable", "the message could not be read".to_owned());
        let payload = payloads.message(self.record.location, self.record.size).ok_or_else(unreadable)?;
        let content = Stored::new(&*payload, &self.known, payloads);
        let session = content.system(SystemProperty::SessionId).map(|value| value.text().into_owned());
        let needs_session = target.outlet().is_some_and(|outlet| outlet.requires_session);
        if needs_session && session.is_none() {
            return Err(Undeliverable::without_session());
        }
        // Last, because a message id once noted counts as arrived.
        if self.is_duplicate(target, &content, draft, outcome)? {
            return Ok(Vec::new());
        }
        match &target.kind {
            Kind::Topic(topic) => {
                let copies = self.publish(target, &content, session.as_deref(), draft);
                if copies.is_empty() && topic.description.filtering_before_publishing {
                    let text = format!("no subscription of the forward target '{}' matches", self.target);
                    return Err(Undeliverable::new("NoMatchingSubscription", text));
                }
                Ok(copies)
            }
            Kind::Queue(_) | Kind::Subscription(_) => {
                let session = session.filter(|_| needs_session).map(|session| SessionId::from(&*session));
                Ok(vec![self.arrival(target, session, draft)])
            }
        }
    }

    /// Whether the target exists and has room.
    fn check_target(&self, draft: &mut Draft) -> Result<&Entity, Undeliverable> {
        let name = self.target;
        let found = self.state.catalogue.find_name(name);
        let found = found.and_then(|entity| Some((entity, entity.intake()?)));
        let Some((target, intake)) = found else {
            return Err(Undeliverable::new(
                "MessagingEntityNotFound",
                format!("the forward target '{name}' does not exist"),
            ));
        };
        if !target.shared().status.allows_send() {
            return Err(Undeliverable::for_now(
                "MessagingEntityDisabled",
                format!("the forward target '{name}' is disabled"),
            ));
        }
        let (size, limit) = (u64::from(self.record.size), intake.message_bytes_max());
        if size > limit {
            let text = format!(
                "the message of {size} bytes exceeds the limit of {limit} of the forward target '{name}'"
            );
            return Err(Undeliverable::new("MessageSizeExceeded", text));
        }
        let (held, limit) = (draft.charge(self.state, target.id, size), intake.size_bytes_max());
        if held.saturating_add(size) > limit {
            let text = format!("the forward target '{name}' holds {held} of at most {limit} bytes");
            return Err(Undeliverable::for_now("QuotaExceeded", text));
        }
        Ok(target)
    }

    fn is_duplicate(
        &self,
        target: &Entity,
        content: &Stored<'_>,
        draft: &mut Draft,
        outcome: &mut Outcome,
    ) -> Result<bool, Undeliverable> {
        let Some(intake) = target.intake().filter(|intake| intake.requires_duplicate_detection) else {
            return Ok(false);
        };
        let Some(id) = content.system(SystemProperty::MessageId) else { return Ok(false) };
        let seen = self.state.see_id(
            self.now,
            target.id,
            intake.duplicate_window,
            id.text().as_bytes(),
            draft,
            outcome,
        );
        seen.map_err(|refusal: Refusal| Undeliverable::for_now("QuotaExceeded", refusal.to_string()))
    }

    /// The message in a queue.
    fn arrival(&self, target: &Entity, session: Option<SessionId>, draft: &mut Draft) -> Arrival {
        let mailbox = MailboxId::main(target.id);
        let mut details = self.details();
        details.session = session;
        details.overlay.clone_from(&self.known.overlay);
        self.limit_life(&mut details, target.shared().default_time_to_live);
        let (eligible, level, origin) = (self.record.eligible, self.record.level, self.record.origin());
        let sequence = draft.number(self.state, mailbox);
        Arrival { mailbox, sequence, eligible, level, origin, details: Some(Box::new(details)) }
    }

    /// The message's copies in the subscriptions of a topic.
    fn publish(
        &self,
        target: &Entity,
        content: &Stored<'_>,
        session: Option<&str>,
        draft: &mut Draft,
    ) -> Vec<Arrival> {
        let publication = Publication {
            topic: target.id,
            content,
            priority: None,
            brought: Some((self.record.level, self.record.origin())),
            session,
            time_to_live: self.life_left().min(target.shared().default_time_to_live),
        };
        let mut copies = self.state.copies_of(self.now, &publication, self.deadline(), draft);
        for copy in &mut copies {
            copy.eligible = self.record.eligible;
            let details = copy.details.get_or_insert_with(|| Box::new(Details::new(self.now)));
            let brought = self.details();
            details.overlay = Overlay::merged(self.known.overlay.as_ref(), details.overlay.as_ref());
            details.first_sequence = brought.first_sequence;
            details.hops = brought.hops;
            details.dead_letter_source = details.dead_letter_source.take().or(brought.dead_letter_source);
        }
        copies
    }

    /// What a message takes along wherever it goes.
    fn details(&self) -> Details {
        Details {
            first_sequence: Some(self.first_sequence()),
            deadline: self.deadline(),
            dead_letter_source: self.known.dead_letter_source.clone(),
            hops: self.hops().saturating_add(1),
            ..Details::new(self.now)
        }
    }

    /// Its life goes on where it arrives, and ends no later than the target allows.
    fn limit_life(&self, details: &mut Details, cap: Span) {
        details.time_to_live = self.life_left().min(cap);
        details.expires = if details.time_to_live.is_forever() {
            Timestamp::NEVER
        } else {
            self.now.after(details.time_to_live)
        };
    }

    /// A dead letter does not expire; it gets its whole life back where it goes.
    fn life_left(&self) -> Span {
        match self.known.expires {
            Timestamp::NEVER => self.known.time_to_live,
            expires => expires.since(self.now),
        }
    }

    fn first_sequence(&self) -> Sequence {
        self.known.first_sequence.unwrap_or(self.record.sequence)
    }

    fn hops(&self) -> u8 {
        self.state.extras.get(self.record.extra).map_or(0, |extra| extra.hops)
    }

    fn deadline(&self) -> Option<Timestamp> {
        let deadline = self.state.extras.get(self.record.extra).map(|extra| extra.deadline);
        deadline.filter(|deadline| *deadline != Timestamp::NEVER)
    }
}

#[cfg(test)]
mod tests;
