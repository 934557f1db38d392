//! The one configuration: from a TOML file, the environment and the command line.
//!
//! A flag beats a variable, a variable beats the file, the file beats our default. Everything is read and
//! checked before anything starts, and every mistake is reported at once, each with where it stands, its
//! key, its value and what is allowed. Keys nobody knows are mistakes too.

mod access;
mod document;
mod emulator;
mod entities;
pub mod fuzzing;
mod key;
mod problem;
mod property;
mod reader;
mod rules;
mod schema;
mod shape;
pub mod show;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use document::FILE_BYTES_MAX;
pub use emulator::{MOUNT_PATH, from_environment};
pub use key::{KEYS, Key};
pub use problem::{Mistake, Problem, Problems, Source, nearest, shown};
pub use property::{EntityKind, On, PROPERTIES, Property, policy};
pub use schema::schema;
pub use shape::Shape;

use reader::{Reader, Table};
use shape::Given;

use crate::definitions::emulator::FileError;
use crate::settings::Settings;
use crate::telemetry::{Collector, Endpoint, Headers};
use crate::tls::{self, CertificateFiles};

/// The file that is read when none is named.
pub const FILE_NAME: &str = "vorrang.toml";

/// Everything that can be configured.
#[derive(Debug, Clone)]
pub struct Config {
    /// What the server needs to know.
    pub settings: Settings,
    /// What is logged, and how.
    pub log: Log,
    /// The two halves of a certificate, as they were given; both or none are needed.
    tls: TlsFiles,
    /// What is known of a collector; it is one once it has an address.
    otlp: Otlp,
    /// Where each setting comes from that is not our default.
    sources: BTreeMap<&'static str, Source>,
}

#[derive(Debug, Clone, Default)]
struct TlsFiles {
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

#[derive(Debug, Clone, Default)]
struct Otlp {
    endpoint: Option<Endpoint>,
    ca_file: Option<PathBuf>,
    headers: Headers,
}

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// A level, or a list of `target=level`.
    pub filter: String,
    /// How lines are written.
    pub format: LogFormat,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One readable line each, coloured on a terminal.
    Text,
    /// One JSON object each.
    Json,
}

impl LogFormat {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        }
    }
}

/// A setting from outside the file, as text.
#[derive(Debug, Clone)]
pub struct Override {
    /// Which.
    pub key: &'static Key,
    /// From where.
    pub source: Source,
    /// Its value.
    pub text: String,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            settings: Settings::new(PathBuf::from("./vorrang-data")),
            log: Log { filter: "info".to_owned(), format: LogFormat::Text },
            tls: TlsFiles::default(),
            otlp: Otlp::default(),
            sources: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Where a setting comes from.
    #[must_use]
    pub fn source(&self, key: &str) -> Source {
        self.sources.get(key).cloned().unwrap_or(Source::Default)
    }

    /// Reads the file, if there is one, then takes the overrides over it, the later ones last.
    pub fn load(file: Option<&Path>, overrides: &[Override]) -> Result<Config, Problems> {
        let mut config = Config::default();
        let mut problems = Vec::new();
        let (mounted, given): (Vec<&Override>, Vec<&Override>) =
            overrides.iter().partition(|given| given.source == Source::EmulatorMount);
        // A file that merely lies somewhere is the weakest wish of all.
        config.take(&mounted, &mut problems);
        if let Some(path) = file {
            match read_bounded(path) {
                Ok(text) => problems.extend(config.read(path, &text)),
                Err(error) => {
                    let source = Source::File { path: Arc::from(path), line: 1 };
                    let mistake = Mistake::Other(format!("the file cannot be read: {error}"));
                    problems.push(Problem { source, key: String::new(), mistake });
                }
            }
        }
        config.take(&given, &mut problems);
        problems.extend(config.contradictions());
        problems.extend(config.certificate_mistakes());
        problems.extend(config.emulator_mistakes());
        if problems.is_empty() { Ok(config) } else { Err(Problems(problems)) }
    }

    fn take(&mut self, overrides: &[&Override], problems: &mut Vec<Problem>) {
        for Override { key, source, text } in overrides {
            let given = Given::Typed(text);
            if (key.set)(self, given).is_some() {
                self.note(key, source.clone());
            } else {
                let mistake = key.shape.refuse(given);
                problems.push(Problem { source: source.clone(), key: key.name.to_owned(), mistake });
            }
        }
    }

    /// Takes over what a file says, and returns what is wrong with it.
    fn read(&mut self, path: &Path, text: &str) -> Vec<Problem> {
        let file = path.to_path_buf();
        let path: Arc<Path> = Arc::from(path);
        let entries = match document::parse(&path, text) {
            Ok(entries) => entries,
            Err(problems) => return problems,
        };
        let mut reader = Reader::new(path);
        let root = Table::root(&entries);
        let known = KEYS.iter().map(|key| key.name).chain(["key", "queue", "topic"]);
        reader.refuse_unknown(&root, known);
        for key in KEYS {
            let Some(place) = root.find(key.name) else { continue };
            if reader.plain(&place, key.shape, |given| (key.set)(self, given)).is_some() {
                self.note(key, reader.source(place.line));
            }
        }
        self.settings.keys = access::read(&mut reader, &root, "key");
        self.settings.definitions = entities::read(&mut reader, &root);
        self.settings.definitions_file = Some(file);
        reader.problems.sort_by_key(|problem| match &problem.source {
            Source::File { line, .. } => *line,
            _ => 0,
        });
        reader.problems
    }

    /// What is wrong with the files of certificates that are named.
    fn certificate_mistakes(&self) -> Vec<Problem> {
        let mistake = |key: &str, error: &dyn std::fmt::Display| {
            let mistake = Mistake::Other(format!("is of no use: {error}"));
            Problem { source: self.source(key), key: key.to_owned(), mistake }
        };
        let served = self.settings.certificate.as_ref().and_then(|files| tls::acceptor(files).err());
        let believed = self.settings.collector.as_ref().and_then(|collector| collector.check().err());
        let served = served.map(|error| mistake("tls_certificate", &error));
        let believed = believed.map(|error| mistake("otlp_ca_file", &error));
        served.into_iter().chain(believed).collect()
    }

    /// What is wrong with the emulator's file, if there is one.
    fn emulator_mistakes(&self) -> Vec<Problem> {
        let Some(path) = &self.settings.emulator_config else { return Vec::new() };
        match crate::definitions::emulator::read(path) {
            Ok(_) => Vec::new(),
            Err(FileError::Unreadable { path, source: error }) => {
                let text =
                    format!("cannot be {}: it cannot be read: {error}", shown(&path.display().to_string()));
                let (source, key) = (self.source("emulator_config"), "emulator_config".to_owned());
                vec![Problem { source, key, mistake: Mistake::Other(text) }]
            }
            Err(FileError::Wrong { path, problems }) => {
                let source = Source::EmulatorFile(path.into());
                let problem = |text| Problem {
                    source: source.clone(),
                    key: String::new(),
                    mistake: Mistake::Other(text),
                };
                problems.0.into_iter().map(problem).collect()
            }
        }
    }

    fn note(&mut self, key: &'static Key, source: Source) {
        self.sources.insert(key.name, source);
    }

    /// Settings that are allowed by themselves, but not together.
    fn contradictions(&mut self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut complain = |source: Source, key: &str, text: &str| {
            let mistake = Mistake::Other(text.to_owned());
            problems.push(Problem { source, key: key.to_owned(), mistake });
        };
        match (self.tls.certificate.clone(), self.tls.key.clone()) {
            (Some(certificate), Some(key)) => {
                self.settings.certificate = Some(CertificateFiles { certificate, key });
            }
            (None, None) => {}
            (Some(_), None) => {
                complain(self.source("tls_certificate"), "tls_certificate", "needs tls_key beside it");
            }
            (None, Some(_)) => complain(self.source("tls_key"), "tls_key", "needs tls_certificate beside it"),
        }
        // Deployments give the same variables to every program; without an address the others mean nothing.
        let Otlp { endpoint, ca_file, headers } = self.otlp.clone();
        self.settings.collector = endpoint.map(|endpoint| Collector { endpoint, ca_file, headers });
        for (key, text) in self.settings.problems() {
            complain(self.source(key), key, &text);
        }
        problems
    }
}

/// The text of a file that is not absurdly large.
pub(crate) fn read_bounded(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if u64::try_from(read).is_ok_and(|read| read > FILE_BYTES_MAX) {
        let text = format!("it is larger than {FILE_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
