//! One who asks the broker and waits for the answer: for what has no AMQP link to be answered on.
//!
//! Definitions at start ask as the operator; an HTTP request asks as whoever its token says. A caller is
//! a connection of its own, so that dropping it, because the client went away or the request took too
//! long, ends everything it began: receivers are closed, and a message that was already on its way to it
//! is given back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::smallvec;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};
use vorrang_broker::access::Principal;
use vorrang_broker::api::{Answer, Event, Link, Operation, Outlet, Received, Refused, Request, Tag};
use vorrang_broker::shard::{Broker, Connection, Stopped};
use vorrang_engine::command::{ReceiveMode, Settlement};
use vorrang_engine::{Level, MailboxId, Reply};

/// The broker stopped before it answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the broker has stopped: {reason}")]
pub struct Unanswered {
    reason: Arc<str>,
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
    /// Connects as somebody.
    pub fn connect(broker: &Broker, principal: Principal) -> Result<Caller, Stopped> {
        let desk = Arc::new(Desk { waiting: Mutex::default(), stopped: watch::Sender::new(None) });
        let connection = broker.connect(Arc::<Desk>::clone(&desk))?;
        connection.become_principal(Arc::new(principal))?;
        Ok(Caller { connection, desk })
    }

    /// Connects as the operator, who may do everything.
    pub fn operator(broker: &Broker) -> Result<Caller, Stopped> {
        Caller::connect(broker, Principal::operator())
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
        self.unanswered().reason
    }

    async fn push(&self, batch: Vec<Request>) -> Result<(), Unanswered> {
        self.connection.push(batch).await.map_err(|Stopped { reason }| Unanswered { reason })
    }

    fn unanswered(&self) -> Unanswered {
        let reason = self.desk.stopped.borrow().clone();
        Unanswered { reason: reason.unwrap_or_else(|| Arc::from("no reason was given")) }
    }
}

impl From<Stopped> for Unanswered {
    fn from(stopped: Stopped) -> Unanswered {
        Unanswered { reason: stopped.reason }
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
