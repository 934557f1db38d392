//! What a peer is to a measurement: a server that can be started, and clients that speak its protocol.
//!
//! All clients have one shape, so that a workload is written once: a sender puts messages into its output and
//! is told which of them the server has acknowledged; a receiver hands out deliveries and is told which of them are settled.
//! Senders number their messages from 0, each for itself.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::daemon::Daemon;

/// Classes of priority, 0 the most urgent.
pub(crate) const CLASSES: u8 = 4;

/// What a body begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Microseconds since the run began.
    pub(crate) sent_micros: u64,
    /// Counted over all senders of a run.
    pub(crate) number: u64,
    /// 0 is the most urgent.
    pub(crate) class: u8,
}

impl Stamp {
    /// Writes the stamp over the beginning of `body`; a body shorter than a stamp stays as it is.
    pub(crate) fn write(self, body: &mut [u8]) {
        if let Some(place) = body.get_mut(..8) {
            place.copy_from_slice(&self.sent_micros.to_be_bytes());
        }
        if let Some(place) = body.get_mut(8..16) {
            place.copy_from_slice(&self.number.to_be_bytes());
        }
        if let Some(place) = body.get_mut(16) {
            *place = self.class;
        }
    }

    /// Reads it back.
    pub(crate) fn read(body: &[u8]) -> Option<Stamp> {
        let sent_micros = u64::from_be_bytes(*body.first_chunk()?);
        let number = u64::from_be_bytes(*body.get(8..)?.first_chunk()?);
        Some(Stamp { sent_micros, number, class: *body.get(16)? })
    }
}

/// A message on its way to a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'a> {
    /// The body, which begins with a stamp.
    pub(crate) body: &'a [u8],
    /// 0 is the most urgent.
    pub(crate) class: u8,
    /// What filters look at, in the workload that has them.
    pub(crate) key: Option<u32>,
}

/// A message that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// How its receiver knows it.
    pub(crate) token: u64,
    /// What its body begins with.
    pub(crate) stamp: Stamp,
}

/// A connection that sends.
pub(crate) trait Sender: Send {
    /// Puts a message into the output; false if the server takes no more at the moment.
    fn send(&mut self, message: &Message<'_>) -> Result<bool>;
    /// Writes the output, and reports the numbers of messages that are acknowledged, waiting so long for the first.
    fn acknowledged(&mut self, wait: Duration, seen: &mut dyn FnMut(u64)) -> Result<()>;
}

/// A connection that receives.
pub(crate) trait Receiver: Send {
    /// Writes the output, asks for more where the protocol wants to be asked, and hands out what arrived,
    /// waiting so long for the first.
    fn poll(&mut self, wait: Duration, take: &mut dyn FnMut(Delivery)) -> Result<()>;
    /// Settles a delivery; it leaves with the next output.
    fn settle(&mut self, token: u64) -> Result<()>;
    /// Writes what waits, asking for nothing.
    fn flush(&mut self) -> Result<()>;
    /// Settlements so far that the server has confirmed, or that were sent where it confirms none.
    fn settled(&self) -> u64;
}

/// How queues are laid out for a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One queue, everything equal.
    Plain,
    /// The same for thousands of receivers; several queues where one takes fewer of them.
    Crowd,
    /// One queue with priorities, or what comes nearest to it.
    Priorities,
    /// One place to send to, so many queues behind it, each taking what its filter lets through.
    FanOut(FanOut),
}

/// What is behind the filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FanOut {
    /// So many subscriptions with an expression each; every message passes ten of them.
    Expressions(u32),
    /// So many subscriptions that each want one key; every message passes one of them.
    Keys(u32),
}

/// Clients of one running server.
pub(crate) trait Clients: Send + Sync {
    /// Succeeds when the server answers its protocol.
    fn probe(&self) -> Result<()>;
    /// Makes the queues, which may be there already.
    fn prepare(&self) -> Result<()>;
    /// A new connection that sends.
    fn sender(&self) -> Result<Box<dyn Sender>>;
    /// A new connection that receives, holding at most so many unsettled deliveries.
    fn receiver(&self, prefetch: u32) -> Result<Box<dyn Receiver>>;
    /// A new connection that receives from one of the filtered queues.
    fn subscriber(&self, _subscription: u32, prefetch: u32) -> Result<Box<dyn Receiver>> {
        self.receiver(prefetch)
    }
}

/// What the document says about a peer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Facts {
    /// As in the tables.
    pub(crate) name: String,
    /// What it calls itself.
    pub(crate) version: String,
    /// How the generator speaks to it.
    pub(crate) protocol: String,
    /// What it has done when it acknowledges a send.
    pub(crate) acknowledgement: String,
    /// What it has done when a receiver counts a message as settled.
    pub(crate) settlement: String,
    /// Whether an acknowledgement means that the disk was synced.
    pub(crate) synced: bool,
    /// Command line, and files if there are any.
    pub(crate) configuration: String,
}

/// What a peer can take part in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ability {
    /// It has priorities, or something that comes near.
    Priorities,
    /// It holds thousands of connections in its recommended configuration.
    Connections,
    /// It evaluates an expression for each subscription.
    Expressions,
    /// It finds subscriptions by a key.
    Keys,
}

/// A server that can be measured.
pub(crate) trait Peer {
    /// As in the tables.
    fn name(&self) -> &'static str;
    /// The Debian package it, or something it needs, comes in; none where nothing is installed by us.
    fn package(&self) -> Option<&'static str>;
    /// Whether that package is missing.
    fn wants_package(&self) -> bool {
        self.facts().is_err()
    }
    /// Everything the document says; an error is the reason why it cannot be measured.
    fn facts(&self) -> Result<Facts>;
    /// Whether it can take part.
    fn can(&self, ability: Ability) -> bool;
    /// Starts it on a folder, which may hold what an earlier start left there.
    fn start(&self, folder: &Path, layout: Layout) -> Result<Daemon>;
    /// Clients of the server at that port.
    fn clients(&self, port: u16, layout: Layout) -> Box<dyn Clients>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_was_written_and_a_short_body_has_none() {
        let stamp = Stamp { sent_micros: 7, number: u64::MAX, class: 3 };
        let mut body = [b'x'; 32];
        stamp.write(&mut body);
        assert_eq!(Stamp::read(&body), Some(stamp));
        assert_eq!(Stamp::read(&body[..17]), Some(stamp));
        assert_eq!(Stamp::read(&body[..16]), None);
    }
}
