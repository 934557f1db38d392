//! The way into a shard: bounded, in batches, for threads and for tasks.
//!
//! One lock for each batch that comes in and for each that is taken out. A full inbox takes nothing:
//! the pusher gets its batch back and is woken when there is room, which is how a busy shard slows its
//! senders down.

use super::core::Item;
use super::peer::PeerId;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// Items that may wait; a batch is taken whole while fewer do.
const ITEMS_MAX: usize = 16_384;
/// Bytes of messages that may wait; a batch is taken whole while there are fewer.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// Pushers that may wait to be woken, beyond which the oldest is woken early.
const WAKERS_MAX: usize = 65_536;

/// What came in since the last look.
#[derive(Debug, Default)]
pub(super) struct Mail {
    pub(super) items: VecDeque<(PeerId, Item)>,
    /// Whether the log has something to tell.
    pub(super) log: bool,
    /// Whether the shard is to stop.
    pub(super) stop: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    items: VecDeque<(PeerId, Item)>,
    /// Bytes of the messages among them.
    bytes: usize,
    wakers: VecDeque<Waker>,
    log: bool,
    stop: bool,
    /// Nothing is taken any more, for this reason.
    closed: Option<Arc<str>>,
}

/// The inbox of one shard.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

/// A batch that was not taken.
#[derive(Debug)]
pub(super) enum Rejected {
    /// There is no room now; the waker given is called when there may be.
    Full(Vec<Item>),
    /// There will never be room again.
    Closed(Arc<str>),
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a batch, or remembers whom to wake when there is room.
    pub(super) fn push(&self, peer: PeerId, batch: Vec<Item>, waker: Option<&Waker>) -> Result<(), Rejected> {
        let mut waiting = self.lock();
        if let Some(reason) = &waiting.closed {
            return Err(Rejected::Closed(Arc::clone(reason)));
        }
        if waiting.items.len() >= ITEMS_MAX || waiting.bytes >= BYTES_MAX {
            if waiting.wakers.len() >= WAKERS_MAX
                && let Some(oldest) = waiting.wakers.pop_front()
            {
                oldest.wake();
            }
            waiting.wakers.extend(waker.cloned());
            return Err(Rejected::Full(batch));
        }
        let was_idle = waiting.items.is_empty();
        let bytes = batch.iter().map(Item::bytes).sum();
        waiting.bytes = waiting.bytes.saturating_add(bytes);
        waiting.items.extend(batch.into_iter().map(|item| (peer, item)));
        drop(waiting);
        if was_idle {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// Takes one item whatever else waits: the first and last words of a connection.
    pub(super) fn insist(&self, peer: PeerId, item: Item) -> Result<(), Arc<str>> {
        let mut waiting = self.lock();
        if let Some(reason) = &waiting.closed {
            return Err(Arc::clone(reason));
        }
        waiting.items.push_back((peer, item));
        drop(waiting);
        self.changed.notify_one();
        Ok(())
    }

    /// Notes that the log has something to tell.
    pub(super) fn log_has_news(&self) {
        self.lock().log = true;
        self.changed.notify_one();
    }

    /// Asks the shard to stop.
    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_one();
    }

    /// Takes nothing more.
    pub(super) fn close(&self, reason: &Arc<str>) {
        let mut waiting = self.lock();
        waiting.closed = Some(Arc::clone(reason));
        waiting.items.clear();
        for waker in waiting.wakers.drain(..) {
            waker.wake();
        }
    }

    /// How many items wait, and how many may.
    pub(super) fn filling(&self) -> (usize, usize) {
        (self.lock().items.len(), ITEMS_MAX)
    }

    /// Why nothing is taken any more, if that is so.
    pub(super) fn closed(&self) -> Option<Arc<str>> {
        self.lock().closed.clone()
    }

    /// Waits until something comes in, or for `patience`; takes items only if there are none at hand.
    pub(super) fn wait(&self, mail: &mut Mail, patience: Option<Duration>) {
        let idle = |waiting: &Waiting, at_hand: bool| {
            (at_hand || waiting.items.is_empty()) && !waiting.log && !waiting.stop
        };
        let at_hand = !mail.items.is_empty();
        let mut waiting = self.lock();
        match patience {
            Some(patience) if patience.is_zero() => {}
            Some(patience) => {
                let waited =
                    self.changed.wait_timeout_while(waiting, patience, |waiting| idle(waiting, at_hand));
                waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            None => {
                let waited = self.changed.wait_while(waiting, |waiting| idle(waiting, at_hand));
                waiting = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
        (mail.log, mail.stop) = (std::mem::take(&mut waiting.log), waiting.stop);
        if !at_hand {
            std::mem::swap(&mut mail.items, &mut waiting.items);
            waiting.bytes = 0;
            for waker in waiting.wakers.drain(..) {
                waker.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Acceptance, Operation, Request, Tag};
    use bytes::Bytes;
    use smallvec::smallvec;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;
    use vorrang_engine::{EntityId, Incoming};
    use vorrang_filter::MapMessage;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn closes(count: usize) -> Vec<Item> {
        (0..count).map(|_| Item::Close).collect()
    }

    #[test]
    fn a_full_inbox_gives_the_batch_back_and_wakes_when_there_is_room() {
        let inbox = Inbox::default();
        let woken = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&woken));
        assert!(inbox.push(PeerId(1), closes(ITEMS_MAX), Some(&waker)).is_ok());
        match inbox.push(PeerId(2), closes(3), Some(&waker)) {
            Err(Rejected::Full(batch)) => assert_eq!(batch.len(), 3),
            other => panic!("{other:?}"),
        }
        let mut mail = Mail::default();
        inbox.wait(&mut mail, None);
        assert_eq!(mail.items.len(), ITEMS_MAX);
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert!(inbox.push(PeerId(2), closes(3), Some(&waker)).is_ok());
    }

    #[test]
    fn a_few_large_messages_fill_it_too() {
        let large = || {
            let message = Incoming::new(Bytes::from(vec![0; BYTES_MAX / 2]), Arc::new(MapMessage::new()));
            let operation = Operation::Send {
                entity: EntityId(1),
                via: None,
                transaction: None,
                messages: smallvec![message],
                acceptance: Acceptance::Plain,
            };
            vec![Item::Request(Request { tag: Tag(1), operation })]
        };
        let inbox = Inbox::default();
        assert!(inbox.push(PeerId(1), large(), None).is_ok());
        assert!(inbox.push(PeerId(1), large(), None).is_ok());
        assert!(matches!(inbox.push(PeerId(1), large(), None), Err(Rejected::Full(_))));
        inbox.wait(&mut Mail::default(), None);
        assert!(inbox.push(PeerId(1), large(), None).is_ok());
    }

    #[test]
    fn what_is_at_hand_is_finished_before_more_is_taken() {
        let inbox = Inbox::default();
        let mut mail = Mail::default();
        mail.items.push_back((PeerId(1), Item::Close));
        inbox.push(PeerId(2), closes(1), None).unwrap();
        inbox.log_has_news();
        inbox.wait(&mut mail, None);
        assert!(mail.log);
        assert_eq!(mail.items.len(), 1);
        mail.items.clear();
        inbox.wait(&mut mail, None);
        assert_eq!(mail.items.len(), 1);
        assert!(!mail.log);
    }

    #[test]
    fn a_closed_inbox_says_why() {
        let inbox = Inbox::default();
        inbox.close(&"the disk is gone".into());
        match inbox.push(PeerId(1), closes(1), None) {
            Err(Rejected::Closed(reason)) => assert_eq!(&*reason, "the disk is gone"),
            other => panic!("{other:?}"),
        }
    }
}
