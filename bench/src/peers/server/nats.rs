//! NATS with JetStream on files.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::peers::daemon::{Daemon, free_port};
use crate::peers::driver::nats::Nats;
use crate::peers::peer::{Ability, Clients, Facts, Layout, Peer};

pub(super) struct JetStream;

/// Whether this server knows how to sync before it answers.
fn syncs() -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("nats.conf");
    fs::write(&path, configuration(0, &folder.path().join("data"), true))?;
    Ok(Command::new("nats-server").arg("-t").arg("-c").arg(path).output()?.status.success())
}

fn configuration(port: u16, data: &Path, syncs: bool) -> String {
    let interval = if syncs { "  sync_interval: always\n" } else { "" };
    format!("host: 127.0.0.1\nport: {port}\njetstream {{\n  store_dir: {:?}\n{interval}}}\n", data.display())
}

impl Peer for JetStream {
    fn name(&self) -> &'static str {
        "NATS JetStream"
    }

    fn package(&self) -> Option<&'static str> {
        Some("nats-server")
    }

    fn facts(&self) -> Result<Facts> {
        let version = super::first_line("nats-server", &["--version"])?;
        let synced = syncs()?;
        let acknowledgement = if synced {
            "the message is written and synced (`sync_interval: always`)"
        } else {
            "the message is in the kernel's page cache; **not synced**: this version has no `sync_interval` and syncs every two minutes"
        };
        Ok(Facts {
            name: self.name().to_owned(),
            version,
            protocol:
                "NATS, work-queue stream on files, pull consumers; a class is a subject with a consumer"
                    .to_owned(),
            acknowledgement: acknowledgement.to_owned(),
            settlement: "the acknowledgement was sent; the server confirms none".to_owned(),
            synced,
            configuration: configuration(4222, Path::new("DIR"), synced),
        })
    }

    fn can(&self, ability: Ability) -> bool {
        matches!(ability, Ability::Priorities | Ability::Connections)
    }

    fn start(&self, folder: &Path, _layout: Layout) -> Result<Daemon> {
        let port = free_port()?;
        let path = folder.join("nats.conf");
        fs::write(&path, configuration(port, &folder.join("data"), syncs()?))?;
        let mut command = Command::new("nats-server");
        command.arg("-c").arg(path);
        Daemon::start(&mut command, folder.join("log"), port, Vec::new())
    }

    fn clients(&self, port: u16, layout: Layout) -> Box<dyn Clients> {
        Box::new(Nats { port, layout })
    }
}
