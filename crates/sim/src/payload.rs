//! The bytes of simulated messages: they tell which message it is, and anything wrong with them shows.

use bytes::Bytes;
use vorrang_broker::shard::{Body, Decode};
use vorrang_filter::{MapMessage, Message};
use vorrang_log::dice::Dice;

/// Bytes every payload has: its number and its kind.
const HEAD_BYTES: usize = 9;

/// Added to its kind, this makes a message of bulk: as long as a record of the log may be, so that few fill a segment.
pub(crate) const BULK: u8 = 128;

/// The payload of a message. Some are larger than a record of the log, some larger than a batch.
#[must_use]
pub(crate) fn write(mail: u64, kind: u8) -> Bytes {
    let length = match mail % 61 {
        _ if kind & BULK != 0 => 1_900,
        0 if mail.is_multiple_of(2) => 20_000,
        0 => 5_000,
        small => usize::try_from(small % 5).unwrap_or_default() * 30,
    };
    let mut bytes = mail.to_le_bytes().to_vec();
    bytes.push(kind);
    bytes.resize(HEAD_BYTES + length, 0);
    if let Some(rest) = bytes.get_mut(HEAD_BYTES..) {
        Dice::new(mail).fill(rest);
    }
    Bytes::from(bytes)
}

/// Which message this is, and of which kind; none if anything is wrong with it.
#[must_use]
pub(crate) fn read(bytes: &[u8]) -> Option<(u64, u8)> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    let (mail, kind) = (u64::from_le_bytes(*number), *rest.first()?);
    (write(mail, kind) == bytes).then_some((mail, kind))
}

/// A message as filters see it.
#[must_use]
pub(crate) fn view(kind: u8) -> MapMessage {
    MapMessage::new().with("kind", i64::from(kind & !BULK))
}

/// Lets the shard look into stored payloads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payload;

impl Decode for Payload {
    fn view(&self, body: &Body) -> Option<Box<dyn Message>> {
        read(&body.bytes).map(|(_, kind)| -> Box<dyn Message> { Box::new(view(kind)) })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_payload_tells_its_number_and_any_change_shows() {
        for mail in 0..70 {
            let bytes = super::write(mail, 1);
            assert_eq!(super::read(&bytes), Some((mail, 1)));
            let mut damaged = bytes.to_vec();
            *damaged.last_mut().unwrap() ^= 1;
            assert_ne!(super::read(&damaged), Some((mail, 1)));
        }
    }
}
