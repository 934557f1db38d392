//! What has come in and is not yet carried out, in the order it came.
//!
//! A request is some hundred bytes. It stays in the buffer that its door put it into, and is carried out from there: what it
//! brings is taken out of it, and what is left goes with the buffer.

use super::core::Item;
use super::peer::PeerId;
use crate::api::Request;
use std::collections::VecDeque;

/// How many requests ahead a message is fetched from memory, which answers while those before it are carried out.
const AHEAD: usize = 2;

/// Items in the order they came, each with its connection.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// None of them is empty.
    parcels: VecDeque<(PeerId, Parcel)>,
    items: usize,
}

#[derive(Debug)]
enum Parcel {
    /// What a connection asked at once, and how much of it is done.
    Requests(Vec<Request>, usize),
    /// What is said alone, and seldom.
    Alone(Box<Item>),
}

/// An item where it lies.
#[derive(Debug)]
pub(super) enum Arrived<'a> {
    Request(&'a mut Request),
    /// Anything else.
    Item(&'a Item),
}

impl Arrivals {
    /// Adds an item.
    pub fn push(&mut self, peer: PeerId, item: Item) {
        self.parcels.push_back((peer, Parcel::Alone(Box::new(item))));
        self.items = self.items.saturating_add(1);
    }

    /// Adds requests as they are.
    pub(super) fn push_batch(&mut self, peer: PeerId, batch: Vec<Request>) {
        if !batch.is_empty() {
            self.items = self.items.saturating_add(batch.len());
            self.parcels.push_back((peer, Parcel::Requests(batch, 0)));
        }
    }

    /// The next item. It is the next until it is [done](Arrivals::done). The message of one soon behind it is on its way
    /// from memory meanwhile.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(PeerId, Arrived<'_>)> {
        let (peer, parcel) = self.parcels.front_mut()?;
        let arrived = match parcel {
            Parcel::Requests(batch, done) => {
                if let Some(soon) = batch.get(done.saturating_add(AHEAD)) {
                    soon.operation.fetch();
                }
                Arrived::Request(batch.get_mut(*done)?)
            }
            Parcel::Alone(item) => match &mut **item {
                Item::Request(request) => Arrived::Request(request),
                other => Arrived::Item(other),
            },
        };
        Some((*peer, arrived))
    }

    /// The next item was carried out.
    #[inline]
    pub(super) fn done(&mut self) {
        self.items = self.items.saturating_sub(1);
        if let Some((_, Parcel::Requests(batch, done))) = self.parcels.front_mut() {
            *done = done.saturating_add(1);
            if *done < batch.len() {
                return;
            }
        }
        self.parcels.pop_front();
    }

    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Forgets them all.
    pub fn clear(&mut self) {
        *self = Arrivals::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Operation, Tag};

    #[test]
    fn items_come_out_one_by_one_in_the_order_they_came() {
        let request = |tag| Request { tag: Tag(tag), operation: Operation::Declare };
        let mut arrivals = Arrivals::default();
        arrivals.push_batch(PeerId(1), vec![request(1), request(2)]);
        arrivals.push_batch(PeerId(2), Vec::new());
        arrivals.push(PeerId(3), Item::Close);
        arrivals.push(PeerId(4), Item::Request(request(3)));
        arrivals.push_batch(PeerId(1), vec![request(4)]);
        let mut left = Vec::new();
        let mut seen = Vec::new();
        while let Some((peer, arrived)) = arrivals.next() {
            seen.push((peer.0, if let Arrived::Request(request) = arrived { request.tag.0 } else { 0 }));
            arrivals.done();
            left.push(arrivals.len());
        }
        assert_eq!(seen, [(1, 1), (1, 2), (3, 0), (4, 3), (1, 4)]);
        assert_eq!(left, [4, 3, 2, 1, 0]);
        assert!(arrivals.is_empty() && arrivals.next().is_none());
    }
}
