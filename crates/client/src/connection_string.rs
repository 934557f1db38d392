//! `Endpoint=sb://host[:port]/;SharedAccessKeyName=…;SharedAccessKey=…`: read once, then typed.
//!
//! Keys and tokens never show up in `Debug` or in errors.

use std::fmt;
use std::str::FromStr;

/// The longest connection string; a longer one is a mistake, such as a whole file.
const BYTES_MAX: usize = 8 * 1024;

/// Where the broker is and who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionString {
    /// The host, without a port.
    pub host: String,
    /// The port, if one is given.
    pub port: Option<u16>,
    /// What opens the door.
    pub credential: Credential,
    /// The entity the credentials are for, if one is given.
    pub entity_path: Option<String>,
    /// `UseDevelopmentEmulator=true`: plain TCP instead of TLS.
    pub emulator: bool,
}

/// What opens the door.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A named key; tokens are made from it as they are needed.
    Key {
        /// The rule's name.
        name: String,
        /// The key text.
        key: String,
    },
    /// A token made elsewhere, sent as it is. It cannot be renewed.
    Token(String),
    /// Nothing: the broker lets everybody in.
    None,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credential::Key { name, .. } => write!(f, "Key {{ name: {name:?}, key: *** }}"),
            Credential::Token(_) => f.write_str("Token(***)"),
            Credential::None => f.write_str("None"),
        }
    }
}

/// Why a text is not a connection string.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionStringError {
    /// It is too long.
    #[error("a connection string of {bytes} bytes exceeds the limit of {BYTES_MAX}")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// A part has no `=`.
    #[error("part {number} of the connection string has no '='; parts look like Name=value and end with ';'")]
    Part {
        /// Which part, counted from 1. Its text may be a key and is not shown.
        number: usize,
    },
    /// A part is given twice.
    #[error("the connection string has '{name}' more than once")]
    Repeated {
        /// Which one.
        name: &'static str,
    },
    /// There is no endpoint.
    #[error("the connection string has no Endpoint; it begins with Endpoint=sb://host/")]
    NoEndpoint,
    /// The endpoint cannot be read.
    #[error("the endpoint '{text}' is not of the form sb://host[:port]/")]
    Endpoint {
        /// As it was given.
        text: String,
    },
    /// A key without a name or a name without a key.
    #[error(
        "the connection string needs SharedAccessKeyName and SharedAccessKey together, or SharedAccessSignature"
    )]
    HalfAKey,
}

impl FromStr for ConnectionString {
    type Err = ConnectionStringError;

    fn from_str(text: &str) -> Result<Self, ConnectionStringError> {
        if text.len() > BYTES_MAX {
            return Err(ConnectionStringError::TooLong { bytes: text.len() });
        }
        let (mut endpoint, mut name, mut key, mut token) = (None, None, None, None);
        let (mut entity_path, mut emulator) = (None, None);
        for (index, part) in text.split(';').enumerate() {
            let part = part.trim();
            if part.is_empty() {
                continue;
            }
            let number = index.saturating_add(1);
            let (field, value) = part.split_once('=').ok_or(ConnectionStringError::Part { number })?;
            let (known, slot) = match field.trim().to_ascii_lowercase().as_str() {
                "endpoint" => ("Endpoint", &mut endpoint),
                "sharedaccesskeyname" => ("SharedAccessKeyName", &mut name),
                "sharedaccesskey" => ("SharedAccessKey", &mut key),
                "sharedaccesssignature" => ("SharedAccessSignature", &mut token),
                "entitypath" => ("EntityPath", &mut entity_path),
                "usedevelopmentemulator" => ("UseDevelopmentEmulator", &mut emulator),
                // Other SDKs have parts of their own.
                _ => continue,
            };
            if slot.replace(value.trim()).is_some() {
                return Err(ConnectionStringError::Repeated { name: known });
            }
        }
        let (host, port) = read_endpoint(endpoint.ok_or(ConnectionStringError::NoEndpoint)?)?;
        let credential = match (name, key, token) {
            (_, None, Some(token)) => Credential::Token(token.to_owned()),
            (Some(name), Some(key), _) => Credential::Key { name: name.to_owned(), key: key.to_owned() },
            (None, None, None) => Credential::None,
            _ => return Err(ConnectionStringError::HalfAKey),
        };
        Ok(ConnectionString {
            host,
            port,
            credential,
            entity_path: entity_path.filter(|path| !path.is_empty()).map(str::to_owned),
            emulator: emulator.is_some_and(|flag| flag.eq_ignore_ascii_case("true")),
        })
    }
}

/// Host and port of `sb://host[:port]/`.
fn read_endpoint(text: &str) -> Result<(String, Option<u16>), ConnectionStringError> {
    let wrong = || ConnectionStringError::Endpoint { text: text.to_owned() };
    let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
    if !["sb", "amqp", "amqps"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err(wrong());
    }
    let authority = rest.split('/').next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        // An IPv6 address keeps its colons in brackets.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().map_err(|_| wrong())?)),
        _ => (authority, None),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() || host.contains(|letter: char| letter.is_whitespace() || letter == '@') {
        return Err(wrong());
    }
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMULATOR: &str = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;\
                            SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;";

    #[test]
    fn the_emulators_connection_string_is_read() {
        let read: ConnectionString = EMULATOR.parse().unwrap();
        assert_eq!((read.host.as_str(), read.port, read.emulator), ("localhost", None, true));
        let (name, key) = ("RootManageSharedAccessKey".to_owned(), "SAS_KEY_VALUE".to_owned());
        assert_eq!(read.credential, Credential::Key { name, key });
    }

    #[test]
    fn endpoints_come_in_many_shapes() {
        let cases = [
            ("sb://a.example/", Some(("a.example", None))),
            ("sb://a.example:5671/", Some(("a.example", Some(5671)))),
            ("SB://a:1", Some(("a", Some(1)))),
            ("amqps://[::1]:5671/", Some(("::1", Some(5671)))),
            ("sb://[::1]/", Some(("::1", None))),
            ("sb://a:65536/", None),
            ("sb://a:x/", None),
            ("https://a/", None),
            ("a", None),
            ("sb:///", None),
            ("sb://user@a/", None),
        ];
        for (endpoint, expected) in cases {
            let read = format!("Endpoint={endpoint}").parse::<ConnectionString>();
            let read = read.ok().map(|read| (read.host, read.port));
            assert_eq!(read, expected.map(|(host, port)| (host.to_owned(), port)), "{endpoint}");
        }
    }

    #[test]
    fn a_key_may_hold_equal_signs_and_names_any_case() {
        let text = "endpoint=sb://h;SHAREDACCESSKEYNAME=n;SharedAccessKey=abc==;EntityPath=q";
        let read: ConnectionString = text.parse().unwrap();
        assert_eq!(read.credential, Credential::Key { name: "n".to_owned(), key: "abc==".to_owned() });
        assert_eq!(read.entity_path.as_deref(), Some("q"));
    }

    #[test]
    fn mistakes_are_named_and_secrets_are_not_shown() {
        let error = |text: &str| text.parse::<ConnectionString>().unwrap_err();
        assert_eq!(error("SharedAccessKeyName=n"), ConnectionStringError::NoEndpoint);
        assert_eq!(error("Endpoint=sb://h;SharedAccessKey=k"), ConnectionStringError::HalfAKey);
        assert_eq!(error("Endpoint=sb://h;secret"), ConnectionStringError::Part { number: 2 });
        let twice = error("Endpoint=sb://h;Endpoint=sb://h");
        assert_eq!(twice, ConnectionStringError::Repeated { name: "Endpoint" });
        assert!(matches!(error(&"x".repeat(BYTES_MAX + 1)), ConnectionStringError::TooLong { .. }));
        let read: ConnectionString = EMULATOR.parse().unwrap();
        assert!(!format!("{read:?}").contains("SAS_KEY_VALUE"));
    }
}
