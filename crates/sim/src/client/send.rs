//! Senders: one message or several, now or later, with ids, sessions, levels and ends.

use super::{Client, Scene};
use crate::history::{Call, Mail};
use crate::payload;
use crate::topology::Kind;
use smallvec::SmallVec;
use std::sync::Arc;
use vorrang_broker::api::{Acceptance, Operation};
use vorrang_engine::{EntityId, Incoming, Span, Text};

/// Message ids in use: few, so that there are duplicates.
const IDS: u64 = 12;
/// Messages of bulk sent at once: more than a segment holds.
const BULK: u64 = 30;
/// Sessions in use.
const SESSIONS: u64 = 4;

/// What a message may be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Whatever the dice say.
    Any,
    /// For now and for ever.
    Plain,
    /// The same, long, and of the usual level: one lane with a stretch of the log to itself.
    Bulk,
}

impl Client {
    pub(super) fn send_something(&mut self, scene: &mut Scene<'_>) {
        if self.chance(60) {
            return self.send_in(scene, Kind::Plain, BULK, None, Manner::Bulk);
        }
        if self.chance(6) && !self.scheduled.is_empty() {
            let (entity, sequence, mail) = self.scheduled.swap_remove(self.dice.index(self.scheduled.len()));
            let operation = Operation::Cancel { entity, sequences: vec![sequence] };
            return self.ask(scene, operation, Call::Cancel { mails: vec![mail] });
        }
        let kind = match self.dice.below(13) {
            0..=2 => Kind::Plain,
            3 | 4 => Kind::Sessions,
            5 => Kind::Unique,
            6 => Kind::Lossy,
            7 => Kind::Expiring,
            8 => Kind::Hallway,
            9 => Kind::Parlour,
            10 => Kind::Office,
            _ => Kind::Topic,
        };
        let count = if self.chance(4) { 1 + self.dice.below(6) } else { 1 };
        self.send_to(scene, kind, count, None);
    }

    /// Sends new messages to the entity of a kind.
    pub(super) fn send_to(
        &mut self,
        scene: &mut Scene<'_>,
        kind: Kind,
        count: u64,
        transaction: Option<u128>,
    ) {
        let manner = if transaction.is_some() { Manner::Plain } else { Manner::Any };
        self.send_in(scene, kind, count, transaction, manner);
    }

    fn send_in(
        &mut self,
        scene: &mut Scene<'_>,
        kind: Kind,
        count: u64,
        transaction: Option<u128>,
        manner: Manner,
    ) {
        let entity = scene.topology.of(kind);
        let mut mails = Vec::new();
        let mut messages = SmallVec::new();
        for _ in 0..count {
            let of = u8::from(self.chance(2));
            let targets = scene.topology.targets(kind, of);
            let (mail, message) = self.compose(scene, kind, of, targets, manner);
            if scene.history.mails.get(&mail).is_some_and(|mail| mail.scheduled.is_some()) {
                self.sleeping.insert(mail, entity);
            }
            mails.push(mail);
            messages.push(message);
        }
        let transaction_id = transaction.map(vorrang_engine::TransactionId);
        let acceptance = Acceptance::Numbers;
        let operation =
            Operation::Send { entity, via: None, transaction: transaction_id, messages, acceptance };
        self.ask(scene, operation, Call::Send { mails, transaction });
    }

    pub(super) fn compose(
        &mut self,
        scene: &mut Scene<'_>,
        kind: Kind,
        of: u8,
        targets: Vec<EntityId>,
        manner: Manner,
    ) -> (u64, Incoming) {
        let plain = manner != Manner::Any;
        let level = if manner == Manner::Bulk || self.chance(2) {
            4
        } else {
            u8::try_from(self.dice.below(10)).unwrap_or(4)
        };
        let later = !plain && kind != Kind::Unique && self.chance(5);
        let mortal = match kind {
            Kind::Expiring => true,
            Kind::Plain | Kind::Topic => !plain && self.chance(8),
            _ => false,
        };
        let mail = Mail {
            targets,
            message_id: (kind == Kind::Unique).then(|| self.dice.below(IDS)),
            session: (kind == Kind::Sessions).then(|| format!("s{}", self.dice.below(SESSIONS))),
            level,
            kind: of,
            time_to_live: mortal.then(|| Span(1_000 + self.dice.below(30_000))),
            scheduled: later.then(|| scene.now.after(Span(1 + self.dice.below(30_000)))),
        };
        let number = scene.register(mail.clone());
        let look = if manner == Manner::Bulk { of | payload::BULK } else { of };
        let mut message = Incoming::new(payload::write(number, look), Arc::new(payload::view(look)));
        message.message_id = mail.message_id.map(|id| Text::from(&*format!("id-{id}")));
        message.session_id = mail.session.as_deref().map(Text::from);
        message.priority = (level != 4).then_some(level);
        message.time_to_live = mail.time_to_live;
        message.scheduled_for = mail.scheduled;
        if kind == Kind::Office && self.chance(2) {
            message.deadline = Some(scene.now.after(Span(self.dice.below(60_000))));
        }
        (number, message)
    }
}
