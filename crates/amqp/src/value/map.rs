//! Maps as checked slices.

use std::fmt;

use bytes::Bytes;

use crate::decode::Reader;
use crate::encode::Encode;
use crate::value::{Encoded, Value};

/// A map: link properties, annotations, filters, error details, management bodies.
///
/// Entries keep their order and are decoded when they are looked at. AMQP forbids a key to occur twice; if it
/// does, [`Map::value`] finds the first.
#[derive(Clone, Default)]
pub struct Map {
    entries: Bytes,
    /// Keys and values together, as AMQP counts; even.
    items: u32,
}

impl Map {
    /// The map without entries.
    pub const EMPTY: Self = Self { entries: Bytes::new(), items: 0 };

    /// Number of entries.
    pub fn len(&self) -> u32 {
        self.items / 2
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (Value, Value)> + '_ {
        let mut reader = Reader::of_checked(&self.entries);
        (0..self.len()).map_while(move |_| Some((reader.checked_value()?, reader.checked_value()?)))
    }

    /// Keys and values in order, still encoded.
    pub fn encoded_iter(&self) -> impl Iterator<Item = (Encoded<'_>, Encoded<'_>)> + '_ {
        let mut reader = Reader::of_checked(&self.entries);
        (0..self.len()).map_while(move |_| Some((reader.checked_encoded()?, reader.checked_encoded()?)))
    }

    /// The value under a key written as symbol or as string.
    pub fn value(&self, key: &str) -> Option<Value> {
        let mut reader = Reader::of_checked(&self.entries);
        for _ in 0..self.len() {
            if reader.next_text() == Some(key.as_bytes()) {
                reader.skip_checked()?;
                return reader.checked_value();
            }
            reader.skip_checked()?;
            reader.skip_checked()?;
        }
        None
    }

    /// Whether a key written as symbol or as string is there, even with a null value.
    pub fn contains(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// The encoded keys and values, without the map's head.
    pub fn encoded_entries(&self) -> &Bytes {
        &self.entries
    }

    /// Keys and values together, as AMQP counts.
    pub(crate) fn item_count(&self) -> u32 {
        self.items
    }

    /// A map whose entries were checked already.
    pub(crate) fn from_checked(entries: Bytes, items: u32) -> Self {
        Self { entries, items }
    }
}

/// Builds a map by encoding one entry after the other. It does not look for keys that are there already.
#[derive(Debug, Clone, Default)]
pub struct MapBuilder {
    entries: Vec<u8>,
    items: u32,
}

impl MapBuilder {
    /// Appends an entry.
    pub fn push(&mut self, key: &impl Encode, value: &impl Encode) {
        key.encode(&mut self.entries);
        value.encode(&mut self.entries);
        self.items = self.items.saturating_add(2);
    }

    /// Appends an entry whose key is a symbol.
    pub fn push_symbol(&mut self, key: &str, value: &impl Encode) {
        crate::encode::put_symbol(&mut self.entries, key);
        value.encode(&mut self.entries);
        self.items = self.items.saturating_add(2);
    }

    /// The map.
    pub fn finish(self) -> Map {
        Map { entries: self.entries.into(), items: self.items }
    }
}

impl<K: Encode, V: Encode> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut builder = MapBuilder::default();
        for (key, value) in entries {
            builder.push(&key, &value);
        }
        builder.finish()
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items && (self.entries == other.entries || self.iter().eq(other.iter()))
    }
}

impl Eq for Map {}

impl fmt::Debug for Map {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}
