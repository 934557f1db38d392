//! Roles and settlement modes (AMQP 1.0 2.8.1 to 2.8.3).

use crate::decode::Reader;
use crate::encode::{Encode, Output};
use crate::error::DecodeError;

/// Which end of a link speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The end that sends messages; `false` on the wire.
    Sender,
    /// The end that receives messages; `true` on the wire.
    Receiver,
}

impl Role {
    /// The role at the other end.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

/// When the sending end settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderSettleMode {
    /// After the receiver has settled or reported an outcome.
    Unsettled,
    /// At once, with the transfer.
    Settled,
    /// As each transfer says.
    Mixed,
}

/// When the receiving end settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiverSettleMode {
    /// With its outcome, at once.
    First,
    /// After the sender has settled.
    Second,
}

impl Role {
    #[inline]
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(if reader.boolean()? { Self::Receiver } else { Self::Sender })
    }
}

impl SenderSettleMode {
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.ubyte()? {
            0 => Ok(Self::Unsettled),
            1 => Ok(Self::Settled),
            2 => Ok(Self::Mixed),
            _ => Err(DecodeError::OutOfRange { expected: "a sender settle mode" }),
        }
    }
}

impl ReceiverSettleMode {
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.ubyte()? {
            0 => Ok(Self::First),
            1 => Ok(Self::Second),
            _ => Err(DecodeError::OutOfRange { expected: "a receiver settle mode" }),
        }
    }
}

impl Encode for Role {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        matches!(self, Self::Receiver).encode(out);
    }
}

impl Encode for SenderSettleMode {
    fn encode<O: Output>(&self, out: &mut O) {
        let code: u8 = match self {
            Self::Unsettled => 0,
            Self::Settled => 1,
            Self::Mixed => 2,
        };
        code.encode(out);
    }
}

impl Encode for ReceiverSettleMode {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        let code: u8 = match self {
            Self::First => 0,
            Self::Second => 1,
        };
        code.encode(out);
    }
}
