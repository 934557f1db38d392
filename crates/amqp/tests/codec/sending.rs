//! Deliveries cut into frames.

use bytes::Bytes;
use proptest::prelude::*;
use vorrang_amqp::frame::frame_size;
use vorrang_amqp::performative::{DeliveryTag, MESSAGE_FORMAT_BATCH, Transfer};
use vorrang_amqp::transfer_writer::Progress;
use vorrang_amqp::{Frame, FrameBody, TransferWriter};

use crate::strategy;

/// Writes a whole delivery and reads its frames back.
fn frames(mut writer: TransferWriter, frame_bytes_max: u32) -> Vec<(Transfer, Bytes)> {
    let mut frames = Vec::new();
    loop {
        let mut out = Vec::new();
        let progress = writer.write_frame(&mut out, 7, frame_bytes_max);
        assert_eq!(frame_size(&out, frame_bytes_max), Ok(Some(out.len())), "a frame keeps to the limit");
        let frame = Frame::decode(out.into()).unwrap();
        assert_eq!(frame.channel, 7);
        let FrameBody::Transfer(transfer, payload) = frame.body else { panic!("a transfer") };
        assert_eq!(transfer.more, progress == Progress::More, "more frames are announced");
        frames.push((transfer, payload));
        if progress == Progress::Done {
            return frames;
        }
    }
}

proptest! {
    #[test]
    fn a_delivery_arrives_whole_whatever_the_frame_size(
        transfer in strategy::transfer(),
        head in 0usize..1500,
        tail in 0usize..1500,
        frame_bytes_max in 512u32..2000,
    ) {
        // States as large as a frame cannot be split; the engine never sends one.
        let transfer = Transfer { state: None, ..transfer };
        let head: Bytes = (0..head).map(|place| u8::try_from(place % 251).unwrap()).collect();
        let tail: Bytes = (0..tail).map(|place| u8::try_from(place % 241).unwrap()).collect();
        let frames = frames(TransferWriter::new(transfer.clone(), head.clone(), tail.clone()), frame_bytes_max);
        let payload: Vec<u8> = frames.iter().flat_map(|(_, payload)| payload.to_vec()).collect();
        prop_assert_eq!(payload, [head, tail].concat());
        let (first, _) = &frames[0];
        prop_assert_eq!(first.delivery_id, transfer.delivery_id);
        prop_assert_eq!(first.delivery_tag, transfer.delivery_tag);
        for (later, payload) in &frames[1..] {
            prop_assert_eq!(later.handle, transfer.handle);
            prop_assert_eq!(later.settled, transfer.settled);
            prop_assert_eq!((later.delivery_id, later.delivery_tag, later.message_format), (None, None, None));
            prop_assert!(!payload.is_empty());
        }
    }
}

#[test]
fn a_payload_that_just_fits_goes_in_one_frame() {
    let transfer = Transfer {
        delivery_id: Some(1),
        delivery_tag: Some(DeliveryTag::from([1; 16])),
        message_format: Some(MESSAGE_FORMAT_BATCH),
        ..Transfer::default()
    };
    let empty = TransferWriter::new(transfer.clone(), Bytes::new(), Bytes::new());
    let mut out = Vec::new();
    assert_eq!(empty.clone().write_frame(&mut out, 0, 512), Progress::Done);
    let room = 512 - out.len();
    for (length, expected) in [(room - 1, 1), (room, 1), (room + 1, 2)] {
        let writer = TransferWriter::new(transfer.clone(), Bytes::new(), Bytes::from(vec![0; length]));
        assert_eq!(writer.remaining(), length);
        assert_eq!(frames(writer, 512).len(), expected, "{length} bytes");
    }
    assert_eq!(frames(empty, 512)[0].1.len(), 0, "an empty payload is one frame");
}

#[test]
fn a_limit_without_room_still_ends() {
    let mut writer =
        TransferWriter::new(Transfer::default(), Bytes::from_static(b"ab"), Bytes::from_static(b"c"));
    let mut out = Vec::new();
    let mut count = 1;
    while writer.write_frame(&mut out, 0, 8) == Progress::More {
        count += 1;
        assert!(count <= 10, "no progress");
    }
    assert_eq!(count, 4, "a byte per frame, then the end");
}
