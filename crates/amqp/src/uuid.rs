//! UUIDs in the two byte orders that meet here.
//!
//! On the wire an AMQP `uuid` is in RFC order (big-endian). A Service Bus delivery tag is the same number in the
//! order .NET lays out a GUID in memory: the first three fields little-endian. The conversion is its own inverse.

use std::fmt;

/// A UUID, kept in RFC order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// The UUID with these bytes in RFC order.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes in RFC order.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The UUID whose .NET memory layout is `bytes`.
    pub const fn from_dotnet_bytes(bytes: [u8; 16]) -> Self {
        Self(swap_dotnet(bytes))
    }

    /// The bytes as .NET lays them out; a Service Bus delivery tag.
    pub const fn to_dotnet_bytes(self) -> [u8; 16] {
        swap_dotnet(self.0)
    }
}

const fn swap_dotnet(bytes: [u8; 16]) -> [u8; 16] {
    let [b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15] = bytes;
    [b3, b2, b1, b0, b5, b4, b7, b6, b8, b9, b10, b11, b12, b13, b14, b15]
}

impl fmt::Display for Uuid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, byte) in self.0.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                formatter.write_str("-")?;
            }
            write!(formatter, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_tag_becomes_the_uuid_that_management_uses() {
        let tag =
            [0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];
        let token = Uuid::from_dotnet_bytes(tag);
        assert_eq!(token.to_string(), "00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!(token.to_dotnet_bytes(), tag);
    }
}
