//! Receivers: take messages, and settle them in every way there is, twice, late, or never.

use super::{Client, Line, Scene};
use crate::history::{Call, How, Target, Wish};
use crate::topology::Kind;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;
use vorrang_broker::api::{Link, Only, Operation, Question};
use vorrang_engine::command::{ReceiveMode, Settlement};
use vorrang_engine::{Level, MailboxId, Sequence, Span, TransactionId};
use vorrang_filter::{Filter, Parameters, Sql};

/// Locks a client keeps in mind; beyond that it forgets the oldest and lets them run out.
const HELD_MAX: usize = 40;

impl Client {
    pub(super) fn receive_something(&mut self, scene: &mut Scene<'_>) {
        if self.lines.len() < 3 && self.chance(2) {
            return self.open_line(scene);
        }
        match self.dice.below(12) {
            0..=2 => self.give_credit(scene),
            3 if self.chance(4) => self.close_line(scene),
            4 => self.renew_one(scene),
            5 => self.take_deferred(scene),
            6 if self.chance(3) => self.peek(scene),
            7 => self.settle_again(scene),
            _ => self.settle_one(scene, None),
        }
        while self.held.len() > HELD_MAX {
            self.held.remove(0);
        }
    }

    fn open_line(&mut self, scene: &mut Scene<'_>) {
        let choices: Vec<_> =
            scene.topology.receivable().filter(|(kind, _)| *kind != Kind::Sessions).collect();
        let Some(&(kind, entity)) = choices.get(self.dice.index(choices.len())) else { return };
        let mode = if kind == Kind::Lossy { ReceiveMode::ReceiveAndDelete } else { ReceiveMode::PeekLock };
        let dead = kind != Kind::Lossy && self.chance(5);
        let mailbox = if dead { MailboxId::dead_letter(entity) } else { MailboxId::main(entity) };
        let link = self.new_link();
        self.lines.insert(link.0, Line::default());
        let mut mailboxes: SmallVec<[MailboxId; 1]> = smallvec![mailbox];
        let mut wish = Wish::default();
        if kind != Kind::Lossy && !dead {
            match self.dice.below(8) {
                // Where a higher level is always first, a selector would seem to break that.
                0 | 1 if kind == Kind::All => wish.kind = Some(1),
                2 => wish.min_level = 6,
                3 => {
                    let second = if kind == Kind::Parlour { Kind::Office } else { Kind::Parlour };
                    mailboxes.push(MailboxId::main(scene.topology.of(second)));
                    wish.ordered = true;
                }
                _ => {}
            }
        }
        scene.history.wishes.extend(self.peer.map(|peer| ((peer, link.0), wish)));
        let selector = wish.kind.map(|kind| {
            let text = format!("kind = {kind}");
            let sql = Sql::parse(&text, Parameters::default()).expect("the condition is plain SQL");
            Arc::new(Filter::Sql(Arc::new(sql)))
        });
        let min_level = Level(wish.min_level);
        let operation = Operation::Attach { link, mailboxes, mode, min_level, selector };
        self.ask(scene, operation, Call::Attach);
        self.give_credit(scene);
    }

    /// Lets the broker send more on one of the links.
    pub(super) fn give_credit(&mut self, scene: &mut Scene<'_>) {
        let more = 1 + u32::try_from(self.dice.below(6)).unwrap_or_default();
        let place = self.dice.index(self.lines.len());
        let drain = self.chance(5);
        let Some((link, line)) = self.lines.iter_mut().nth(place) else { return };
        line.limit = line.limit.max(line.received + more);
        let operation = Operation::Credit { link: Link(*link), limit: line.limit, drain };
        self.say(scene, operation);
    }

    pub(super) fn close_line(&mut self, scene: &mut Scene<'_>) {
        let place = self.dice.index(self.lines.len());
        let Some(link) = self.lines.keys().nth(place).copied() else { return };
        self.lines.remove(&link);
        self.say(scene, Operation::Detach { link: Link(link) });
    }

    fn renew_one(&mut self, scene: &mut Scene<'_>) {
        let Some(&target) = self.held.get(self.dice.index(self.held.len())) else { return };
        let operation = Operation::Renew { mailbox: target.mailbox, tokens: smallvec![target.token] };
        self.ask(scene, operation, Call::Renew { target });
    }

    fn take_deferred(&mut self, scene: &mut Scene<'_>) {
        if self.deferred.is_empty() {
            return;
        }
        let (entity, sequence, mail) = self.deferred.swap_remove(self.dice.index(self.deferred.len()));
        let removes = self.chance(3).then_some(mail);
        let mode = if removes.is_some() { ReceiveMode::ReceiveAndDelete } else { ReceiveMode::PeekLock };
        let (mailbox, sequences) = (MailboxId::main(entity), vec![sequence]);
        let operation = Operation::ReceiveDeferred { mailbox, sequences, mode, link: None };
        self.ask(scene, operation, Call::ReceiveDeferred { entity, sequence, removes });
    }

    fn peek(&mut self, scene: &mut Scene<'_>) {
        let mailbox = MailboxId::main(scene.topology.of(Kind::Plain));
        let question =
            Question::Peek { mailbox, from: Sequence(0), max: 10, session: None, only: Only::default() };
        self.ask(scene, Operation::Ask(question), Call::Peek);
    }

    /// Settles what was settled before, which must be refused.
    fn settle_again(&mut self, scene: &mut Scene<'_>) {
        let Some(&target) = self.settled.get(self.dice.index(self.settled.len())) else { return };
        self.settle(scene, target, How::Complete, None);
    }

    /// Settles one of the messages held, in time or too late.
    pub(super) fn settle_one(&mut self, scene: &mut Scene<'_>, transaction: Option<u128>) {
        if self.held.is_empty() {
            return;
        }
        let target = self.held.swap_remove(self.dice.index(self.held.len()));
        self.settled.push(target);
        if self.settled.len() > HELD_MAX {
            self.settled.remove(0);
        }
        let sessions = scene.history.rules(target.mailbox).is_none_or(|rules| rules.sessions);
        let how = match self.dice.below(12) {
            _ if transaction.is_some() => How::Complete,
            5..=7 => How::Abandon,
            8 => How::Release,
            9 => How::Suspend,
            // Deferred messages of sessions would need their session again.
            10 if target.mailbox.is_main() && !sessions => How::Defer,
            11 => How::DeadLetter,
            _ => How::Complete,
        };
        self.settle(scene, target, how, transaction);
    }

    pub(super) fn settle(
        &mut self,
        scene: &mut Scene<'_>,
        target: Target,
        how: How,
        transaction: Option<u128>,
    ) {
        let settlement = match how {
            How::Complete => Settlement::Complete,
            How::Abandon => {
                let delay = self.chance(4).then(|| Span(self.dice.below(5_000)));
                Settlement::Abandon { changes: None, delay }
            }
            How::Release => Settlement::Release,
            How::Suspend => Settlement::Suspend { checkpoint: None },
            How::Defer => Settlement::Defer { changes: None },
            How::DeadLetter => {
                let reason: Arc<str> = "unwanted".into();
                Settlement::DeadLetter { reason: Some(reason), description: None, changes: None }
            }
        };
        let operation = Operation::Settle {
            mailbox: target.mailbox,
            tokens: smallvec![target.token],
            settlement,
            transaction: transaction.map(TransactionId),
        };
        self.ask(scene, operation, Call::Settle { how, target, transaction });
    }
}
