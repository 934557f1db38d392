//! A client that only wants to work: sends, receives and completes one message at a time while others misbehave.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use vorrang_amqp::connection::{Event, LinkId, Outgoing};
use vorrang_amqp::message::put_data;
use vorrang_amqp::performative::{DeliveryState, DeliveryTag, Role};
use vorrang_bench::wire::Wire;

/// A client at work.
pub(crate) struct Honest {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicUsize>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Honest {
    /// Begins to work on a queue of its own.
    pub(crate) fn start(address: &str, queue: &str) -> Honest {
        let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut wire = Wire::connect(address).unwrap();
        let sender = wire.attach(queue, Role::Sender).unwrap();
        let receiver = wire.attach(queue, Role::Receiver).unwrap();
        wire.patience(Duration::from_secs(30)).unwrap();
        let thread = {
            let (stop, rounds) = (Arc::clone(&stop), Arc::clone(&rounds));
            std::thread::spawn(move || {
                let mut took = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    round(&mut wire, sender, receiver, took.len());
                    took.push(began.elapsed());
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
                took
            })
        };
        let honest = Honest { stop, rounds, thread };
        honest.goes_on();
        honest
    }

    /// Waits until it has done some more.
    pub(crate) fn goes_on(&self) {
        let (before, began) = (self.rounds.load(Ordering::Relaxed), Instant::now());
        while self.rounds.load(Ordering::Relaxed) < before + 3 {
            assert!(began.elapsed() < Duration::from_secs(30), "an honest client gets nowhere");
            assert!(!self.thread.is_finished(), "an honest client was thrown out");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends it, and says how it fared.
    pub(crate) fn finish(self, during: &str) {
        self.goes_on();
        self.stop.store(true, Ordering::Relaxed);
        let mut took = self.thread.join().unwrap();
        took.sort();
        let at = |share: usize| took[(took.len() - 1) * share / 100];
        println!("{during}: {} rounds, p50 {:?}, p99 {:?}, max {:?}", took.len(), at(50), at(99), at(100));
    }
}

/// One message there and back, completed.
fn round(wire: &mut Wire, sender: LinkId, receiver: LinkId, number: usize) {
    let mut payload = Vec::new();
    put_data(&mut payload, &number.to_be_bytes());
    let tail = Bytes::from(payload);
    let outgoing = Outgoing {
        tag: DeliveryTag::from(u64::try_from(number).unwrap()),
        message_format: 0,
        settled: false,
        state: None,
        head: &[],
        tail: &tail,
        key: 0,
    };
    while wire.amqp.send(sender, &outgoing).is_err() {
        wire.flush().unwrap();
        assert!(wire.read().unwrap(), "no credit came");
    }
    wire.amqp.grant(receiver, 1).unwrap();
    let (mut accepted, mut completed) = (false, false);
    while !(accepted && completed) {
        wire.flush().unwrap();
        assert!(wire.read().unwrap(), "no answer came");
        while let Some(event) = wire.amqp.next_event() {
            match event {
                Event::Delivery(delivery) => {
                    wire.amqp.decide(delivery.link, delivery.delivery, DeliveryState::ACCEPTED).unwrap();
                }
                Event::Settlement(settlement) => {
                    assert_eq!(settlement.state.as_deref(), Some(&DeliveryState::ACCEPTED));
                    if settlement.link == sender {
                        accepted = true;
                    } else {
                        completed = true;
                    }
                }
                Event::Closed(closed) => panic!("an honest client was thrown out: {closed:?}"),
                _ => {}
            }
        }
    }
}
