//! `kill -9` under load: what was acknowledged survives, what was completed never comes back.
//!
//! The clients remember every acknowledgement outside of the broker. `VORRANG_KILL_ROUNDS` sets the
//! number of rounds.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that meets the unexpected shall stop"
)]

mod support;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use support::Broker;
use vorrang_amqp::Message;
use vorrang_amqp::connection::{Event, Outgoing, SendError};
use vorrang_amqp::message::put_data;
use vorrang_amqp::performative::{DeliveryState, DeliveryTag, Role};
use vorrang_bench::wire::Wire;

const QUEUE: &str = "kill";
const SENDERS: u64 = 2;
const RECEIVERS: u64 = 2;
const WINDOW: usize = 200;

/// What the clients were told, in all rounds.
#[derive(Default)]
struct Ledger {
    /// Sent, whether answered or not.
    sent: BTreeSet<u64>,
    /// Acknowledged to the sender.
    accepted: BTreeSet<u64>,
    /// Completed, and the completion acknowledged.
    completed: BTreeSet<u64>,
    /// Completed, the answer lost: may or may not come again.
    in_doubt: BTreeSet<u64>,
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_completed_comes_back() {
    let rounds: u64 =
        std::env::var("VORRANG_KILL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let folder = tempfile::tempdir().unwrap();
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    for round in 0..rounds {
        let broker = Broker::start(folder.path(), &[QUEUE]);
        let address = broker.door("amqp");
        let clients: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let (ledger, address) = (Arc::clone(&ledger), address.clone());
                thread::spawn(move || send(&address, round * SENDERS + sender, &ledger))
            })
            .chain((0..RECEIVERS).map(|_| {
                let (ledger, address) = (Arc::clone(&ledger), address.clone());
                thread::spawn(move || receive(&address, &ledger, None))
            }))
            .collect();
        // Another moment in every round, from a handshake half done to a full pipeline.
        thread::sleep(Duration::from_millis(40 + round * 97 % 400));
        broker.kill();
        for client in clients {
            client.join().unwrap();
        }
    }
    let broker = Broker::start(folder.path(), &[QUEUE]);
    receive(&broker.door("amqp"), &ledger, Some(Duration::from_secs(90)));
    let ledger = ledger.lock().unwrap();
    let seen: BTreeSet<u64> = ledger.completed.union(&ledger.in_doubt).copied().collect();
    let lost: Vec<&u64> = ledger.accepted.difference(&seen).collect();
    assert!(
        lost.is_empty(),
        "{} of {} acknowledged messages are lost: {lost:?}",
        lost.len(),
        ledger.accepted.len()
    );
    assert!(ledger.accepted.len() > 100, "only {} messages were accepted", ledger.accepted.len());
}

/// Sends numbered messages until the connection breaks.
fn send(address: &str, sender: u64, ledger: &Mutex<Ledger>) {
    let Ok(mut wire) = Wire::connect(address) else { return };
    let Ok(link) = wire.attach(QUEUE, Role::Sender) else { return };
    let mut in_flight = std::collections::BTreeMap::new();
    for number in 0.. {
        let id = sender << 32 | number;
        let mut payload = Vec::new();
        put_data(&mut payload, &id.to_be_bytes());
        let tail = Bytes::from(payload);
        let outgoing = Outgoing {
            tag: DeliveryTag::from(id),
            message_format: 0,
            settled: false,
            state: None,
            head: &[],
            tail: &tail,
            key: 0,
        };
        ledger.lock().unwrap().sent.insert(id);
        loop {
            if in_flight.len() < WINDOW {
                match wire.amqp.send(link, &outgoing) {
                    Ok(delivery) => {
                        in_flight.insert(delivery.get(), id);
                        break;
                    }
                    Err(SendError::Gone) => return,
                    Err(_) => {}
                }
            }
            if wire.flush().is_err() || wire.read().is_err() {
                return;
            }
            while let Some(event) = wire.amqp.next_event() {
                let Event::Settlement(settlement) = event else { continue };
                assert_eq!(settlement.state.as_deref(), Some(&DeliveryState::ACCEPTED));
                for settled in settlement.deliveries {
                    let id = in_flight.remove(&settled.delivery.get()).unwrap();
                    ledger.lock().unwrap().accepted.insert(id);
                }
            }
        }
    }
}

/// Receives and completes until the connection breaks, or, with a deadline, until everything that was
/// acknowledged has been seen.
fn receive(address: &str, ledger: &Mutex<Ledger>, patience: Option<Duration>) {
    let Ok(mut wire) = Wire::connect(address) else { return };
    let Ok(link) = wire.attach(QUEUE, Role::Receiver) else { return };
    wire.patience(Duration::from_millis(100)).unwrap();
    let began = Instant::now();
    let mut unanswered = std::collections::BTreeMap::new();
    loop {
        if wire.amqp.credit(link).unwrap_or(0) < 50 {
            let _ = wire.amqp.grant(link, 100);
        }
        if wire.flush().is_err() || wire.read().is_err() {
            return;
        }
        while let Some(event) = wire.amqp.next_event() {
            match event {
                Event::Delivery(delivery) => {
                    let message = Message::parse(delivery.payload).unwrap();
                    let id = u64::from_be_bytes(*message.data().next().unwrap().first_chunk().unwrap());
                    let mut ledger = ledger.lock().unwrap();
                    assert!(ledger.sent.contains(&id), "message {id} was never sent");
                    assert!(!ledger.completed.contains(&id), "message {id} was completed and came back");
                    ledger.in_doubt.insert(id);
                    unanswered.insert(delivery.delivery.get(), id);
                    let _ = wire.amqp.decide(delivery.link, delivery.delivery, DeliveryState::ACCEPTED);
                }
                Event::Settlement(settlement) => {
                    for settled in settlement.deliveries {
                        if let Some(id) = unanswered.remove(&settled.delivery.get())
                            && settlement.state.as_deref() == Some(&DeliveryState::ACCEPTED)
                        {
                            let mut ledger = ledger.lock().unwrap();
                            ledger.completed.insert(id);
                            ledger.in_doubt.remove(&id);
                        }
                    }
                }
                Event::Closed(_) => return,
                _ => {}
            }
        }
        if let Some(patience) = patience.filter(|_| unanswered.is_empty()) {
            let ledger = ledger.lock().unwrap();
            let all = ledger
                .accepted
                .iter()
                .all(|id| ledger.completed.contains(id) || ledger.in_doubt.contains(id));
            if all || began.elapsed() > patience {
                return;
            }
        }
    }
}
