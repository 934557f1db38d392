//! Hostile peers against the running binary: each attack is bounded in memory and sockets, and an honest client works
//! all the while. Its times are printed, never judged.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test that meets the unexpected shall stop, and says what it measured"
)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use support::Broker;
use support::honest::Honest;
use support::raw::{Raw, attach, frame, login};
use vorrang_amqp::FrameBody;
use vorrang_amqp::performative::{
    DeliveryState, DeliveryTag, Detach, Disposition, End, Flow, LinkFlow, Role, Transfer,
};
use vorrang_amqp::protocol_header::Protocol;

/// What an attack may make the broker hold beyond what it held before, whatever the attack sends.
const GROWTH_MAX: u64 = 64 * 1024 * 1024;

/// Runs an attack beside an honest client, and holds the broker to its bounds.
fn under(what: &str, attack: impl FnOnce(&Broker)) {
    let folder = tempfile::tempdir().unwrap();
    let broker = Broker::start(folder.path(), &["honest", "target"]);
    let honest = Honest::start(&broker.door("amqp"), "honest");
    let (memory, sockets) = (broker.resident(), broker.sockets());
    attack(&broker);
    honest.goes_on();
    let grown = broker.resident().saturating_sub(memory);
    println!("{what}: memory grew by {} KiB", grown / 1024);
    assert!(grown < GROWTH_MAX, "{what}: memory grew by {grown} bytes");
    // Everything the attackers had open is closed again.
    let began = Instant::now();
    while broker.sockets() > sockets {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}: sockets stay open");
        std::thread::sleep(Duration::from_millis(20));
    }
    honest.finish(what);
    assert_eq!(broker.stop(), Some(0));
}

/// Whether a connection is closed, after whatever was said before.
fn is_closed(socket: &mut TcpStream) -> bool {
    let mut buffer = [0; 4_096];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn those_who_do_not_finish_their_greeting_are_turned_out() {
    under("slow handshakes", |broker| {
        let greetings: [(&str, &[u8]); 6] = [
            ("amqp", b""),
            ("amqp", b"AMQP\x03\x01"),
            // The layer is greeted, and then nothing.
            ("amqp", b"AMQP\x03\x01\x00\x00"),
            // The beginning of a ClientHello.
            ("amqps", b"\x16\x03\x01\x02\x00\x01\x00"),
            ("http", b"GET /$servicebus/websocket HTTP/1.1\r\nHost: localhost\r\nUpgr"),
            ("https", b"\x16\x03\x01"),
        ];
        let mut stalled = Vec::new();
        for _ in 0..50 {
            for (door, greeting) in greetings {
                let mut socket = TcpStream::connect(broker.door(door)).unwrap();
                socket.write_all(greeting).unwrap();
                socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                stalled.push(socket);
            }
        }
        for mut socket in stalled {
            assert!(is_closed(&mut socket), "the broker waits for ever");
        }
    });
}

#[test]
fn connections_that_come_and_go_leave_nothing() {
    under("churn of connections", |broker| {
        let address = broker.door("amqp");
        for round in 0..1_500 {
            match round % 3 {
                0 => drop(TcpStream::connect(&address).unwrap()),
                1 => {
                    let mut raw = Raw::connect(&address);
                    let _ = raw.write(&Protocol::Sasl.header());
                }
                _ => drop(Raw::logged_in(&address)),
            }
        }
    });
}

#[test]
fn wrong_passwords_cost_little_and_end_the_connection() {
    under("flood of logins", |broker| {
        let address = broker.door("amqp");
        for _ in 0..500 {
            let mut raw = Raw::connect(&address);
            // Written again and again: only the first is looked at.
            let _ = raw.write(&login("wrong").repeat(3));
            raw.until_closed();
        }
    });
}

#[test]
fn frames_of_any_size_claimed_are_not_waited_for() {
    under("oversized frames", |broker| {
        let address = broker.door("amqp");
        for claimed in [0_u32, 7, 513, 0x0100_0000, u32::MAX] {
            for greeting in [Protocol::Sasl.header().to_vec(), b"GET / HTTP/1.1\r\n\r\n".to_vec()] {
                let mut raw = Raw::connect(&address);
                let mut bytes = greeting;
                bytes.extend(claimed.to_be_bytes());
                bytes.extend([2, 1, 0, 0]);
                let _ = raw.write(&bytes);
                raw.until_closed();
            }
            if claimed != 513 {
                let mut raw = Raw::logged_in(&address);
                let mut bytes = claimed.to_be_bytes().to_vec();
                bytes.extend([2, 0, 0, 0]);
                let _ = raw.write(&bytes);
                let reason = raw.until_closed().expect("a reason");
                assert_eq!(reason.condition, "amqp:connection:framing-error", "{claimed}");
            }
        }
        // A list of four billion items that take no bytes, and lists in lists without end.
        let mut zero_width = b"\x00\x53\x10\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40".to_vec();
        let mut nested = b"\x00\x53\x10".to_vec();
        nested.extend(b"\xc0\xff\x01".repeat(2_000));
        for body in [&mut zero_width, &mut nested] {
            let mut raw = Raw::logged_in(&address);
            let mut bytes = u32::try_from(body.len() + 8).unwrap().to_be_bytes().to_vec();
            bytes.extend([2, 0, 0, 0]);
            bytes.append(body);
            let _ = raw.write(&bytes);
            assert!(raw.until_closed().is_some());
        }
    });
}

#[test]
fn attaching_and_detaching_for_ever_is_stopped() {
    under("churn of links", |broker| {
        let mut raw = Raw::logged_in(&broker.door("amqp"));
        let mut reading = raw.reader();
        let reader = std::thread::spawn(move || reading.until_closed());
        let mut churn = Vec::new();
        for number in 0..200 {
            churn.extend(frame(attach(number, &format!("link-{number}"), "target", Role::Receiver)));
            churn.extend(frame(FrameBody::Detach(Detach { handle: number, closed: true, error: None })));
        }
        while raw.write(&churn).is_ok() {}
        let reason = reader.join().unwrap();
        if let Some(reason) = reason {
            assert_eq!(reason.condition, "amqp:resource-limit-exceeded");
        }
    });
}

#[test]
fn sessions_that_begin_and_end_for_ever_are_stopped() {
    under("churn of sessions", |broker| {
        let mut raw = Raw::logged_in(&broker.door("amqp"));
        let begin = vorrang_amqp::performative::Begin::default();
        let mut churn = Vec::new();
        for _ in 0..200 {
            churn.extend(frame(FrameBody::End(End { error: None })));
            churn.extend(frame(FrameBody::Begin(Box::new(begin.clone()))));
        }
        let mut reading = raw.socket.try_clone().unwrap();
        let reader = std::thread::spawn(move || is_closed(&mut reading));
        while raw.write(&churn).is_ok() {}
        assert!(reader.join().unwrap());
    });
}

/// A connection with a link on `target`, of this role.
fn linked(broker: &Broker, role: Role) -> Raw {
    let mut raw = Raw::logged_in(&broker.door("amqp"));
    raw.write(&frame(attach(0, "link", "target", role))).unwrap();
    while !raw.next().is_some_and(|frame| matches!(frame.body, FrameBody::Attach(_))) {}
    raw
}

#[test]
fn a_message_without_end_is_not_kept() {
    under("a message without end", |broker| {
        let mut raw = linked(broker, Role::Sender);
        let head = Transfer {
            handle: 0,
            delivery_id: Some(0),
            delivery_tag: Some(DeliveryTag::from(1_u64)),
            more: true,
            ..Transfer::default()
        };
        let mut reading = raw.socket.try_clone().unwrap();
        let reader = std::thread::spawn(move || is_closed(&mut reading));
        let piece = frame(FrameBody::Transfer(head, Bytes::from(vec![0; 60_000])));
        for _ in 0..1_500 {
            if raw.write(&piece).is_err() {
                break;
            }
        }
        raw.leave();
        reader.join().unwrap();
    });
}

#[test]
fn many_messages_begun_and_none_finished_are_bounded_together() {
    under("unfinished messages on many links", |broker| {
        let mut raw = Raw::logged_in(&broker.door("amqp"));
        let mut reading = raw.socket.try_clone().unwrap();
        let reader = std::thread::spawn(move || is_closed(&mut reading));
        for handle in 0..400 {
            let mut bytes = frame(attach(handle, &format!("link-{handle}"), "target", Role::Sender));
            let head = Transfer {
                handle,
                delivery_id: Some(handle),
                delivery_tag: Some(DeliveryTag::from(u64::from(handle))),
                more: true,
                ..Transfer::default()
            };
            for _ in 0..2 {
                bytes.extend(frame(FrameBody::Transfer(head.clone(), Bytes::from(vec![0; 60_000]))));
            }
            if raw.write(&bytes).is_err() {
                break;
            }
        }
        raw.leave();
        reader.join().unwrap();
    });
}

#[test]
fn dispositions_over_every_number_there_is_cost_little() {
    under("dispositions over the full range", |broker| {
        let mut raw = linked(broker, Role::Receiver);
        let all = Disposition {
            role: Role::Receiver,
            first: 0,
            last: Some(u32::MAX),
            settled: false,
            state: Some(DeliveryState::ACCEPTED),
            batchable: false,
        };
        let flood = frame(FrameBody::Disposition(all)).repeat(1_000);
        for _ in 0..50 {
            raw.write(&flood).unwrap();
        }
        // It is still answered: nothing was broken.
        raw.write(&frame(FrameBody::End(End { error: None }))).unwrap();
        while !raw.next().is_some_and(|frame| matches!(frame.body, FrameBody::End(_))) {}
    });
}

#[test]
fn flows_that_ask_for_answers_are_not_answered_into_the_void() {
    under("flood of flows, unread", |broker| {
        let mut raw = linked(broker, Role::Receiver);
        let link = LinkFlow {
            handle: 0,
            delivery_count: Some(0),
            link_credit: Some(0),
            available: None,
            drain: true,
        };
        let flow = Flow {
            next_incoming_id: Some(0),
            incoming_window: 100,
            next_outgoing_id: 0,
            outgoing_window: 100,
            link: Some(link),
            echo: true,
            properties: None,
        };
        let flood = frame(FrameBody::Flow(flow)).repeat(1_000);
        raw.socket.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        // Until the broker does not read any more, because its answers are not read.
        for _ in 0..3_000 {
            if raw.write(&flood).is_err() {
                break;
            }
        }
    });
}

#[test]
fn what_receivers_that_do_not_read_make_the_broker_hold_is_bounded_whatever_their_credit() {
    under("receivers that do not read", |broker| {
        let mut sender = linked(broker, Role::Sender);
        let mut reading = sender.socket.try_clone().unwrap();
        let reader = std::thread::spawn(move || is_closed(&mut reading));
        let mut payload = b"\x00\x53\x75\xb0\x00\x00\xc3\x50".to_vec();
        payload.resize(8 + 50_000, 0);
        for number in 0..1_000_u32 {
            let head = Transfer {
                handle: 0,
                delivery_id: Some(number),
                delivery_tag: Some(DeliveryTag::from(u64::from(number))),
                settled: Some(true),
                ..Transfer::default()
            };
            sender.write(&frame(FrameBody::Transfer(head, Bytes::from(payload.clone())))).unwrap();
        }
        let stalled: Vec<Raw> = (0..20)
            .map(|_| {
                let mut raw = linked(broker, Role::Receiver);
                let link = LinkFlow {
                    handle: 0,
                    delivery_count: Some(0),
                    link_credit: Some(10_000),
                    available: None,
                    drain: false,
                };
                let flow = Flow {
                    next_incoming_id: Some(0),
                    incoming_window: 10_000,
                    next_outgoing_id: 0,
                    outgoing_window: 100,
                    link: Some(link),
                    echo: false,
                    properties: None,
                };
                raw.write(&frame(FrameBody::Flow(flow))).unwrap();
                raw
            })
            .collect();
        std::thread::sleep(Duration::from_millis(500));
        drop(stalled);
        sender.leave();
        reader.join().unwrap();
    });
}

#[test]
fn http_without_end_and_websockets_without_measure_are_cut_off() {
    under("hostile HTTP", |broker| {
        let address = broker.door("http");
        // A head that never ends.
        let mut socket = TcpStream::connect(&address).unwrap();
        socket.write_all(b"GET /health HTTP/1.1\r\n").unwrap();
        let line = [b"x-filler: ".as_slice(), &[b'a'; 1_000], b"\r\n"].concat();
        for _ in 0..10_000 {
            if socket.write_all(&line).is_err() {
                break;
            }
        }
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        assert!(is_closed(&mut socket));
        // A body that never ends, to a door that wants none.
        let mut socket = TcpStream::connect(&address).unwrap();
        socket.write_all(b"GET /health HTTP/1.1\r\nHost: h\r\nContent-Length: 10737418240\r\n\r\n").unwrap();
        socket.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        for _ in 0..2_000 {
            if socket.write_all(&[0; 16 * 1024]).is_err() {
                break;
            }
        }
        drop(socket);
        // A WebSocket message that claims ten gigabytes.
        let mut socket = TcpStream::connect(&address).unwrap();
        socket
            .write_all(
                b"GET /$servicebus/websocket HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                  Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                  Sec-WebSocket-Protocol: amqp\r\n\r\n\x82\xff\x00\x00\x00\x02\x80\x00\x00\x00\x00\x00\x00\x00",
            )
            .unwrap();
        socket.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        for _ in 0..2_000 {
            if socket.write_all(&[0; 16 * 1024]).is_err() {
                break;
            }
        }
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        assert!(is_closed(&mut socket));
    });
}
