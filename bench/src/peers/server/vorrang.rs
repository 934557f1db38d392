//! Vorrang itself.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::broker::beside_us;
use crate::peers::daemon::{Daemon, free_port};
use crate::peers::driver::amqp_1_0::Amqp;
use crate::peers::peer::{Ability, Clients, Facts, FanOut, Layout, Peer};
use crate::peers::workload::fan_out;

/// Rescue after 5 s with a tenth of the deliveries; of what a link may hold, lower messages fill 2 % while the rest
/// is kept for the highest class.
const PRIORITIES: &str = r#"policy = "strict"
rescue = { after = "5s", share = 0.1 }
prefetch_share = 0.02
"#;

/// The greatest size a queue or topic may have: as the others, it takes what comes.
const SIZE: &str = "max_size_in_megabytes = 81920\n";

/// A queue takes 5,000 receivers, as one of Service Bus does.
const CROWD_QUEUES: u32 = 4;

pub(crate) struct Vorrang {
    pub(crate) binary: Option<PathBuf>,
    /// A program with its options that runs the server and watches it.
    pub(crate) under: Vec<OsString>,
}

impl Vorrang {
    fn binary(&self) -> Result<PathBuf> {
        self.binary.clone().map_or_else(|| beside_us("vorrang"), Ok)
    }
}

impl Peer for Vorrang {
    fn name(&self) -> &'static str {
        "Vorrang"
    }

    fn package(&self) -> Option<&'static str> {
        None
    }

    fn facts(&self) -> Result<Facts> {
        let binary = self.binary()?;
        Ok(Facts {
            name: self.name().to_owned(),
            version: super::first_line(&binary.to_string_lossy(), &["--version"])?,
            protocol: "AMQP 1.0".to_owned(),
            acknowledgement: "the record is written and synced (`fdatasync`, one for many messages)"
                .to_owned(),
            settlement: "the completion is written and synced, and the server has said so".to_owned(),
            synced: true,
            configuration: format!(
                "vorrang serve --dev --log warn --config vorrang.toml\n\nWaits per priority:\n[[queue]]\nname = \"q\"\n{SIZE}{PRIORITIES}"
            ),
        })
    }

    fn can(&self, _ability: Ability) -> bool {
        true
    }

    fn start(&self, folder: &Path, layout: Layout) -> Result<Daemon> {
        let config = folder.join("vorrang.toml");
        fs::write(&config, entities(layout))?;
        let port = free_port()?;
        let binary = self.binary()?.into_os_string();
        let mut words = self.under.iter().chain([&binary]);
        let mut command = Command::new(words.next().unwrap_or(&binary));
        command.args(words);
        command
            .args(["serve", "--dev", "--log", "warn", "--amqp-port", &port.to_string()])
            .args(["--amqps-port", "0", "--http-port", "0", "--https-port", "0", "--data-dir"])
            .arg(folder.join("data"))
            .arg("--config")
            .arg(config);
        Daemon::start(&mut command, folder.join("log"), port, Vec::new())
    }

    fn clients(&self, port: u16, layout: Layout) -> Box<dyn Clients> {
        let subscription = |number| format!("t/Subscriptions/s{number}");
        Box::new(Amqp { crowd_queues: CROWD_QUEUES, ..Amqp::new(port, layout, subscription) })
    }
}

/// The entities of a layout, as a configuration file.
fn entities(layout: Layout) -> String {
    let mut text = String::new();
    match layout {
        Layout::Crowd => {
            for number in 0..CROWD_QUEUES {
                let _ = write!(text, "[[queue]]\nname = \"q{number}\"\n");
            }
        }
        Layout::Plain | Layout::Priorities => {
            text.push_str("[[queue]]\nname = \"q\"\n");
            text.push_str(SIZE);
            if matches!(layout, Layout::Priorities) {
                text.push_str(PRIORITIES);
            }
        }
        Layout::FanOut(behind) => {
            text.push_str("[[topic]]\nname = \"t\"\n");
            text.push_str(SIZE);
            for number in 0..fan_out::count_of(behind) {
                let _ = write!(text, "[[topic.subscription]]\nname = \"s{number}\"\n");
                let filters = match behind {
                    FanOut::Expressions(_) => {
                        vec![format!("filter = \"{}\"", fan_out::expression(number, "sys.CorrelationId"))]
                    }
                    FanOut::Keys(_) => fan_out::keys_of(behind, number)
                        .into_iter()
                        .map(|key| format!("correlation = {{ correlation_id = \"k{key}\" }}"))
                        .collect(),
                };
                for (place, filter) in filters.iter().enumerate() {
                    let _ = write!(text, "[[topic.subscription.rule]]\nname = \"r{place}\"\n{filter}\n");
                }
            }
        }
    }
    text
}
