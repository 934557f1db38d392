//! Leaving memory in place: long stretches of plain waiting messages, whose payloads stay where they are.
//!
//! A message in memory takes some sixty bytes, and every start reads all of them. So when there are more than the
//! [limit](vorrang_engine::Limits::hot_records), what waits behind the runs of its lane is written down in the index of an extent
//! that holds nothing else, and leaves memory. Its payloads go on lying in the log until the log needs their segments
//! again; then they [move](super::evacuation).
//!
//! As with moving, this happens beside the shard, on a frozen state, and what has changed meanwhile the engine finds
//! out by itself.

use super::cold::Index;
use super::evacuation::{Tenant, runs};
use super::outside;
use std::collections::BTreeSet;
use vorrang_engine::{Command, Fact, FrozenState, MailboxId, State};
use vorrang_log::extent::{Error, ExtentWriter};

/// Messages that may leave memory.
#[derive(Debug)]
pub struct Chilling {
    frozen: FrozenState,
    /// Mailboxes that are looked through: what left memory there would be brought back at once.
    spared: BTreeSet<MailboxId>,
    writer: ExtentWriter,
}

impl Chilling {
    pub(super) fn new(state: &mut State, writer: ExtentWriter) -> Chilling {
        Chilling { frozen: state.freeze(), spared: state.watched_mailboxes().collect(), writer }
    }

    /// Writes down what can leave, and says what is to be done then. Nothing if it is not worth it.
    pub fn run(self) -> Result<Vec<Command>, Error> {
        let mut index = Index::default();
        let commands = runs(&self.waiting(), self.writer.region(), &mut index);
        if !commands.is_empty() {
            self.writer.finish(index.as_bytes(), &outside::summary(0))?;
        }
        Ok(commands)
    }

    /// The plain messages behind the runs of each lane. What is before them was brought back to be received.
    fn waiting(&self) -> Vec<Tenant> {
        let mut waiting: Vec<Tenant> = Vec::new();
        let (mut lane, mut before) = (None, 0);
        self.frozen.facts().for_each(|fact| match fact {
            Fact::RestoredRun(run) => {
                if lane == Some((run.mailbox, run.level)) {
                    waiting.truncate(before);
                } else {
                    (lane, before) = (Some((run.mailbox, run.level)), waiting.len());
                }
            }
            Fact::RestoredMessage(message) => {
                let tenant = Tenant::of(&message);
                if lane != Some((tenant.mailbox, tenant.level)) {
                    (lane, before) = (Some((tenant.mailbox, tenant.level)), waiting.len());
                }
                if tenant.plain && !self.spared.contains(&tenant.mailbox) {
                    waiting.push(tenant);
                }
            }
            _ => {}
        });
        waiting.sort_unstable_by_key(Tenant::place);
        waiting
    }
}

/// When it is worth looking for messages that may leave memory.
#[derive(Debug, Default)]
pub(super) struct Heat {
    /// How many had to stay when it was last tried: among twice as many, half may leave.
    stayed: u32,
}

impl Heat {
    pub(super) fn is_due(&mut self, in_memory: u32, limit: u32) -> bool {
        self.stayed = self.stayed.min(in_memory);
        in_memory > limit.max(self.stayed.saturating_mul(2))
    }

    /// Notes that it is tried. Until some have left, all of them stay.
    pub(super) fn tried(&mut self, in_memory: u32) {
        self.stayed = in_memory;
    }

    pub(super) fn left(&mut self, count: usize) {
        self.stayed = self.stayed.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_leave_is_not_looked_at_again_and_again() {
        let mut heat = Heat::default();
        assert!(!heat.is_due(100, 100));
        assert!(heat.is_due(101, 100));
        heat.tried(101);
        assert!(!heat.is_due(150, 100), "nothing left so far");
        heat.left(90);
        assert!(heat.is_due(150, 100));
        heat.tried(150);
        assert!(!heat.is_due(300, 100) && heat.is_due(301, 100));
        assert!(!heat.is_due(20, 100), "they were received");
        assert!(heat.is_due(101, 100));
    }
}
