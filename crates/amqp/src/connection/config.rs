//! What each side of a connection says about itself.

use crate::sasl_plain::PlainCredentials;
use crate::text::Text;
use crate::value::Map;

/// The serving side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Our name in `open`.
    pub container_id: Text,
    /// Milliseconds of silence after which we give a peer up, announced in `open`; none waits for ever.
    /// Python keeps alive every 30 s at best, so nothing below 60 s serves it.
    pub idle_time_out_ms: Option<u32>,
    /// Properties in `open`.
    pub properties: Option<Map>,
    /// SASL mechanisms to offer, in this order.
    pub mechanisms: Vec<Mechanism>,
    /// Whether a peer may open without SASL. It is then unauthenticated like one that chose `ANONYMOUS`.
    pub sasl_optional: bool,
    /// Addresses that can be attached before authentication.
    pub open_addresses: Vec<Text>,
}

impl ServerConfig {
    /// The defaults of a Service Bus namespace: all mechanisms, `$cbs` open, idle time-out two minutes.
    pub fn new(container_id: impl Into<Text>) -> Self {
        Self {
            container_id: container_id.into(),
            idle_time_out_ms: Some(120_000),
            properties: None,
            mechanisms: vec![Mechanism::Mssbcbs, Mechanism::Plain, Mechanism::Anonymous, Mechanism::External],
            sasl_optional: false,
            open_addresses: vec![Text::from_static("$cbs")],
        }
    }
}

/// The connecting side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// Our name in `open`.
    pub container_id: Text,
    /// The host we want to reach.
    pub hostname: Option<Text>,
    /// Milliseconds of silence after which we give the server up, announced in `open`.
    pub idle_time_out_ms: Option<u32>,
    /// Properties in `open`.
    pub properties: Option<Map>,
    /// How to pass the SASL layer.
    pub login: Login,
}

impl ClientConfig {
    /// An anonymous client.
    pub fn new(container_id: impl Into<Text>) -> Self {
        Self {
            container_id: container_id.into(),
            hostname: None,
            idle_time_out_ms: Some(60_000),
            properties: None,
            login: Login::Anonymous,
        }
    }
}

/// A SASL mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// No identity; the rights come from a token put to `$cbs`.
    Anonymous,
    /// The same under the only name .NET asks for.
    Mssbcbs,
    /// User and password.
    Plain,
    /// The identity of the transport, such as a client certificate.
    External,
}

impl Mechanism {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anonymous => "ANONYMOUS",
            Self::Mssbcbs => "MSSBCBS",
            Self::Plain => "PLAIN",
            Self::External => "EXTERNAL",
        }
    }
}

/// How a client passes the SASL layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// No SASL layer at all.
    WithoutSasl,
    /// `ANONYMOUS`.
    Anonymous,
    /// `MSSBCBS`, which is the same under another name.
    Mssbcbs,
    /// `PLAIN`.
    Plain(PlainCredentials),
    /// `EXTERNAL`.
    External,
}
