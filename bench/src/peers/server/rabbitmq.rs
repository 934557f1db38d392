//! RabbitMQ with durable queues: on AMQP 0-9-1, which most of its clients speak, and on AMQP 1.0, which it speaks itself from
//! version 4 on.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use vorrang_amqp::performative::ReceiverSettleMode;

use crate::peers::daemon::{Daemon, free_port};
use crate::peers::driver::amqp_0_9_1::{Queue, Rabbit};
use crate::peers::driver::amqp_1_0::Amqp;
use crate::peers::peer::{Ability, Clients, Facts, Layout, Peer, Receiver, Sender};
use crate::wire::Account;

/// The server's script beneath the wrapper that changes the user and the log files.
const SERVER: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

/// The account that is there from the beginning, for clients on the same machine.
const GUEST: Account = Account { user: "guest", password: "guest" };

/// What clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Amqp091,
    Amqp10,
}

pub(super) struct RabbitMq {
    pub(super) queue: Queue,
    pub(super) protocol: Protocol,
}

impl Peer for RabbitMq {
    fn name(&self) -> &'static str {
        match (self.queue, self.protocol) {
            (Queue::Classic, Protocol::Amqp091) => "RabbitMQ classic",
            (Queue::Classic, Protocol::Amqp10) => "RabbitMQ classic (1.0)",
            (Queue::Quorum, Protocol::Amqp091) => "RabbitMQ quorum",
            (Queue::Quorum, Protocol::Amqp10) => "RabbitMQ quorum (1.0)",
        }
    }

    fn package(&self) -> Option<&'static str> {
        // Asked for once: a version without AMQP 1.0 does not get it by being installed again.
        (self.protocol == Protocol::Amqp091).then_some("rabbitmq-server")
    }

    fn facts(&self) -> Result<Facts> {
        let version = super::package_version("rabbitmq-server")?;
        if self.protocol == Protocol::Amqp10 && is_before_four(&version) {
            bail!("it speaks AMQP 1.0 from version 4 on, and this is {version}");
        }
        let synced = self.queue == Queue::Quorum || classic_syncs(&version);
        let (acknowledgement, queue) = match self.queue {
            Queue::Classic if synced => (
                "the message is written and synced; its store gathers syncs for up to some hundred milliseconds",
                "x-queue-type=classic, durable; x-max-priority=10 where there are priorities",
            ),
            Queue::Classic => (
                "the message is in the kernel's page cache; **not synced**: from version 4 on, classic queues leave that to the system",
                "x-queue-type=classic, durable; x-max-priority=10 where there are priorities",
            ),
            Queue::Quorum => {
                ("the message is in the Raft log, written and synced (one node)", "x-queue-type=quorum")
            }
        };
        let (protocol, told, settlement) = match self.protocol {
            Protocol::Amqp091 => (
                "AMQP 0-9-1, persistent messages, publisher confirms",
                "publisher confirm",
                "basic.ack was sent, one for all that were settled together; the server confirms none",
            ),
            Protocol::Amqp10 => (
                "AMQP 1.0, durable messages",
                "accepted",
                "accepted and settled by the receiver; the server confirms none",
            ),
        };
        Ok(Facts {
            name: self.name().to_owned(),
            version: format!("RabbitMQ {version}"),
            protocol: protocol.to_owned(),
            acknowledgement: format!("{told}: {acknowledgement}"),
            settlement: settlement.to_owned(),
            synced,
            configuration: format!("rabbitmq-server with its defaults; {queue}"),
        })
    }

    fn can(&self, ability: Ability) -> bool {
        match ability {
            Ability::Priorities | Ability::Keys => {
                self.queue == Queue::Classic && self.protocol == Protocol::Amqp091
            }
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
        let rabbit = Rabbit { port, layout, queue: self.queue };
        match self.protocol {
            Protocol::Amqp091 => Box::new(rabbit),
            Protocol::Amqp10 => Box::new(Native { rabbit, amqp: amqp(port, layout) }),
        }
    }
}

/// Clients that speak AMQP 1.0. Queues are made as the others make them.
struct Native {
    rabbit: Rabbit,
    amqp: Amqp,
}

fn amqp(port: u16, layout: Layout) -> Amqp {
    Amqp {
        account: GUEST,
        // It ends a session in which a receiver asks for the other.
        settle_mode: ReceiverSettleMode::First,
        queue: |name| format!("/queues/{name}"),
        ..Amqp::new(port, layout, |number| format!("/queues/s{number}"))
    }
}

impl Clients for Native {
    fn probe(&self) -> Result<()> {
        self.amqp.probe()
    }

    fn prepare(&self) -> Result<()> {
        self.rabbit.prepare()
    }

    fn sender(&self) -> Result<Box<dyn Sender>> {
        self.amqp.sender()
    }

    fn receiver(&self, prefetch: u32) -> Result<Box<dyn Receiver>> {
        self.amqp.receiver(prefetch)
    }
}

/// Whether classic queues of this version sync what they confirm. `strace` sees not one sync of version 4.0 in thousands of
/// confirmed messages.
fn classic_syncs(version: &str) -> bool {
    is_before_four(version)
}

fn is_before_four(version: &str) -> bool {
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
