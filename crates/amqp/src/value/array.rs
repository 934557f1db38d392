//! Arrays as checked slices.

use std::fmt;

use bytes::Bytes;

use crate::constructor as code;
use crate::decode::Reader;
use crate::encode::wire_length;
use crate::text::Symbol;
use crate::uuid::Uuid;
use crate::value::{Timestamp, Value};

/// An array: one constructor, then items without their own.
#[derive(Clone, Default)]
pub struct Array {
    /// The constructor and the items; empty only if an array without items came without constructor.
    body: Bytes,
    count: u32,
}

impl Array {
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
        let mut reader = Reader::of_checked(&self.body);
        let constructor = if self.count == 0 { None } else { reader.checked_constructor() };
        (0..self.count).map_while(move |_| reader.checked_element(constructor.as_ref()?))
    }

    /// An array of items of one type.
    pub fn of<T: ArrayElement>(items: impl IntoIterator<Item = T>) -> Self {
        let mut body = vec![T::CONSTRUCTOR];
        let mut count = 0u32;
        for item in items {
            item.append(&mut body);
            count = count.saturating_add(1);
        }
        Self { body: body.into(), count }
    }

    /// The constructor and the items, without the array's head.
    pub fn encoded_body(&self) -> &Bytes {
        &self.body
    }

    /// An array whose items were checked already.
    pub(crate) fn from_checked(body: Bytes, count: u32) -> Self {
        Self { body, count }
    }
}

/// A type that can be the item of an array we build. Items are always written in full width.
pub trait ArrayElement {
    /// The constructor of every item.
    const CONSTRUCTOR: u8;
    /// Appends the item without constructor.
    fn append(&self, body: &mut Vec<u8>);
}

macro_rules! number_elements {
    ($($type:ty => $code:path;)*) => {
        $(impl ArrayElement for $type {
            const CONSTRUCTOR: u8 = $code;

            fn append(&self, body: &mut Vec<u8>) {
                body.extend_from_slice(&self.to_be_bytes());
            }
        })*
    };
}

number_elements! {
    i32 => code::INT;
    i64 => code::LONG;
    u32 => code::UINT;
    u64 => code::ULONG;
}

impl ArrayElement for Timestamp {
    const CONSTRUCTOR: u8 = code::TIMESTAMP;

    fn append(&self, body: &mut Vec<u8>) {
        body.extend_from_slice(&self.0.to_be_bytes());
    }
}

impl ArrayElement for Uuid {
    const CONSTRUCTOR: u8 = code::UUID;

    fn append(&self, body: &mut Vec<u8>) {
        body.extend_from_slice(self.as_bytes());
    }
}

impl ArrayElement for Symbol {
    const CONSTRUCTOR: u8 = code::SYMBOL_32;

    fn append(&self, body: &mut Vec<u8>) {
        body.extend_from_slice(&wire_length(self.as_bytes().len()).to_be_bytes());
        body.extend_from_slice(self.as_bytes());
    }
}

impl PartialEq for Array {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && (self.body == other.body || self.iter().eq(other.iter()))
    }
}

impl Eq for Array {}

impl fmt::Debug for Array {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}
