//! S10: a session's state is a register: a read gives the last value written.
//!
//! Every write has a value of its own, so each read names the write it saw. That write must not have
//! been replaced for certain before the read began, must not begin after the read ended, and two reads
//! one after the other must not see two writes in reverse.

use super::Digest;
use crate::history::{Call, History, Outcome};
use std::collections::BTreeMap;
use vorrang_engine::MailboxId;

/// An access: when it began, when it ended if it did, and the value.
#[derive(Clone, Copy)]
struct Access {
    began: usize,
    ended: Option<usize>,
    value: Option<u64>,
}

impl Access {
    fn before(&self, other: &Access) -> bool {
        self.ended.is_some_and(|ended| ended < other.began)
    }
}

#[derive(Default)]
struct Register {
    writes: Vec<Access>,
    reads: Vec<Access>,
}

pub(super) fn check(_: &History, digest: &Digest) -> Vec<String> {
    let mut registers: BTreeMap<(MailboxId, String), Register> = BTreeMap::new();
    for asked in digest.calls.values() {
        // Places count from one here: before all of them, there was no state.
        let began = asked.place + 1;
        let ended = asked.answer.as_ref().map(|(place, ..)| *place + 1);
        match (&asked.call, asked.answer.as_ref().map(|(.., outcome)| outcome)) {
            (Call::SetState { .. }, Some(Outcome::Refused(_))) => {}
            (Call::SetState { mailbox, session, value }, _) => {
                let register = registers.entry((*mailbox, session.clone())).or_default();
                register.writes.push(Access { began, ended, value: *value });
            }
            (Call::GetState { mailbox, session }, Some(Outcome::State(value))) => {
                let register = registers.entry((*mailbox, session.clone())).or_default();
                register.reads.push(Access { began, ended, value: *value });
            }
            _ => {}
        }
    }
    registers.iter().flat_map(|((_, session), register)| judge(session, register)).collect()
}

fn judge(session: &str, register: &Register) -> Vec<String> {
    let never = Access { began: 0, ended: Some(0), value: None };
    let sources = |read: &Access| -> Vec<Access> {
        let writes = register.writes.iter().chain(std::iter::once(&never));
        let written = writes.filter(|write| write.value == read.value && !read.before(write));
        let fresh = written
            .filter(|write| !register.writes.iter().any(|other| write.before(other) && other.before(read)));
        fresh.copied().collect()
    };
    let mut broken = Vec::new();
    let mut newest: Option<(Access, Access)> = None;
    let mut reads = register.reads.clone();
    reads.sort_by_key(|read| read.began);
    for read in &reads {
        let sources = sources(read);
        let Some(source) = sources.first() else {
            broken.push(format!("the state of session {session} was read as {:?}", read.value));
            continue;
        };
        if let Some((earlier, seen)) = &newest
            && earlier.before(read)
            && sources.iter().all(|source| source.before(seen))
        {
            broken.push(format!("the state of session {session} went back to {:?}", read.value));
        }
        if sources.len() == 1 {
            newest = Some((*read, *source));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use crate::check::forge::Forge;

    #[test]
    fn a_write_is_lost() {
        let mut forge = Forge::new();
        forge.state_set("a", Some(1));
        forge.state_read("a", None);
        forge.breaks("S10");
    }

    #[test]
    fn an_older_value_comes_back() {
        let mut forge = Forge::new();
        forge.state_set("a", Some(1));
        forge.state_set("a", Some(2));
        forge.state_read("a", Some(1));
        forge.breaks("S10");
    }

    #[test]
    fn a_value_that_nobody_wrote() {
        let mut forge = Forge::new();
        forge.state_set("b", Some(1));
        forge.state_read("a", Some(1));
        forge.breaks("S10");
    }

    #[test]
    fn the_last_value_is_read() {
        let mut forge = Forge::new();
        forge.state_read("a", None);
        forge.state_set("a", Some(1));
        forge.state_read("a", Some(1));
        forge.state_set("a", None);
        forge.state_read("a", None);
        forge.keeps("S10");
    }
}
