//! What every checker needs to know of a history: what became of each call.

use crate::history::{Call, CallId, History, How, Outcome, Target, What};
use std::collections::{BTreeMap, BTreeSet};
use vorrang_engine::EntityId;

/// What became of something that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It happened, and was acknowledged in this step.
    Done(u64),
    /// It did not happen.
    Not,
    /// Nobody was told.
    Either,
}

impl Fate {
    /// Whether it may have happened.
    #[must_use]
    pub fn perhaps(self) -> bool {
        self != Fate::Not
    }
}

/// A settlement that was asked for.
#[derive(Debug, Clone)]
pub struct Settled {
    /// Where in the history.
    pub place: usize,
    /// How.
    pub how: How,
    /// What.
    pub target: Target,
    /// The transaction it was part of.
    pub transaction: Option<u128>,
    /// What became of it, the transaction considered.
    pub fate: Fate,
    /// Whether the broker took it, the transaction not considered.
    pub taken: bool,
}

/// A call with its answer.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Where in the history it was asked.
    pub place: usize,
    /// In which step.
    pub step: u64,
    /// Who asked.
    pub peer: u32,
    /// What.
    pub call: Call,
    /// The answer, with its place and step.
    pub answer: Option<(usize, u64, Outcome)>,
}

/// What became of the calls of a history.
#[derive(Debug, Default)]
pub struct Digest {
    /// All calls.
    pub calls: BTreeMap<CallId, Asked>,
    /// What became of each message that was sent, transactions considered.
    pub sends: BTreeMap<u64, Fate>,
    /// Messages that were dropped as duplicates.
    pub dropped: BTreeSet<u64>,
    /// The transaction a message was part of, and whether the broker took it.
    pub joined: BTreeMap<u64, (u128, bool)>,
    /// What became of transactions.
    pub transactions: BTreeMap<u128, Fate>,
    /// All settlements.
    pub settled: Vec<Settled>,
    /// Cancellations of scheduled messages.
    pub cancelled: BTreeMap<u64, Fate>,
    /// For each life of the broker, where it ended and up to where everything was durable then.
    lives: Vec<(usize, usize)>,
}

fn fate(asked: &Asked) -> Fate {
    match &asked.answer {
        None => Fate::Either,
        Some((_, _, Outcome::Refused(_))) => Fate::Not,
        Some((_, step, _)) => Fate::Done(*step),
    }
}

/// Deferred messages that were perhaps removed by being read.
pub(super) fn removed(digest: &Digest) -> impl Iterator<Item = (EntityId, u64)> {
    digest.calls.values().filter(|asked| fate(asked).perhaps()).filter_map(|asked| match asked.call {
        Call::ReceiveDeferred { entity, removes, .. } => Some((entity, removes?)),
        _ => None,
    })
}

impl Digest {
    /// Goes through a history.
    #[must_use]
    pub fn new(history: &History) -> Digest {
        let mut digest = Digest::default();
        let mut horizon = 0;
        for (place, entry) in history.entries.iter().enumerate() {
            match &entry.what {
                What::Invoke { id, peer, call } => {
                    let asked =
                        Asked { place, step: entry.step, peer: *peer, call: call.clone(), answer: None };
                    digest.calls.insert(*id, asked);
                }
                What::Return { id, outcome } => {
                    if let Some(asked) = digest.calls.get_mut(id) {
                        asked.answer = Some((place, entry.step, outcome.clone()));
                        if !matches!(outcome, Outcome::Refused(_)) {
                            horizon = horizon.max(asked.place);
                        }
                    }
                }
                What::Crash => digest.lives.push((place, horizon)),
                _ => {}
            }
        }
        digest.judge_transactions();
        digest.judge_calls();
        digest
    }

    fn judge_transactions(&mut self) {
        for asked in self.calls.values() {
            match (&asked.call, &asked.answer) {
                (Call::Declare, Some((_, _, Outcome::Declared(transaction)))) => {
                    self.transactions.entry(*transaction).or_insert(Fate::Not);
                }
                (Call::Discharge { transaction, rollback: false }, _) => {
                    self.transactions.insert(*transaction, fate(asked));
                }
                _ => {}
            }
        }
    }

    fn judge_calls(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        for asked in calls.values() {
            let own = fate(asked);
            match &asked.call {
                Call::Send { mails, transaction } => {
                    let fate = self.with(*transaction, own);
                    for (index, mail) in mails.iter().enumerate() {
                        if let Some(transaction) = transaction {
                            self.joined.insert(*mail, (*transaction, matches!(own, Fate::Done(_))));
                        } else if let Some((_, _, Outcome::Sent(numbers))) = &asked.answer
                            && numbers.get(index).is_some_and(|number| number.0 == 0)
                        {
                            self.dropped.insert(*mail);
                        }
                        self.sends.insert(*mail, fate);
                    }
                }
                Call::Settle { how, target, transaction } => {
                    let (how, target, transaction) = (*how, *target, *transaction);
                    let (place, taken) = (asked.place, matches!(own, Fate::Done(_)));
                    let fate = self.with(transaction, own);
                    self.settled.push(Settled { place, how, target, transaction, fate, taken });
                }
                Call::Cancel { mails } => {
                    self.cancelled.extend(mails.iter().map(|mail| (*mail, own)));
                }
                _ => {}
            }
        }
        self.calls = calls;
        self.settled.sort_by_key(|settled| settled.place);
    }

    /// What becomes of something in a transaction.
    fn with(&self, transaction: Option<u128>, own: Fate) -> Fate {
        let Some(transaction) = transaction else { return own };
        match (own, self.transactions.get(&transaction).copied().unwrap_or(Fate::Not)) {
            (Fate::Not, _) | (_, Fate::Not) => Fate::Not,
            (Fate::Done(_), whole) => whole,
            (Fate::Either, _) => Fate::Either,
        }
    }

    /// Whether what was told at `place` was certainly durable when the broker next died. True if it
    /// did not die before `until`.
    #[must_use]
    pub fn survived(&self, place: usize, until: usize) -> bool {
        let mut crashes = self.lives.iter().filter(|(crash, _)| *crash > place && *crash < until);
        crashes.all(|(_, horizon)| place < *horizon)
    }
}
