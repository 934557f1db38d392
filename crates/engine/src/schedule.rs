//! Scheduled messages: taken back, or made visible when their time comes.

use vorrang_filter::SystemProperty;

use crate::effect::{Effect, Outcome, Reply};
use crate::entity::fan_out::Publication;
use crate::fact::{Arrival, Fact, RelayCause, RemovalCause};
use crate::id::{EntityId, MailboxId, RequestTag, Sequence};
use crate::level::LevelOrigin;
use crate::payloads::Payloads;
use crate::refusal::Refusal;
use crate::send::draft::Draft;
use crate::send::set_life;
use crate::state::{Pump, State};
use crate::store::{Place, Record};
use crate::time::{Span, Timestamp};

impl State {
    pub(crate) fn decide_cancel(
        &self,
        now: Timestamp,
        request: RequestTag,
        entity: EntityId,
        sequences: &[Sequence],
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        self.entity(entity)?;
        self.check_numbers(sequences)?;
        let mailbox = MailboxId::main(entity);
        for &sequence in sequences {
            let record = self.find(mailbox, sequence).and_then(|handle| self.records.get(handle));
            if record.is_none_or(|record| record.place() != Place::Scheduled) {
                return Err(Refusal::MessageNotFound { sequence });
            }
            let cause = RemovalCause::Cancelled;
            outcome.facts.push(Fact::Removed { mailbox, sequence, cause, at: now });
        }
        outcome.effects.push(Effect::Reply { request, reply: Reply::Done });
        Ok(())
    }

    /// Makes a scheduled message visible: under a new number, as if it were sent now.
    pub(crate) fn activate(
        &self,
        now: Timestamp,
        record: &Record,
        payloads: &dyn Payloads,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        let (mailbox, sequence) = (record.mailbox, record.sequence);
        let mut draft = Draft::default();
        let topic = self.entity(mailbox.entity())?.topic();
        let copies = if topic.is_some() {
            self.activated_copies(now, record, payloads, &mut draft)?
        } else {
            vec![self.activated(now, record, &mut draft)]
        };
        let cause = RelayCause::Activated;
        outcome.facts.push(Fact::Relayed { mailbox, sequence, cause, at: now, copies });
        Ok(())
    }

    fn activated(&self, now: Timestamp, record: &Record, draft: &mut Draft) -> Arrival {
        let session = |handle| self.sessions.get(handle).map(|session| session.name.clone());
        let details = self.extras.get(record.extra).map(|extra| extra.to_details(session(extra.session)));
        let details = details.map(|mut details| {
            details.enqueued = now;
            let time_to_live = details.time_to_live;
            set_life(&mut details, now, time_to_live);
            details
        });
        Arrival {
            mailbox: record.mailbox,
            sequence: draft.number(self, record.mailbox),
            eligible: now,
            level: record.level,
            origin: record.origin(),
            details: details.filter(|details| !details.is_plain(now)).map(Box::new),
        }
    }

    fn activated_copies(
        &self,
        now: Timestamp,
        record: &Record,
        payloads: &dyn Payloads,
        draft: &mut Draft,
    ) -> Result<Vec<Arrival>, Refusal> {
        let unreadable = Refusal::PayloadUnavailable { sequence: record.sequence };
        let message = payloads.message(record.location, record.size).ok_or(unreadable)?;
        let extra = self.extras.get(record.extra);
        let session = message.system(SystemProperty::SessionId);
        let publication = Publication {
            topic: record.mailbox.entity(),
            content: &*message,
            priority: (record.origin() == LevelOrigin::Header).then_some(record.level.0),
            brought: None,
            session: session.and_then(|session| match session {
                vorrang_filter::ValueRef::String(text) => Some(text),
                _ => None,
            }),
            time_to_live: extra.map_or(Span::FOREVER, |extra| extra.time_to_live),
        };
        let deadline = extra.map(|extra| extra.deadline).filter(|deadline| *deadline != Timestamp::NEVER);
        Ok(self.copies_of(now, &publication, deadline, draft))
    }

    pub(crate) fn apply_relayed(
        &mut self,
        (mailbox, sequence): (MailboxId, Sequence),
        cause: RelayCause,
        at: Timestamp,
        copies: &[Arrival],
    ) -> Option<()> {
        let handle = self.find(mailbox, sequence)?;
        let &Record { location, size, .. } = self.records.get(handle)?;
        self.advance(at);
        // The copies come first: the region their payload is in must not look empty in between.
        for copy in copies {
            self.apply_copy(copy, location, size)?;
            // What is handed on to a queue or topic is sent to it; a subscription is used by its readers.
            let receiving = self.mailboxes.get(&copy.mailbox)?.account;
            self.catalogue.touch(receiving, at);
        }
        self.erase(handle)?;
        self.catalogue.touch(mailbox.entity(), at);
        if cause != RelayCause::Activated {
            self.served(Pump::Mailbox(mailbox));
        }
        Some(())
    }
}
