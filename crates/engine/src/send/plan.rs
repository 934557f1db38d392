//! Deciding what becomes of a send.

use smallvec::SmallVec;
use vorrang_filter::Environment;

use super::draft::Draft;
use crate::command::Send;
use crate::effect::{Effect, Outcome, Reply};
use crate::entity::QueueDescription;
use crate::entity::catalogue::{Entity, Kind};
use crate::entity::fan_out::{Copy, Publication, fan_out};
use crate::entity::level;
use crate::fact::{Arrival, Details, Fact, Payload};
use crate::id::{EntityId, Location, MailboxId, Sequence, SessionId};
use crate::level::{Level, LevelOrigin};
use crate::lock::token::{self, Purpose};
use crate::message::Incoming;
use crate::refusal::{Countable, Refusal};
use crate::state::State;
use crate::time::{Span, Timestamp};

impl State {
    pub(crate) fn decide_send(
        &self,
        now: Timestamp,
        send: &Send,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        if let Some(transaction) = send.transaction {
            return self.decide_enlist_send(now, send, transaction, outcome);
        }
        let sequences = self.plan_send(now, send, &mut Draft::default(), outcome)?;
        outcome.effects.push(Effect::Reply { request: send.request, reply: Reply::Sent { sequences } });
        Ok(())
    }

    /// Checks a send and adds what becomes of it, as part of a decision. Gives the number of each
    /// message, zero for a duplicate.
    pub(crate) fn plan_send(
        &self,
        now: Timestamp,
        send: &Send,
        draft: &mut Draft,
        outcome: &mut Outcome,
    ) -> Result<SmallVec<[Sequence; 1]>, Refusal> {
        let Some(via) = send.via.filter(|via| *via != send.entity) else {
            return self.plan_directly(now, send, draft, outcome);
        };
        if !self.entity(via)?.shared().status.allows_send() {
            return Err(Refusal::SendDisabled { entity: via });
        }
        let before = outcome.facts.len();
        self.plan_directly(now, send, draft, outcome).or_else(|refusal| {
            outcome.facts.truncate(before);
            self.keep_at_via(now, send, via, refusal, draft, outcome)
        })
    }

    fn plan_directly(
        &self,
        now: Timestamp,
        send: &Send,
        draft: &mut Draft,
        outcome: &mut Outcome,
    ) -> Result<SmallVec<[Sequence; 1]>, Refusal> {
        let entity = self.check_send(send, draft)?;
        let mut sequences = SmallVec::with_capacity(send.messages.len());
        for message in &send.messages {
            sequences.push(self.plan_message(now, entity, message, draft, outcome)?);
        }
        let unknown = draft.unknown_classes.drain(..);
        outcome.facts.extend(unknown.map(|mailbox| Fact::ClassUnknown { mailbox }));
        Ok(sequences)
    }

    fn plan_message(
        &self,
        now: Timestamp,
        entity: &Entity,
        message: &Incoming,
        draft: &mut Draft,
        outcome: &mut Outcome,
    ) -> Result<Sequence, Refusal> {
        if self.is_duplicate(now, entity, message, draft, outcome)? {
            return Ok(Sequence(0));
        }
        let payload = self.payload_of(message, draft);
        let due = message.scheduled_for.filter(|due| *due > now);
        match &entity.kind {
            Kind::Queue(queue) => {
                let arrival = self.queue_arrival(now, entity, queue, message, draft)?;
                let sequence = arrival.sequence;
                outcome.facts.push(match due {
                    Some(due) => Fact::Scheduled { payload, arrival: asleep(arrival), due },
                    None => Fact::Enqueued { payload, arrival },
                });
                Ok(sequence)
            }
            Kind::Topic(topic) => {
                let default = topic.description.shared.default_time_to_live;
                let time_to_live = message.time_to_live.unwrap_or(default).min(default);
                let mailbox = MailboxId::main(entity.id);
                let sequence = draft.number(self, mailbox);
                if let Some(due) = due {
                    let (level, origin) = match message.priority {
                        Some(priority) => (Level(priority), LevelOrigin::Header),
                        None => (Level::NORMAL, LevelOrigin::Default),
                    };
                    let mut details = Details::new(now);
                    details.time_to_live = time_to_live;
                    details.deadline = message.deadline;
                    let details = (!details.is_plain(now)).then(|| Box::new(details));
                    let arrival = Arrival { mailbox, sequence, eligible: now, level, origin, details };
                    outcome.facts.push(Fact::Scheduled { payload, arrival, due });
                    return Ok(sequence);
                }
                let session = message.session_id.as_ref().map(|session| message.read(session));
                let copies = message.ask(|content| {
                    let publication = Publication {
                        topic: entity.id,
                        content,
                        priority: message.priority,
                        brought: None,
                        session: session.as_deref(),
                        time_to_live,
                    };
                    self.copies_of(now, &publication, message.deadline, draft)
                });
                if copies.is_empty() && topic.description.filtering_before_publishing {
                    return Err(Refusal::NoMatchingSubscription { topic: entity.id });
                }
                let payload = if copies.is_empty() { nothing() } else { payload };
                outcome.facts.push(Fact::Published { topic: entity.id, sequence, at: now, payload, copies });
                Ok(sequence)
            }
            Kind::Subscription(_) => Err(Refusal::WrongKind { entity: entity.id }),
        }
    }

    pub(super) fn payload_of(&self, message: &Incoming, draft: &mut Draft) -> Payload {
        let assigned_id = match message.message_id {
            Some(_) => None,
            None => Some(draft.make(self, Purpose::MessageId)),
        };
        let (bytes, size) = (message.payload.clone(), message.size());
        Payload { bytes, size, location: Location::NOWHERE, assigned_id }
    }

    /// Whether the entity has seen this message id lately; if not, it has now.
    fn is_duplicate(
        &self,
        now: Timestamp,
        entity: &Entity,
        message: &Incoming,
        draft: &mut Draft,
        outcome: &mut Outcome,
    ) -> Result<bool, Refusal> {
        let Some(intake) = entity.intake().filter(|intake| intake.requires_duplicate_detection) else {
            return Ok(false);
        };
        let Some(id) = &message.message_id else { return Ok(false) };
        let id = message.read(id);
        self.see_id(now, entity.id, intake.duplicate_window, id.as_bytes(), draft, outcome)
    }

    /// Notes a message id at an entity that detects duplicates; true if it was seen within the window.
    pub(crate) fn see_id(
        &self,
        now: Timestamp,
        entity: EntityId,
        window: Span,
        id: &[u8],
        draft: &mut Draft,
        outcome: &mut Outcome,
    ) -> Result<bool, Refusal> {
        let key = token::hash_id(self.identity.seed.unwrap_or(0), id);
        if let Some(history) = self.histories.get(&entity) {
            if history.contains(key, now, window) {
                return Ok(true);
            }
            let max = self.limits.duplicate_ids_max.saturating_sub(draft.ids_noted(entity));
            if history.is_full(max, now, window) {
                let limit = u64::try_from(self.limits.duplicate_ids_max).unwrap_or(u64::MAX);
                return Err(Refusal::TooMany { what: Countable::DuplicateIds, limit });
            }
        }
        if !draft.note_id(entity, key) {
            return Ok(true);
        }
        outcome.facts.push(Fact::IdSeen { entity, key, at: now });
        Ok(false)
    }

    fn queue_arrival(
        &self,
        now: Timestamp,
        entity: &Entity,
        queue: &QueueDescription,
        message: &Incoming,
        draft: &mut Draft,
    ) -> Result<Arrival, Refusal> {
        let mailbox = MailboxId::main(entity.id);
        let mut ids = self.new_ids();
        let mut environment = Environment::new(&mut ids);
        let settings = &queue.outlet.priority;
        let determined =
            message.ask(|content| level::determine(settings, message.priority, content, &mut environment));
        if determined.unknown_class {
            draft.unknown_classes.push(mailbox);
        }
        let default = queue.shared.default_time_to_live;
        let time_to_live = message.time_to_live.unwrap_or(default).min(default);
        let session = match &message.session_id {
            Some(session) if queue.outlet.requires_session => {
                Some(self.session_name(mailbox, &message.read(session))?)
            }
            _ => None,
        };
        let plain = time_to_live.is_forever() && message.deadline.is_none() && session.is_none();
        let details = (!plain).then(|| {
            let mut details = Box::new(Details::new(now));
            set_life(&mut details, now, time_to_live);
            details.deadline = message.deadline;
            details.session = session;
            details
        });
        Ok(Arrival {
            mailbox,
            sequence: draft.number(self, mailbox),
            eligible: now,
            level: determined.level,
            origin: determined.origin,
            details,
        })
    }

    /// A session's name, shared with the session if there is one; refused if there are too many.
    fn session_name(&self, mailbox: MailboxId, name: &str) -> Result<SessionId, Refusal> {
        let Some(table) = self.mailboxes.get(&mailbox).and_then(|mailbox| mailbox.sessions.as_ref()) else {
            return Ok(SessionId::from(name));
        };
        if let Some((known, _)) = table.names.get_key_value(name) {
            return Ok(known.clone());
        }
        if table.names.len() >= self.limits.sessions_max {
            let limit = u64::try_from(self.limits.sessions_max).unwrap_or(u64::MAX);
            return Err(Refusal::TooMany { what: Countable::Sessions, limit });
        }
        Ok(SessionId::from(name))
    }

    /// The copies of a published message, numbered.
    pub(crate) fn copies_of(
        &self,
        now: Timestamp,
        publication: &Publication<'_>,
        deadline: Option<Timestamp>,
        draft: &mut Draft,
    ) -> Vec<Arrival> {
        let mut copies = Vec::new();
        let mut ids = self.new_ids();
        fan_out(&self.catalogue, publication, &mut Environment::new(&mut ids), &mut copies);
        copies.into_iter().map(|copy| self.copy_arrival(now, copy, deadline, draft)).collect()
    }

    fn copy_arrival(
        &self,
        now: Timestamp,
        copy: Copy,
        deadline: Option<Timestamp>,
        draft: &mut Draft,
    ) -> Arrival {
        let Copy { mailbox, level, session, time_to_live, overlay, dead_letter } = copy;
        if level.unknown_class {
            draft.unknown_classes.push(mailbox);
        }
        let mut details = Details::new(now);
        details.deadline = deadline;
        details.session = session;
        details.overlay = overlay;
        if dead_letter.is_some() {
            details.time_to_live = time_to_live;
            let source = self.catalogue.entity(mailbox.entity());
            details.dead_letter_source = source.map(|entity| entity.path.to_string().into());
        } else {
            set_life(&mut details, now, time_to_live);
        }
        // The number is the subscription's own, also for what goes straight to its dead-letter queue:
        // a message keeps its number when it is dead-lettered, so the two must not meet.
        let sequence = draft.number(self, MailboxId::main(mailbox.entity()));
        Arrival {
            mailbox,
            sequence,
            eligible: now,
            level: level.level,
            origin: level.origin,
            details: (!details.is_plain(now)).then(|| Box::new(details)),
        }
    }

    /// Ids for `newid()`: the same ones if the same decision were made again.
    pub(crate) fn new_ids(&self) -> impl FnMut() -> u128 {
        let identity = self.identity;
        let mut count = identity.made.wrapping_mul(65_536);
        move || {
            count = count.wrapping_add(1);
            token::make(identity.seed.unwrap_or(0), identity.generation, count, Purpose::NewId)
        }
    }
}

/// Sets how long a message lives from `now` on.
pub(crate) fn set_life(details: &mut Details, now: Timestamp, time_to_live: Span) {
    details.time_to_live = time_to_live;
    details.expires = if time_to_live.is_forever() { Timestamp::NEVER } else { now.after(time_to_live) };
}

/// A message that does not live yet: its time starts when it becomes visible.
fn asleep(mut arrival: Arrival) -> Arrival {
    if let Some(details) = &mut arrival.details {
        details.expires = Timestamp::NEVER;
    }
    arrival
}

fn nothing() -> Payload {
    Payload { bytes: bytes::Bytes::new(), size: 0, location: Location::NOWHERE, assigned_id: None }
}
