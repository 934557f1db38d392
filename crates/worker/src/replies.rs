//! Answers to requests: to the entity and session the request names, with its id as correlation.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use vorrang_client::{Client, Error, Message, Received, Sender};

/// Senders that are kept open. The one that was used longest ago makes room: a peer can name any address.
const SENDERS_MAX: usize = 64;

/// Sends answers, keeping the links it needed lately.
#[derive(Debug)]
pub(crate) struct Replies {
    client: Client,
    senders: Mutex<VecDeque<(Box<str>, Sender)>>,
}

impl Replies {
    pub(crate) fn new(client: Client) -> Replies {
        Replies { client, senders: Mutex::new(VecDeque::new()) }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Sends `answer` where `request` asks for it.
    pub(crate) async fn send(&self, request: &Received, answer: Message) -> Result<(), Error> {
        let Some(address) = request.reply_to() else {
            return Err(Error::InvalidArgument("the message asks for no answer: it has no reply-to".into()));
        };
        let answer = addressed(request, answer);
        let sender = match self.kept(address) {
            Some(sender) => sender,
            None => self.client.sender(address).await?,
        };
        let sent = sender.send(answer).await;
        if sent.is_ok() {
            self.keep(address, sender);
        }
        sent
    }

    fn kept(&self, address: &str) -> Option<Sender> {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        let index = senders.iter().position(|(known, _)| **known == *address)?;
        senders.remove(index).map(|(_, sender)| sender)
    }

    fn keep(&self, address: &str, sender: Sender) {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        senders.push_back((address.into(), sender));
        if senders.len() > SENDERS_MAX {
            senders.pop_front();
        }
    }
}

/// The correlation is the request's id, as everybody who waits for an answer expects; without one, its correlation.
fn addressed(request: &Received, mut answer: Message) -> Message {
    if let Some(id) = request.message_id().or_else(|| request.correlation_id()) {
        answer = answer.with_correlation_id(id);
    }
    if let Some(session) = request.reply_to_session() {
        answer = answer.with_session(session);
    }
    answer
}
