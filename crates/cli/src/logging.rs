//! Logs go to standard error, as text for people or JSON for machines; standard output stays for answers.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use vorrang_server::config::{Log, LogFormat};

/// Whether `filter` is a level or a list of `target=level`.
pub(crate) fn check(filter: &str) -> anyhow::Result<()> {
    parse(filter).map(drop)
}

/// Starts logging for the whole process.
pub(crate) fn start(log: &Log) -> anyhow::Result<()> {
    let subscriber = tracing_subscriber::fmt().with_env_filter(parse(&log.filter)?).with_writer(io::stderr);
    match log.format {
        LogFormat::Text => subscriber.with_ansi(io::stderr().is_terminal()).init(),
        LogFormat::Json => subscriber.json().init(),
    }
    Ok(())
}

fn parse(filter: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(filter).map_err(|error| {
        anyhow::anyhow!(
            "cannot be {filter:?} ({error}): allowed is a level such as info, or a list of target=level"
        )
    })
}
