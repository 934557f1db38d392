//! beanstalkd with its binlog synced at every write.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::peers::daemon::{Daemon, free_port};
use crate::peers::driver::beanstalk::Beanstalk;
use crate::peers::peer::{Ability, Clients, Facts, Layout, Peer};

pub(super) struct Beanstalkd;

impl Peer for Beanstalkd {
    fn name(&self) -> &'static str {
        "beanstalkd"
    }

    fn package(&self) -> Option<&'static str> {
        Some("beanstalkd")
    }

    fn facts(&self) -> Result<Facts> {
        Ok(Facts {
            name: self.name().to_owned(),
            version: super::first_line("beanstalkd", &["-v"])?,
            protocol: "beanstalk, commands pipelined".to_owned(),
            acknowledgement: "the job is in the binlog, which is synced at every write (`-f 0`)".to_owned(),
            settlement: "the deletion is in the binlog and synced, and the server has said so".to_owned(),
            synced: true,
            configuration: "beanstalkd -b DIR -f 0".to_owned(),
        })
    }

    fn can(&self, ability: Ability) -> bool {
        matches!(ability, Ability::Priorities | Ability::Connections)
    }

    fn start(&self, folder: &Path, _layout: Layout) -> Result<Daemon> {
        let data = folder.join("data");
        fs::create_dir_all(&data)?;
        let port = free_port()?;
        let mut command = Command::new("beanstalkd");
        command.args(["-l", "127.0.0.1", "-p", &port.to_string(), "-f", "0", "-b"]).arg(data);
        Daemon::start(&mut command, folder.join("log"), port, Vec::new())
    }

    fn clients(&self, port: u16, _layout: Layout) -> Box<dyn Clients> {
        Box::new(Beanstalk { port })
    }
}
