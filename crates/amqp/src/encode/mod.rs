//! Writing AMQP types, always in the shortest form the type allows.
//!
//! Everything goes into the caller's buffer; nothing is built aside. A compound value of unknown length starts with
//! the short header and is widened in place in the rare case that it outgrows it.

mod scratch;
mod sheet;

use bytes::{BufMut, BytesMut};
pub(crate) use scratch::Scratch;
pub use sheet::Sheet;

use crate::constructor as code;
use crate::descriptor::Descriptor;
use crate::text::{Symbol, Text};
use crate::uuid::Uuid;
use crate::value::{Array, Encoded, List, Map, Timestamp, Value};

/// A buffer that grows at its end and can be patched behind.
pub trait Output {
    /// Whether many small writes cost much more than a large one, so that they are better collected first.
    const COLLECT: bool;

    /// Appends bytes.
    fn put(&mut self, bytes: &[u8]);
    /// All bytes so far.
    fn written(&mut self) -> &mut [u8];
    /// Number of bytes so far.
    fn position(&self) -> usize;
}

impl Output for Vec<u8> {
    const COLLECT: bool = false;

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn written(&mut self) -> &mut [u8] {
        self
    }

    #[inline]
    fn position(&self) -> usize {
        self.len()
    }
}

impl Output for BytesMut {
    const COLLECT: bool = true;

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.put_slice(bytes);
    }

    #[inline]
    fn written(&mut self) -> &mut [u8] {
        self
    }

    #[inline]
    fn position(&self) -> usize {
        self.len()
    }
}

/// Overwrites four bytes at `position`, which were written before.
pub(crate) fn patch_u32<O: Output>(out: &mut O, position: usize, number: u32) {
    if let Some(place) = out.written().get_mut(position..).and_then(<[u8]>::first_chunk_mut::<4>) {
        *place = number.to_be_bytes();
    }
}

/// A length as AMQP's 32 bits.
#[inline]
pub(crate) fn wire_length(length: usize) -> u32 {
    u32::try_from(length).expect("values stay below 4 GiB: frames and messages are limited far below that")
}

/// Something with an AMQP encoding.
pub trait Encode {
    /// Appends the encoding.
    fn encode<O: Output>(&self, out: &mut O);

    /// The encoding in a buffer of its own.
    fn to_encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        (**self).encode(out);
    }
}

impl<T: Encode> Encode for Option<T> {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        match self {
            Some(value) => value.encode(out),
            None => out.put(&[code::NULL]),
        }
    }
}

impl<T: Encode + ?Sized> Encode for Box<T> {
    fn encode<O: Output>(&self, out: &mut O) {
        (**self).encode(out);
    }
}

impl Encode for bool {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        out.put(&[if *self { code::TRUE } else { code::FALSE }]);
    }
}

/// Writes a constructor and the big-endian bytes of a number at once.
macro_rules! put_number {
    ($out:expr, $code:expr, $number:expr, $width:literal) => {{
        let mut encoded = [0u8; $width + 1];
        if let Some((first, rest)) = encoded.split_first_mut() {
            *first = $code;
            rest.copy_from_slice(&$number);
        }
        $out.put(&encoded);
    }};
}

impl Encode for u8 {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        out.put(&[code::UBYTE, *self]);
    }
}

impl Encode for u16 {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        put_number!(out, code::USHORT, self.to_be_bytes(), 2);
    }
}

impl Encode for u32 {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        match u8::try_from(*self) {
            Ok(0) => out.put(&[code::UINT_0]),
            Ok(small) => out.put(&[code::SMALL_UINT, small]),
            Err(_) => put_number!(out, code::UINT, self.to_be_bytes(), 4),
        }
    }
}

impl Encode for u64 {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        match u8::try_from(*self) {
            Ok(0) => out.put(&[code::ULONG_0]),
            Ok(small) => out.put(&[code::SMALL_ULONG, small]),
            Err(_) => put_number!(out, code::ULONG, self.to_be_bytes(), 8),
        }
    }
}

impl Encode for i8 {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        put_number!(out, code::BYTE, self.to_be_bytes(), 1);
    }
}

impl Encode for i16 {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        put_number!(out, code::SHORT, self.to_be_bytes(), 2);
    }
}

impl Encode for i32 {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        if let Ok(small) = i8::try_from(*self) {
            put_number!(out, code::SMALL_INT, small.to_be_bytes(), 1);
        } else {
            put_number!(out, code::INT, self.to_be_bytes(), 4);
        }
    }
}

impl Encode for i64 {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        if let Ok(small) = i8::try_from(*self) {
            put_number!(out, code::SMALL_LONG, small.to_be_bytes(), 1);
        } else {
            put_number!(out, code::LONG, self.to_be_bytes(), 8);
        }
    }
}

impl Encode for Timestamp {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        put_number!(out, code::TIMESTAMP, self.0.to_be_bytes(), 8);
    }
}

impl Encode for Uuid {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        put_number!(out, code::UUID, *self.as_bytes(), 16);
    }
}

#[inline]
fn put_variable_head<O: Output>(out: &mut O, short: u8, long: u8, length: usize) {
    if let Ok(length) = u8::try_from(length) {
        out.put(&[short, length]);
    } else {
        put_number!(out, long, wire_length(length).to_be_bytes(), 4);
    }
}

/// Writes bytes behind a one-byte or four-byte length.
#[inline]
fn put_variable<O: Output>(out: &mut O, short: u8, long: u8, bytes: &[u8]) {
    put_variable_head(out, short, long, bytes.len());
    out.put(bytes);
}

/// Writes a `binary`.
#[inline]
pub fn put_binary<O: Output>(out: &mut O, bytes: &[u8]) {
    put_variable(out, code::BINARY_8, code::BINARY_32, bytes);
}

/// Writes a `symbol`.
#[inline]
pub fn put_symbol<O: Output>(out: &mut O, name: &str) {
    put_variable(out, code::SYMBOL_8, code::SYMBOL_32, name.as_bytes());
}

impl Encode for bytes::Bytes {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        put_binary(out, self);
    }
}

impl Encode for str {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        put_variable(out, code::STRING_8, code::STRING_32, self.as_bytes());
    }
}

impl Encode for Text {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        put_variable(out, code::STRING_8, code::STRING_32, self.as_bytes());
    }
}

impl Encode for Symbol {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        put_variable(out, code::SYMBOL_8, code::SYMBOL_32, self.as_bytes());
    }
}

/// Writes the head of a compound value whose items take `length` bytes.
fn put_compound_head<O: Output>(out: &mut O, short: u8, long: u8, length: usize, count: u32) {
    if let (Ok(size), Ok(count)) = (u8::try_from(length.saturating_add(1)), u8::try_from(count)) {
        out.put(&[short, size, count]);
    } else {
        put_number!(out, long, wire_length(length.saturating_add(4)).to_be_bytes(), 4);
        out.put(&count.to_be_bytes());
    }
}

impl Encode for List {
    fn encode<O: Output>(&self, out: &mut O) {
        if self.is_empty() {
            out.put(&[code::LIST_0]);
        } else {
            put_compound_head(out, code::LIST_8, code::LIST_32, self.encoded_items().len(), self.count());
            out.put(self.encoded_items());
        }
    }
}

impl Encode for Map {
    fn encode<O: Output>(&self, out: &mut O) {
        put_compound_head(out, code::MAP_8, code::MAP_32, self.encoded_entries().len(), self.item_count());
        out.put(self.encoded_entries());
    }
}

impl Encode for Array {
    fn encode<O: Output>(&self, out: &mut O) {
        let body = self.encoded_body();
        // An array read without items may lack its element constructor, which the standard demands.
        let body: &[u8] = if body.is_empty() { &[code::NULL] } else { body };
        put_compound_head(out, code::ARRAY_8, code::ARRAY_32, body.len(), self.count());
        out.put(body);
    }
}

impl Encode for Value {
    fn encode<O: Output>(&self, out: &mut O) {
        match self {
            Self::Null => out.put(&[code::NULL]),
            Self::Boolean(value) => value.encode(out),
            Self::Ubyte(value) => value.encode(out),
            Self::Ushort(value) => value.encode(out),
            Self::Uint(value) => value.encode(out),
            Self::Ulong(value) => value.encode(out),
            Self::Byte(value) => value.encode(out),
            Self::Short(value) => value.encode(out),
            Self::Int(value) => value.encode(out),
            Self::Long(value) => value.encode(out),
            Self::Float(value) => put_number!(out, code::FLOAT, value.to_be_bytes(), 4),
            Self::Double(value) => put_number!(out, code::DOUBLE, value.to_be_bytes(), 8),
            Self::Decimal32(bits) => put_number!(out, code::DECIMAL_32, *bits, 4),
            Self::Decimal64(bits) => put_number!(out, code::DECIMAL_64, *bits, 8),
            Self::Decimal128(bits) => put_number!(out, code::DECIMAL_128, *bits, 16),
            Self::Char(value) => put_number!(out, code::CHAR, u32::from(*value).to_be_bytes(), 4),
            Self::Timestamp(value) => value.encode(out),
            Self::Uuid(value) => value.encode(out),
            Self::Binary(value) => value.encode(out),
            Self::String(value) => value.encode(out),
            Self::Symbol(value) => value.encode(out),
            Self::List(value) => value.encode(out),
            Self::Map(value) => value.encode(out),
            Self::Array(value) => value.encode(out),
            Self::Described(described) => {
                out.put(&[code::DESCRIBED]);
                described.descriptor.encode(out);
                described.value.encode(out);
            }
        }
    }
}

/// Writes the fields of a composite and counts them.
#[derive(Debug)]
pub struct FieldWriter<'o, O> {
    out: &'o mut O,
    count: u32,
}

impl<O: Output> FieldWriter<'_, O> {
    /// Writes a field.
    #[inline]
    pub fn field(&mut self, value: &impl Encode) {
        self.count = self.count.saturating_add(1);
        value.encode(self.out);
    }

    /// Writes a flag that is false by default: true, or null.
    #[inline]
    pub fn flag(&mut self, value: bool) {
        self.field(&value.then_some(true));
    }
}

/// Writes the descriptor of a composite: `00 53 xx`.
#[inline]
pub fn put_descriptor<O: Output>(out: &mut O, descriptor: Descriptor) {
    out.put(&[code::DESCRIBED, code::SMALL_ULONG, descriptor.code]);
}

/// Writes a described list without fields in its one-byte form.
pub fn put_empty_composite<O: Output>(out: &mut O, descriptor: Descriptor) {
    out.put(&[code::DESCRIBED, code::SMALL_ULONG, descriptor.code, code::LIST_0]);
}

/// Writes a described list with the fields that `fields` writes.
#[inline]
pub fn put_composite<O: Output>(
    out: &mut O,
    descriptor: Descriptor,
    fields: impl FnOnce(&mut FieldWriter<'_, O>),
) {
    put_descriptor(out, descriptor);
    let head = out.position();
    out.put(&[code::LIST_8, 0, 0]);
    let mut writer = FieldWriter { out, count: 0 };
    fields(&mut writer);
    let count = writer.count;
    finish_compound(out, head, [code::LIST_8, code::LIST_32], count);
}

/// Writes the entries of a map and counts them.
#[derive(Debug)]
pub struct MapWriter<'o, O> {
    out: &'o mut O,
    items: u32,
}

impl<O: Output> MapWriter<'_, O> {
    /// Writes an entry.
    #[inline]
    pub fn entry(&mut self, key: &impl Encode, value: &impl Encode) {
        key.encode(self.out);
        value.encode(self.out);
        self.items = self.items.saturating_add(2);
    }

    /// Writes an entry whose key is a symbol.
    #[inline]
    pub fn symbol(&mut self, key: &str, value: &impl Encode) {
        put_symbol(self.out, key);
        value.encode(self.out);
        self.items = self.items.saturating_add(2);
    }

    /// Writes an entry whose key and value are encoded already.
    pub fn encoded(&mut self, key: Encoded<'_>, value: Encoded<'_>) {
        self.out.put(key.as_bytes());
        self.out.put(value.as_bytes());
        self.items = self.items.saturating_add(2);
    }

    /// Copies the entries of `map` byte for byte, but for those whose key, as symbol or string, is `replaced`.
    pub fn keep_except(&mut self, map: &Map, replaced: &[&str]) {
        for (key, value) in map.encoded_iter() {
            let is_replaced =
                key.text_bytes().is_some_and(|name| replaced.iter().any(|other| other.as_bytes() == name));
            if !is_replaced {
                self.encoded(key, value);
            }
        }
    }
}

/// Writes a map with the entries that `entries` writes.
#[inline]
pub fn put_map<O: Output>(out: &mut O, entries: impl FnOnce(&mut MapWriter<'_, O>)) {
    let head = out.position();
    out.put(&[code::MAP_8, 0, 0]);
    let mut writer = MapWriter { out, items: 0 };
    entries(&mut writer);
    let items = writer.items;
    finish_compound(out, head, [code::MAP_8, code::MAP_32], items);
}

/// Fills in the head of a compound value that began with three bytes at `head`, widening it if the short form is too small.
#[inline]
fn finish_compound<O: Output>(out: &mut O, head: usize, [short, long]: [u8; 2], count: u32) {
    let items = head.saturating_add(3);
    let length = out.position().saturating_sub(items);
    if let (Ok(size), Ok(count)) = (u8::try_from(length.saturating_add(1)), u8::try_from(count)) {
        if let Some(place) = out.written().get_mut(head..).and_then(<[u8]>::first_chunk_mut::<3>) {
            *place = [short, size, count];
        }
    } else {
        widen_compound(out, head, long, count);
    }
}

/// Gives a compound value that began with the three bytes of the short form the long one.
#[cold]
fn widen_compound<O: Output>(out: &mut O, head: usize, long: u8, count: u32) {
    let items = head.saturating_add(3);
    let length = out.position().saturating_sub(items);
    out.put(&[0; 6]);
    let end = items.saturating_add(length);
    let Some(widened) = out.written().get_mut(items..end.saturating_add(6)) else {
        // Only a scratch that overflowed is shorter than what was put into it, and nobody will read it.
        return;
    };
    widened.copy_within(..length, 6);
    if let Some(place) = out.written().get_mut(head..).and_then(<[u8]>::first_chunk_mut::<9>) {
        let [s0, s1, s2, s3] = wire_length(length.saturating_add(4)).to_be_bytes();
        let [c0, c1, c2, c3] = count.to_be_bytes();
        *place = [long, s0, s1, s2, s3, c0, c1, c2, c3];
    }
}
