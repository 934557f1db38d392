//! How connections end: when the broker is asked to stop, and when a client falls silent.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that meets the unexpected shall stop"
)]

mod support;

use std::thread;
use std::time::Duration;

use bytes::Bytes;
use support::Broker;
use vorrang_amqp::connection::{Closed, Event, LinkEnding, LinkId, Outgoing};
use vorrang_amqp::message::put_data;
use vorrang_amqp::performative::{DeliveryState, DeliveryTag, Role};
use vorrang_bench::wire::Wire;

const MESSAGES: u64 = 300;

/// How a connection was ended.
struct Ended {
    /// Why, as was said of the connection.
    condition: String,
    /// Why, as was said of each link.
    links: Vec<String>,
    /// Deliveries that were accepted before.
    accepted: usize,
}

/// Reads until the broker closes the connection.
fn until_closed(wire: &mut Wire) -> Ended {
    let (mut links, mut accepted) = (Vec::new(), 0);
    loop {
        while let Some(event) = wire.amqp.next_event() {
            match event {
                Event::Settlement(told) => {
                    assert_eq!(told.state.as_deref(), Some(&DeliveryState::ACCEPTED));
                    accepted += told.deliveries.len();
                }
                Event::LinkEnded { ending: LinkEnding::Peer { error, .. }, .. } => {
                    let error = error.expect("it is said why");
                    let text = error.description.unwrap_or_default();
                    assert!(text.as_str().contains("the broker is stopping"), "{text}");
                    links.push(error.condition.as_str().to_owned());
                }
                Event::Closed(Closed::Peer { error }) => {
                    let _ = wire.flush();
                    let condition = error.expect("it is said why").condition.as_str().to_owned();
                    return Ended { condition, links, accepted };
                }
                Event::Closed(other) => panic!("{other:?}"),
                _ => {}
            }
        }
        wire.read().unwrap();
    }
}

fn ended_by_the_stop(wire: &mut Wire) -> Ended {
    let ended = until_closed(wire);
    assert_eq!(ended.condition, "amqp:connection:forced");
    assert_eq!(ended.links, ["amqp:link:detach-forced"]);
    ended
}

fn send(wire: &mut Wire, sender: LinkId, number: u64) {
    let mut payload = Vec::new();
    put_data(&mut payload, &number.to_be_bytes());
    let tail = Bytes::from(payload);
    let (tag, settled) = (DeliveryTag::from(number), false);
    let outgoing = Outgoing { tag, message_format: 0, settled, state: None, head: &[], tail: &tail, key: 0 };
    while wire.amqp.send(sender, &outgoing).is_err() {
        assert!(wire.read().unwrap(), "no credit came");
    }
}

#[test]
fn a_broker_that_is_asked_to_stop_answers_what_it_took_and_says_good_bye() {
    let folder = tempfile::tempdir().unwrap();
    let broker = Broker::start(folder.path(), &["q"]);
    let mut wire = Wire::connect(&broker.door("amqp")).unwrap();
    wire.patience(Duration::from_secs(30)).unwrap();
    let mut idle = Wire::connect(&broker.door("amqp")).unwrap();
    idle.attach("q", Role::Receiver).unwrap();
    let sender = wire.attach("q", Role::Sender).unwrap();
    for number in 0..MESSAGES {
        send(&mut wire, sender, number);
    }
    wire.flush().unwrap();
    let stopping = thread::spawn(move || broker.stop());
    let Ended { accepted, .. } = ended_by_the_stop(&mut wire);
    ended_by_the_stop(&mut idle);
    assert_eq!(stopping.join().unwrap(), Some(0));

    let again = Broker::start(folder.path(), &["q"]);
    let mut wire = Wire::connect(&again.door("amqp")).unwrap();
    wire.patience(Duration::from_secs(30)).unwrap();
    let receiver = wire.attach("q", Role::Receiver).unwrap();
    wire.amqp.grant(receiver, u32::try_from(MESSAGES).unwrap()).unwrap();
    let mut found = 0;
    while found < accepted {
        wire.flush().unwrap();
        assert!(wire.read().unwrap(), "{found} of {accepted} accepted messages are there");
        while let Some(event) = wire.amqp.next_event() {
            found += usize::from(matches!(event, Event::Delivery(_)));
        }
    }
    assert_eq!(again.stop(), Some(0));
}

#[test]
fn a_client_that_falls_silent_is_told_and_closed() {
    let folder = tempfile::tempdir().unwrap();
    let broker = Broker::start_with(folder.path(), &["--dev", "--idle-timeout", "1s"]);
    let mut wire = Wire::connect(&broker.door("amqp")).unwrap();
    assert_eq!(until_closed(&mut wire).condition, "amqp:connection:forced");
    assert_eq!(broker.stop(), Some(0));
}
