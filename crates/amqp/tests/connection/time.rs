//! Deadlines: the handshake, silence of either side, and the last wait.

use vorrang_amqp::Text;
use vorrang_amqp::connection::{Closed, Event, Limits, Millis, Violation};
use vorrang_amqp::frame::{FrameBody, HEARTBEAT};
use vorrang_amqp::performative::{Close, Open};
use vorrang_amqp::protocol_header::Protocol;

use crate::raw::Raw;
use crate::states::in_short;

/// An open connection whose peer gives us up after `idle` milliseconds.
fn opened(idle: Option<u32>) -> Raw {
    let mut raw = Raw::server(Limits::default());
    raw.write(&Protocol::Sasl.header());
    raw.write(&[0, 0, 0, 26, 2, 1, 0, 0, 0, 0x53, 0x41, 0xc0, 13, 2, 0xa3, 9]);
    raw.write(b"ANONYMOUS@");
    raw.write(&Protocol::Amqp.header());
    let open = Open { container_id: Text::from("p"), idle_time_out: idle, ..Open::default() };
    raw.write_frame(0, FrameBody::Open(Box::new(open)));
    raw.events();
    raw.discard_output();
    raw
}

#[test]
fn a_handshake_that_stalls_anywhere_ends_without_a_word() {
    let steps: [&[u8]; 3] = [b"", b"AMQ", b"AMQP\x03\x01\x00\x00"];
    for bytes in steps {
        let mut raw = Raw::server(Limits::default());
        raw.write(bytes);
        raw.discard_output();
        assert_eq!(raw.engine.next_deadline(), Some(Millis(10_000)));
        raw.engine.on_time(Millis(9_999));
        assert!(!raw.engine.is_finished());
        raw.engine.on_time(Millis(10_000));
        assert!(raw.engine.is_finished() && raw.output().is_empty());
        let violation = Violation::HandshakeTimeout { limit_ms: 10_000 };
        assert_eq!(raw.events(), [Event::Closed(Closed::Violation(violation))]);
        assert_eq!(raw.engine.next_deadline(), None);
    }
}

#[test]
fn a_slow_trickle_does_not_stretch_the_handshake() {
    let mut raw = Raw::server(Limits::default());
    for (second, byte) in b"AMQP\x03\x01\x00\x00".iter().enumerate() {
        raw.now = Millis(u64::try_from(second).unwrap() * 1200);
        raw.write(&[*byte]);
    }
    raw.engine.on_time(Millis(10_000));
    assert!(raw.engine.is_finished());
}

#[test]
fn a_heartbeat_is_written_at_half_of_the_peers_patience_and_not_when_we_wrote_anyway() {
    let mut raw = opened(Some(10_000));
    assert_eq!(raw.engine.next_deadline(), Some(Millis(5_000)));
    raw.engine.on_time(Millis(4_999));
    assert!(raw.output().is_empty());
    raw.engine.on_time(Millis(5_000));
    assert_eq!(&raw.output()[..], HEARTBEAT);
    assert_eq!(raw.engine.next_deadline(), Some(Millis(10_000)));

    raw.now = Millis(8_000);
    raw.write_frame(0, crate::raw::begin());
    assert!(!raw.output().is_empty());
    assert_eq!(raw.engine.next_deadline(), Some(Millis(13_000)), "five seconds after what we wrote");
}

#[test]
fn a_peer_without_patience_cannot_make_us_spin() {
    for (announced, pause) in
        [(Some(0), None), (Some(1), Some(100)), (Some(199), Some(100)), (Some(300), Some(150))]
    {
        let raw = opened(announced);
        let silence = 120_000;
        assert_eq!(raw.engine.next_deadline(), Some(Millis(pause.unwrap_or(silence))), "{announced:?}");
    }
}

#[test]
fn a_silent_peer_is_closed_after_our_patience_and_any_byte_is_life() {
    let mut raw = opened(None);
    raw.now = Millis(100_000);
    raw.write(&HEARTBEAT[..3]);
    raw.engine.on_time(Millis(120_000));
    assert!(raw.output().is_empty(), "three bytes were heard twenty seconds ago");
    assert_eq!(raw.engine.next_deadline(), Some(Millis(220_000)));
    raw.engine.on_time(Millis(220_000));
    let answers: Vec<String> = raw.bodies().iter().map(in_short).collect();
    assert_eq!(answers, ["close=amqp:connection:forced"]);
    assert_eq!(raw.events(), [Event::Closed(Closed::Violation(Violation::Silent { limit_ms: 120_000 }))]);
    assert_eq!(raw.engine.next_deadline(), Some(Millis(225_000)), "the wait for its close");
    raw.engine.on_time(Millis(225_000));
    assert!(raw.engine.is_finished());
}

#[test]
fn our_close_waits_for_the_peers_but_not_for_ever() {
    for answered in [true, false] {
        let mut raw = opened(None);
        raw.engine.close(None).unwrap();
        assert!(raw.engine.close(None).is_err());
        assert!(!raw.engine.is_finished() && raw.events().is_empty());
        if answered {
            raw.write_frame(0, FrameBody::Close(Close::default()));
        } else {
            raw.engine.on_time(Millis(5_000));
        }
        assert!(raw.engine.is_finished());
        assert_eq!(raw.events(), [Event::Closed(Closed::Own)]);
    }
}

#[test]
fn a_transport_that_ends_is_the_last_event() {
    let mut raw = opened(None);
    raw.engine.transport_closed();
    assert_eq!(raw.events(), [Event::Closed(Closed::Transport)]);
    raw.engine.transport_closed();
    assert!(raw.events().is_empty() && raw.engine.is_finished());
}
