//! A pool's links to the broker: where messages arrive and credit goes.
//!
//! In strict order one link serves the whole list, so a free slot waits once, and the broker decides at the moment of
//! delivery. By weight each entity has a link of its own. Express links listen for what is higher than the work that
//! runs; each has at most one credit.

use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use vorrang_client::{Client, Credit, Error, Received, Receiver, ReceiverOptions, Settler, Source};

use super::options::{Options, Precedence as Choice};
use crate::plan::backoff::Backoff;
use crate::plan::slots::Precedence;

/// Express links of one pool.
const EXPRESS_MAX: usize = 8;
/// How long credit is waited for to come back; a broker that does not answer has lost it with the connection.
const WITHDRAW_MAX: Duration = Duration::from_secs(5);
/// How soon a link that the broker ended is attached again.
const REOPEN: Backoff = Backoff {
    first: Duration::from_millis(500),
    max: Duration::from_secs(30),
    factor: 2,
    spread_percent: 20,
};

/// What came.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a message is moved once; a box would cost each an allocation")]
pub(super) enum Arrived {
    Message {
        link: usize,
        message: Received,
    },
    /// The broker has ended a link; it is attached again after a while.
    Lost {
        link: usize,
        error: Error,
    },
}

/// All links of a pool: the main ones first, then the express ones, the widest first.
#[derive(Debug)]
pub(super) struct Links {
    client: Client,
    all: Vec<Link>,
    main: usize,
    entities: Vec<String>,
    /// Whether the order of the entities counts.
    ranked: bool,
    /// Where the next look begins, so that no link is always first.
    turn: usize,
}

#[derive(Debug)]
struct Link {
    source: Source,
    options: ReceiverOptions,
    /// The lowest precedence that comes here.
    floor: Precedence,
    state: State,
    settler: Settler,
    /// Credit that was given and has not come back as messages.
    outstanding: usize,
}

#[derive(Debug)]
enum State {
    Open(Receiver),
    Lost { failures: u32, until: Instant },
}

impl Links {
    /// Attaches everything a pool needs.
    pub(super) async fn open(client: &Client, options: &Options) -> Result<Links, Error> {
        let entities: Vec<String> = options.serves.iter().map(|served| served.entity.clone()).collect();
        let ranked = options.order == Choice::Strict && entities.len() > 1;
        let mut links = Vec::new();
        let lowest = Precedence { rank: 0, level: 0 };
        match options.order {
            Choice::Strict => links.push(Link::open(client, Source::ordered(&entities), None, lowest).await?),
            Choice::Weighted => {
                for entity in &entities {
                    links.push(Link::open(client, Source::from(entity), None, lowest).await?);
                }
            }
        }
        let main = links.len();
        if let Some(preemption) = &options.preemption {
            if ranked {
                let count = entities.len();
                for first in (1..count).rev().take(EXPRESS_MAX) {
                    let rank = u16::try_from(count.saturating_sub(first)).unwrap_or(u16::MAX);
                    let source = Source::ordered(entities.iter().take(first));
                    links.push(Link::open(client, source, None, Precedence { rank, level: 0 }).await?);
                }
            } else {
                let mut levels = preemption.levels.clone();
                levels.sort_unstable();
                for level in levels.into_iter().take(EXPRESS_MAX) {
                    let source = Source::ordered(&entities);
                    links.push(Link::open(client, source, Some(level), Precedence { rank: 0, level }).await?);
                }
            }
        }
        Ok(Links { client: client.clone(), all: links, main, entities, ranked, turn: 0 })
    }

    /// The main links; by weight, each has the number of its entity.
    pub(super) fn main(&self) -> Range<usize> {
        0..self.main
    }

    /// The express links, the one for the lowest precedence first.
    pub(super) fn express(&self) -> Range<usize> {
        self.main..self.all.len()
    }

    pub(super) fn is_express(&self, link: usize) -> bool {
        link >= self.main
    }

    pub(super) fn express_floors(&self) -> impl Iterator<Item = Precedence> {
        self.all.iter().skip(self.main).map(|link| link.floor)
    }

    pub(super) fn floor(&self, link: usize) -> Precedence {
        self.all.get(link).map_or(Precedence { rank: 0, level: 0 }, |link| link.floor)
    }

    /// What a link receives from, for people.
    pub(super) fn shown(&self, link: usize) -> String {
        self.all.get(link).map(|link| link.source.to_string()).unwrap_or_default()
    }

    pub(super) fn settler(&self, link: usize) -> Option<Settler> {
        self.all.get(link).map(|link| link.settler.clone())
    }

    /// Which entity a message is from, and how important it is.
    pub(super) fn place(&self, link: usize, message: &Received) -> (usize, Precedence) {
        // With one entity there is nothing to find out.
        let named = if self.entities.len() > 1 { message.source() } else { None };
        let known =
            named.and_then(|path| self.entities.iter().position(|entity| entity.eq_ignore_ascii_case(&path)));
        let entity = known.unwrap_or(if self.main > 1 && link < self.main { link } else { 0 });
        let behind = self.entities.len().saturating_sub(entity).saturating_sub(1);
        let rank = if self.ranked { u16::try_from(behind).unwrap_or(u16::MAX) } else { 0 };
        let level = message.level();
        (entity, Precedence { rank, level })
    }

    /// What comes next, on any link. Safe to cancel.
    pub(super) async fn next(&mut self) -> Arrived {
        loop {
            let due = self.all.iter().filter_map(Link::reopens_at).min();
            let arrival = self.arrival();
            match due {
                None => return arrival.await,
                Some(due) => tokio::select! {
                    arrived = arrival => return arrived,
                    () = sleep_until(due) => {}
                },
            }
            self.reopen().await;
        }
    }

    /// What is here already.
    pub(super) fn try_next(&mut self) -> Option<Arrived> {
        let count = self.all.len();
        for step in 0..count {
            let index = (self.turn + step) % count;
            let Some(Link { state: State::Open(receiver), outstanding, .. }) = self.all.get_mut(index) else {
                continue;
            };
            if let Some(message) = receiver.try_recv() {
                *outstanding = outstanding.saturating_sub(1);
                self.turn = index;
                return Some(Arrived::Message { link: index, message });
            }
        }
        None
    }

    async fn arrival(&mut self) -> Arrived {
        poll_fn(|context| {
            let count = self.all.len();
            for step in 0..count {
                let index = (self.turn + step) % count;
                let Some(link) = self.all.get_mut(index) else { continue };
                let State::Open(receiver) = &mut link.state else { continue };
                // Receiving is safe to cancel, so a new future each time loses nothing.
                let Poll::Ready(received) = pin!(receiver.recv()).poll(context) else { continue };
                self.turn = (index + 1) % count;
                if let Some(message) = received {
                    link.outstanding = link.outstanding.saturating_sub(1);
                    return Poll::Ready(Arrived::Message { link: index, message });
                }
                let error = receiver.ending().cloned().unwrap_or(Error::Closed);
                link.lose(1);
                return Poll::Ready(Arrived::Lost { link: index, error });
            }
            Poll::Pending
        })
        .await
    }

    async fn reopen(&mut self) {
        for link in &mut self.all {
            let State::Lost { failures, until } = link.state else { continue };
            if Instant::now() < until {
                continue;
            }
            match self.client.receiver_with(link.source.clone(), link.options.clone()).await {
                Ok(receiver) => {
                    link.settler = receiver.settler();
                    link.state = State::Open(receiver);
                }
                Err(_) => link.lose(failures.saturating_add(1)),
            }
        }
    }

    /// Lets the broker send up to `credit` messages on a link, if that is at least `step` more than it may now; takes
    /// back what is more, if asked to.
    pub(super) async fn set_credit(&mut self, link: usize, credit: usize, step: usize, withdraw: bool) {
        let Some(link) = self.all.get_mut(link) else { return };
        let State::Open(receiver) = &mut link.state else { return };
        // Errors mean that the link is lost, which receiving from it tells.
        if credit >= link.outstanding.saturating_add(step.max(1)) {
            let more = u32::try_from(credit.saturating_sub(link.outstanding)).unwrap_or(u32::MAX);
            if receiver.add_credit(more).await.is_ok() {
                link.outstanding = credit;
            }
        } else if withdraw && credit < link.outstanding {
            let _ = tokio::time::timeout(WITHDRAW_MAX, receiver.drain()).await;
            link.outstanding = 0;
        }
    }
}

impl Link {
    async fn open(
        client: &Client,
        source: Source,
        min_level: Option<u8>,
        floor: Precedence,
    ) -> Result<Link, Error> {
        let options = ReceiverOptions { credit: Credit::Manual, min_level, ..ReceiverOptions::default() };
        let receiver = client.receiver_with(source.clone(), options.clone()).await?;
        let settler = receiver.settler();
        Ok(Link { source, options, floor, state: State::Open(receiver), settler, outstanding: 0 })
    }

    fn lose(&mut self, failures: u32) {
        self.outstanding = 0;
        self.state = State::Lost { failures, until: Instant::now() + REOPEN.wait(failures, 0) };
    }

    fn reopens_at(&self) -> Option<Instant> {
        match self.state {
            State::Open(_) => None,
            State::Lost { until, .. } => Some(until),
        }
    }
}
