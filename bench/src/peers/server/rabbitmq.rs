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
        let (acknowledgement, queue) = match self.queue {
            Queue::Classic => (
                "publisher confirm: the message is written and synced; its store gathers syncs for up to some hundred milliseconds",
                "x-queue-type=classic, durable; x-max-priority=10 where there are priorities",
            ),
            Queue::Quorum => (
                "publisher confirm: the message is in the Raft log, written and synced (one node)",
                "x-queue-type=quorum",
            ),
        };
        Ok(Facts {
            name: self.name().to_owned(),
            version: format!("RabbitMQ {}", super::package_version("rabbitmq-server")?),
            protocol: "AMQP 0-9-1, persistent messages, publisher confirms".to_owned(),
            acknowledgement: acknowledgement.to_owned(),
            settlement:
                "basic.ack was sent, one for all that were settled together; the server confirms none"
                    .to_owned(),
            synced: true,
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
