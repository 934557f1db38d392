//! From an address to an open connection: transport, SASL, `open`.

use std::io;
use std::sync::Arc;

use tokio::time::timeout;
use vorrang_amqp::Text;
use vorrang_amqp::connection::{ClientConfig, Closed, Connection, Event, Limits, Millis, Violation};
use vorrang_amqp::value::MapBuilder;

use super::Setup;
use super::io::Io;
use crate::error::Error;

/// Deliveries a broker may send beyond the credit we gave: a few that crossed a drain.
const CREDIT_OVERRUN_MAX: u32 = 1_000;

/// Connects and waits until both sides have opened.
pub(crate) async fn establish(setup: &Arc<Setup>) -> Result<(Connection, Io), Error> {
    // The TLS and WebSocket handshakes need much room, which only they shall take.
    let wire = Box::pin(setup.route.connect(setup.connect_time_out)).await?;
    let mut io = Io::new(wire);
    let mut amqp = Connection::client(config(setup), limits(), Millis(0));
    let opened = timeout(setup.connect_time_out, open(&mut amqp, &mut io)).await;
    let limit = setup.connect_time_out;
    match opened {
        Ok(Ok(())) => Ok((amqp, io)),
        Ok(Err(Trouble::Closed(closed))) => Err(reason(setup, &closed)),
        Ok(Err(Trouble::Io(error))) => Err(setup.route.unreachable(&error)),
        Err(_) => Err(setup.route.unreachable(&format!("no AMQP handshake within {limit:?}"))),
    }
}

enum Trouble {
    Closed(Closed),
    Io(io::Error),
}

async fn open(amqp: &mut Connection, io: &mut Io) -> Result<(), Trouble> {
    loop {
        while let Some(event) = amqp.next_event() {
            match event {
                Event::Opened(_) => return Ok(()),
                Event::Closed(closed) => return Err(Trouble::Closed(closed)),
                _ => {}
            }
        }
        io.exchange(amqp).await.map_err(Trouble::Io)?;
    }
}

fn config(setup: &Setup) -> ClientConfig {
    let mut properties = MapBuilder::default();
    properties.push_symbol("product", &Text::from("vorrang-client"));
    properties.push_symbol("version", &Text::from(env!("CARGO_PKG_VERSION")));
    ClientConfig {
        hostname: Some(Text::from(setup.host.as_str())),
        idle_time_out_ms: Some(u32::try_from(setup.idle_time_out.as_millis()).unwrap_or(u32::MAX)),
        properties: Some(properties.finish()),
        login: setup.login.clone(),
        ..ClientConfig::new(setup.container.as_str())
    }
}

fn limits() -> Limits {
    Limits { credit_overrun_max: CREDIT_OVERRUN_MAX, ..Limits::default() }
}

/// Why a connection ended, as the caller is told.
pub(super) fn reason(setup: &Setup, closed: &Closed) -> Error {
    match closed {
        Closed::Peer { error: Some(error) } => Error::from_amqp(Some(error)),
        Closed::Peer { error: None } => setup.route.unreachable(&"the broker closed the connection"),
        Closed::Own => Error::Closed,
        Closed::Violation(violation @ Violation::Sasl(_)) => {
            Error::Unauthorized(violation.to_string().into())
        }
        Closed::Violation(violation) => setup.route.unreachable(violation),
        Closed::Transport => setup.route.unreachable(&"the connection broke"),
    }
}
