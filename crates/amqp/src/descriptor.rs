//! The descriptors of the composites we read and write.
//!
//! On the way out a descriptor is always the two-byte number; clients find it at a fixed offset. On the way in it
//! may be a number of any width or the symbolic name, matched exactly.

/// A composite's descriptor: its number, its AMQP name and its symbolic descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// The number; all the standard ones fit a byte.
    pub code: u8,
    /// The composite's name, for messages.
    pub name: &'static str,
    /// The symbolic descriptor.
    pub symbol: &'static str,
}

macro_rules! descriptors {
    ($($constant:ident = $code:literal, $name:literal, $symbol:literal;)*) => {
        $(
            #[doc = concat!("`", $symbol, "`")]
            pub const $constant: Descriptor = Descriptor { code: $code, name: $name, symbol: $symbol };
        )*

        /// The number of a symbolic descriptor.
        pub fn code_of(symbol: &[u8]) -> Option<u64> {
            $(if symbol == $symbol.as_bytes() { return Some($code); })*
            None
        }

        #[cfg(test)]
        const ALL: &[Descriptor] = &[$($constant),*];
    };
}

descriptors! {
    OPEN = 0x10, "open", "amqp:open:list";
    BEGIN = 0x11, "begin", "amqp:begin:list";
    ATTACH = 0x12, "attach", "amqp:attach:list";
    FLOW = 0x13, "flow", "amqp:flow:list";
    TRANSFER = 0x14, "transfer", "amqp:transfer:list";
    DISPOSITION = 0x15, "disposition", "amqp:disposition:list";
    DETACH = 0x16, "detach", "amqp:detach:list";
    END = 0x17, "end", "amqp:end:list";
    CLOSE = 0x18, "close", "amqp:close:list";
    ERROR = 0x1d, "error", "amqp:error:list";
    RECEIVED = 0x23, "received", "amqp:received:list";
    ACCEPTED = 0x24, "accepted", "amqp:accepted:list";
    REJECTED = 0x25, "rejected", "amqp:rejected:list";
    RELEASED = 0x26, "released", "amqp:released:list";
    MODIFIED = 0x27, "modified", "amqp:modified:list";
    SOURCE = 0x28, "source", "amqp:source:list";
    TARGET = 0x29, "target", "amqp:target:list";
    COORDINATOR = 0x30, "coordinator", "amqp:coordinator:list";
    DECLARE = 0x31, "declare", "amqp:declare:list";
    DISCHARGE = 0x32, "discharge", "amqp:discharge:list";
    DECLARED = 0x33, "declared", "amqp:declared:list";
    TRANSACTIONAL_STATE = 0x34, "transactional-state", "amqp:transactional-state:list";
    SASL_MECHANISMS = 0x40, "sasl-mechanisms", "amqp:sasl-mechanisms:list";
    SASL_INIT = 0x41, "sasl-init", "amqp:sasl-init:list";
    SASL_CHALLENGE = 0x42, "sasl-challenge", "amqp:sasl-challenge:list";
    SASL_RESPONSE = 0x43, "sasl-response", "amqp:sasl-response:list";
    SASL_OUTCOME = 0x44, "sasl-outcome", "amqp:sasl-outcome:list";
    HEADER = 0x70, "header", "amqp:header:list";
    DELIVERY_ANNOTATIONS = 0x71, "delivery-annotations", "amqp:delivery-annotations:map";
    MESSAGE_ANNOTATIONS = 0x72, "message-annotations", "amqp:message-annotations:map";
    PROPERTIES = 0x73, "properties", "amqp:properties:list";
    APPLICATION_PROPERTIES = 0x74, "application-properties", "amqp:application-properties:map";
    DATA = 0x75, "data", "amqp:data:binary";
    AMQP_SEQUENCE = 0x76, "amqp-sequence", "amqp:amqp-sequence:list";
    AMQP_VALUE = 0x77, "amqp-value", "amqp:amqp-value:*";
    FOOTER = 0x78, "footer", "amqp:footer:map";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbolic_descriptor_leads_to_its_number_and_prefixes_lead_nowhere() {
        for descriptor in ALL {
            assert_eq!(code_of(descriptor.symbol.as_bytes()), Some(u64::from(descriptor.code)));
            let prefix = &descriptor.symbol.as_bytes()[..descriptor.symbol.len() - 1];
            assert_eq!(code_of(prefix), None, "{}", descriptor.symbol);
        }
    }
}
