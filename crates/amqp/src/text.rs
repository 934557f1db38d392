//! Strings and symbols as slices of the buffer they were read from.
//!
//! Both are checked to be UTF-8 when they are made and stay so. AMQP wants symbols to be ASCII; clients do put
//! other text into them (a `content-type` the user chose, a property name), so we keep what we are given.

use std::fmt;

use bytes::Bytes;

use crate::error::DecodeError;

/// A string: cheap to clone, compared and ordered by its bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Text(Bytes);

impl Text {
    /// An empty string.
    pub const EMPTY: Self = Self(Bytes::new());

    /// Text that lives as long as the program.
    pub const fn from_static(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }

    /// Checks that `bytes` are UTF-8 and keeps them without copying.
    pub fn from_utf8(bytes: Bytes) -> Result<Self, DecodeError> {
        check_utf8(&bytes)?;
        Ok(Self(bytes))
    }

    /// The text.
    ///
    /// Looks through the bytes again, since only unsafe code could skip that; compare with `==` where that is enough.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("text was checked to be utf-8 when it was made")
    }

    /// The encoded text.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The encoded text, as the slice that holds it.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no character.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same text in memory of its own, so that a long-lived name does not pin a whole read buffer.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// Text whose bytes were checked already.
    #[inline]
    pub(crate) fn from_checked(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

/// Refuses bytes that are not UTF-8.
#[inline]
pub(crate) fn check_utf8(bytes: &[u8]) -> Result<(), DecodeError> {
    if is_utf8(bytes) { Ok(()) } else { Err(DecodeError::InvalidText) }
}

/// Whether bytes are UTF-8. Nearly all text on the wire is ASCII, which is quicker to see.
#[inline]
pub(crate) fn is_utf8(bytes: &[u8]) -> bool {
    bytes.is_ascii() || std::str::from_utf8(bytes).is_ok()
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), formatter)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Bytes::from(text))
    }
}

impl PartialEq<str> for Text {
    #[inline]
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    #[inline]
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

/// A name from a fixed vocabulary: a condition, a capability, a map key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Symbol(Text);

impl Symbol {
    /// A symbol that lives as long as the program.
    pub const fn from_static(name: &'static str) -> Self {
        Self(Text::from_static(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The encoded name.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The name as text.
    pub fn into_text(self) -> Text {
        self.0
    }

    /// The name as text.
    pub fn as_text(&self) -> &Text {
        &self.0
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, ":{:?}", self.0.as_str())
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

impl From<&str> for Symbol {
    fn from(name: &str) -> Self {
        Self(Text::from(name))
    }
}

impl From<Text> for Symbol {
    fn from(name: Text) -> Self {
        Self(name)
    }
}

impl PartialEq<str> for Symbol {
    #[inline]
    fn eq(&self, other: &str) -> bool {
        self.0 == *other
    }
}

impl PartialEq<&str> for Symbol {
    #[inline]
    fn eq(&self, other: &&str) -> bool {
        self.0 == **other
    }
}
