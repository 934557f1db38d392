//! Redis with its append-only file synced before every answer.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::peers::daemon::{Daemon, free_port};
use crate::peers::driver::resp::Redis;
use crate::peers::peer::{Ability, Clients, Facts, Layout, Peer};

const OPTIONS: [&str; 8] =
    ["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--maxclients", "12000"];

pub(super) struct Streams;

impl Peer for Streams {
    fn name(&self) -> &'static str {
        "Redis Streams"
    }

    fn package(&self) -> Option<&'static str> {
        Some("redis-server")
    }

    fn facts(&self) -> Result<Facts> {
        Ok(Facts {
            name: self.name().to_owned(),
            version: super::first_line("redis-server", &["--version"])?,
            protocol: "RESP 2, commands pipelined; a class is a stream".to_owned(),
            acknowledgement: "the entry is in the append-only file, which is synced before the answer"
                .to_owned(),
            settlement: "XACK and XDEL are in the file and synced, and the server has said so".to_owned(),
            synced: true,
            configuration: "redis-server --appendonly yes --appendfsync always --save '' --maxclients 12000"
                .to_owned(),
        })
    }

    fn can(&self, ability: Ability) -> bool {
        matches!(ability, Ability::Priorities | Ability::Connections)
    }

    fn start(&self, folder: &Path, _layout: Layout) -> Result<Daemon> {
        let data = folder.join("data");
        fs::create_dir_all(&data)?;
        let port = free_port()?;
        let mut command = Command::new("redis-server");
        command
            .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
            .args(OPTIONS)
            .arg("--dir")
            .arg(data);
        Daemon::start(&mut command, folder.join("log"), port, Vec::new())
    }

    fn clients(&self, port: u16, layout: Layout) -> Box<dyn Clients> {
        Box::new(Redis { port, layout })
    }
}
