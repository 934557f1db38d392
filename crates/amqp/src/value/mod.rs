//! Any AMQP value.
//!
//! Scalars are held as themselves. Text and binaries are slices of the buffer they came from, and so are lists, maps
//! and arrays: they are checked once, when they are read, and decoded item by item when someone looks. So a value
//! costs no more memory than the bytes it came in, whatever it claims, and goes out again byte for byte as it came.

mod array;
mod encoded;
mod list;
mod map;

use std::fmt;

use bytes::Bytes;

pub use array::{Array, ArrayElement};
pub use encoded::Encoded;
pub use list::{List, ListBuilder};
pub use map::{Map, MapBuilder};

use crate::text::{Symbol, Text};
use crate::uuid::Uuid;

/// Milliseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

/// Any AMQP value.
///
/// Floats compare by their bits, so that equality is what the wire shows: a NaN equals itself, and 0 and -0 differ.
#[derive(Clone, Default)]
pub enum Value {
    /// Nothing.
    #[default]
    Null,
    /// True or false.
    Boolean(bool),
    /// Unsigned, 8 bits.
    Ubyte(u8),
    /// Unsigned, 16 bits.
    Ushort(u16),
    /// Unsigned, 32 bits.
    Uint(u32),
    /// Unsigned, 64 bits.
    Ulong(u64),
    /// Signed, 8 bits.
    Byte(i8),
    /// Signed, 16 bits.
    Short(i16),
    /// Signed, 32 bits.
    Int(i32),
    /// Signed, 64 bits.
    Long(i64),
    /// IEEE 754 binary32.
    Float(f32),
    /// IEEE 754 binary64.
    Double(f64),
    /// IEEE 754 decimal32, as its bits.
    Decimal32([u8; 4]),
    /// IEEE 754 decimal64, as its bits.
    Decimal64([u8; 8]),
    /// IEEE 754 decimal128, as its bits.
    Decimal128([u8; 16]),
    /// A Unicode character.
    Char(char),
    /// A point in time.
    Timestamp(Timestamp),
    /// A UUID.
    Uuid(Uuid),
    /// Bytes.
    Binary(Bytes),
    /// Text.
    String(Text),
    /// A name.
    Symbol(Symbol),
    /// A sequence of values.
    List(List),
    /// Pairs of values.
    Map(Map),
    /// A sequence of values of one type.
    Array(Array),
    /// A value with a descriptor that says what it means.
    Described(Box<Described>),
}

/// A value and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// What the value means; a symbol or a ulong by convention.
    pub descriptor: Value,
    /// The value itself.
    pub value: Value,
}

impl Value {
    /// A described value.
    pub fn described(descriptor: impl Into<Value>, value: impl Into<Value>) -> Self {
        Self::Described(Box::new(Described { descriptor: descriptor.into(), value: value.into() }))
    }

    /// A symbol that lives as long as the program.
    pub const fn symbol(name: &'static str) -> Self {
        Self::Symbol(Symbol::from_static(name))
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The value without its descriptors, if it has any.
    pub fn undescribed(&self) -> &Self {
        let mut value = self;
        while let Self::Described(described) = value {
            value = &described.value;
        }
        value
    }

    /// A boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    /// An integer of any type. Clients disagree about widths and signs, so every reader of numbers goes through here.
    pub fn as_integer(&self) -> Option<i128> {
        match *self {
            Self::Ubyte(value) => Some(value.into()),
            Self::Ushort(value) => Some(value.into()),
            Self::Uint(value) => Some(value.into()),
            Self::Ulong(value) => Some(value.into()),
            Self::Byte(value) => Some(value.into()),
            Self::Short(value) => Some(value.into()),
            Self::Int(value) => Some(value.into()),
            Self::Long(value) => Some(value.into()),
            _ => None,
        }
    }

    /// An integer of any type that fits 32 unsigned bits.
    pub fn as_u32(&self) -> Option<u32> {
        self.as_integer().and_then(|number| number.try_into().ok())
    }

    /// An integer of any type that fits 64 unsigned bits.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_integer().and_then(|number| number.try_into().ok())
    }

    /// An integer of any type that fits 32 signed bits.
    pub fn as_i32(&self) -> Option<i32> {
        self.as_integer().and_then(|number| number.try_into().ok())
    }

    /// An integer of any type that fits 64 signed bits.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_integer().and_then(|number| number.try_into().ok())
    }

    /// A string or a symbol; clients swap them freely.
    pub fn as_text(&self) -> Option<&Text> {
        match self {
            Self::String(text) => Some(text),
            Self::Symbol(symbol) => Some(symbol.as_text()),
            _ => None,
        }
    }

    /// A string or a symbol, as `str`.
    pub fn as_str(&self) -> Option<&str> {
        self.as_text().map(Text::as_str)
    }

    /// A binary.
    pub fn as_binary(&self) -> Option<&Bytes> {
        match self {
            Self::Binary(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// A UUID.
    pub fn as_uuid(&self) -> Option<Uuid> {
        match self {
            Self::Uuid(uuid) => Some(*uuid),
            _ => None,
        }
    }

    /// A point in time.
    pub fn as_timestamp(&self) -> Option<Timestamp> {
        match self {
            Self::Timestamp(timestamp) => Some(*timestamp),
            _ => None,
        }
    }

    /// A list.
    pub fn as_list(&self) -> Option<&List> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// A map.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// An array.
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Boolean(left), Self::Boolean(right)) => left == right,
            (Self::Ubyte(left), Self::Ubyte(right)) => left == right,
            (Self::Ushort(left), Self::Ushort(right)) => left == right,
            (Self::Uint(left), Self::Uint(right)) => left == right,
            (Self::Ulong(left), Self::Ulong(right)) => left == right,
            (Self::Byte(left), Self::Byte(right)) => left == right,
            (Self::Short(left), Self::Short(right)) => left == right,
            (Self::Int(left), Self::Int(right)) => left == right,
            (Self::Long(left), Self::Long(right)) => left == right,
            (Self::Float(left), Self::Float(right)) => left.to_bits() == right.to_bits(),
            (Self::Double(left), Self::Double(right)) => left.to_bits() == right.to_bits(),
            (Self::Decimal32(left), Self::Decimal32(right)) => left == right,
            (Self::Decimal64(left), Self::Decimal64(right)) => left == right,
            (Self::Decimal128(left), Self::Decimal128(right)) => left == right,
            (Self::Char(left), Self::Char(right)) => left == right,
            (Self::Timestamp(left), Self::Timestamp(right)) => left == right,
            (Self::Uuid(left), Self::Uuid(right)) => left == right,
            (Self::Binary(left), Self::Binary(right)) => left == right,
            (Self::String(left), Self::String(right)) => left == right,
            (Self::Symbol(left), Self::Symbol(right)) => left == right,
            (Self::List(left), Self::List(right)) => left == right,
            (Self::Map(left), Self::Map(right)) => left == right,
            (Self::Array(left), Self::Array(right)) => left == right,
            (Self::Described(left), Self::Described(right)) => left == right,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => formatter.write_str("null"),
            Self::Boolean(value) => write!(formatter, "{value}"),
            Self::Ubyte(value) => write!(formatter, "{value}ubyte"),
            Self::Ushort(value) => write!(formatter, "{value}ushort"),
            Self::Uint(value) => write!(formatter, "{value}uint"),
            Self::Ulong(value) => write!(formatter, "{value}ulong"),
            Self::Byte(value) => write!(formatter, "{value}byte"),
            Self::Short(value) => write!(formatter, "{value}short"),
            Self::Int(value) => write!(formatter, "{value}int"),
            Self::Long(value) => write!(formatter, "{value}long"),
            Self::Float(value) => write!(formatter, "{value}float"),
            Self::Double(value) => write!(formatter, "{value}double"),
            Self::Decimal32(bits) => write!(formatter, "decimal32{bits:02x?}"),
            Self::Decimal64(bits) => write!(formatter, "decimal64{bits:02x?}"),
            Self::Decimal128(bits) => write!(formatter, "decimal128{bits:02x?}"),
            Self::Char(value) => write!(formatter, "{value:?}"),
            Self::Timestamp(value) => write!(formatter, "{}ms", value.0),
            Self::Uuid(value) => write!(formatter, "{value}"),
            Self::Binary(value) => write!(formatter, "{value:?}"),
            Self::String(value) => write!(formatter, "{value:?}"),
            Self::Symbol(value) => write!(formatter, "{value:?}"),
            Self::List(value) => write!(formatter, "{value:?}"),
            Self::Map(value) => write!(formatter, "{value:?}"),
            Self::Array(value) => write!(formatter, "array{value:?}"),
            Self::Described(value) => write!(formatter, "@{:?} {:?}", value.descriptor, value.value),
        }
    }
}

macro_rules! value_from {
    ($($type:ty => $variant:ident;)*) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        })*
    };
}

value_from! {
    bool => Boolean;
    u8 => Ubyte;
    u16 => Ushort;
    u32 => Uint;
    u64 => Ulong;
    i8 => Byte;
    i16 => Short;
    i32 => Int;
    i64 => Long;
    f32 => Float;
    f64 => Double;
    char => Char;
    Timestamp => Timestamp;
    Uuid => Uuid;
    Bytes => Binary;
    Text => String;
    Symbol => Symbol;
    List => List;
    Map => Map;
    Array => Array;
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(Text::from(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(Text::from(text))
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
