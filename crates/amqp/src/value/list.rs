//! Lists as checked slices.

use std::fmt;

use bytes::Bytes;

use crate::decode::Reader;
use crate::encode::Encode;
use crate::value::Value;

/// A list. Its items are decoded when they are looked at.
#[derive(Clone, Default)]
pub struct List {
    items: Bytes,
    count: u32,
}

impl List {
    /// The list without items.
    pub const EMPTY: Self = Self { items: Bytes::new(), count: 0 };

    /// Number of items.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = Value> + '_ {
        let mut reader = Reader::of_checked(&self.items);
        (0..self.count).map_while(move |_| reader.checked_value())
    }

    /// The item at `place`, counted from 0.
    pub fn item(&self, place: usize) -> Option<Value> {
        self.iter().nth(place)
    }

    /// The encoded items, without the list's head.
    pub fn encoded_items(&self) -> &Bytes {
        &self.items
    }

    /// A list whose items were checked already.
    pub(crate) fn from_checked(items: Bytes, count: u32) -> Self {
        Self { items, count }
    }
}

/// Builds a list by encoding one item after the other.
#[derive(Debug, Clone, Default)]
pub struct ListBuilder {
    items: Vec<u8>,
    count: u32,
}

impl ListBuilder {
    /// Appends an item.
    pub fn push(&mut self, item: &impl Encode) {
        item.encode(&mut self.items);
        self.count = self.count.saturating_add(1);
    }

    /// The list.
    pub fn finish(self) -> List {
        List { items: self.items.into(), count: self.count }
    }
}

impl<T: Encode> FromIterator<T> for List {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut builder = ListBuilder::default();
        for item in items {
            builder.push(&item);
        }
        builder.finish()
    }
}

impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && (self.items == other.items || self.iter().eq(other.iter()))
    }
}

impl Eq for List {}

impl fmt::Debug for List {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}
