//! The way into a shard: bounded, in batches, for threads and for tasks.
//!
//! One lock for each batch that comes in and for each that is taken out. A full inbox takes nothing:
//! the pusher gets its batch back and is woken when there is room, which is how a busy shard slows its
//! senders down.

use super::arrivals::Arrivals;
use super::core::Item;
use super::peer::PeerId;
use crate::api::Request;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use vorrang_engine::{Span, Timestamp};

/// Items that may wait; a batch is taken whole while fewer do.
const ITEMS_MAX: usize = 16_384;
/// Bytes of messages that may wait; a batch is taken whole while there are fewer.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// Pushers that may wait to be woken, beyond which the oldest is woken early.
const WAKERS_MAX: usize = 65_536;
/// A batch of at most so many items and bytes may be carried out by whoever brings it: about what the log commits on the
/// spot.
const SMALL_ITEMS: usize = 8;
const SMALL_BYTES: usize = 8 * 1024;
/// How long after one peer has run the shard no other does.
const CROWDED_FOR: Span = Span(2);

/// What came in since the last look.
#[derive(Debug, Default)]
pub(super) struct Mail {
    pub(super) items: Arrivals,
    /// Whether the shard is to stop.
    pub(super) stop: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    items: Arrivals,
    /// Bytes of the messages among them.
    bytes: usize,
    wakers: VecDeque<Waker>,
    /// The log has something to tell.
    log: bool,
    /// Something beside the shard was finished.
    chore: bool,
    stop: bool,
    thread: Thread,
    /// Nothing is taken any more, for this reason.
    closed: Option<Arc<str>>,
}

/// What the shard's thread does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Thread {
    /// It works, or is about to.
    #[default]
    Awake,
    /// It has something at hand and waits for the log.
    Waits,
    /// It sleeps, with nothing at hand.
    Sleeps(Sleep),
    /// It sleeps, and somebody else runs the shard, who will look into the inbox before it is done.
    Replaced(Sleep, PeerId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sleep {
    until: Timestamp,
    /// Who ran the shard last in the thread's place, and when it was done.
    lately: Option<(PeerId, Timestamp)>,
}

impl Sleep {
    /// Whether somebody else ran the shard just now. Then there are several who want something at the same time, and a
    /// thread that reads for all of them must not wait for the disk for each: what they bring is committed together if the
    /// shard's thread does it.
    fn is_crowded(&self, peer: PeerId, now: impl Fn() -> Timestamp) -> bool {
        self.lately.is_some_and(|(other, done)| other != peer && now().since(done) < CROWDED_FOR)
    }
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
    Full(Vec<Request>),
    /// There will never be room again.
    Closed(Arc<str>),
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// The thread sees to it.
    Taken,
    /// The thread sleeps, and was not woken: who pushed the batch is to run the shard, and then to
    /// [hand it back](Inbox::hand_back).
    Asleep,
}

impl Waiting {
    fn is_idle(&self, at_hand: bool) -> bool {
        (at_hand || self.items.is_empty()) && !self.log && !self.chore && !self.stop
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a batch, or remembers whom to wake when there is room.
    pub(super) fn push(
        &self,
        peer: PeerId,
        batch: Vec<Request>,
        waker: Option<&Waker>,
        now: impl Fn() -> Timestamp,
    ) -> Result<Pushed, Rejected> {
        let bytes = batch.iter().map(|request| request.operation.bytes()).sum();
        let brief = |request: &Request| request.operation.is_brief();
        let small = batch.len() <= SMALL_ITEMS && bytes <= SMALL_BYTES && batch.iter().all(brief);
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
        let was_empty = waiting.items.is_empty();
        let idle = small && waiting.is_idle(false);
        waiting.bytes = waiting.bytes.saturating_add(bytes);
        waiting.items.push_batch(peer, batch);
        match waiting.thread {
            Thread::Sleeps(sleep) if idle && !sleep.is_crowded(peer, &now) => {
                waiting.thread = Thread::Replaced(sleep, peer);
                return Ok(Pushed::Asleep);
            }
            Thread::Sleeps(_) if was_empty => self.wake(waiting),
            // It looks before it sleeps, was woken before, or has enough to do.
            Thread::Awake | Thread::Waits | Thread::Sleeps(_) | Thread::Replaced(..) => {}
        }
        Ok(Pushed::Taken)
    }

    /// Whether the log has told something, to whoever runs the shard in place of its thread.
    pub(super) fn take_news(&self) -> bool {
        std::mem::take(&mut self.lock().log)
    }

    /// Ends running the shard in place of its thread. The thread goes on sleeping if nothing is left to do, and nothing is
    /// `due` before it wakes by itself.
    pub(super) fn hand_back(&self, due: Option<Timestamp>, now: Timestamp) {
        let mut waiting = self.lock();
        // If it is awake by now, it waits for its turn.
        let Thread::Replaced(Sleep { until, .. }, peer) = waiting.thread else { return };
        if waiting.is_idle(false) && due.is_some_and(|due| until <= due) {
            waiting.thread = Thread::Sleeps(Sleep { until, lately: Some((peer, now)) });
        } else {
            waiting.thread = Thread::Awake;
            drop(waiting);
            self.changed.notify_one();
        }
    }

    /// Takes one item whatever else waits: the first and last words of a connection.
    pub(super) fn insist(&self, peer: PeerId, item: Item) -> Result<(), Arc<str>> {
        let mut waiting = self.lock();
        if let Some(reason) = &waiting.closed {
            return Err(Arc::clone(reason));
        }
        waiting.items.push(peer, item);
        self.wake(waiting);
        Ok(())
    }

    /// Notes that the log has something to tell.
    pub(super) fn log_has_news(&self) {
        let mut waiting = self.lock();
        waiting.log = true;
        self.wake(waiting);
    }

    /// Notes that something beside the shard was finished.
    pub(super) fn chore_is_done(&self) {
        let mut waiting = self.lock();
        waiting.chore = true;
        self.wake(waiting);
    }

    /// Asks the shard to stop.
    pub(super) fn stop(&self) {
        let mut waiting = self.lock();
        waiting.stop = true;
        self.wake(waiting);
    }

    /// Wakes the thread if it sleeps, after something has changed. If it is awake it looks before it sleeps, and whoever runs
    /// the shard in its place looks before it is done: to call for nobody costs as much as to wake somebody.
    fn wake(&self, waiting: MutexGuard<'_, Waiting>) {
        let asleep = matches!(waiting.thread, Thread::Waits | Thread::Sleeps(_));
        drop(waiting);
        if asleep {
            self.changed.notify_one();
        }
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

    /// Waits until something comes in, or for `patience`, which is over at `until`. With something at hand, what others bring
    /// can wait.
    pub(super) fn wait(&self, at_hand: bool, patience: Duration, until: Timestamp) {
        if patience.is_zero() {
            return;
        }
        let mut waiting = self.lock();
        waiting.thread = if at_hand { Thread::Waits } else { Thread::Sleeps(Sleep { until, lately: None }) };
        let waited = self.changed.wait_timeout_while(waiting, patience, |waiting| match waiting.thread {
            Thread::Awake => false,
            Thread::Waits | Thread::Sleeps(_) => waiting.is_idle(at_hand),
            Thread::Replaced(..) => true,
        });
        let mut waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        waiting.thread = Thread::Awake;
        // It looks after its chores next.
        waiting.chore = false;
    }

    /// Takes what came in; items only if there are none at hand.
    pub(super) fn take(&self, mail: &mut Mail) {
        let mut waiting = self.lock();
        waiting.log = false;
        mail.stop = waiting.stop;
        if mail.items.is_empty() {
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
    use crate::api::{Acceptance, Operation, Tag};
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

    fn declares(count: usize) -> Vec<Request> {
        (0..count).map(|_| Request { tag: Tag(1), operation: Operation::Declare }).collect()
    }

    /// Whose the items at hand are.
    fn peers(mail: &mut Mail) -> Vec<u32> {
        let mut next = || {
            let peer = mail.items.next().map(|(peer, _)| peer.0)?;
            mail.items.done();
            Some(peer)
        };
        std::iter::from_fn(&mut next).collect()
    }

    #[test]
    fn a_full_inbox_gives_the_batch_back_and_wakes_when_there_is_room() {
        let inbox = Inbox::default();
        let woken = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&woken));
        assert!(inbox.push(PeerId(1), declares(ITEMS_MAX), Some(&waker), || Timestamp(0)).is_ok());
        match inbox.push(PeerId(2), declares(3), Some(&waker), || Timestamp(0)) {
            Err(Rejected::Full(batch)) => assert_eq!(batch.len(), 3),
            other => panic!("{other:?}"),
        }
        let mut mail = Mail::default();
        inbox.take(&mut mail);
        assert_eq!(mail.items.len(), ITEMS_MAX);
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert!(inbox.push(PeerId(2), declares(3), Some(&waker), || Timestamp(0)).is_ok());
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
            vec![Request { tag: Tag(1), operation }]
        };
        let inbox = Inbox::default();
        assert!(inbox.push(PeerId(1), large(), None, || Timestamp(0)).is_ok());
        assert!(inbox.push(PeerId(1), large(), None, || Timestamp(0)).is_ok());
        assert!(matches!(inbox.push(PeerId(1), large(), None, || Timestamp(0)), Err(Rejected::Full(_))));
        inbox.take(&mut Mail::default());
        assert!(inbox.push(PeerId(1), large(), None, || Timestamp(0)).is_ok());
    }

    #[test]
    fn what_is_at_hand_is_finished_before_more_is_taken() {
        let inbox = Inbox::default();
        let mut mail = Mail::default();
        mail.items.push(PeerId(1), Item::Close);
        inbox.push(PeerId(2), declares(1), None, || Timestamp(0)).unwrap();
        inbox.log_has_news();
        inbox.wait(true, Duration::from_mins(1), Timestamp(60_000));
        inbox.take(&mut mail);
        assert_eq!(peers(&mut mail), [1]);
        inbox.wait(false, Duration::from_mins(1), Timestamp(60_000));
        inbox.take(&mut mail);
        assert_eq!(peers(&mut mail), [2]);
        assert!(!inbox.take_news());
    }

    /// An inbox whose thread sleeps for a minute.
    fn asleep() -> Inbox {
        let inbox = Inbox::default();
        inbox.lock().thread = Thread::Sleeps(Sleep { until: Timestamp(60_000), lately: None });
        inbox
    }

    fn taken(count: usize) -> Vec<Request> {
        let request = |_| Request { tag: Tag(1), operation: Operation::Taken { weight: 1 } };
        (0..count).map(request).collect()
    }

    #[test]
    fn a_small_batch_for_a_sleeping_shard_is_left_to_who_brings_it() {
        let cases = [
            ("asleep", asleep(), taken(SMALL_ITEMS), Pushed::Asleep),
            ("awake", Inbox::default(), taken(1), Pushed::Taken),
            ("too many", asleep(), taken(SMALL_ITEMS + 1), Pushed::Taken),
            ("what may take long", asleep(), declares(1), Pushed::Taken),
        ];
        for (case, inbox, batch, expected) in cases {
            assert_eq!(inbox.push(PeerId(1), batch, None, || Timestamp(0)).unwrap(), expected, "{case}");
        }
        let busy = asleep();
        busy.chore_is_done();
        assert_eq!(
            busy.push(PeerId(1), taken(1), None, || Timestamp(0)).unwrap(),
            Pushed::Taken,
            "about to wake"
        );
    }

    #[test]
    fn what_comes_while_another_runs_the_shard_is_there_when_the_thread_gets_it_back() {
        let later = Some(Timestamp(60_000));
        let run = |meanwhile: &dyn Fn(&Inbox), due| {
            let inbox = asleep();
            assert_eq!(inbox.push(PeerId(1), taken(1), None, || Timestamp(0)).unwrap(), Pushed::Asleep);
            inbox.take(&mut Mail::default());
            meanwhile(&inbox);
            assert!(matches!(inbox.lock().thread, Thread::Replaced(_, PeerId(1))));
            inbox.hand_back(due, Timestamp(0));
            inbox.lock().thread == Thread::Awake
        };
        assert!(!run(&|_| (), later), "nothing is left to do");
        assert!(run(&|_| (), None), "something is");
        assert!(run(&|_| (), Some(Timestamp(59_999))), "something is due before it wakes by itself");
        assert!(run(&|inbox| inbox.log_has_news(), later));
        assert!(run(&|inbox| inbox.chore_is_done(), later));
        assert!(run(&|inbox| inbox.stop(), later));
        let push = |inbox: &Inbox| {
            assert_eq!(inbox.push(PeerId(2), taken(1), None, || Timestamp(0)).unwrap(), Pushed::Taken);
        };
        assert!(run(&push, later));
        let heard = |inbox: &Inbox| {
            inbox.log_has_news();
            assert!(inbox.take_news(), "who runs it hears the log");
        };
        assert!(!run(&heard, later));
    }

    #[test]
    fn two_who_want_something_at_the_same_time_are_left_to_the_thread() {
        let cases = [
            ("the same again", PeerId(1), 1_000, Pushed::Asleep),
            ("another at the same time", PeerId(2), 1_000, Pushed::Taken),
            ("just behind", PeerId(2), 1_001, Pushed::Taken),
            ("a while later", PeerId(2), 1_002, Pushed::Asleep),
        ];
        for (case, peer, now, expected) in cases {
            let inbox = asleep();
            assert_eq!(inbox.push(PeerId(1), taken(1), None, || Timestamp(990)).unwrap(), Pushed::Asleep);
            inbox.take(&mut Mail::default());
            inbox.hand_back(Some(Timestamp(60_000)), Timestamp(1_000));
            assert_eq!(inbox.push(peer, taken(1), None, || Timestamp(now)).unwrap(), expected, "{case}");
        }
    }

    #[test]
    fn a_closed_inbox_says_why() {
        let inbox = Inbox::default();
        inbox.close(&"the disk is gone".into());
        match inbox.push(PeerId(1), declares(1), None, || Timestamp(0)) {
            Err(Rejected::Closed(reason)) => assert_eq!(&*reason, "the disk is gone"),
            other => panic!("{other:?}"),
        }
    }
}
