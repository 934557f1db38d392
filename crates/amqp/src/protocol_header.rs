//! The eight bytes that open each protocol layer (AMQP 1.0 2.2, 5.3.2).

use crate::error::DecodeError;

/// Which protocol the following bytes speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// AMQP frames, protocol id 0.
    Amqp,
    /// A TLS handshake inside the connection, protocol id 2. We know it only to refuse it by name.
    Tls,
    /// SASL frames, protocol id 3.
    Sasl,
}

/// Length of a protocol header in bytes.
pub const PROTOCOL_HEADER_BYTES: usize = 8;

impl Protocol {
    /// The protocol header for version 1.0.0 of this protocol.
    pub const fn header(self) -> [u8; PROTOCOL_HEADER_BYTES] {
        let id = match self {
            Self::Amqp => 0,
            Self::Tls => 2,
            Self::Sasl => 3,
        };
        [b'A', b'M', b'Q', b'P', id, 1, 0, 0]
    }

    /// The protocol a header announces; other versions and anything else are an error.
    pub const fn parse(header: [u8; PROTOCOL_HEADER_BYTES]) -> Result<Self, DecodeError> {
        match header {
            [b'A', b'M', b'Q', b'P', 0, 1, 0, 0] => Ok(Self::Amqp),
            [b'A', b'M', b'Q', b'P', 2, 1, 0, 0] => Ok(Self::Tls),
            [b'A', b'M', b'Q', b'P', 3, 1, 0, 0] => Ok(Self::Sasl),
            _ => Err(DecodeError::ProtocolHeader),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_round_trip_and_every_other_byte_is_refused() {
        for protocol in [Protocol::Amqp, Protocol::Tls, Protocol::Sasl] {
            let header = protocol.header();
            assert_eq!(Protocol::parse(header), Ok(protocol));
            for place in 0..PROTOCOL_HEADER_BYTES {
                let mut damaged = header;
                damaged[place] ^= 0x40;
                assert_eq!(Protocol::parse(damaged), Err(DecodeError::ProtocolHeader), "byte {place}");
            }
        }
    }
}
