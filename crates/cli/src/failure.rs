//! How a command ends: one clear sentence with the remedy, and a number that scripts can tell apart.
//!
//! The numbers are a promise (`docs/cli.md`); a new kind of failure gets a new one.

use std::fmt;
use std::process::ExitCode;

use vorrang_server::config::Problems;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something without a number of its own.
    Other(anyhow::Error),
    /// The command line asks for something that makes no sense.
    Usage(String),
    /// The configuration is wrong.
    Config(Problems),
    /// No broker answers.
    Unreachable(String),
    /// The broker does not know the key, or the key does not permit it.
    Forbidden(String),
    /// There is no such thing.
    NotFound(String),
    /// The broker says no: it exists already, is out of bounds, or is full.
    Refused(String),
    /// `doctor` found something.
    Unsound(String),
}

/// What a command comes to.
pub(crate) type Outcome = Result<(), Failure>;

impl Failure {
    /// The number the process ends with.
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Other(_) => 1,
            // The number `clap` uses for flags it cannot read.
            Failure::Usage(_) => 2,
            Failure::Config(_) => 3,
            Failure::Unreachable(_) => 4,
            Failure::Forbidden(_) => 5,
            Failure::NotFound(_) => 6,
            Failure::Refused(_) => 7,
            Failure::Unsound(_) => 8,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Other(error) => {
                // Our own errors name their cause in their own words; nothing is said twice.
                let mut said = error.to_string();
                for cause in error.chain().skip(1).map(ToString::to_string) {
                    if !said.contains(&cause) {
                        said = format!("{said}: {cause}");
                    }
                }
                f.write_str(&said)
            }
            Failure::Config(problems) => {
                let count = problems.0.len();
                let mistakes = if count == 1 { "mistake" } else { "mistakes" };
                write!(f, "the configuration has {count} {mistakes}:")?;
                problems.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
            Failure::Usage(text)
            | Failure::Unreachable(text)
            | Failure::Forbidden(text)
            | Failure::NotFound(text)
            | Failure::Refused(text)
            | Failure::Unsound(text) => f.write_str(text),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Other(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::Other(error.into())
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Failure {
        Failure::Config(problems)
    }
}
