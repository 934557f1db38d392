//! A stored message that cannot be read where it was said to lie: it may have been moved while its delivery waited for the
//! client, so it is asked for again; one that stays unreadable ends the link with its reason, and is not lost.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::client::Client;
use crate::message::{body, message};
use crate::server::Server;

const BODIES: [&str; 2] = ["the bytes that a disk forgot", "the bytes beside them"];

/// The file that has these bytes, and where.
fn find(folder: &Path, bytes: &[u8]) -> (PathBuf, u64) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let content = match std::fs::read(&path) {
                // The broker gives its spare files other names meanwhile; the one that is looked for keeps its name.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                content => content.unwrap(),
            };
            if let Some(place) = content.windows(bytes.len()).position(|window| window == bytes) {
                return (path, u64::try_from(place).unwrap());
            }
        }
    }
    panic!("no file has them");
}

#[test]
fn messages_that_stay_unreadable_end_the_link_and_come_when_they_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path());
    server.queue_named("q", []);
    let mut client = Client::root(&server);
    client.sender(1, "q");
    for body in BODIES {
        client.post(1, message(body));
    }
    drop(client);
    server.stop();
    // A new broker has no message at hand.
    let server = Server::start_in(folder.path());
    let places = BODIES.map(|body| {
        let (file, place) = find(folder.path(), body.as_bytes());
        (OpenOptions::new().write(true).open(file).unwrap(), place)
    });
    for (file, place) in &places {
        file.write_all_at(b"THE", *place).unwrap();
    }
    let mut client = Client::root(&server);
    client.receiver(1, "q");
    client.credit(1, 2);
    let error = client.detached(1);
    assert_eq!(error.condition, "amqp:internal-error");
    let description = error.description.unwrap();
    assert!(description.as_str().contains("message 1 cannot be read"), "{description:?}");
    // It was given back each time, and lost nothing.
    for (file, place) in &places {
        file.write_all_at(b"the", *place).unwrap();
    }
    client.receiver(2, "q");
    for expected in BODIES {
        let delivery = client.receive(2);
        assert_eq!(body(&delivery.message), expected);
        assert_eq!(delivery.message.header().unwrap().unwrap_or_default().delivery_count, 0);
    }
}
