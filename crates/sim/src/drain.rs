//! The end of a run: faults stop, and everything that is there must come out.

use crate::client::Heard;
use crate::history::{Call, How, Outcome, Seen, Target};
use crate::topology::Kind;
use crate::world::World;
use smallvec::smallvec;
use vorrang_broker::api::{Link, Only, Operation, Question};
use vorrang_engine::command::{ReceiveMode, Settlement};
use vorrang_engine::{EntityId, Level, MailboxId, Sequence, Span};

/// Rounds in which everything must be out: as many as a message can be delivered, and some.
const ROUNDS: u32 = 4;
/// More than a run ever leaves in one place.
const CREDIT: u32 = 100_000;
/// Messages looked at when asking what is left.
const LOOK: usize = 5_000;

impl World {
    /// Receives and completes everything, and notes how much is left in spite of that.
    pub(crate) fn drain(&mut self) {
        self.heal();
        if self.broken.is_some() {
            return;
        }
        let boxes: Vec<(Kind, EntityId)> = self.topology.receivable().collect();
        let mut left = 0;
        for _ in 0..ROUNDS {
            // Every lock runs out, every schedule becomes due.
            self.wait(Span::minutes(3));
            for _ in 0..20 {
                self.settle();
            }
            for (kind, entity) in &boxes {
                let main = MailboxId::main(*entity);
                if *kind == Kind::Sessions {
                    self.empty_sessions(main);
                } else {
                    self.empty(main);
                    self.empty_deferred(main);
                }
                self.empty(MailboxId::dead_letter(*entity));
            }
            left = boxes.iter().map(|(_, entity)| self.left(*entity)).sum();
            if left == 0 {
                break;
            }
        }
        self.end_drain(left);
    }

    fn empty(&mut self, mailbox: MailboxId) {
        let peer = self.connect();
        let (link, mode) = (Link(1), ReceiveMode::PeekLock);
        let (mailboxes, min_level) = (smallvec![mailbox], Level(0));
        let attach = Operation::Attach { link, mailboxes, mode, min_level, selector: None };
        self.ask_now(peer, attach, Call::Attach);
        self.say_now(peer, Operation::Credit { link, limit: CREDIT, drain: false });
        self.complete_all(peer);
        self.disconnect(peer);
        self.settle();
    }

    fn empty_sessions(&mut self, mailbox: MailboxId) {
        for _ in 0..20 {
            let peer = self.connect();
            let (link, mode) = (Link(1), ReceiveMode::PeekLock);
            let accept = Operation::AcceptSession { link, mailbox, session: None, mode, wait: Span(0) };
            self.ask_now(peer, accept, Call::Accept { mailbox, link: 1 });
            let heard = self.settle();
            let refused =
                |heard: &(u32, Heard)| matches!(heard.1, Heard::Answer { outcome: Outcome::Refused(_), .. });
            if heard.iter().any(refused) {
                self.disconnect(peer);
                break;
            }
            self.say_now(peer, Operation::Credit { link, limit: CREDIT, drain: false });
            self.complete_all(peer);
            self.disconnect(peer);
            self.settle();
        }
    }

    fn empty_deferred(&mut self, mailbox: MailboxId) {
        let peer = self.connect();
        for sequence in self.look(mailbox) {
            let call = Call::ReceiveDeferred { entity: mailbox.entity(), sequence, removes: None };
            let (sequences, mode) = (vec![sequence], ReceiveMode::PeekLock);
            let operation = Operation::ReceiveDeferred { mailbox, sequences, mode, link: None };
            self.ask_now(peer, operation, call);
        }
        self.complete_all(peer);
        self.disconnect(peer);
        self.settle();
    }

    /// Completes whatever comes until nothing does.
    fn complete_all(&mut self, peer: u32) {
        let mut quiet = 0;
        while quiet < 3 {
            let heard = self.settle();
            let before = quiet;
            for (to, heard) in heard {
                if let (true, Heard::Deliver { seen, .. }) = (to == peer, heard) {
                    self.complete(peer, &seen);
                    quiet = 0;
                }
            }
            quiet = if quiet == before { quiet + 1 } else { 0 };
        }
    }

    fn complete(&mut self, peer: u32, seen: &Seen) {
        let (Some((token, _)), mail) = (seen.lock, seen.mail.unwrap_or_default()) else { return };
        let (mailbox, sequence) = (seen.mailbox, seen.sequence);
        let target = Target { mailbox, sequence, mail, token };
        let (tokens, settlement) = (smallvec![token], Settlement::Complete);
        let operation = Operation::Settle { mailbox, tokens, settlement, transaction: None };
        self.ask_now(peer, operation, Call::Settle { how: How::Complete, target, transaction: None });
    }

    /// The numbers of the messages in a mailbox.
    fn look(&mut self, mailbox: MailboxId) -> Vec<Sequence> {
        let peer = self.connect();
        let question =
            Question::Peek { mailbox, from: Sequence(0), max: LOOK, session: None, only: Only::default() };
        self.ask_now(peer, Operation::Ask(question), Call::Peek);
        let heard = self.settle();
        self.disconnect(peer);
        let found = heard.into_iter().find_map(|(_, heard)| match heard {
            Heard::Answer { outcome: Outcome::Peeked(found), .. } => Some(found),
            _ => None,
        });
        found.unwrap_or_default()
    }

    fn left(&mut self, entity: EntityId) -> u64 {
        let mailboxes = [MailboxId::main(entity), MailboxId::dead_letter(entity)];
        let counts = mailboxes.map(|mailbox| self.look(mailbox).len());
        counts.into_iter().map(|count| u64::try_from(count).unwrap_or(u64::MAX)).sum()
    }
}
