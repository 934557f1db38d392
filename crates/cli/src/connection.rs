//! Which broker the commands talk to, and with which key.
//!
//! The connection string is the one every Service Bus client takes. Its `Endpoint` says where AMQP is; the
//! commands speak HTTP to the same host on port 5300, unless `HttpPort=…` in the string or `--http` says
//! otherwise. First of: `--connection-string`, `--profile`, `VORRANG_CONNECTION_STRING`, `VORRANG_PROFILE`,
//! the default profile; without any of them, the development broker on this machine.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::Deserialize;
use std::collections::BTreeMap;
use vorrang_client::Client;
use vorrang_engine::entity::authorization::Secret;
use vorrang_server::root_key;
use vorrang_server::settings::Settings;

use crate::failure::Failure;
use crate::trust::Trust;

/// Where HTTP is unless something else is said.
const HTTP_PORT: u16 = 5_300;
/// Where AMQP is unless something else is said: plain for development, else TLS.
const AMQP_PORTS: (u16, u16) = (5_672, 5_671);

/// Flags that every command with a broker has.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Options {
    #[arg(long, help = "The connection string of the broker [env: VORRANG_CONNECTION_STRING]", global = true, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    connection_string: Option<String>,
    #[arg(long, help = "A profile of ~/.config/vorrang/profiles.toml [env: VORRANG_PROFILE]", global = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    profile: Option<String>,
    #[arg(long, help = "The broker's HTTP door, if not at port 5300 of the endpoint [env: VORRANG_HTTP]", global = true, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    http: Option<String>,
    #[arg(
        long,
        help = "Trust the certificates in this PEM file, and no others [env: VORRANG_CA_FILE]",
        global = true,
        value_name = "FILE"
    )]
    ca_file: Option<PathBuf>,
}

/// A broker and a key.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    /// `http://host:port`, without a slash at the end.
    pub(crate) http: String,
    /// Host and port of AMQP.
    pub(crate) amqp: (String, u16),
    /// Whether AMQP is without TLS.
    pub(crate) plain: bool,
    pub(crate) key_name: String,
    pub(crate) key: Secret,
    /// The entity the key is for, if not for the whole namespace.
    pub(crate) entity: Option<String>,
    /// Whose certificates are believed.
    pub(crate) trust: Trust,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    /// The profile used when none is named.
    default: Option<String>,
    #[serde(default)]
    profile: BTreeMap<String, Profile>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    connection_string: String,
    http: Option<String>,
    ca_file: Option<PathBuf>,
}

impl Profile {
    /// What a connection string alone says.
    fn of(connection_string: &str) -> Profile {
        Profile { connection_string: connection_string.to_owned(), http: None, ca_file: None }
    }
}

impl std::fmt::Debug for Profile {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Profile").field("http", &self.http).finish_non_exhaustive()
    }
}

impl Options {
    /// The broker that is meant.
    pub(crate) fn connection(&self) -> Result<Connection, Failure> {
        self.connection_or(Connection::development).map(|(connection, _)| connection)
    }

    /// The broker that is meant, and whether somebody said which; if nobody did, the other one.
    pub(crate) fn connection_or(
        &self,
        other: impl FnOnce() -> Connection,
    ) -> Result<(Connection, bool), Failure> {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let profile = match (&self.connection_string, &self.profile) {
            (Some(text), _) => Some(Profile::of(text)),
            (None, Some(name)) => profile(Some(name))?,
            (None, None) => match (variable("VORRANG_CONNECTION_STRING"), variable("VORRANG_PROFILE")) {
                (Some(text), _) => Some(Profile::of(&text)),
                (None, Some(name)) => profile(Some(&name))?,
                (None, None) => profile(None)?,
            },
        };
        let said = profile.is_some();
        let (mut connection, http, ca_file) = match profile {
            Some(Profile { connection_string, http, ca_file }) => {
                (Connection::parse(&connection_string)?, http, ca_file)
            }
            None => (other(), None, None),
        };
        if let Some(http) = self.http.clone().or_else(|| variable("VORRANG_HTTP")).or(http) {
            connection.http = http_url(&http)?;
        }
        let ca_file =
            self.ca_file.clone().or_else(|| variable("VORRANG_CA_FILE").map(PathBuf::from)).or(ca_file);
        if let Some(path) = ca_file {
            connection.trust = Trust::of_file(&path)?;
        }
        Ok((connection, said))
    }
}

impl Connection {
    /// The development broker on this machine.
    fn development() -> Connection {
        Connection {
            http: format!("http://localhost:{HTTP_PORT}"),
            amqp: ("localhost".to_owned(), AMQP_PORTS.0),
            plain: true,
            key_name: root_key::NAME.to_owned(),
            key: Secret::new(root_key::EMULATOR_KEY),
            entity: None,
            trust: Trust::default(),
        }
    }

    /// A development broker with these settings.
    pub(crate) fn configured(settings: &Settings) -> Connection {
        let host = match settings.plain_host() {
            host if host.is_unspecified() => "localhost".to_owned(),
            IpAddr::V4(host) => host.to_string(),
            IpAddr::V6(host) => format!("[{host}]"),
        };
        let http = format!("http://{host}:{}", settings.ports.http);
        Connection { http, amqp: (host, settings.ports.amqp), ..Connection::development() }
    }

    /// Connects an AMQP client.
    pub(crate) async fn client(&self) -> Result<Client, vorrang_client::Error> {
        let (host, port) = &self.amqp;
        let key = self.key.expose();
        let text = format!(
            "Endpoint=sb://{host}:{port};SharedAccessKeyName={};SharedAccessKey={key};UseDevelopmentEmulator={}",
            self.key_name, self.plain
        );
        Client::builder(&text)?.tls(self.trust.amqps()).connect().await
    }

    /// Reads a connection string. What is wrong with it is said without repeating its key.
    pub(crate) fn parse(text: &str) -> Result<Connection, Failure> {
        let wrong = |what: String| {
            Failure::Usage(format!(
                "the connection string {what}; it looks like Endpoint=sb://HOST;SharedAccessKeyName=NAME;SharedAccessKey=KEY"
            ))
        };
        let (mut endpoint, mut key_name, mut key, mut http_port) = (None, None, None, None);
        let mut entity = None;
        let mut plain = false;
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((name, value)) = part.split_once('=') else {
                return Err(wrong("has a part without '='".to_owned()));
            };
            let value = value.trim();
            match name.trim().to_ascii_lowercase().as_str() {
                "endpoint" => endpoint = Some(value),
                "sharedaccesskeyname" => key_name = Some(value),
                "sharedaccesskey" => key = Some(value),
                "entitypath" => entity = Some(value.to_owned()).filter(|path| !path.is_empty()),
                "usedevelopmentemulator" => plain = value.eq_ignore_ascii_case("true"),
                "httpport" => {
                    let port = value.parse::<u16>().ok().filter(|port| *port > 0);
                    http_port =
                        Some(port.ok_or_else(|| wrong("has an HttpPort that is no port".to_owned()))?);
                }
                // Others have more to say, such as TransportType; it means nothing here.
                _ => {}
            }
        }
        let needed = |value: Option<&str>, name: &str| match value {
            Some(value) if !value.is_empty() => Ok(value.to_owned()),
            _ => Err(wrong(format!("has no {name}"))),
        };
        let endpoint = needed(endpoint, "Endpoint")?;
        let key_name = needed(key_name, "SharedAccessKeyName")?;
        let key = Secret::new(&needed(key, "SharedAccessKey")?);
        let (host, port) =
            host_and_port(&endpoint).ok_or_else(|| wrong("has an Endpoint without a host".to_owned()))?;
        let default = if plain { AMQP_PORTS.0 } else { AMQP_PORTS.1 };
        Ok(Connection {
            http: format!("http://{host}:{}", http_port.unwrap_or(HTTP_PORT)),
            amqp: (host, port.unwrap_or(default)),
            plain,
            key_name,
            key,
            entity,
            trust: Trust::default(),
        })
    }
}

/// Takes an address of the form `sb://host:port/` apart; IPv6 addresses keep their brackets.
fn host_and_port(endpoint: &str) -> Option<(String, Option<u16>)> {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let rest = rest.split('/').next()?;
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port.parse::<u16>().ok()?)),
        _ => (rest, None),
    };
    let sound = !host.is_empty() && !host.contains(char::is_whitespace);
    sound.then(|| (host.to_owned(), port))
}

/// `http://host:port` from what somebody typed: the scheme may be missing.
fn http_url(text: &str) -> Result<String, Failure> {
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    if !(url.starts_with("http://") || url.starts_with("https://")) {
        return Err(Failure::Usage(format!(
            "--http {text:?} is no address; it looks like http://localhost:5300"
        )));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// A profile; nothing if none is named and there is no default.
fn profile(name: Option<&str>) -> Result<Option<Profile>, Failure> {
    let Some(path) = profile_path() else { return Ok(None) };
    let unusable = |what: String| Failure::Usage(format!("the profiles in {} {what}", path.display()));
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && name.is_none() => return Ok(None),
        Err(error) => return Err(unusable(format!("cannot be read: {error}"))),
    };
    // Not the error's own text: it repeats the line, which may hold a key.
    let file: ProfileFile = toml::from_str(&text)
        .map_err(|error: toml::de::Error| unusable(format!("cannot be used: {}", error.message())))?;
    let Some(name) = name.map(str::to_owned).or(file.default) else { return Ok(None) };
    if let Some(profile) = file.profile.get(&name) {
        return Ok(Some(profile.clone()));
    }
    let known: Vec<&str> = file.profile.keys().map(String::as_str).collect();
    Err(unusable(format!("have none named {name:?}; there are: {}", known.join(", "))))
}

fn profile_path() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("vorrang").join("profiles.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_string_of_the_emulator_is_understood() {
        let text = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;";
        let connection = Connection::parse(text).unwrap();
        assert_eq!(connection.http, "http://localhost:5300");
        assert_eq!(connection.amqp, ("localhost".to_owned(), 5_672));
        assert_eq!(connection.key.expose(), "SAS_KEY_VALUE");
    }

    #[test]
    fn hosts_ports_and_keys_are_taken_apart() {
        let cases = [
            ("sb://a.example.com/", "http://a.example.com:5300", ("a.example.com", 5_671)),
            ("sb://127.0.0.1:7000", "http://127.0.0.1:5300", ("127.0.0.1", 7_000)),
            ("sb://[::1]:7000/", "http://[::1]:5300", ("[::1]", 7_000)),
            ("sb://[::1]", "http://[::1]:5300", ("[::1]", 5_671)),
        ];
        for (endpoint, http, (host, port)) in cases {
            let text = format!("Endpoint={endpoint};SharedAccessKeyName=n;SharedAccessKey=a=b==");
            let connection = Connection::parse(&text).unwrap();
            assert_eq!((connection.http.as_str(), connection.key.expose()), (http, "a=b=="), "{endpoint}");
            assert_eq!(connection.amqp, (host.to_owned(), port), "{endpoint}");
        }
        let text = "endpoint=sb://h;sharedaccesskeyname=n;sharedaccesskey=k;HttpPort=81;EntityPath=q;TransportType=x";
        let connection = Connection::parse(text).unwrap();
        assert_eq!(connection.http, "http://h:81");
    }

    #[test]
    fn what_is_wrong_is_said_without_the_key() {
        let cases = [
            ("SharedAccessKey=hunter2", "has no Endpoint"),
            ("Endpoint=sb://h;SharedAccessKey=hunter2", "has no SharedAccessKeyName"),
            ("Endpoint=sb://h;SharedAccessKeyName=n;hunter2", "without '='"),
            ("Endpoint=sb://;SharedAccessKeyName=n;SharedAccessKey=hunter2", "without a host"),
            ("Endpoint=sb://h;SharedAccessKeyName=n;SharedAccessKey=hunter2;HttpPort=x", "no port"),
        ];
        for (text, expected) in cases {
            let failure = Connection::parse(text).unwrap_err().to_string();
            assert!(failure.contains(expected) && !failure.contains("hunter2"), "{failure}");
        }
    }
}
