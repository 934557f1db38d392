//! Logs go to standard error, as text for people or JSON for machines; standard output stays for answers.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One readable line each, coloured on a terminal.
    Text,
    /// One JSON object each.
    Json,
}

/// Starts logging for the whole process. `filter` is a level or a list of `target=level`.
pub(crate) fn start(format: LogFormat, filter: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| anyhow::anyhow!("'{filter}' is no log filter ({error}); try info, debug or warn"))?;
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match format {
        LogFormat::Text => subscriber.with_ansi(io::stderr().is_terminal()).init(),
        LogFormat::Json => subscriber.json().init(),
    }
    Ok(())
}
