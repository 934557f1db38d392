//! The servers that are measured: how each is started in its recommended durable configuration, and what it promises.

mod activemq;
mod artemis;
mod beanstalkd;
mod nats;
mod postgres;
mod rabbitmq;
mod redis;
mod vorrang;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::driver::amqp_0_9_1::Queue;
use super::peer::Peer;
use rabbitmq::{Protocol, RabbitMq};
pub(crate) use vorrang::Vorrang;

/// Everything that can be measured, ours first.
pub(crate) fn all(binary: Option<PathBuf>) -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(Vorrang { binary, under: Vec::new() }),
        Box::new(RabbitMq { queue: Queue::Classic, protocol: Protocol::Amqp091 }),
        Box::new(RabbitMq { queue: Queue::Quorum, protocol: Protocol::Amqp091 }),
        Box::new(RabbitMq { queue: Queue::Quorum, protocol: Protocol::Amqp10 }),
        Box::new(activemq::ActiveMq),
        Box::<artemis::Artemis>::default(),
        Box::new(nats::JetStream),
        Box::new(beanstalkd::Beanstalkd),
        Box::new(redis::Streams),
        Box::new(postgres::SkipLocked),
    ]
}

/// The first line a program prints about itself.
fn first_line(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("{program} is not installed"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    text.lines()
        .find(|line| !line.trim().is_empty())
        .map(|line| line.trim().to_owned())
        .context("it says no version")
}

/// The version of an installed Debian package.
fn package_version(package: &str) -> Result<String> {
    let output = Command::new("dpkg-query").args(["-W", "-f=${Status} ${Version}", package]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.strip_prefix("install ok installed ").map(str::to_owned);
    version.with_context(|| format!("package {package} is not installed"))
}
