//! The doors of the broker: listeners, TLS, WebSocket and the Service Bus front.

#![allow(clippy::disallowed_methods, reason = "the server is where the clock is read")]

pub mod caller;
pub mod config;
pub mod count;
pub mod date;
pub mod definitions;
pub mod duration;
pub mod front;
pub mod http;
pub mod listener;
pub mod measured_disk;
pub mod places;
pub mod registry;
pub mod root_key;
pub mod serve;
pub mod settings;
pub mod stop;
pub mod targets;
pub mod telemetry;
pub mod tls;
pub mod transport;
#[cfg(test)]
pub(crate) mod trial;
pub mod watch;
pub mod workshop;

pub use serve::{Ready, serve};
