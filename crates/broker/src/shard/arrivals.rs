//! What has come in and is not yet carried out, in the order it came.
//!
//! A request is some hundred bytes. It stays in the buffer that its door put it into, and is moved once: to where it is
//! carried out.

use super::core::Item;
use super::peer::PeerId;
use crate::api::Request;
use std::collections::VecDeque;

/// Items in the order they came, each with its connection.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// None of them is empty.
    parcels: VecDeque<(PeerId, Parcel)>,
    items: usize,
}

#[derive(Debug)]
enum Parcel {
    /// What a connection asked at once.
    Requests(VecDeque<Request>),
    /// What is said alone, and seldom.
    Alone(Box<Item>),
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
            self.parcels.push_back((peer, Parcel::Requests(batch.into())));
        }
    }

    /// Takes the next item.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(PeerId, Item)> {
        self.items = self.items.checked_sub(1)?;
        if let Some((peer, Parcel::Requests(requests))) = self.parcels.front_mut()
            && requests.len() > 1
        {
            return Some((*peer, Item::Request(requests.pop_front()?)));
        }
        let (peer, last) = self.parcels.pop_front()?;
        match last {
            Parcel::Requests(mut requests) => Some((peer, Item::Request(requests.pop_front()?))),
            Parcel::Alone(item) => Some((peer, *item)),
        }
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
        while let Some((peer, item)) = arrivals.pop() {
            left.push(arrivals.len());
            seen.push((peer.0, if let Item::Request(request) = item { request.tag.0 } else { 0 }));
        }
        assert_eq!(seen, [(1, 1), (1, 2), (3, 0), (4, 3), (1, 4)]);
        assert_eq!(left, [4, 3, 2, 1, 0]);
        assert!(arrivals.is_empty() && arrivals.pop().is_none());
    }
}
