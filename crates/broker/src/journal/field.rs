//! Fields: how plain things are written and read, in one order, with no padding.

use bytes::Bytes;
use std::sync::Arc;
use vorrang_engine::fact::Payload;

/// Why bytes are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes end within a field.
    #[error("the bytes end within a field: {wanted} wanted, {left} left")]
    Short {
        /// Bytes the field needs.
        wanted: usize,
        /// Bytes there are.
        left: usize,
    },
    /// Bytes remain after the last field.
    #[error("{left} bytes follow the last field")]
    Trailing {
        /// How many.
        left: usize,
    },
    /// A choice that has no meaning.
    #[error("{value} is no {what}")]
    Choice {
        /// What was to be chosen.
        what: &'static str,
        /// What was found.
        value: u8,
    },
    /// A text or number that is not valid for its purpose.
    #[error("invalid {what}: {reason}")]
    Invalid {
        /// What it was meant to be.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A kind of fact that this release does not know.
    #[error("unknown kind of record {0}")]
    Kind(u8),
}

impl Error {
    pub(super) fn invalid(what: &'static str, reason: &dyn std::fmt::Display) -> Error {
        Error::Invalid { what, reason: reason.to_string() }
    }
}

/// Something that can be written as bytes and read back.
pub(super) trait Field: Sized {
    /// Appends the bytes.
    fn write(&self, out: &mut Vec<u8>);
    /// Takes the bytes off the front.
    fn read(from: &mut Reader<'_>) -> Result<Self, Error>;
}

/// Bytes being read, and the payload that lies beside them.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    left: &'a [u8],
    payload: Option<Payload>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], payload: Option<Payload>) -> Reader<'a> {
        Reader { left: bytes, payload }
    }

    /// The payload beside the fields, once.
    pub(super) fn payload(&mut self) -> Result<Payload, Error> {
        self.payload.take().ok_or_else(|| Error::invalid("payload", &"there is none beside the fields"))
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let short = Error::Short { wanted: count, left: self.left.len() };
        let (taken, left) = self.left.split_at_checked(count).ok_or(short)?;
        self.left = left;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.take(N)?;
        Ok(*bytes.first_chunk().expect("as many bytes were taken as the array has"))
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        if self.payload.is_some() {
            return Err(Error::invalid("payload", &"this kind of fact has none"));
        }
        if self.left.is_empty() { Ok(()) } else { Err(Error::Trailing { left: self.left.len() }) }
    }
}

macro_rules! integers {
    ($($type:ident),*) => {$(
        impl Field for $type {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
                from.array().map($type::from_le_bytes)
            }
        }
    )*};
}
integers!(u8, u16, u32, u64, u128, i64, i128, f64);

impl Field for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        match u8::read(from)? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(Error::Choice { what: "truth", value }),
        }
    }
}

impl<T: Field> Field for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        if bool::read(from)? { T::read(from).map(Some) } else { Ok(None) }
    }
}

impl<T: Field> Field for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        write_length(self.len(), out);
        for item in self {
            item.write(out);
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        // The claimed number sizes nothing: the list grows as items are found.
        let count = u32::read(from)?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(T::read(from)?);
        }
        Ok(items)
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        Ok((A::read(from)?, B::read(from)?))
    }
}

impl<T: Field> Field for Box<T> {
    fn write(&self, out: &mut Vec<u8>) {
        T::write(self, out);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        T::read(from).map(Box::new)
    }
}

impl<T: Field> Field for Arc<T> {
    fn write(&self, out: &mut Vec<u8>) {
        T::write(self, out);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        T::read(from).map(Arc::new)
    }
}

impl Field for Arc<str> {
    fn write(&self, out: &mut Vec<u8>) {
        write_text(self, out);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        read_text(from).map(Arc::from)
    }
}

impl Field for String {
    fn write(&self, out: &mut Vec<u8>) {
        write_text(self, out);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        read_text(from).map(str::to_owned)
    }
}

impl Field for Bytes {
    fn write(&self, out: &mut Vec<u8>) {
        write_bytes(self, out);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        read_bytes(from).map(Bytes::copy_from_slice)
    }
}

pub(super) fn write_length(length: usize, out: &mut Vec<u8>) {
    u32::try_from(length).expect("a fact is far smaller than 4 GiB").write(out);
}

pub(super) fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_length(bytes.len(), out);
    out.extend_from_slice(bytes);
}

pub(super) fn read_bytes<'a>(from: &mut Reader<'a>) -> Result<&'a [u8], Error> {
    let length = u32::read(from)?;
    from.take(usize::try_from(length).unwrap_or(usize::MAX))
}

pub(super) fn write_text(text: &str, out: &mut Vec<u8>) {
    write_bytes(text.as_bytes(), out);
}

pub(super) fn read_text<'a>(from: &mut Reader<'a>) -> Result<&'a str, Error> {
    std::str::from_utf8(read_bytes(from)?).map_err(|error| Error::invalid("text", &error))
}

/// Structures: their fields in the order given here.
macro_rules! structures {
    ($($type:ident { $($field:ident),* $(,)? })*) => {$(
        impl Field for $type {
            fn write(&self, out: &mut Vec<u8>) {
                $(self.$field.write(out);)*
            }
            fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
                Ok($type { $($field: Field::read(from)?),* })
            }
        }
    )*};
}

/// Types around one public number or text.
macro_rules! wrappers {
    ($($type:ident),*) => {$(
        impl Field for $type {
            fn write(&self, out: &mut Vec<u8>) {
                self.0.write(out);
            }
            fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
                Field::read(from).map($type)
            }
        }
    )*};
}

/// Choices: a number for each, which it keeps for ever.
macro_rules! choices {
    ($($type:ident { $($name:ident = $number:literal),* $(,)? })*) => {$(
        impl Field for $type {
            fn write(&self, out: &mut Vec<u8>) {
                out.push(match self {
                    $($type::$name => $number,)*
                });
            }
            fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
                match u8::read(from)? {
                    $($number => Ok($type::$name),)*
                    value => Err(Error::Choice { what: stringify!($type), value }),
                }
            }
        }
    )*};
}

/// Variants with fields: a number for each, then its fields in the order given here.
macro_rules! variants {
    ($($type:ident { $($number:literal => $name:ident { $($field:ident),* },)* })*) => {$(
        impl Field for $type {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $($type::$name { $($field),* } => {
                        out.push($number);
                        $($field.write(out);)*
                    })*
                }
            }
            fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
                match u8::read(from)? {
                    $($number => Ok($type::$name { $($field: Field::read(from)?),* }),)*
                    value => Err(Error::Choice { what: stringify!($type), value }),
                }
            }
        }
    )*};
}

pub(super) use {choices, structures, variants, wrappers};
