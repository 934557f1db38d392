//! Clients that stop reading: what is on its way to them is bounded in bytes, whatever their credit, and others get
//! the rest.

use crate::client::Client;
use crate::links::{deleting_receiver, receiver};
use crate::message::large;
use crate::server::Server;

/// Thirty megabytes in all: several times what the broker and the sockets between may hold for one connection.
const MESSAGES: usize = 150;
const BYTES: usize = 200_000;
/// What may be on its way to one connection: eight megabytes before the door, four behind it, and what two sockets
/// buffer.
const STUCK_MAX: usize = 110;

#[test]
fn a_receiver_that_does_not_read_leaves_the_rest_to_others() {
    for (case, deletes) in [("peek-lock", false), ("deleting", true)] {
        let attach = |queue: &str| if deletes { deleting_receiver(1, queue) } else { receiver(1, queue) };
        let server = Server::start();
        let queue = server.queue([]);
        let mut sender = Client::root(&server);
        sender.sender(1, &queue);
        let sent: Vec<u32> = (0..MESSAGES).map(|_| sender.transfer(1, large(BYTES))).collect();
        for delivery in sent {
            sender.outcome(delivery);
        }
        let mut stuck = Client::root(&server);
        stuck.attach(attach(&queue));
        stuck.credit(1, 10_000);
        // It has read one message: whatever the broker means to give it at once is decided.
        stuck.delivery(1);
        let mut reader = Client::root(&server);
        reader.attach(attach(&queue));
        let others = reader.drained(1).len();
        assert!(others >= MESSAGES - STUCK_MAX, "{case}: others got {others} of {MESSAGES}");
        // When it reads again it gets all that it was promised: nothing is lost on the way.
        for number in 1..MESSAGES - others {
            assert_eq!(stuck.delivery(1).message.encoded().len() / BYTES, 1, "{case}: message {number}");
        }
        // And what comes later reaches it: its credit is what it was.
        reader.detach(1);
        sender.transfer(1, large(BYTES));
        stuck.delivery(1);
    }
}

#[test]
fn a_receiver_that_reads_slowly_gets_everything_in_order() {
    let server = Server::start();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    for number in 0..MESSAGES {
        client.transfer(1, large(BYTES).property("number", i64::try_from(number).unwrap()));
    }
    let mut slow = Client::root(&server);
    slow.receiver(1, &queue);
    slow.credit(1, 10_000);
    for number in 0..MESSAGES {
        let found = slow.delivery(1).application("number").and_then(|value| value.as_i64());
        assert_eq!(found, Some(i64::try_from(number).unwrap()));
    }
    slow.drain(1, 10_000 - u32::try_from(MESSAGES).unwrap());
    slow.wait("the answer to the drain", |frame| match &frame.body {
        vorrang_amqp::FrameBody::Flow(flow) => flow.link.as_ref().filter(|link| link.drain).map(|_| ()),
        _ => None,
    });
}
