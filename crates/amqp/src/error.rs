//! What can be wrong with bytes from a peer.

/// Why a frame, value or message could not be read.
///
/// A peer's bytes always end in a value or in one of these. None of them carries peer bytes, so an error can be
/// logged or sent back without further care.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The input ends inside a value.
    #[error("input ends early: {needed} more bytes needed, {available} left")]
    Truncated {
        /// Bytes the next step needs.
        needed: usize,
        /// Bytes that are left.
        available: usize,
    },
    /// A format code AMQP does not define.
    #[error("unknown constructor 0x{code:02x}")]
    UnknownConstructor {
        /// The code as read.
        code: u8,
    },
    /// A value of another type than the place allows.
    #[error("expected {expected}, found constructor 0x{code:02x}")]
    UnexpectedType {
        /// What the place allows.
        expected: &'static str,
        /// The constructor that was there instead.
        code: u8,
    },
    /// A number that does not fit the place.
    #[error("number does not fit {expected}")]
    OutOfRange {
        /// The type or set the number must fit.
        expected: &'static str,
    },
    /// A string or symbol that is not UTF-8.
    #[error("text is not valid utf-8")]
    InvalidText,
    /// A `char` that is no Unicode scalar value.
    #[error("0x{code:08x} is not a unicode character")]
    InvalidChar {
        /// The number as read.
        code: u32,
    },
    /// A boolean byte other than 0 and 1.
    #[error("0x{byte:02x} is not a boolean")]
    InvalidBoolean {
        /// The byte as read.
        byte: u8,
    },
    /// Values nested deeper than the budget allows.
    #[error("values are nested deeper than {limit} levels")]
    TooDeep {
        /// The deepest level allowed.
        limit: u8,
    },
    /// More items claimed than the budget allows.
    #[error("{claimed} items exceed the {allowed} this input may still hold")]
    TooManyItems {
        /// Items the peer claims to send.
        claimed: u32,
        /// Items that were left in the budget.
        allowed: u32,
    },
    /// A compound value whose items do not fill the size it claims.
    #[error("compound value has {left} bytes left after its last item")]
    SizeMismatch {
        /// Bytes between the last item and the claimed end.
        left: usize,
    },
    /// A map with a key that has no value.
    #[error("map has an odd number of items: {count}")]
    OddMap {
        /// The number of items as read.
        count: u32,
    },
    /// A described value whose descriptor does not belong to the place.
    #[error("expected {expected}, found descriptor 0x{found:x}")]
    UnexpectedDescriptor {
        /// What the place allows.
        expected: &'static str,
        /// The numeric descriptor that was there instead.
        found: u64,
    },
    /// A descriptor that is neither a number nor a name we know.
    #[error("expected {expected}, found an unknown descriptor")]
    UnknownDescriptor {
        /// What the place allows.
        expected: &'static str,
    },
    /// A field the composite cannot do without.
    #[error("mandatory field is missing or null")]
    Missing,
    /// A field of a composite could not be read.
    #[error("{composite}.{field}: {problem}")]
    Field {
        /// The composite, as AMQP names it.
        composite: &'static str,
        /// The field, as AMQP names it.
        field: &'static str,
        /// What was wrong with it.
        #[source]
        problem: Box<DecodeError>,
    },
    /// A delivery tag beyond the 32 bytes AMQP allows.
    #[error("delivery tag of {length} bytes exceeds the limit of 32")]
    DeliveryTagTooLong {
        /// Its length.
        length: usize,
    },
    /// A frame larger than was agreed.
    #[error("frame of {size} bytes exceeds the limit of {limit}")]
    FrameTooLarge {
        /// The size in the frame header.
        size: u32,
        /// The size agreed.
        limit: u32,
    },
    /// A frame shorter than its own header.
    #[error("frame of {size} bytes is shorter than the 8 bytes of a frame header")]
    FrameTooSmall {
        /// The size in the frame header.
        size: u32,
    },
    /// A data offset that points outside the frame.
    #[error("data offset of {words} words does not fit a frame of {size} bytes")]
    DataOffset {
        /// The offset in 4-byte words.
        words: u8,
        /// The frame size in bytes.
        size: usize,
    },
    /// A frame of the other protocol, or of none.
    #[error("frame type {found} where {expected} was expected")]
    FrameType {
        /// The type this state allows.
        expected: u8,
        /// The type in the frame header.
        found: u8,
    },
    /// Bytes behind the end of a frame body or message that allows none.
    #[error("{count} bytes follow the end of the value")]
    TrailingBytes {
        /// How many.
        count: usize,
    },
    /// A message section out of order, repeated, or after the body's end.
    #[error("message section {section} may not follow {after}")]
    SectionOrder {
        /// The section that came too late.
        section: &'static str,
        /// The section before it.
        after: &'static str,
    },
    /// Not an AMQP protocol header.
    #[error("not an amqp protocol header")]
    ProtocolHeader,
}

impl DecodeError {
    /// The same problem, named by the field it was met in.
    #[must_use]
    #[cold]
    pub fn in_field(self, composite: &'static str, field: &'static str) -> Self {
        Self::Field { composite, field, problem: Box::new(self) }
    }
}
