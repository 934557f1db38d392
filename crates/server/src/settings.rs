//! What the operator decides: one typed value, complete before anything starts.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use vorrang_engine::entity::authorization::AuthorizationRule;

use crate::definitions::Definitions;
use crate::root_key;
use crate::telemetry::Collector;
use crate::tls::CertificateFiles;

/// Everything `serve` needs to know.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch the operator turns by itself")]
pub struct Settings {
    /// Where the data lives; made on first start.
    pub data_dir: PathBuf,
    /// The address to listen on.
    pub host: IpAddr,
    /// The ports; 0 picks a free one.
    pub ports: Ports,
    /// Development mode: the emulator's well-known key, on loopback only.
    pub dev: bool,
    /// Certificate and key for the TLS ports; without them a development certificate is made.
    pub certificate: Option<CertificateFiles>,
    /// Serve plain AMQP and HTTP beyond loopback. Keys then cross the network unencrypted.
    pub danger_plain_remote: bool,
    /// Allow development mode beyond loopback. Everybody knows the key.
    pub danger_dev_remote: bool,
    /// Let everybody read the metrics who reaches an HTTP port; else those on loopback or with a token.
    pub danger_open_metrics: bool,
    /// The collector that is told of deliveries; none means that nobody is.
    pub collector: Option<Collector>,
    /// An emulator `Config.json` whose entities are created at start.
    pub emulator_config: Option<PathBuf>,
    /// Entities to have at start.
    pub definitions: Definitions,
    /// The file they come from, to name it when one is refused.
    pub definitions_file: Option<PathBuf>,
    /// Keys of the namespace beside the root key.
    pub keys: Vec<AuthorizationRule>,
    /// Bounds on what peers can make the server hold or do.
    pub bounds: Bounds,
}

/// The four doors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// AMQP on bare TCP.
    pub amqp: u16,
    /// AMQP on TLS.
    pub amqps: u16,
    /// HTTP.
    pub http: u16,
    /// HTTPS, and AMQP over WebSocket.
    pub https: u16,
}

/// Bounds of the listeners. At each bound the newest peer is turned away; nobody who is in is hurt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Open AMQP connections; one more is closed right after it is accepted.
    pub connections_max: usize,
    /// Open HTTP connections, upgraded ones not counted; one more is closed at once.
    pub http_connections_max: usize,
    /// How long a TLS handshake or the head of an HTTP request may take; then the socket is closed.
    pub handshake_max: Duration,
    /// How long an AMQP client may be silent; then its connection is closed with a word of why. Clients are told when
    /// they connect and keep alive by empty frames; the Python SDK does so every 30 seconds at best.
    pub silence_max: Duration,
}

impl Default for Ports {
    fn default() -> Self {
        Ports { amqp: 5672, amqps: 5671, http: 5300, https: 5443 }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            connections_max: 50_000,
            http_connections_max: 2_000,
            handshake_max: Duration::from_secs(10),
            silence_max: Duration::from_mins(2),
        }
    }
}

impl Settings {
    /// The defaults of `vorrang serve`, with the data in `data_dir`.
    #[must_use]
    pub fn new(data_dir: PathBuf) -> Self {
        Settings {
            data_dir,
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            ports: Ports::default(),
            dev: false,
            certificate: None,
            danger_plain_remote: false,
            danger_dev_remote: false,
            danger_open_metrics: false,
            emulator_config: None,
            collector: None,
            definitions: Definitions::default(),
            definitions_file: None,
            keys: Vec::new(),
            bounds: Bounds::default(),
        }
    }

    /// Combinations that must not start: the key at fault, and the remedy; all at once.
    #[must_use]
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        if self.dev && !self.host.is_loopback() && !self.danger_dev_remote {
            let text = format!(
                "accepts a key that everybody knows, so it is for loopback only, not for host {}; leave out dev (a \
                 key is generated and printed), use host 127.0.0.1, or say danger_dev_remote",
                self.host
            );
            problems.push(("dev", text));
        }
        let Ports { amqp, amqps, http, https } = self.ports;
        let given = [("amqp_port", amqp), ("amqps_port", amqps), ("http_port", http), ("https_port", https)];
        for (index, (key, port)) in given.iter().enumerate() {
            if let Some((other, _)) = given.iter().take(index).find(|(_, other)| other == port && *port != 0)
            {
                let text = format!("is {port}, and so is {other}; each needs its own (0 picks a free one)");
                problems.push((*key, text));
            }
        }
        if self.keys.iter().any(|key| &*key.key_name == root_key::NAME) {
            let text = format!(
                "cannot be named {}: that key is generated and lies in the data directory as root-key",
                root_key::NAME
            );
            problems.push(("key", text));
        }
        problems
    }

    /// Where the plain doors listen: on `host` if that is safe or asked for, else on loopback.
    #[must_use]
    pub fn plain_host(&self) -> IpAddr {
        if self.host.is_loopback() || self.danger_plain_remote {
            self.host
        } else {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(change: impl Fn(&mut Settings)) -> Settings {
        let mut settings = Settings::new(PathBuf::from("data"));
        change(&mut settings);
        settings
    }

    #[test]
    fn development_mode_is_for_loopback_only() {
        let everywhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        assert!(settings(|s| s.dev = true).problems().is_empty());
        assert!(settings(|s| s.host = everywhere).problems().is_empty());
        let both = settings(|s| {
            s.dev = true;
            s.host = everywhere;
        });
        assert!(both.problems()[0].1.contains("loopback only"));
        let told = settings(|s| {
            s.dev = true;
            s.host = everywhere;
            s.danger_dev_remote = true;
        });
        assert!(told.problems().is_empty());
    }

    #[test]
    fn two_doors_cannot_share_a_port_but_both_may_ask_for_a_free_one() {
        assert_eq!(settings(|s| s.ports.http = 5672).problems().len(), 1);
        let free = settings(|s| s.ports = Ports { amqp: 0, amqps: 0, http: 0, https: 0 });
        assert!(free.problems().is_empty());
    }

    #[test]
    fn plain_doors_leave_loopback_only_when_told() {
        let everywhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        assert!(settings(|s| s.host = everywhere).plain_host().is_loopback());
        let told = settings(|s| {
            s.host = everywhere;
            s.danger_plain_remote = true;
        });
        assert_eq!(told.plain_host(), everywhere);
    }
}
