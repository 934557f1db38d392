//! The doors of the broker: listeners, TLS, WebSocket and the Service Bus front.

#![allow(clippy::disallowed_methods, reason = "the server is where the clock is read")]

pub mod caller;
pub mod config;
pub mod date;
pub mod definitions;
pub mod duration;
pub mod front;
pub mod http;
pub mod listener;
pub mod root_key;
pub mod serve;
pub mod settings;
pub mod stop;
pub mod tls;
pub mod transport;

pub use serve::{Ready, serve};
