//! The fuzz entry, fed with the corpus, with mutated traces, and with conversations no client would have.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use proptest::prelude::*;
use vorrang_amqp::connection::fuzzing;
use vorrang_amqp::performative::{
    Begin, Close, DeliveryState, Detach, Disposition, End, Flow, LinkFlow, Modified, Open, Outcome, Role,
    Transfer,
};
use vorrang_amqp::{Frame, FrameBody, Text};

use crate::raw::{receiver, sender};

fn folder(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn the_corpus_holds() {
    let files = folder("corpus/connection");
    assert!(files.len() >= 10, "{} files", files.len());
    for file in files {
        let input = std::fs::read(&file).unwrap();
        fuzzing::check(&input);
        // Cut short anywhere, it holds as well.
        for length in (0..input.len()).step_by(13) {
            fuzzing::check(&input[..length]);
        }
    }
}

/// The client's bytes of a trace.
fn client_bytes(path: &Path) -> Vec<u8> {
    let trace = std::fs::read_to_string(path).unwrap();
    let hex: String = trace.lines().filter_map(|line| line.strip_prefix("> ")).collect();
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// A frame with small numbers, so that channels, handles and deliveries meet.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let small = prop_oneof![0u32..4, Just(u32::MAX), any::<u32>()];
    let state = prop_oneof![
        Just(None),
        Just(Some(DeliveryState::ACCEPTED)),
        Just(Some(DeliveryState::RELEASED)),
        Just(Some(Outcome::Modified(Modified::default()).into())),
        Just(Some(DeliveryState::Received { section_number: 0, section_offset: 0 })),
    ];
    let address = prop_oneof![Just("$cbs"), Just("q")];
    let body = prop_oneof![
        1 => Just(FrameBody::Heartbeat),
        1 => Just(FrameBody::Open(Box::new(Open { container_id: Text::from("x"), ..Open::default() }))),
        2 => (proptest::option::of(0u16..3), 0u32..20, proptest::option::of(0u32..4)).prop_map(
            |(remote_channel, incoming_window, handle_max)| {
                let begin = Begin { remote_channel, incoming_window, handle_max, ..Begin::default() };
                FrameBody::Begin(Box::new(begin))
            }
        ),
        6 => (0u32..4, any::<bool>(), address, 0u8..3).prop_map(|(handle, sends, address, name)| {
            let name = format!("link {name}");
            if sends { sender(&name, handle, address) } else { receiver(&name, handle, address) }
        }),
        8 => (0u32..4, small.clone(), 0usize..1200, any::<[bool; 3]>()).prop_map(
            |(handle, delivery, size, [settled, more, aborted])| {
                let transfer = Transfer {
                    handle,
                    delivery_id: (delivery != 3).then_some(delivery),
                    settled: Some(settled),
                    more,
                    aborted: aborted && more,
                    ..Transfer::default()
                };
                FrameBody::Transfer(transfer, Bytes::from(vec![1; size]))
            }
        ),
        6 => (small.clone(), 0u32..30, proptest::option::of((0u32..4, small.clone(), 0u32..20)), any::<[bool; 2]>())
            .prop_map(|(seen, window, link, [drain, echo])| {
                FrameBody::Flow(Flow {
                    next_incoming_id: Some(seen),
                    incoming_window: window,
                    link: link.map(|(handle, count, credit)| LinkFlow {
                        handle,
                        delivery_count: Some(count),
                        link_credit: Some(credit),
                        drain,
                        available: None,
                    }),
                    echo,
                    ..Flow::default()
                })
            }),
        4 => (any::<bool>(), small.clone(), small, any::<bool>(), state).prop_map(
            |(receives, first, last, settled, state)| {
                let role = if receives { Role::Receiver } else { Role::Sender };
                FrameBody::Disposition(Disposition {
                    role,
                    first,
                    last: Some(last),
                    settled,
                    state,
                    batchable: false,
                })
            }
        ),
        3 => (0u32..4, any::<bool>())
            .prop_map(|(handle, closed)| FrameBody::Detach(Detach { handle, closed, error: None })),
        1 => Just(FrameBody::End(End::default())),
        1 => Just(FrameBody::Close(Close::default())),
    ];
    (0u16..2, body).prop_map(|(channel, body)| {
        let mut bytes = Vec::new();
        Frame { channel, body }.encode(&mut bytes);
        bytes
    })
}

proptest! {
    #[test]
    fn conversations_of_odd_frames_hold(
        mode in any::<u8>(),
        frames in prop::collection::vec(frame(), 0..30),
    ) {
        let mut input = vec![mode | 1];
        for frame in &frames {
            input.extend_from_slice(frame);
        }
        fuzzing::check(&input);
    }

    #[test]
    fn mutated_traces_hold(
        mode in prop_oneof![Just(8u8), any::<u8>()],
        trace in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let traces = folder("traces");
        let mut input = client_bytes(&traces[trace.index(traces.len())]);
        for (place, byte) in changes {
            let place = place.index(input.len());
            input[place] = byte;
        }
        let removed = cut.index(input.len());
        input.drain(removed..(removed + 3).min(input.len()));
        input.insert(0, mode & !7);
        fuzzing::check(&input);
    }

    #[test]
    fn any_bytes_hold(input in prop::collection::vec(any::<u8>(), 0..400)) {
        fuzzing::check(&input);
    }
}
