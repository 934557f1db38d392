//! Transactors: receive, then send and complete together; commit, roll back, or vanish.

use super::{Client, Line, Scene, Work};
use crate::history::Call;
use crate::topology::Kind;
use smallvec::smallvec;
use vorrang_broker::api::Operation;
use vorrang_engine::command::ReceiveMode;
use vorrang_engine::{Level, MailboxId, TransactionId};

impl Client {
    pub(super) fn transact(&mut self, scene: &mut Scene<'_>) {
        if self.lines.is_empty() {
            let mailbox = MailboxId::main(scene.topology.of(Kind::All));
            let (link, mode) = (self.new_link(), ReceiveMode::PeekLock);
            self.lines.insert(link.0, Line::default());
            let (mailboxes, min_level) = (smallvec![mailbox], Level(0));
            let operation = Operation::Attach { link, mailboxes, mode, min_level, selector: None };
            self.ask(scene, operation, Call::Attach);
        }
        let Some(Work { id, parts, answered, spoilt }) = self.work else {
            if !self.waits_for(|call| matches!(call, Call::Declare)) {
                self.give_credit(scene);
                self.ask(scene, Operation::Declare, Call::Declare);
            }
            return;
        };
        let done = parts >= 1 && parts == answered;
        if parts > 4 && !done {
            return;
        }
        if done && (spoilt || parts > 4 || self.chance(3)) {
            let rollback = self.chance(4);
            self.work = None;
            let operation = Operation::Discharge { transaction: TransactionId(id), rollback };
            return self.ask(scene, operation, Call::Discharge { transaction: id, rollback });
        }
        if self.held.is_empty() || self.chance(2) {
            let kind = if self.chance(2) { Kind::Plain } else { Kind::Topic };
            self.send_to(scene, kind, 1, Some(id));
        } else {
            self.settle_one(scene, Some(id));
        }
        if let Some(work) = &mut self.work {
            work.parts += 1;
        }
    }
}
