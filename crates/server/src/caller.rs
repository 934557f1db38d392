//! One who asks the broker and waits for the answer: for what has no AMQP link to be answered on.
//!
//! Definitions at start ask as the operator; an HTTP request asks as whoever its token says. A caller is
//! a connection of its own, so that dropping it, because the client went away or the request took too
//! long, ends everything it began: receivers are closed, and a message that was already on its way to it
//! is given back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use smallvec::smallvec;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};
use vorrang_broker::access::Principal;
use vorrang_broker::api::{Answer, Event, Link, Operation, Outlet, Received, Refused, Request, Tag};
use vorrang_broker::shard::{Broker, Connection, Stopped};
use vorrang_engine::command::{ReceiveMode, Settlement};
use vorrang_engine::{Level, MailboxId, Reply};

/// How long a request from outside waits for the broker to take it. Then its sender is told to try again: what stands in
/// line for longer is given up by most clients anyway, and would only make the line longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// The broker stopped before it answered.
    #[error("the broker has stopped: {reason}")]
    Stopped {
        /// Why.
        reason: Arc<str>,
    },
    /// So much waits to be taken by the broker that this was not, for as long as could be waited.
    #[error("the broker is busy: more requests wait than it takes")]
    Busy,
}

/// What the broker answers when it does not refuse.
#[derive(Debug)]
pub enum Answered {
    /// Something was done.
    Reply(Reply),
    /// Something was looked up.
    Answer(Answer),
}

/// A connection to the broker that asks one thing after another.
#[derive(Debug)]
pub struct Caller {
    connection: Connection,
    /// How long to wait to be heard; without it as long as it takes.
    patience: Option<Duration>,
    desk: Arc<Desk>,
}

/// Where answers arrive.
#[derive(Debug)]
struct Desk {
    waiting: Mutex<Waiting>,
    stopped: watch::Sender<Option<Arc<str>>>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u32,
    by_tag: BTreeMap<u32, oneshot::Sender<Result<Answered, Refused>>>,
    receivers: BTreeMap<Link, mpsc::UnboundedSender<Arriving>>,
}

/// What can come for a receiver. Its channel needs no bound of its own: credit is one message.
#[derive(Debug)]
enum Arriving {
    Message(Box<Received>),
    Drained,
    Ended(Refused),
}

impl Caller {
    /// Connects as somebody who waits to be heard, but not for ever.
    pub fn connect(broker: &Broker, principal: Principal) -> Result<Caller, Stopped> {
        Caller::with_patience(broker, principal, Some(PATIENCE))
    }

    fn with_patience(
        broker: &Broker,
        principal: Principal,
        patience: Option<Duration>,
    ) -> Result<Caller, Stopped> {
        let desk = Arc::new(Desk { waiting: Mutex::default(), stopped: watch::Sender::new(None) });
        let connection = broker.connect(Arc::<Desk>::clone(&desk))?;
        connection.become_principal(Arc::new(principal))?;
        Ok(Caller { connection, patience, desk })
    }

    /// Connects as the operator, who may do everything and waits as long as it takes.
    pub fn operator(broker: &Broker) -> Result<Caller, Stopped> {
        Caller::with_patience(broker, Principal::operator(), None)
    }

    /// Asks, and waits for the answer.
    pub async fn ask(&self, operation: Operation) -> Result<Result<Answered, Refused>, Unanswered> {
        let (sender, receiver) = oneshot::channel();
        let tag = {
            let mut waiting = self.desk.lock();
            let tag = waiting.next_number();
            waiting.by_tag.insert(tag, sender);
            Tag(tag)
        };
        self.push(vec![Request { tag, operation }]).await?;
        receiver.await.map_err(|_| self.unanswered())
    }

    /// Receives one message, waiting for it until `until`; none if none came.
    pub async fn receive(
        &self,
        mailbox: MailboxId,
        mode: ReceiveMode,
        until: Instant,
    ) -> Result<Result<Option<Received>, Refused>, Unanswered> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (tag, link) = {
            let mut waiting = self.desk.lock();
            let (tag, link) = (waiting.next_number(), Link(waiting.next_number()));
            waiting.receivers.insert(link, sender);
            (Tag(tag), link)
        };
        let mut receipt = Receipt { caller: self, link, mailbox, arriving: receiver };
        let attach = Operation::Attach {
            link,
            mailboxes: smallvec![mailbox],
            mode,
            min_level: Level(0),
            selector: None,
        };
        let (sender, attached) = oneshot::channel();
        self.desk.lock().by_tag.insert(tag.0, sender);
        let credit = |drain| Operation::Credit { link, limit: 1, drain };
        // The credit needs no answer, so it may follow at once.
        let request = |tag, operation| Request { tag, operation };
        self.push(vec![request(tag, attach), request(tag, credit(false))]).await?;
        if let Err(refused) = attached.await.map_err(|_| self.unanswered())? {
            return Ok(Err(refused));
        }
        if let Ok(arrived) = timeout_at(until, receipt.arriving.recv()).await {
            return receipt.outcome(arrived);
        }
        // A message may be on its way: the drain is answered behind it.
        self.push(vec![request(tag, credit(true))]).await?;
        let arrived = receipt.arriving.recv().await;
        receipt.outcome(arrived)
    }

    /// Ends when the broker has stopped by itself, with the reason.
    pub async fn stopped(&self) -> Arc<str> {
        let mut reason = self.desk.stopped.subscribe();
        // The sender lives as long as this caller.
        let _ = reason.wait_for(Option::is_some).await;
        self.reason()
    }

    async fn push(&self, batch: Vec<Request>) -> Result<(), Unanswered> {
        let pushed = self.connection.push(batch);
        let pushed = match self.patience {
            // What was not taken in time is not taken later: it goes with the wait.
            Some(patience) => timeout(patience, pushed).await.map_err(|_| Unanswered::Busy)?,
            None => pushed.await,
        };
        pushed.map(drop).map_err(Unanswered::from)
    }

    fn unanswered(&self) -> Unanswered {
        Unanswered::Stopped { reason: self.reason() }
    }

    fn reason(&self) -> Arc<str> {
        self.desk.stopped.borrow().clone().unwrap_or_else(|| Arc::from("no reason was given"))
    }
}

impl From<Stopped> for Unanswered {
    fn from(stopped: Stopped) -> Unanswered {
        Unanswered::Stopped { reason: stopped.reason }
    }
}

/// A receiver for one message. If it is dropped with the message unread, the message is given back.
struct Receipt<'a> {
    caller: &'a Caller,
    link: Link,
    mailbox: MailboxId,
    arriving: mpsc::UnboundedReceiver<Arriving>,
}

impl Receipt<'_> {
    fn outcome(&self, arrived: Option<Arriving>) -> Result<Result<Option<Received>, Refused>, Unanswered> {
        match arrived {
            Some(Arriving::Message(received)) => Ok(Ok(Some(*received))),
            Some(Arriving::Drained) => Ok(Ok(None)),
            Some(Arriving::Ended(refused)) => Ok(Err(refused)),
            None => Err(self.caller.unanswered()),
        }
    }
}

impl Drop for Receipt<'_> {
    fn drop(&mut self) {
        let mut waiting = self.caller.desk.lock();
        waiting.receivers.remove(&self.link);
        let tag = Tag(waiting.next_number());
        drop(waiting);
        let mut batch = vec![Request { tag, operation: Operation::Detach { link: self.link } }];
        while let Ok(arrived) = self.arriving.try_recv() {
            if let Arriving::Message(received) = arrived
                && let Some(token) = received.delivery.token
            {
                let (tokens, settlement) = (smallvec![token], Settlement::Release);
                let operation =
                    Operation::Settle { mailbox: self.mailbox, tokens, settlement, transaction: None };
                batch.push(Request { tag, operation });
            }
        }
        // If there is no room, the connection's end closes the receiver and the lock expires.
        let _ = self.caller.connection.try_push(batch, None);
    }
}

impl Desk {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn next_number(&mut self) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        number
    }

    fn answer(&mut self, tag: Tag, answered: Result<Answered, Refused>) {
        if let Some(sender) = self.by_tag.remove(&tag.0) {
            // Whoever asked may have gone away.
            let _ = sender.send(answered);
        }
    }

    fn arrive(&mut self, link: Link, arriving: Arriving) {
        if let Some(sender) = self.receivers.get(&link) {
            let _ = sender.send(arriving);
        }
    }
}

impl Outlet for Desk {
    fn effects(&self, batch: Vec<Event>) {
        let mut waiting = self.lock();
        for event in batch {
            match event {
                Event::Reply { tag, reply } => waiting.answer(tag, Ok(Answered::Reply(reply))),
                Event::Answer { tag, answer } => waiting.answer(tag, Ok(Answered::Answer(answer))),
                Event::Refused { tag, refused } => waiting.answer(tag, Err(refused)),
                Event::Accepted { first, count } => {
                    for number in 0..count {
                        let tag = Tag(first.0.wrapping_add(number));
                        waiting.answer(tag, Ok(Answered::Reply(Reply::Done)));
                    }
                }
                Event::Deliver { link, delivery, body } => {
                    waiting.arrive(link, Arriving::Message(Box::new(Received { delivery, body })));
                }
                Event::Drained { link } => waiting.arrive(link, Arriving::Drained),
                Event::Detached { link, refused } => waiting.arrive(link, Arriving::Ended(refused)),
                // A caller does not watch, and learns what it may do with the answer to each question.
                Event::News { .. } | Event::KeysChanged => {}
                Event::Stopped { reason } => {
                    self.stopped.send_replace(Some(reason));
                    waiting.by_tag.clear();
                    waiting.receivers.clear();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use vorrang_broker::api::Question;
    use vorrang_broker::shard;
    use vorrang_engine::Timestamp;
    use vorrang_log::disk::{Disk, SimDisk};

    struct Deaf;

    impl Outlet for Deaf {
        fn effects(&self, _: Vec<Event>) {}
    }

    /// A broker that stands still while the gate is closed.
    fn broker(closed: &Arc<AtomicBool>) -> Broker {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
        let settings = shard::Settings {
            limits: vorrang_engine::Limits::default(),
            log: vorrang_log::Options::tiny(),
            decode: Arc::new(shard::Opaque),
            keys: Vec::new(),
            snapshots: shard::Schedule::default(),
        };
        let closed = Arc::clone(closed);
        let clock: shard::Clock = Arc::new(move || {
            while closed.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Timestamp(1_000_000)
        });
        Broker::open(&disk, settings, clock).unwrap()
    }

    #[tokio::test]
    async fn who_is_not_heard_in_time_is_told_that_the_broker_is_busy_and_is_heard_later() {
        let closed = Arc::new(AtomicBool::new(false));
        let broker = broker(&closed);
        let patience = Some(Duration::from_millis(100));
        let caller = Caller::with_patience(&broker, Principal::operator(), patience).unwrap();
        let question = || Operation::Ask(Question::Namespace);
        assert!(caller.ask(question()).await.unwrap().is_ok());
        closed.store(true, Ordering::SeqCst);
        let crowd = broker.connect(Arc::new(Deaf)).unwrap();
        crowd.become_principal(Arc::new(Principal::operator())).unwrap();
        let (_, most) = broker.filling();
        // The shard may take what waits once before it stands still; then the line is full and stays so.
        for _ in 0..2 {
            let line = (0..most).map(|_| Request { tag: Tag(1), operation: question() });
            let _ = crowd.try_push(line.collect(), None);
        }
        while broker.filling().0 < most {
            let line = (0..most).map(|_| Request { tag: Tag(1), operation: question() });
            let _ = crowd.try_push(line.collect(), None);
        }
        assert_eq!(caller.ask(question()).await.unwrap_err(), Unanswered::Busy);
        closed.store(false, Ordering::SeqCst);
        let patient = Caller::operator(&broker).unwrap();
        assert!(patient.ask(question()).await.unwrap().is_ok());
        drop((caller, patient, crowd));
        broker.stop();
    }
}
