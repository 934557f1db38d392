//! Replay: a dead letter, repaired perhaps, goes back to work.
//!
//! Leaving the dead-letter queue and arriving elsewhere are one decision, so that the message is never in
//! both places or in neither. It keeps its level and its place in time, as through everything else that
//! happens to it; its number and its deliveries begin anew. It may go back to the very subscription it
//! came from without the topic's other subscriptions seeing it a second time.
//!
//! Duplicate detection does not look at it: its id was seen when it first came, and it would be lost as
//! its own duplicate. For the same reason a topic that nobody would take it from refuses it.

use smallvec::smallvec;

use super::check::check_keys;
use super::draft::Draft;
use super::set_life;
use crate::command::Replay;
use crate::effect::{Effect, Outcome, Reply};
use crate::entity::catalogue::{Entity, Kind};
use crate::entity::description::Intake;
use crate::entity::fan_out::Publication;
use crate::fact::{Arrival, Details, Fact, Payload, RemovalCause};
use crate::id::{Location, MailboxId, Sequence};
use crate::level::{Level, LevelOrigin};
use crate::lock::token::Purpose;
use crate::refusal::Refusal;
use crate::state::State;
use crate::store::Record;
use crate::time::{Span, Timestamp};

impl State {
    pub(crate) fn decide_replay(
        &self,
        now: Timestamp,
        replay: &Replay,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        let Replay { request, mailbox, sequence, .. } = *replay;
        self.owner(mailbox)?;
        let found = self.resting(mailbox, sequence);
        let sequences = match found {
            Some(record) => smallvec![self.plan_replay(now, replay, record, outcome)?],
            None if self.ask_for_cold_number(mailbox, sequence, outcome) => smallvec![],
            None => return Err(Refusal::MessageNotFound { sequence }),
        };
        outcome.effects.push(Effect::Reply { request, reply: Reply::Sent { sequences } });
        Ok(())
    }

    fn plan_replay(
        &self,
        now: Timestamp,
        replay: &Replay,
        record: &Record,
        outcome: &mut Outcome,
    ) -> Result<Sequence, Refusal> {
        let mut draft = Draft::default();
        let target = self.check_replay(replay, &mut draft)?;
        let assigned_id = replay.message.message_id.is_none().then(|| draft.make(self, Purpose::MessageId));
        let payload = Payload {
            bytes: replay.message.payload.clone(),
            size: replay.message.size(),
            location: Location::NOWHERE,
            assigned_id,
        };
        let (level, origin) = match replay.level {
            Some(level) => (level, LevelOrigin::Operator),
            None => (record.level, record.origin()),
        };
        let brought = Brought { record, level, origin, first: self.first_number(record) };
        let arrived = if let Kind::Topic(_) = &target.kind {
            let copies = self.republish(now, replay, target, &brought, &mut draft);
            if copies.is_empty() {
                return Err(Refusal::NoMatchingSubscription { topic: target.id });
            }
            let sequence = draft.number(self, MailboxId::main(target.id));
            outcome.facts.push(Fact::Published { topic: target.id, sequence, at: now, payload, copies });
            sequence
        } else {
            let arrival = self.return_to(now, replay, target, &brought, &mut draft);
            let sequence = arrival.sequence;
            outcome.facts.push(Fact::Enqueued { payload, arrival });
            sequence
        };
        outcome.facts.push(Fact::Removed {
            mailbox: record.mailbox,
            sequence: record.sequence,
            cause: RemovalCause::Deleted,
            at: now,
        });
        Ok(arrived)
    }

    /// What the target must be to take the message. A message that stays within one quota needs no more
    /// room than it has.
    fn check_replay(&self, replay: &Replay, draft: &mut Draft) -> Result<&Entity, Refusal> {
        let target = self.entity(replay.to)?;
        let account = match &target.kind {
            Kind::Queue(_) | Kind::Topic(_) => target,
            // Others of the topic's subscriptions are no business of this one's operator.
            Kind::Subscription(_) if target.id != replay.mailbox.entity() => {
                return Err(Refusal::WrongKind { entity: target.id });
            }
            Kind::Subscription(subscription) => self.entity(subscription.topic)?,
        };
        let Some(intake) = account.intake() else { return Err(Refusal::WrongKind { entity: target.id }) };
        let size = u64::from(replay.message.size());
        if size > intake.message_bytes_max() {
            return Err(Refusal::MessageTooLarge { size, limit: intake.message_bytes_max() });
        }
        if !target.shared().status.allows_send() && target.intake().is_some() {
            return Err(Refusal::SendDisabled { entity: target.id });
        }
        let same_quota = self.mailboxes.get(&replay.mailbox).is_some_and(|from| from.account == account.id);
        if !same_quota {
            self.check_room(account, intake, size, draft)?;
        }
        let needs_session = target.outlet().is_some_and(|outlet| outlet.requires_session);
        if needs_session && replay.message.session_id.is_none() {
            return Err(Refusal::SessionIdMissing { entity: target.id });
        }
        check_keys(&replay.message, target, &self.limits)?;
        Ok(target)
    }

    fn check_room(
        &self,
        account: &Entity,
        intake: &Intake,
        size: u64,
        draft: &mut Draft,
    ) -> Result<(), Refusal> {
        let (held, limit) = (draft.charge(self, account.id, size), intake.size_bytes_max());
        if held.saturating_add(size) > limit {
            return Err(Refusal::QuotaExceeded { entity: account.id, size: held, limit });
        }
        Ok(())
    }

    /// The message in a queue, or in the subscription it came from.
    fn return_to(
        &self,
        now: Timestamp,
        replay: &Replay,
        target: &Entity,
        brought: &Brought<'_>,
        draft: &mut Draft,
    ) -> Arrival {
        let mailbox = MailboxId::main(target.id);
        let mut details = brought.details(now, replay);
        let default = target.shared().default_time_to_live;
        set_life(&mut details, now, replay.message.time_to_live.unwrap_or(default).min(default));
        if target.outlet().is_some_and(|outlet| outlet.requires_session) {
            let session = replay.message.session_id.as_ref();
            details.session = session.map(|session| (&*replay.message.read(session)).into());
        }
        Arrival {
            mailbox,
            sequence: draft.number(self, mailbox),
            eligible: brought.record.eligible,
            level: brought.level,
            origin: brought.origin,
            details: Some(Box::new(details)),
        }
    }

    /// The message's copies in the subscriptions of a topic.
    fn republish(
        &self,
        now: Timestamp,
        replay: &Replay,
        topic: &Entity,
        brought: &Brought<'_>,
        draft: &mut Draft,
    ) -> Vec<Arrival> {
        let default = topic.shared().default_time_to_live;
        let message = &replay.message;
        let session = message.session_id.as_ref().map(|session| message.read(session));
        let mut copies = message.ask(|content| {
            let publication = Publication {
                topic: topic.id,
                content,
                priority: None,
                brought: Some((brought.level, brought.origin)),
                session: session.as_deref(),
                time_to_live: message.time_to_live.unwrap_or(default).min(default),
            };
            self.copies_of(now, &publication, message.deadline, draft)
        });
        for copy in &mut copies {
            copy.eligible = brought.record.eligible;
            let details = copy.details.get_or_insert_with(|| Box::new(Details::new(now)));
            details.first_sequence = Some(brought.first);
        }
        copies
    }

    fn first_number(&self, record: &Record) -> Sequence {
        let first = self.extras.get(record.extra).and_then(crate::store::Extra::first_sequence);
        first.unwrap_or(record.sequence)
    }
}

/// What the message brings along from its life so far.
struct Brought<'a> {
    record: &'a Record,
    level: Level,
    origin: LevelOrigin,
    first: Sequence,
}

impl Brought<'_> {
    fn details(&self, now: Timestamp, replay: &Replay) -> Details {
        Details {
            first_sequence: Some(self.first),
            deadline: replay.message.deadline,
            time_to_live: Span::FOREVER,
            ..Details::new(now)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Command, Settlement};
    use crate::entity::{RuleDescription, RuleName, Setting, Status};
    use crate::message::{Delivery, Incoming};
    use crate::trial::{Trial, large, message};
    use vorrang_filter::{Filter, MapMessage};

    /// Receives the next message and dead-letters it.
    fn bury(trial: &mut Trial, text: &str) -> Delivery {
        trial.attach(text, 77, 1);
        let delivery = trial.receive().remove(0);
        let settlement = Settlement::DeadLetter { reason: None, description: None, changes: None };
        trial.settle(&delivery, settlement).unwrap();
        trial.step(&Command::Detach { receiver: crate::id::ReceiverId(77) }).unwrap();
        trial.peeked(&format!("{text}/$deadletterqueue")).pop().unwrap()
    }

    fn replay(trial: &mut Trial, letter: &Delivery, to: &str, message: Incoming) -> Result<Reply, Refusal> {
        let (to, level) = (trial.id(to), None);
        trial.note(&message, MapMessage::new());
        let (mailbox, sequence) = (letter.mailbox, letter.sequence);
        trial.ask(|request| {
            Command::Replay(Box::new(Replay { request, mailbox, sequence, to, message, level }))
        })
    }

    fn contents(trial: &Trial) -> Vec<(String, usize)> {
        let contents = trial.contents();
        assert_eq!(trial.replayed().contents(), contents);
        contents.into_iter().map(|(path, ids)| (path, ids.len())).collect()
    }

    fn entry(path: &str, count: usize) -> (String, usize) {
        (path.to_owned(), count)
    }

    #[test]
    fn a_dead_letter_goes_back_with_its_level_and_its_place_in_time() {
        let mut trial = Trial::new();
        trial.queue("q", vec![Setting::RequiresDuplicateDetection(true)]);
        trial.send_all("q", vec![Incoming { priority: Some(200), ..message("1") }]).unwrap();
        let sent_at = trial.now;
        trial.advance(Span::seconds(9));
        let letter = bury(&mut trial, "q");
        trial.advance(Span::seconds(9));
        // The id was seen before, and the priority of what is sent again says something else.
        let again = Incoming { priority: Some(1), ..message("1") };
        let reply = replay(&mut trial, &letter, "q", again).unwrap();
        assert_eq!(reply, Reply::Sent { sequences: smallvec![Sequence(2)] });
        assert_eq!(contents(&trial), [entry("q", 1)]);
        let found = trial.peeked("q").remove(0);
        assert_eq!((found.level, found.deliveries, found.enqueued), (Level(200), 0, trial.now));
        assert_eq!(found.first_sequence, Some(Sequence(1)));
        let record =
            trial.state.records.get(trial.state.find(found.mailbox, found.sequence).unwrap()).unwrap();
        assert_eq!((record.eligible, record.origin()), (sent_at, LevelOrigin::Header));
    }

    #[test]
    fn it_goes_to_its_own_subscription_alone_or_to_all_by_the_topic() {
        let mut trial = Trial::new();
        trial.topic("t");
        trial.subscribe("t", "a", vec![], None);
        trial.subscribe("t", "b", vec![], None);
        trial.send("t", &["1"]).unwrap();
        let letter = bury(&mut trial, "t/subscriptions/a");
        let foreign = replay(&mut trial, &letter, "t/subscriptions/b", message("1"));
        assert!(matches!(foreign, Err(Refusal::WrongKind { .. })), "{foreign:?}");
        replay(&mut trial, &letter, "t/subscriptions/a", message("1")).unwrap();
        assert_eq!(contents(&trial), [entry("t/Subscriptions/a", 1), entry("t/Subscriptions/b", 1)]);
        let letter = bury(&mut trial, "t/subscriptions/a");
        replay(&mut trial, &letter, "t", message("1")).unwrap();
        assert_eq!(contents(&trial), [entry("t/Subscriptions/a", 1), entry("t/Subscriptions/b", 2)]);
    }

    #[test]
    fn what_cannot_arrive_stays_where_it_is() {
        let mut trial = Trial::new();
        trial.queue("q", vec![]);
        trial.queue("small", vec![Setting::MaxMessageSizeInKilobytes(1)]);
        trial.queue("sessions", vec![Setting::RequiresSession(true)]);
        trial.queue("closed", vec![Setting::Status(Status::SendDisabled)]);
        trial.topic("t");
        let name = RuleName::parse("none").unwrap();
        let none = RuleDescription { name, filter: Filter::False, action: None };
        trial.subscribe("t", "s", vec![], Some(none));
        trial.send("q", &["1"]).unwrap();
        let letter = bury(&mut trial, "q");
        let id = |text: &str| trial.id(text);
        let cases = [
            ("small", Refusal::MessageTooLarge { size: 1_025, limit: 1_024 }),
            ("sessions", Refusal::SessionIdMissing { entity: id("sessions") }),
            ("closed", Refusal::SendDisabled { entity: id("closed") }),
            ("t", Refusal::NoMatchingSubscription { topic: id("t") }),
        ];
        for (to, refusal) in cases {
            assert_eq!(replay(&mut trial, &letter, to, large("1", 1_025)), Err(refusal), "{to}");
            assert_eq!(contents(&trial), [entry("q/$deadletterqueue", 1)], "{to}");
        }
        // Somebody else is working on it.
        trial.attach("q/$deadletterqueue", 1, 1);
        trial.receive();
        let refused = replay(&mut trial, &letter, "q", message("1"));
        assert_eq!(refused, Err(Refusal::MessageNotFound { sequence: letter.sequence }));
    }

    #[test]
    fn a_full_queue_takes_its_own_dead_letters_back() {
        let mut trial = Trial::new();
        let full = vec![Setting::MaxSizeInMegabytes(1), Setting::MaxMessageSizeInKilobytes(1_024)];
        trial.queue("q", full.clone());
        trial.queue("other", full);
        let size = 1024 * 1024;
        trial.send_all("q", vec![large("1", size)]).unwrap();
        trial.send_all("other", vec![large("2", size)]).unwrap();
        let letter = bury(&mut trial, "q");
        let refused = replay(&mut trial, &letter, "other", large("1", size));
        assert!(matches!(refused, Err(Refusal::QuotaExceeded { .. })), "{refused:?}");
        replay(&mut trial, &letter, "q", large("1", size)).unwrap();
        assert_eq!(contents(&trial), [entry("other", 1), entry("q", 1)]);
    }

    #[test]
    fn one_that_lies_on_disk_is_read_first_and_then_moved() {
        let mut trial = Trial::new();
        trial.queue("q", vec![]);
        trial.queue("other", vec![]);
        trial.send("q", &["1", "2"]).unwrap();
        trial.chill("q", 4, 2);
        let letter = trial.peeked("q").pop().unwrap();
        let reply = replay(&mut trial, &letter, "other", message("2")).unwrap();
        assert_eq!(reply, Reply::Sent { sequences: smallvec![] });
        trial.settle_down();
        let reply = replay(&mut trial, &letter, "other", message("2")).unwrap();
        assert_eq!(reply, Reply::Sent { sequences: smallvec![Sequence(1)] });
        assert_eq!(contents(&trial), [entry("other", 1), entry("q", 1)]);
    }
}
