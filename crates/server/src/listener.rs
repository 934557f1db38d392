//! Accepting sockets: bind, accept, shake hands within a deadline, hand over; never more than allowed.
//!
//! A listener knows nothing of what is spoken behind it: it is given a function that serves one
//! connection. Every connection holds a place; at the bound the newest socket is closed at once,
//! so that those who are in are not hurt.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::places::Places;
use crate::stop::Stop;

/// Who is at the other end, and the place the connection holds while it lives.
#[derive(Debug)]
pub struct Accepted {
    /// The bare socket.
    pub stream: TcpStream,
    /// The peer's address.
    pub peer: SocketAddr,
    /// Dropped when the connection ends; frees its place.
    pub place: OwnedSemaphorePermit,
}

/// A door that is open but not yet served.
#[derive(Debug)]
pub struct Listener {
    name: &'static str,
    socket: TcpListener,
    places: Arc<Places>,
}

/// Why a door does not open.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for {name}: {source}; {remedy}")]
pub struct BindError {
    name: &'static str,
    address: SocketAddr,
    source: io::Error,
    remedy: &'static str,
}

/// How long accepting rests when the system is out of sockets, so that it does not spin.
const REST_AFTER_ERROR: Duration = Duration::from_millis(50);

impl Listener {
    /// Opens the door; port 0 takes a free one.
    pub async fn bind(
        name: &'static str,
        host: IpAddr,
        port: u16,
        places: Arc<Places>,
    ) -> Result<Listener, BindError> {
        let address = SocketAddr::new(host, port);
        let failed = |source: io::Error| {
            let remedy = match source.kind() {
                io::ErrorKind::AddrInUse => {
                    "another program has it: stop that one, or choose another port (0 picks a free one)"
                }
                io::ErrorKind::PermissionDenied => "choose a port above 1023",
                _ => "check --host and the port",
            };
            BindError { name, address, source, remedy }
        };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        Ok(Listener { name, socket, places })
    }

    /// Where the door really is.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Accepts until told to stop, then waits for every connection to end.
    pub async fn serve<F, Served>(self, mut stop: Stop, serve_one: F)
    where
        F: Fn(Accepted) -> Served,
        Served: Future<Output = ()> + Send + 'static,
    {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.requested() => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = self.socket.accept() => match accepted {
                    Ok((stream, peer)) => {
                        if let Some(accepted) = self.admit(stream, peer) {
                            connections.spawn(serve_one(accepted));
                        }
                    }
                    Err(error) => {
                        warn!(door = self.name, %error, "cannot accept");
                        tokio::time::sleep(REST_AFTER_ERROR).await;
                    }
                }
            }
        }
        drop(self.socket);
        info!(door = self.name, open = connections.len(), "door closed");
        while connections.join_next().await.is_some() {}
    }

    fn admit(&self, stream: TcpStream, peer: SocketAddr) -> Option<Accepted> {
        let Some(place) = self.places.take() else {
            warn!(door = self.name, %peer, "turned away: the bound on open connections is reached");
            return None;
        };
        if let Err(error) = stream.set_nodelay(true) {
            debug!(door = self.name, %peer, %error, "peer left before it was served");
            return None;
        }
        Some(Accepted { stream, peer, place })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::stop::StopSwitch;

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[tokio::test]
    async fn a_taken_port_is_named_with_its_remedy() {
        let places = Arc::new(Places::new(1));
        let first = Listener::bind("amqp", LOOPBACK, 0, Arc::clone(&places)).await.unwrap();
        let port = first.address().unwrap().port();
        let text = Listener::bind("amqp", LOOPBACK, port, places).await.unwrap_err().to_string();
        assert!(text.contains(&port.to_string()) && text.contains("another program has it"), "{text}");
    }

    #[tokio::test]
    async fn at_the_bound_the_newest_is_turned_away_and_the_others_live() {
        let places = Arc::new(Places::new(1));
        let listener = Listener::bind("amqp", LOOPBACK, 0, places).await.unwrap();
        let address = listener.address().unwrap();
        let (switch, stop) = StopSwitch::new();
        let serving = tokio::spawn(listener.serve(stop, |mut accepted: Accepted| async move {
            let _place = accepted.place;
            let mut byte = [0];
            while accepted.stream.read_exact(&mut byte).await.is_ok() {
                accepted.stream.write_all(&byte).await.unwrap();
            }
        }));
        let mut first = TcpStream::connect(address).await.unwrap();
        first.write_all(b"a").await.unwrap();
        assert_eq!(first.read_u8().await.unwrap(), b'a');
        let mut second = TcpStream::connect(address).await.unwrap();
        assert_eq!(second.read(&mut [0]).await.unwrap_or(0), 0, "the second is closed");
        first.write_all(b"b").await.unwrap();
        assert_eq!(first.read_u8().await.unwrap(), b'b');
        drop(first);
        switch.stop();
        serving.await.unwrap();
    }
}
