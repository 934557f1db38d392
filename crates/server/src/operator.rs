//! The broker's own connection to itself: asks as the operator and waits for the answer.
//!
//! Used by what has no AMQP link to answer on: definitions at start, and HTTP requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{oneshot, watch};
use vorrang_broker::access::Principal;
use vorrang_broker::api::{Answer, Event, Operation, Outlet, Refused, Request, Tag};
use vorrang_broker::shard::{Broker, Connection, Stopped};
use vorrang_engine::Reply;

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

/// A connection with all rights.
#[derive(Debug)]
pub struct Operator {
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
}

impl Operator {
    /// Connects as the operator.
    pub fn connect(broker: &Broker) -> Result<Operator, Stopped> {
        let desk = Arc::new(Desk { waiting: Mutex::default(), stopped: watch::Sender::new(None) });
        let connection = broker.connect(Arc::<Desk>::clone(&desk))?;
        connection.become_principal(Arc::new(Principal::operator()))?;
        Ok(Operator { connection, desk })
    }

    /// Asks, and waits for the answer.
    pub async fn ask(&self, operation: Operation) -> Result<Result<Answered, Refused>, Unanswered> {
        let (sender, receiver) = oneshot::channel();
        let tag = {
            let mut waiting = self.desk.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let tag = waiting.next;
            waiting.next = waiting.next.wrapping_add(1);
            waiting.by_tag.insert(tag, sender);
            Tag(tag)
        };
        let stopped = |stopped: Stopped| Unanswered { reason: stopped.reason };
        self.connection.push(vec![Request { tag, operation }]).await.map_err(stopped)?;
        receiver.await.map_err(|_| Unanswered { reason: self.reason() })
    }

    /// Ends when the broker has stopped by itself, with the reason.
    pub async fn stopped(&self) -> Arc<str> {
        let mut reason = self.desk.stopped.subscribe();
        // The sender lives as long as this operator.
        let _ = reason.wait_for(Option::is_some).await;
        self.reason()
    }

    fn reason(&self) -> Arc<str> {
        self.desk.stopped.borrow().clone().unwrap_or_else(|| Arc::from("no reason was given"))
    }
}

impl Outlet for Desk {
    fn effects(&self, batch: Vec<Event>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for event in batch {
            let (tag, answered) = match event {
                Event::Reply { tag, reply } => (tag, Ok(Answered::Reply(reply))),
                Event::Answer { tag, answer } => (tag, Ok(Answered::Answer(answer))),
                Event::Refused { tag, refused } => (tag, Err(refused)),
                Event::Stopped { reason } => {
                    self.stopped.send_replace(Some(reason));
                    waiting.by_tag.clear();
                    continue;
                }
                // The operator sends no messages and attaches no receivers.
                Event::Accepted { .. }
                | Event::Deliver { .. }
                | Event::Drained { .. }
                | Event::Detached { .. } => {
                    continue;
                }
            };
            if let Some(sender) = waiting.by_tag.remove(&tag.0) {
                // Whoever asked may have gone away.
                let _ = sender.send(answered);
            }
        }
    }
}
