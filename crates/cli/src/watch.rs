//! `--watch`: show the answer again and again until Ctrl-C.

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use vorrang_server::duration;

use crate::failure::Outcome;

#[derive(Debug, Clone, Args)]
pub(crate) struct Watch {
    /// Show again and again, every 2 s or as often as said
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "2s", value_parser = pause)]
    watch: Option<Duration>,
}

/// Shows once, or again and again.
pub(crate) fn run(watch: &Watch, mut show: impl FnMut() -> Outcome) -> Outcome {
    let Some(pause) = watch.watch else { return show() };
    loop {
        if io::stdout().is_terminal() {
            // To the upper left corner, and clear what is below.
            print!("\u{1b}[H\u{1b}[2J");
        }
        show()?;
        std::thread::sleep(pause);
    }
}

pub(crate) fn pause(text: &str) -> Result<Duration, String> {
    let span = duration::parse(text).map_err(|error| error.to_string())?;
    let sound = (100..=86_400_000).contains(&span.0);
    if sound { Ok(Duration::from_millis(span.0)) } else { Err("allowed is 100ms to 1d".to_owned()) }
}
