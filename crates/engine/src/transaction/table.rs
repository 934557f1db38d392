//! Open transactions and what has joined them.
//!
//! Nothing that joins a transaction happens before it commits: sends wait here with the numbers they
//! were promised, and settled messages stay locked. Transactions live in memory alone. A restart ends
//! them all, which is a rollback, because nothing of them was done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::command::{Send, Settle};
use crate::id::{Sequence, TransactionId};
use crate::limits::Limits;
use crate::refusal::{Countable, Refusal};
use crate::time::Timestamp;

/// All open transactions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transactions {
    open: BTreeMap<TransactionId, Transaction>,
    /// By the time they began to count.
    since: BTreeSet<(Timestamp, TransactionId)>,
    /// Message bytes waiting in all of them.
    bytes: u64,
}

/// One open transaction.
#[derive(Debug, Clone)]
pub(crate) struct Transaction {
    /// Its first operation, or its declaration while it has none: its age counts from there.
    since: Timestamp,
    operations: Vec<Operation>,
    /// Messages sent and settled.
    count: usize,
    bytes: u64,
    /// Why it can only be rolled back.
    poisoned: Option<Refusal>,
}

/// Something that happens at commit.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    /// Messages come in, under the numbers they were promised.
    Send { send: Arc<Send>, sequences: SmallVec<[Sequence; 1]> },
    /// Locked messages are settled.
    Settle(Arc<Settle>),
}

impl Transaction {
    /// What happens at commit, in order.
    pub(crate) fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Why it can only be rolled back, if so.
    pub(crate) fn poisoned(&self) -> Option<&Refusal> {
        self.poisoned.as_ref()
    }
}

impl Transactions {
    /// The transaction with this id.
    pub(crate) fn get(&self, id: TransactionId) -> Result<&Transaction, Refusal> {
        self.open.get(&id).ok_or(Refusal::TransactionUnknown { transaction: id })
    }

    /// Whether another transaction may begin.
    pub(crate) fn check_declare(&self, limits: &Limits) -> Result<(), Refusal> {
        check(Countable::Transactions, self.open.len(), 1, limits.transactions_max)
    }

    /// Whether so many messages, of so many bytes, may join a transaction.
    pub(crate) fn check_join(
        &self,
        id: TransactionId,
        messages: usize,
        bytes: u64,
        limits: &Limits,
    ) -> Result<(), Refusal> {
        let transaction = self.get(id)?;
        check(Countable::Operations, transaction.count, messages, limits.transaction_operations_max)?;
        if self.bytes.saturating_add(bytes) > limits.transaction_bytes_max {
            let limit = limits.transaction_bytes_max;
            return Err(Refusal::TooMany { what: Countable::TransactionBytes, limit });
        }
        Ok(())
    }

    /// When the oldest transaction began to count.
    pub(crate) fn oldest(&self) -> Option<(Timestamp, TransactionId)> {
        self.since.first().copied()
    }

    /// A transaction began; `None` if it had already.
    pub(crate) fn declare(&mut self, id: TransactionId, at: Timestamp) -> Option<()> {
        if self.open.contains_key(&id) {
            return None;
        }
        let transaction =
            Transaction { since: at, operations: Vec::new(), count: 0, bytes: 0, poisoned: None };
        self.open.insert(id, transaction);
        self.since.insert((at, id));
        Some(())
    }

    /// A send joined.
    pub(crate) fn enlist_send(
        &mut self,
        send: &Arc<Send>,
        sequences: &SmallVec<[Sequence; 1]>,
        at: Timestamp,
    ) -> Option<()> {
        let bytes = send.messages.iter().map(|message| u64::from(message.size())).sum();
        let operation = Operation::Send { send: Arc::clone(send), sequences: sequences.clone() };
        self.join(send.transaction?, operation, send.messages.len(), bytes, at)
    }

    /// A settlement joined.
    pub(crate) fn enlist_settle(&mut self, settle: &Arc<Settle>, at: Timestamp) -> Option<()> {
        self.join(settle.transaction?, Operation::Settle(Arc::clone(settle)), settle.tokens.len(), 0, at)
    }

    fn join(
        &mut self,
        id: TransactionId,
        operation: Operation,
        messages: usize,
        bytes: u64,
        at: Timestamp,
    ) -> Option<()> {
        let transaction = self.open.get_mut(&id)?;
        if transaction.operations.is_empty() {
            self.since.remove(&(transaction.since, id));
            self.since.insert((at, id));
            transaction.since = at;
        }
        transaction.operations.push(operation);
        transaction.count = transaction.count.saturating_add(messages);
        transaction.bytes = transaction.bytes.saturating_add(bytes);
        self.bytes = self.bytes.saturating_add(bytes);
        Some(())
    }

    /// Something that was to join was refused: from now on the transaction can only be rolled back.
    pub(crate) fn poison(&mut self, id: TransactionId, cause: &Refusal) -> Option<()> {
        let transaction = self.open.get_mut(&id)?;
        transaction.poisoned.get_or_insert_with(|| cause.clone());
        Some(())
    }

    /// A transaction ended; here is what had joined it.
    pub(crate) fn end(&mut self, id: TransactionId) -> Option<Transaction> {
        let transaction = self.open.remove(&id)?;
        self.since.remove(&(transaction.since, id));
        self.bytes = self.bytes.saturating_sub(transaction.bytes);
        Some(transaction)
    }
}

fn check(what: Countable, present: usize, more: usize, limit: usize) -> Result<(), Refusal> {
    if present.saturating_add(more) > limit {
        return Err(Refusal::TooMany { what, limit: u64::try_from(limit).unwrap_or(u64::MAX) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Settlement;
    use crate::id::{EntityId, LockToken, MailboxId, RequestTag};
    use crate::message::Incoming;
    use bytes::Bytes;
    use smallvec::smallvec;
    use vorrang_filter::MapMessage;

    const A: TransactionId = TransactionId(1);
    const B: TransactionId = TransactionId(2);

    fn send(transaction: TransactionId, sizes: &[usize]) -> Arc<Send> {
        let message = |size: &usize| Incoming::new(Bytes::from(vec![0; *size]), Arc::new(MapMessage::new()));
        Arc::new(Send {
            request: RequestTag(0),
            entity: EntityId(0),
            via: None,
            transaction: Some(transaction),
            messages: sizes.iter().map(message).collect(),
        })
    }

    fn settle(transaction: TransactionId, token: u128) -> Arc<Settle> {
        Arc::new(Settle {
            request: RequestTag(0),
            mailbox: MailboxId(0),
            tokens: smallvec![LockToken(token)],
            settlement: Settlement::Complete,
            transaction: Some(transaction),
        })
    }

    fn limits() -> Limits {
        Limits {
            transactions_max: 2,
            transaction_operations_max: 3,
            transaction_bytes_max: 100,
            ..Limits::default()
        }
    }

    fn join(table: &mut Transactions, send: &Arc<Send>, at: u64) -> Result<(), Refusal> {
        let bytes = send.messages.iter().map(|message| u64::from(message.size())).sum();
        table.check_join(send.transaction.unwrap(), send.messages.len(), bytes, &limits())?;
        table.enlist_send(send, &smallvec![], Timestamp(at)).expect("a checked send joins");
        Ok(())
    }

    #[test]
    fn each_bound_refuses_one_more_and_no_fewer() {
        let mut table = Transactions::default();
        assert_eq!(table.check_declare(&limits()), Ok(()));
        table.declare(A, Timestamp(0)).unwrap();
        assert_eq!(table.check_declare(&limits()), Ok(()));
        table.declare(B, Timestamp(0)).unwrap();
        let refused = Refusal::TooMany { what: Countable::Transactions, limit: 2 };
        assert_eq!(table.check_declare(&limits()), Err(refused));

        join(&mut table, &send(A, &[10, 10]), 1).unwrap();
        let refused = Refusal::TooMany { what: Countable::Operations, limit: 3 };
        assert_eq!(join(&mut table, &send(A, &[1, 1]), 1), Err(refused));
        join(&mut table, &send(A, &[30]), 1).unwrap();
        let refused = Refusal::TooMany { what: Countable::TransactionBytes, limit: 100 };
        assert_eq!(join(&mut table, &send(B, &[51]), 1), Err(refused));
        join(&mut table, &send(B, &[50]), 1).unwrap();
        table.end(A).unwrap();
        join(&mut table, &send(B, &[50]), 1).unwrap();
        assert_eq!(table.check_declare(&limits()), Ok(()));
    }

    #[test]
    fn what_joined_is_handed_over_at_the_end_in_order() {
        let mut table = Transactions::default();
        table.declare(A, Timestamp(0)).unwrap();
        assert_eq!(table.declare(A, Timestamp(0)), None);
        table.enlist_settle(&settle(A, 7), Timestamp(1)).unwrap();
        join(&mut table, &send(A, &[1]), 1).unwrap();
        let ended = table.end(A).unwrap();
        assert!(matches!(ended.operations(), [Operation::Settle(_), Operation::Send { .. }]));
        assert!(table.end(A).is_none());
        assert_eq!(table.enlist_settle(&settle(A, 7), Timestamp(1)), None);
    }

    #[test]
    fn age_counts_from_the_first_operation() {
        let mut table = Transactions::default();
        table.declare(A, Timestamp(10)).unwrap();
        table.declare(B, Timestamp(20)).unwrap();
        assert_eq!(table.oldest(), Some((Timestamp(10), A)));
        join(&mut table, &send(A, &[1]), 30).unwrap();
        join(&mut table, &send(A, &[1]), 40).unwrap();
        assert_eq!(table.oldest(), Some((Timestamp(20), B)));
        table.end(B);
        assert_eq!(table.oldest(), Some((Timestamp(30), A)));
        table.end(A);
        assert_eq!(table.oldest(), None);
    }

    #[test]
    fn the_first_failure_is_the_one_that_counts() {
        let mut table = Transactions::default();
        table.declare(A, Timestamp(0)).unwrap();
        assert_eq!(table.get(A).unwrap().poisoned(), None);
        table.poison(A, &Refusal::PartitionKeyDiffers).unwrap();
        table.poison(A, &Refusal::RenewInSession).unwrap();
        assert_eq!(table.get(A).unwrap().poisoned(), Some(&Refusal::PartitionKeyDiffers));
        assert!(matches!(table.get(B), Err(Refusal::TransactionUnknown { .. })));
        assert_eq!(table.poison(B, &Refusal::RenewInSession), None);
    }
}
