//! Session holders: accept by name or take the next, keep state, renew, settle, vanish.

use super::{Client, Line, Scene};
use crate::history::Call;
use crate::topology::Kind;
use bytes::Bytes;
use vorrang_broker::api::{Link, Operation, Question};
use vorrang_engine::command::ReceiveMode;
use vorrang_engine::{MailboxId, SessionId, Span};

impl Client {
    pub(super) fn use_sessions(&mut self, scene: &mut Scene<'_>) {
        let mailbox = MailboxId::main(scene.topology.of(Kind::Sessions));
        let waiting = self.waits_for(|call| matches!(call, Call::Accept { .. }));
        if !waiting && (self.lines.is_empty() || (self.lines.len() < 2 && self.chance(3))) {
            return self.accept(scene, mailbox);
        }
        let place = self.dice.index(self.lines.len());
        let found = self.lines.iter().nth(place).map(|(link, line)| (Link(*link), line.session.clone()));
        let Some((link, Some(session))) = found else { return };
        let name = SessionId::from(session.as_str());
        match self.dice.below(10) {
            0 | 1 => self.give_credit(scene),
            2 => {
                let value = if self.chance(5) { None } else { Some(scene.number()) };
                let state = value.map(|value| Bytes::copy_from_slice(&value.to_le_bytes()));
                let operation = Operation::SetSessionState { mailbox, session: name, link, state };
                self.ask(scene, operation, Call::SetState { mailbox, session, value });
            }
            3 | 4 => {
                let question = Question::SessionState { mailbox, session: name, link };
                self.ask(scene, Operation::Ask(question), Call::GetState { mailbox, session });
            }
            5 => {
                let operation = Operation::RenewSession { mailbox, session: name, link };
                self.ask(scene, operation, Call::RenewSession { mailbox, session });
            }
            6 if self.chance(3) => self.close_line(scene),
            _ => self.settle_one(scene, None),
        }
    }

    fn accept(&mut self, scene: &mut Scene<'_>, mailbox: MailboxId) {
        let link = self.new_link();
        let mode = ReceiveMode::PeekLock;
        self.lines.insert(link.0, Line::default());
        let session = self.chance(2).then(|| SessionId::from(format!("s{}", self.dice.below(4)).as_str()));
        let wait = Span(self.dice.below(5_000));
        let operation = Operation::AcceptSession { link, mailbox, session, mode, wait };
        self.ask(scene, operation, Call::Accept { mailbox, link: link.0 });
    }
}
