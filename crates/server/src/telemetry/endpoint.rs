//! Where spans go: the address of a collector.

use std::fmt;
use std::net::IpAddr;

use ureq::http::Uri;

/// The path below a collector's address where it takes spans.
const PATH: &str = "/v1/traces";

/// The address of a collector that takes OTLP over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(String);

impl Endpoint {
    /// What it may be, for whoever gives another.
    pub const ALLOWED: &'static str =
        "the address of a collector like http://localhost:4318, without user or query";

    /// Reads an address. User names and passwords are not taken: the address is shown and logged.
    #[must_use]
    pub fn parse(text: &str) -> Option<Endpoint> {
        let uri: Uri = text.parse().ok()?;
        let host = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
        let sound = matches!(uri.scheme_str(), Some("http" | "https")) && !host.host().is_empty();
        (sound && uri.query().is_none()).then(|| Endpoint(text.trim_end_matches('/').to_owned()))
    }

    /// Whether what is sent there crosses a network that others can read.
    pub(super) fn is_in_the_clear(&self) -> bool {
        let Ok(uri) = self.0.parse::<Uri>() else { return false };
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        uri.scheme_str() == Some("http") && !here
    }

    /// Where spans are sent.
    pub(super) fn traces(&self) -> String {
        format!("{}{PATH}", self.0)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host_and_no_secret() {
        let cases = [
            ("http://localhost:4318", Some("http://localhost:4318/v1/traces")),
            ("https://otel.example.com/", Some("https://otel.example.com/v1/traces")),
            ("http://[::1]:4318/base", Some("http://[::1]:4318/base/v1/traces")),
            ("localhost:4318", None),
            ("grpc://localhost:4317", None),
            ("http://user:hunter2@localhost:4318", None),
            ("http://localhost:4318/?key=hunter2", None),
            ("http://", None),
            ("", None),
            ("http://a\nb", None),
        ];
        for (text, expected) in cases {
            let found = Endpoint::parse(text).map(|endpoint| endpoint.traces());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn only_plain_http_beyond_this_machine_can_be_read_by_others() {
        let cases = [
            ("http://localhost:4318", false),
            ("http://127.0.0.1:4318", false),
            ("http://[::1]:4318", false),
            ("https://otel.example.com", false),
            ("http://otel.example.com", true),
            ("http://10.0.0.1:4318", true),
        ];
        for (text, expected) in cases {
            assert_eq!(Endpoint::parse(text).unwrap().is_in_the_clear(), expected, "{text}");
        }
    }
}
