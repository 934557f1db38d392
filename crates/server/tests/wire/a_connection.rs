//! A: connections, from the protocol header to the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use vorrang_amqp::frame::HEARTBEAT;
use vorrang_amqp::message::{Layout, Message};
use vorrang_amqp::performative::{Close, DeliveryState, Detach, End, Flow, Open, SaslCode, Transfer};
use vorrang_amqp::protocol_header::Protocol;
use vorrang_amqp::sasl_plain::PlainCredentials;
use vorrang_amqp::{FrameBody, SaslFrame};
use vorrang_server::settings::{Ports, Settings};

use crate::client::Client;
use crate::links::{deleting_receiver, receiver, sender};
use crate::message::{large, message};
use crate::server::{ROOT, ROOT_KEY, Server};
use crate::tunnel::{socket, tls, upgrade};

#[test]
fn a1_both_amqp_ports_answer_the_sasl_header() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path());
    Client::connect(&server).header(Protocol::Sasl);
    Client::over(Box::new(tls(server.ready.amqps, folder.path()))).header(Protocol::Sasl);
}

#[test]
fn a2_a_websocket_is_upgraded_and_its_subprotocol_echoed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path());
    for path in ["/$servicebus/websocket", "/$servicebus/websocket/"] {
        for subprotocol in ["AMQPWSB10", "amqp"] {
            let (head, tunnel) = upgrade(socket(server.ready.http), path, subprotocol);
            let head = head.to_ascii_lowercase();
            assert!(head.starts_with("http/1.1 101"), "{path} {subprotocol}: {head}");
            let echoed = format!("sec-websocket-protocol: {}\r\n", subprotocol.to_ascii_lowercase());
            assert!(head.contains(&echoed), "{path} {subprotocol}: {head}");
            Client::over(Box::new(tunnel)).header(Protocol::Sasl);
        }
    }
    let (head, tunnel) =
        upgrade(tls(server.ready.https, folder.path()), "/$servicebus/websocket", "AMQPWSB10");
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    Client::over(Box::new(tunnel)).anonymous_here();
}

#[test]
fn a3_frames_and_websocket_messages_need_not_agree() {
    let server = Server::shared();
    let (_, tunnel) = upgrade(socket(server.ready.http), "/$servicebus/websocket", "AMQPWSB10");
    let mut client = Client::over(Box::new(tunnel));
    assert_eq!(client.log_in("ANONYMOUS", None), SaslCode::Ok);
    client.header(Protocol::Amqp);
    let open = client.encode(0, FrameBody::Open(Box::new(Client::opening())));
    for piece in open.chunks(open.len().div_ceil(3)) {
        client.write(piece);
    }
    assert!(matches!(client.next().body, FrameBody::Open(_)), "one frame in three messages");
    let begins: Vec<u8> = (0..3)
        .flat_map(|channel| client.encode(channel, FrameBody::Begin(Box::new(Client::beginning()))))
        .collect();
    client.write(&begins);
    for channel in 0..3 {
        let frame = client.next();
        assert!(matches!(frame.body, FrameBody::Begin(_)), "three frames in one message");
        assert_eq!(frame.channel, channel);
    }
}

#[test]
fn a4_the_mechanisms_are_an_array_of_symbols() {
    let server = Server::shared();
    let mut client = Client::connect(&server);
    client.header(Protocol::Sasl);
    let SaslFrame::Mechanisms(offered) = client.read_sasl() else { panic!("mechanisms come first") };
    for mechanism in ["ANONYMOUS", "PLAIN", "MSSBCBS"] {
        assert!(offered.sasl_server_mechanisms.contains(mechanism), "{mechanism}");
    }
    // Frame header, 00 53 40, a list of one field, and that field an array whose items are symbols.
    let raw = &client.raw[0][8..];
    assert_eq!(&raw[..3], [0, 0x53, 0x40]);
    let array = raw.iter().position(|byte| [0xe0, 0xf0].contains(byte)).unwrap();
    let constructor = if raw[array] == 0xe0 { array + 3 } else { array + 9 };
    assert!([0xa3, 0xb3].contains(&raw[constructor]), "{raw:02x?}");
}

#[test]
fn a5_mssbcbs_needs_no_initial_response() {
    let server = Server::shared();
    let mut client = Client::connect(&server);
    assert_eq!(client.log_in("MSSBCBS", None), SaslCode::Ok);
    client.open(&Client::opening());
}

#[test]
fn a6_plain_takes_a_key_and_its_name_and_gives_their_rights() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.post(1, message("sent without a token"));
    for (name, key) in [(ROOT, "wrong"), ("nobody", ROOT_KEY), (ROOT, ""), ("", "")] {
        assert_eq!(Client::connect(&server).log_in_plain(name, key), SaslCode::Auth, "{name}");
    }
}

#[test]
fn a7_what_is_written_ahead_is_answered_in_order() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::connect(&server);
    let response =
        PlainCredentials { authorization_identity: "".into(), user: ROOT.into(), password: ROOT_KEY.into() }
            .to_response();
    assert_eq!(client.log_in("PLAIN", Some(response)), SaslCode::Ok);
    let mut ahead = Protocol::Amqp.header().to_vec();
    ahead.extend(client.encode(0, FrameBody::Open(Box::new(Client::opening()))));
    ahead.extend(client.encode(0, FrameBody::Begin(Box::new(Client::beginning()))));
    ahead.extend(client.encode(0, FrameBody::Attach(Box::new(receiver(0, &queue)))));
    ahead.extend(client.encode(0, FrameBody::Attach(Box::new(sender(1, &queue)))));
    client.write(&ahead);
    assert_eq!(&client.read_bytes(8)[..], &Protocol::Amqp.header());
    assert!(matches!(client.next().body, FrameBody::Open(_)));
    assert!(matches!(client.next().body, FrameBody::Begin(_)));
    for handle in [0, 1] {
        let frame = client.wait("attach", |frame| match &frame.body {
            FrameBody::Attach(attach) => Some(attach.clone()),
            _ => None,
        });
        assert_eq!(frame.handle, handle);
        assert!(frame.source.is_some() && frame.target.is_some());
    }
}

#[test]
fn a8_a_large_message_leaves_in_frames_the_client_takes() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::connect(&server);
    client.log_in_plain(ROOT, ROOT_KEY);
    client.open(&Open { max_frame_size: Some(4_096), ..Client::opening() });
    client.begin(0);
    client.sender(1, &queue);
    client.post(1, large(100 * 1024));
    client.receiver(2, &queue);
    client.raw.clear();
    let delivery = client.receive(2);
    assert_eq!(delivery.body().len(), 100 * 1024);
    assert!(delivery.pieces.len() > 25);
    assert!(client.raw.iter().all(|frame| frame.len() <= 4_096), "{:?}", delivery.pieces);
}

#[test]
fn a9_a_client_that_announces_a_time_out_hears_from_the_broker_before_it() {
    let server = Server::shared();
    let idle = Duration::from_secs(2);
    let tcp = socket(server.ready.amqp);
    // Silence for as long as the client announced would be an error of this socket.
    tcp.set_read_timeout(Some(idle)).unwrap();
    let mut client = Client::over(Box::new(tcp));
    client.log_in_plain(ROOT, ROOT_KEY);
    client.open(&Open { idle_time_out: Some(2_000), ..Client::opening() });
    for _ in 0..2 {
        assert_eq!(client.read_frame().unwrap()[..], HEARTBEAT);
    }
}

#[test]
fn a10_a_client_that_falls_silent_is_told_and_closed() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Settings::new(folder.path().to_path_buf());
    (settings.dev, settings.ports) = (true, Ports { amqp: 0, amqps: 0, http: 0, https: 0 });
    settings.bounds.silence_max = Duration::from_secs(1);
    let server = Server::start_with(settings).unwrap();
    server.queue_named("q", []);
    let mut silent = Client::root(&server);
    silent.receiver(1, "q");
    let mut lively = Client::root(&server);
    lively.sender(1, "q");
    let over = Arc::new(AtomicBool::new(false));
    let beating = {
        let over = Arc::clone(&over);
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                lively.write(&HEARTBEAT);
                std::thread::sleep(Duration::from_millis(200));
            }
            lively.post(1, message("still here"));
        })
    };
    let close = silent.wait("close", |frame| match &frame.body {
        FrameBody::Close(close) => Some(close.clone()),
        _ => None,
    });
    let error = close.error.expect("it is told why");
    assert_eq!(error.condition, "amqp:connection:forced");
    assert!(error.description.unwrap().as_str().contains("1000"));
    silent.expect_end();
    over.store(true, Ordering::Relaxed);
    beating.join().unwrap();
    server.stop();
}

#[test]
fn a10_the_broker_leaves_a_client_a_minute_at_least() {
    let server = Server::shared();
    let mut client = Client::connect(&server);
    client.log_in_plain(ROOT, ROOT_KEY);
    let open = client.open(&Client::opening());
    assert!(open.idle_time_out.unwrap() >= 60_000);
    assert!(open.max_frame_size.unwrap() >= 65_536 && open.channel_max.unwrap() >= 4_999);
}

#[test]
fn a11_no_more_leaves_than_the_clients_window_takes() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    for number in 0..30 {
        client.post(1, message(&number.to_string()));
    }
    let mut narrow = Client::connect(&server);
    narrow.log_in_plain(ROOT, ROOT_KEY);
    narrow.open(&Client::opening());
    narrow.begin_with(0, vorrang_amqp::performative::Begin { incoming_window: 10, ..Client::beginning() });
    narrow.receiver(1, &queue);
    let link = narrow.link_flow(1, 100);
    let flow = Flow { incoming_window: 10, link: Some(link), ..narrow.session_flow(0) };
    narrow.send(0, FrameBody::Flow(flow));
    let taken: Vec<String> = (0..10).map(|_| narrow.delivery(1).body()).collect();
    assert_eq!(taken, (0..10).map(|number| number.to_string()).collect::<Vec<_>>());
    // The broker answers on this connection, so what it could have sent before, it has.
    let elsewhere = server.queue([]);
    narrow.sender(2, &elsewhere);
    narrow.post(2, message("meanwhile"));
    assert_eq!(narrow.left(|body| matches!(body, FrameBody::Transfer(..))), 0);
    let flow = Flow { incoming_window: 5, ..narrow.session_flow(0) };
    narrow.send(0, FrameBody::Flow(flow));
    assert_eq!(narrow.delivery(1).body(), "10");
}

#[test]
fn a12_the_broker_keeps_its_window_open() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    // What the broker takes: its session window, and credit on the link.
    let (mut window, mut credit, mut sent) = (5_000_u32, 2_000_u32, 0_u32);
    let payload = message("small").encode();
    while sent < 20_000 {
        let mut burst = Vec::new();
        while window > 0 && credit > 0 && burst.len() < 30_000 && sent < 20_000 {
            let head = Transfer { settled: Some(true), ..client.transfer_head(1) };
            burst.extend(client.encode(0, FrameBody::Transfer(head, payload.clone())));
            (window, credit, sent) = (window - 1, credit - 1, sent + 1);
        }
        client.write(&burst);
        if window > 1_000 && credit > 500 {
            continue;
        }
        let flow = client.wait("flow", |frame| match &frame.body {
            FrameBody::Flow(flow) => Some(flow.clone()),
            _ => None,
        });
        window = flow.next_incoming_id.unwrap().wrapping_add(flow.incoming_window).wrapping_sub(sent);
        if let Some(link) = flow.link {
            credit = link.delivery_count.unwrap().wrapping_add(link.link_credit.unwrap()).wrapping_sub(sent);
        }
    }
    client.post(1, message("the last"));
    client.attach(deleting_receiver(2, &queue));
    client.credit(2, 30_000);
    for _ in 0..20_000 {
        client.delivery(2);
    }
    assert_eq!(client.delivery(2).body(), "the last");
}

#[test]
fn a13_every_way_to_end_frees_what_was_held() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.receiver(2, &queue);
    // Ending a session ends its links, and its channel can be used again at once.
    let mut ahead = client.encode(0, FrameBody::End(End { error: None }));
    ahead.extend(client.encode(0, FrameBody::Begin(Box::new(Client::beginning()))));
    client.write(&ahead);
    client.wait("end", |frame| matches!(frame.body, FrameBody::End(End { error: None })).then_some(()));
    client.wait("begin", |frame| matches!(frame.body, FrameBody::Begin(_)).then_some(()));
    client.sender(1, &queue);
    client.post(1, message("after an end"));
    // A close is answered by a close, and then by the end of the connection.
    client.send(0, FrameBody::Close(Close { error: None }));
    client.wait("close", |frame| matches!(frame.body, FrameBody::Close(Close { error: None })).then_some(()));
    client.expect_end();
    // A socket that just goes away leaves nothing attached: its session is free for the next.
    let sessions = server.queue([vorrang_engine::entity::Setting::RequiresSession(true)]);
    let mut first = Client::root(&server);
    let held = crate::links::session_receiver(1, &sessions, Some("s"));
    assert!(first.attach(held.clone()).source.is_some());
    drop(first);
    let mut second = Client::root(&server);
    loop {
        let reply = second.attach(held.clone());
        if reply.source.is_some() {
            break;
        }
        // The broker may not have noticed yet.
        second.detached(1);
        second.send(0, FrameBody::Detach(Detach { handle: 1, closed: true, error: None }));
    }
}

#[test]
fn a14_descriptors_are_written_in_the_one_form_all_clients_read() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.raw.clear();
    client.sender(1, &queue);
    client.post(1, message("m").id("1").property("k", 1_i32));
    client.receiver(2, &queue);
    let delivery = client.receive(2);
    client.complete(&delivery);
    client.refused(sender(3, "no such queue"));
    client.detach(1);
    client.send(0, FrameBody::End(End { error: None }));
    client.wait("end", |frame| matches!(frame.body, FrameBody::End(_)).then_some(()));
    client.send(0, FrameBody::Close(Close { error: None }));
    client.expect_end();
    let mut seen = Vec::new();
    for frame in &client.raw {
        let body = &frame[8..];
        assert_eq!(&body[..2], [0, 0x53], "{frame:02x?}");
        // All fields are written, however many are null.
        let fields = match body[3] {
            0xc0 => u32::from(body[5]),
            0xd0 => u32::from_be_bytes(body[8..12].try_into().unwrap()),
            other => panic!("a performative is a list with fields, not {other:02x}: {frame:02x?}"),
        };
        let expected = match body[2] {
            0x11 => 8,
            0x12 => 14,
            0x13 | 0x14 => 11,
            0x15 => 6,
            0x16 => 3,
            0x17 | 0x18 => 1,
            other => panic!("unknown performative {other:02x}"),
        };
        assert_eq!(fields, expected, "{frame:02x?}");
        seen.push(body[2]);
    }
    for performative in [0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18] {
        assert!(seen.contains(&performative), "{performative:02x} was not seen");
    }
    sections_are_canonical(&delivery.message);
}

fn sections_are_canonical(message: &Message) {
    let bytes = message.encoded();
    let Layout { header, delivery_annotations, message_annotations, properties, .. } = message.layout();
    let sections =
        [(header, 0x70), (delivery_annotations, 0x71), (message_annotations, 0x72), (properties, 0x73)];
    for (section, code) in sections {
        let start = section.unwrap_or_else(|| panic!("section {code:02x} is missing")).start();
        assert_eq!(&bytes[start..start + 3], [0, 0x53, code]);
    }
}

#[test]
fn a15_flows_are_complete() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.receiver(2, &queue);
    client.drain(2, 5);
    let flow = Flow { echo: true, ..client.session_flow(0) };
    client.send(0, FrameBody::Flow(flow));
    let mut of_session = 0;
    while of_session == 0 {
        let FrameBody::Flow(flow) = client.next().body else { continue };
        assert!(flow.next_incoming_id.is_some());
        match flow.link {
            Some(link) => assert!(link.delivery_count.is_some() && link.link_credit.is_some()),
            None => of_session += 1,
        }
    }
}

#[test]
fn a16_gaps_in_the_clients_transfer_numbers_are_no_error() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    // As Python does it: one number per delivery, though it takes three frames, repeated on each.
    let payload = large(900).encode();
    for _ in 0..3 {
        let head = client.transfer_head(1);
        for (place, piece) in payload.chunks(400).enumerate() {
            let transfer = Transfer { more: place < 2, ..head.clone() };
            client.send(0, FrameBody::Transfer(transfer, piece.to_vec().into()));
        }
        assert_eq!(client.outcome(head.delivery_id.unwrap()), DeliveryState::ACCEPTED);
        // A flow with the client's idea of its next number does not disturb the broker.
        let flow = client.session_flow(0);
        client.send(0, FrameBody::Flow(flow));
    }
    assert_eq!(client.peek_all(&queue).len(), 3);
}
