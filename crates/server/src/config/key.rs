//! The settings of `vorrang serve`, one row each: key in the file, flag, variable, help and schema come
//! from this table, so that none can be forgotten.
//!
//! `amqp_port` in the file is `--amqp-port` on the command line and `VORRANG_AMQP_PORT` in the environment.

use std::path::PathBuf;
use std::time::Duration;

use super::shape::{Given, Shape};
use super::{Config, LogFormat};
use crate::telemetry::{Endpoint, Headers};

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name in the file.
    pub name: &'static str,
    /// What stands for its value in help texts; nothing for a switch.
    pub placeholder: &'static str,
    /// What it is for, in one line.
    pub help: &'static str,
    /// What it may be.
    pub shape: Shape,
    /// Takes a value over; `None` if it is not allowed.
    pub(super) set: fn(&mut Config, Given<'_>) -> Option<()>,
    /// The value in force, as the file would write it; `None` if there is none.
    pub(super) show: fn(&Config) -> Option<String>,
}

impl Key {
    /// The flag, without its dashes.
    #[must_use]
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// The environment variable.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("VORRANG_{}", self.name.to_ascii_uppercase())
    }

    /// The value in force, as the file would write it.
    #[must_use]
    pub fn shown(&self, config: &Config) -> Option<String> {
        (self.show)(config)
    }

    /// The row of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Key> {
        KEYS.iter().find(|key| key.name == name)
    }
}

const PORT: Shape = Shape::Number(0, 65_535);
const CONNECTIONS: Shape = Shape::Number(1, 1_000_000);
const FILE: Shape = Shape::Text("the path of a file");
const FORMAT: Shape = Shape::Word(&["text", "json"]);

/// Takes a value over, if there is one.
fn assign<T>(place: &mut T, value: Option<T>) -> Option<()> {
    *place = value?;
    Some(())
}

fn quoted(text: &str) -> String {
    super::show::text(text)
}

fn path(path: Option<&PathBuf>) -> Option<String> {
    path.map(|path| quoted(&path.display().to_string()))
}

/// Every setting there is.
pub const KEYS: &[Key] = &[
    Key {
        name: "data_dir",
        placeholder: "FOLDER",
        help: "Where the data lives; made on first start",
        shape: Shape::Text("the path of a folder"),
        set: |config, given| assign(&mut config.settings.data_dir, given.words().map(PathBuf::from)),
        show: |config| path(Some(&config.settings.data_dir)),
    },
    Key {
        name: "host",
        placeholder: "ADDRESS",
        help: "The address to listen on; the plain ports stay on loopback unless told otherwise",
        shape: Shape::Text("an IP address like 127.0.0.1, 0.0.0.0 or ::1"),
        set: |config, given| assign(&mut config.settings.host, given.text()?.parse().ok()),
        show: |config| Some(quoted(&config.settings.host.to_string())),
    },
    Key {
        name: "amqp_port",
        placeholder: "PORT",
        help: "Port for AMQP; 0 picks a free one and prints it",
        shape: PORT,
        set: |config, given| assign(&mut config.settings.ports.amqp, given.number(PORT)),
        show: |config| Some(config.settings.ports.amqp.to_string()),
    },
    Key {
        name: "amqps_port",
        placeholder: "PORT",
        help: "Port for AMQP over TLS",
        shape: PORT,
        set: |config, given| assign(&mut config.settings.ports.amqps, given.number(PORT)),
        show: |config| Some(config.settings.ports.amqps.to_string()),
    },
    Key {
        name: "http_port",
        placeholder: "PORT",
        help: "Port for HTTP",
        shape: PORT,
        set: |config, given| assign(&mut config.settings.ports.http, given.number(PORT)),
        show: |config| Some(config.settings.ports.http.to_string()),
    },
    Key {
        name: "https_port",
        placeholder: "PORT",
        help: "Port for HTTPS and for AMQP over WebSocket",
        shape: PORT,
        set: |config, given| assign(&mut config.settings.ports.https, given.number(PORT)),
        show: |config| Some(config.settings.ports.https.to_string()),
    },
    Key {
        name: "dev",
        placeholder: "",
        help: "Development mode: the emulator's well-known key and the helpers under /dev/; on loopback only",
        shape: Shape::Switch,
        set: |config, given| assign(&mut config.settings.dev, given.switch()),
        show: |config| Some(config.settings.dev.to_string()),
    },
    Key {
        name: "tls_certificate",
        placeholder: "FILE",
        help: "Certificate chain for the TLS ports (PEM); without it a development certificate is made",
        shape: FILE,
        set: |config, given| {
            assign(&mut config.tls.certificate, given.words().map(|path| Some(PathBuf::from(path))))
        },
        show: |config| path(config.tls.certificate.as_ref()),
    },
    Key {
        name: "tls_key",
        placeholder: "FILE",
        help: "Private key of that certificate (PEM)",
        shape: FILE,
        set: |config, given| assign(&mut config.tls.key, given.words().map(|path| Some(PathBuf::from(path)))),
        show: |config| path(config.tls.key.as_ref()),
    },
    Key {
        name: "danger_plain_remote",
        placeholder: "",
        help: "Serve the plain ports beyond loopback, though keys then cross the network unencrypted",
        shape: Shape::Switch,
        set: |config, given| assign(&mut config.settings.danger_plain_remote, given.switch()),
        show: |config| Some(config.settings.danger_plain_remote.to_string()),
    },
    Key {
        name: "danger_dev_remote",
        placeholder: "",
        help: "Allow --dev beyond loopback, as in a container for tests; everybody knows the key",
        shape: Shape::Switch,
        set: |config, given| assign(&mut config.settings.danger_dev_remote, given.switch()),
        show: |config| Some(config.settings.danger_dev_remote.to_string()),
    },
    Key {
        name: "danger_open_metrics",
        placeholder: "",
        help: "Let everybody read /metrics who reaches an HTTP port, not only loopback and holders of a token",
        shape: Shape::Switch,
        set: |config, given| assign(&mut config.settings.danger_open_metrics, given.switch()),
        show: |config| Some(config.settings.danger_open_metrics.to_string()),
    },
    Key {
        name: "emulator_config",
        placeholder: "FILE",
        help: "An emulator Config.json whose entities are created at start",
        shape: FILE,
        set: |config, given| {
            assign(&mut config.settings.emulator_config, given.words().map(|path| Some(PathBuf::from(path))))
        },
        show: |config| path(config.settings.emulator_config.as_ref()),
    },
    Key {
        name: "otlp_endpoint",
        placeholder: "URL",
        help: "An OpenTelemetry collector that is told of deliveries of traced messages (OTLP over HTTP)",
        // What is refused may hold a password.
        shape: Shape::Secret(Endpoint::ALLOWED),
        set: |config, given| {
            assign(&mut config.otlp.endpoint, given.text().map(Endpoint::parse).filter(Option::is_some))
        },
        show: |config| config.otlp.endpoint.as_ref().map(|endpoint| quoted(&endpoint.to_string())),
    },
    Key {
        name: "otlp_ca_file",
        placeholder: "FILE",
        help: "Certificates of the only authorities believed for that collector (PEM); without it the public ones",
        shape: FILE,
        set: |config, given| {
            assign(&mut config.otlp.ca_file, given.words().map(|path| Some(PathBuf::from(path))))
        },
        show: |config| path(config.otlp.ca_file.as_ref()),
    },
    Key {
        name: "otlp_headers",
        placeholder: "NAME=VALUE,…",
        help: "Headers that collector wants, such as a key; better in the file or the variable than as a flag",
        shape: Shape::Secret(Headers::ALLOWED),
        set: |config, given| assign(&mut config.otlp.headers, given.text().and_then(Headers::parse)),
        show: |config| (config.otlp.headers != Headers::default()).then(|| quoted(super::show::MASK)),
    },
    Key {
        name: "max_connections",
        placeholder: "COUNT",
        help: "Most AMQP connections at a time",
        shape: CONNECTIONS,
        set: |config, given| assign(&mut config.settings.bounds.connections_max, given.number(CONNECTIONS)),
        show: |config| Some(config.settings.bounds.connections_max.to_string()),
    },
    Key {
        name: "max_http_connections",
        placeholder: "COUNT",
        help: "Most HTTP connections at a time",
        shape: CONNECTIONS,
        set: |config, given| {
            assign(&mut config.settings.bounds.http_connections_max, given.number(CONNECTIONS))
        },
        show: |config| Some(config.settings.bounds.http_connections_max.to_string()),
    },
    Key {
        name: "handshake_timeout",
        placeholder: "DURATION",
        help: "Longest time for a TLS handshake or the head of an HTTP request",
        shape: Shape::Span,
        set: |config, given| {
            let span = given.span().filter(|span| span.0 > 0 && !span.is_forever())?;
            assign(&mut config.settings.bounds.handshake_max, Some(Duration::from_millis(span.0)))
        },
        show: |config| Some(shown_span(config.settings.bounds.handshake_max)),
    },
    Key {
        name: "idle_timeout",
        placeholder: "DURATION",
        help: "How long an AMQP client may be silent; SDKs need a minute at least",
        shape: Shape::Span,
        set: |config, given| {
            let span = given.span().filter(|span| (1_000..=u64::from(u32::MAX)).contains(&span.0))?;
            assign(&mut config.settings.bounds.silence_max, Some(Duration::from_millis(span.0)))
        },
        show: |config| Some(shown_span(config.settings.bounds.silence_max)),
    },
    Key {
        name: "log_format",
        placeholder: "FORMAT",
        help: "How log lines are written: text or json",
        shape: FORMAT,
        set: |config, given| {
            let json = given.word(FORMAT)? == "json";
            assign(&mut config.log.format, Some(if json { LogFormat::Json } else { LogFormat::Text }))
        },
        show: |config| Some(quoted(config.log.format.as_str())),
    },
    Key {
        name: "log",
        placeholder: "FILTER",
        help: "What is logged: a level such as info, or a list of target=level",
        shape: Shape::Text("error, warn, info, debug, trace, or a list of target=level"),
        set: |config, given| assign(&mut config.log.filter, given.words().map(str::to_owned)),
        show: |config| Some(quoted(&config.log.filter)),
    },
];

fn shown_span(span: Duration) -> String {
    let span = vorrang_engine::Span(u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    quoted(&crate::duration::to_short(span))
}

#[cfg(test)]
mod tests {
    use super::super::document::Value;
    use super::*;

    #[test]
    fn what_is_shown_can_be_set_again() {
        for key in KEYS {
            let mut config = Config::default();
            let Some(text) = (key.show)(&config) else { continue };
            let typed = text.trim_matches('"');
            assert_eq!((key.set)(&mut config, Given::Typed(typed)), Some(()), "{} = {text}", key.name);
            assert_eq!((key.show)(&config).as_deref(), Some(text.as_str()), "{}", key.name);
        }
    }

    #[test]
    fn no_key_takes_a_value_of_another_kind() {
        for key in KEYS {
            for wrong in [Value::List(Vec::new()), Value::Table(Vec::new()), Value::Other("1".to_owned())] {
                let mut config = Config::default();
                assert_eq!((key.set)(&mut config, Given::Written(&wrong)), None, "{} = {wrong:?}", key.name);
            }
        }
    }

    #[test]
    fn names_are_flags_and_variables() {
        let key = Key::find("amqp_port").unwrap();
        assert_eq!((key.flag().as_str(), key.variable().as_str()), ("amqp-port", "VORRANG_AMQP_PORT"));
        for key in KEYS {
            assert!(key.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", key.name);
            assert!(!key.help.ends_with('.') && key.placeholder.is_empty() == (key.shape == Shape::Switch));
        }
    }
}
