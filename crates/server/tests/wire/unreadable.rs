//! A stored message that cannot be read where it was said to lie: it may have been moved while its delivery waited for the
//! client, so it is asked for again; one that stays unreadable ends the link with its reason, and is not lost.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::client::Client;
use crate::message::{body, message};
use crate::server::Server;

const BODY: &str = "the bytes that a disk forgot";

/// The file that has these bytes, and where.
fn find(folder: &Path, bytes: &[u8]) -> (PathBuf, u64) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(place) =
                std::fs::read(&path).unwrap().windows(bytes.len()).position(|window| window == bytes)
            {
                return (path, u64::try_from(place).unwrap());
            }
        }
    }
    panic!("no file has them");
}

#[test]
fn a_message_that_stays_unreadable_ends_the_link_and_comes_when_it_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path());
    server.queue_named("q", []);
    let mut client = Client::root(&server);
    client.sender(1, "q");
    client.post(1, message(BODY));
    client.post(1, message("another"));
    drop(client);
    server.stop();
    // A new broker has no message at hand.
    let server = Server::start_in(folder.path());
    let (file, place) = find(folder.path(), BODY.as_bytes());
    let file = OpenOptions::new().write(true).open(file).unwrap();
    file.write_all_at(b"THE", place).unwrap();
    let mut client = Client::root(&server);
    client.receiver(1, "q");
    client.credit(1, 2);
    let error = client.detached(1);
    assert_eq!(error.condition, "amqp:internal-error");
    let description = error.description.unwrap();
    assert!(description.as_str().contains("message 1 cannot be read"), "{description:?}");
    // It was given back each time, and lost nothing.
    file.write_all_at(b"the", place).unwrap();
    client.receiver(2, "q");
    let delivery = client.receive(2);
    assert_eq!(body(&delivery.message), BODY);
    assert_eq!(delivery.message.header().unwrap().unwrap_or_default().delivery_count, 0);
}
