//! RabbitMQ on its native protocol, with durable queues.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::peers::daemon::{Daemon, free_port};
use crate::peers::driver::amqp_0_9_1::{Queue, Rabbit};
use crate::peers::peer::{Ability, Clients, Facts, Layout, Peer};

/// The server's script beneath the wrapper that changes the user and the log files.
const SERVER: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

pub(super) struct RabbitMq {
    pub(super) queue: Queue,
}

impl Peer for RabbitMq {
    fn name(&self) -> &'static str {
        match self.queue {
            Queue::Classic => "RabbitMQ classic",
            Queue::Quorum => "RabbitMQ quorum",
        }
    }

    fn package(&self) -> Option<&'static str> {
        Some("rabbitmq-server")
    }

    fn facts(&self) -> Result<Facts> {
        let version = super::package_version("rabbitmq-server")?;
        let synced = self.queue == Queue::Quorum || classic_syncs(&version);
        let (acknowledgement, queue) = match self.queue {
            Queue::Classic if synced => (
                "publisher confirm: the message is written and synced; its store gathers syncs for up to some hundred milliseconds",
                "x-queue-type=classic, durable; x-max-priority=10 where there are priorities",
            ),
            Queue::Classic => (
                "publisher confirm: the message is in the kernel's page cache; **not synced**: from version 4 on, classic queues leave that to the system",
                "x-queue-type=classic, durable; x-max-priority=10 where there are priorities",
            ),
            Queue::Quorum => (
                "publisher confirm: the message is in the Raft log, written and synced (one node)",
                "x-queue-type=quorum",
            ),
        };
        Ok(Facts {
            name: self.name().to_owned(),
            version: format!("RabbitMQ {version}"),
            protocol: "AMQP 0-9-1, persistent messages, publisher confirms".to_owned(),
            acknowledgement: acknowledgement.to_owned(),
            settlement:
                "basic.ack was sent, one for all that were settled together; the server confirms none"
                    .to_owned(),
            synced,
            configuration: format!("rabbitmq-server with its defaults; {queue}"),
        })
    }

    fn can(&self, ability: Ability) -> bool {
        match ability {
            Ability::Priorities | Ability::Keys => self.queue == Queue::Classic,
            Ability::Connections => true,
            Ability::Expressions => false,
        }
    }

    fn start(&self, folder: &Path, _layout: Layout) -> Result<Daemon> {
        let (port, distribution, names) = (free_port()?, free_port()?, free_port()?);
        // The server would start this daemon itself, and leave it behind.
        let epmd = Command::new("epmd")
            .args(["-address", "127.0.0.1", "-port", &names.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("epmd is not installed")?;
        let plugins = folder.join("enabled_plugins");
        fs::write(&plugins, "[].\n")?;
        let mut command = Command::new(SERVER);
        command
            .env("HOME", folder)
            .env("ERL_EPMD_PORT", names.to_string())
            .env("RABBITMQ_NODENAME", "bench@localhost")
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", port.to_string())
            .env("RABBITMQ_DIST_PORT", distribution.to_string())
            .env("RABBITMQ_MNESIA_BASE", folder.join("data"))
            .env("RABBITMQ_LOG_BASE", folder.join("logs"))
            .env("RABBITMQ_PID_FILE", folder.join("pid"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", plugins)
            .env("RABBITMQ_CONFIG_FILE", folder.join("rabbitmq"))
            .env("RABBITMQ_CONF_ENV_FILE", folder.join("none"));
        Daemon::start(&mut command, folder.join("log"), port, vec![epmd])
    }

    fn clients(&self, port: u16, layout: Layout) -> Box<dyn Clients> {
        Box::new(Rabbit { port, layout, queue: self.queue })
    }
}

/// Whether classic queues of this version sync what they confirm. `strace` sees not one sync of version 4.0 in thousands of
/// confirmed messages.
fn classic_syncs(version: &str) -> bool {
    let major = version.split('.').next().and_then(|number| number.parse::<u32>().ok());
    major.is_some_and(|major| major < 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classic_queues_sync_up_to_version_three() {
        for (version, syncs) in [("3.10.8-1.1+deb12u1", true), ("4.0.5-6+deb13u2", false), ("10.1", false)] {
            assert_eq!(classic_syncs(version), syncs, "{version}");
        }
    }
}
