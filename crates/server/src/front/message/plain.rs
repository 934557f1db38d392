//! A delivery with nothing special about it, as nearly all are: locked, and as it was sent.
//!
//! What is written is what [`super::outgoing::write`] writes, byte for byte. Here it is known beforehand which annotations there are
//! and how long they become, so that they are a few pieces, and nothing behind the message's header need be looked at.

use bytes::Bytes;
use vorrang_amqp::encode::{Output, Sheet};
use vorrang_amqp::message::{Front, put_header};
use vorrang_engine::message::{Delivery, MessageState};

use super::outgoing::{header, long};

/// Numbers up to this are encoded in one byte.
const SHORT_NUMBER_MAX: u64 = 127;

/// Writes the sections in front to `out` and says where in the message the rest begins, which follows them. None, and nothing
/// written, if there is more to say about the delivery or the message than is known here.
#[inline]
pub(super) fn write(delivery: &Delivery, encoded: &Bytes, out: &mut Sheet) -> Option<usize> {
    let Delivery {
        token: Some(token),
        locked_until: Some(until),
        state: MessageState::Active,
        first_sequence: None,
        dead_letter_source: None,
        overlay: None,
        ..
    } = delivery
    else {
        return None;
    };
    if !delivery.time_to_live.is_forever() || delivery.sequence.0 <= SHORT_NUMBER_MAX {
        return None;
    }
    let front = Front::of_checked(encoded).ok().filter(|front| !front.is_annotated())?;
    put_header(out, &header(delivery, front.header().ok().flatten()));
    // Delivery annotations: a map of one entry, 36 bytes.
    out.put(b"\x00\x53\x71\xc1\x24\x02\xa3\x10x-opt-lock-token\x98");
    out.put(&token.0.to_be_bytes());
    // Annotations of the message: a map of three entries, 92 bytes.
    out.put(b"\x00\x53\x72\xc1\x5c\x06\xa3\x13x-opt-enqueued-time\x83");
    out.put(&long(delivery.enqueued.0).to_be_bytes());
    out.put(b"\xa3\x15x-opt-sequence-number\x81");
    out.put(&long(delivery.sequence.0).to_be_bytes());
    out.put(b"\xa3\x12x-opt-locked-until\x83");
    out.put(&long(until.0).to_be_bytes());
    Some(front.bare_start())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use vorrang_amqp::descriptor;
    use vorrang_amqp::message::{Header, Message, Properties, put_data, put_map_section, put_properties};
    use vorrang_engine::message::Overlay;
    use vorrang_engine::{Level, LockToken, Sequence, Span, Timestamp};

    use super::super::outgoing::{self, Purpose, tests::delivery};
    use super::*;

    fn message(header: Option<Header>, annotated: bool, properties: bool) -> Message {
        let mut bytes = Vec::new();
        if let Some(header) = header {
            put_header(&mut bytes, &header);
        }
        if annotated {
            put_map_section(&mut bytes, descriptor::MESSAGE_ANNOTATIONS, |map| map.symbol("x", &1_i64));
        }
        if properties {
            let properties = Properties { subject: Some("s".into()), ..Properties::default() };
            put_properties(&mut bytes, &properties);
        }
        put_data(&mut bytes, b"body");
        Message::parse(Bytes::from(bytes)).unwrap()
    }

    /// What is written at length, and where the rest begins.
    fn at_length(delivery: &Delivery, message: &Message) -> (Bytes, usize) {
        let mut out = Sheet::default();
        let rest = outgoing::write(delivery, message, None, Purpose::Deliver, &mut out).len();
        (out.into_bytes(), message.encoded().len() - rest)
    }

    proptest! {
        #[test]
        fn a_plain_delivery_is_written_as_it_would_be_at_length(
            priority in prop::option::of(any::<u8>()),
            with_header in any::<bool>(),
            ttl in prop::option::of(any::<u32>()),
            properties in any::<bool>(),
            level in any::<u8>(),
            deliveries in any::<u32>(),
            sequence in prop_oneof![120_u64..140, any::<u64>()],
            (token, enqueued, until) in (any::<u128>(), any::<u64>(), any::<u64>()),
        ) {
            let header = with_header.then(|| Header { priority, ttl, ..Header::default() });
            let message = message(header, false, properties);
            let mut plain = delivery();
            (plain.level, plain.deliveries, plain.sequence) = (Level(level), deliveries, Sequence(sequence));
            (plain.token, plain.locked_until) = (Some(LockToken(token)), Some(Timestamp(until)));
            plain.enqueued = Timestamp(enqueued);
            let mut out = Sheet::default();
            let written = write(&plain, message.encoded(), &mut out);
            prop_assert_eq!(written.is_some(), sequence > SHORT_NUMBER_MAX);
            if let Some(from) = written {
                prop_assert_eq!((out.into_bytes(), from), at_length(&plain, &message));
            }
        }
    }

    #[test]
    fn whatever_is_special_is_left_to_be_written_at_length() {
        let plain = || Delivery { sequence: Sequence(1_000), ..delivery() };
        let cases = [
            ("nothing", true, plain()),
            ("no lock", false, Delivery { token: None, ..plain() }),
            ("no end of the lock", false, Delivery { locked_until: None, ..plain() }),
            ("deferred", false, Delivery { state: MessageState::Deferred, ..plain() }),
            ("forwarded", false, Delivery { first_sequence: Some(Sequence(1)), ..plain() }),
            ("dead-lettered", false, Delivery { dead_letter_source: Some("q".into()), ..plain() }),
            ("changed", false, Delivery { overlay: Some(Arc::new(Overlay::default())), ..plain() }),
            ("mortal", false, Delivery { time_to_live: Span(1), ..plain() }),
        ];
        for (case, is_plain, delivery) in cases {
            let mut out = Sheet::default();
            let written = write(&delivery, message(None, false, true).encoded(), &mut out);
            assert_eq!(written.is_some(), is_plain, "{case}");
            assert_eq!(out.as_bytes().is_empty(), !is_plain, "{case}");
        }
        let mut out = Sheet::default();
        assert_eq!(write(&plain(), message(None, true, true).encoded(), &mut out), None, "annotated");
        assert!(out.as_bytes().is_empty());
    }
}
