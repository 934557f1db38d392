//! What carries the bytes when it is not bare TCP: TLS, and WebSocket written by hand so that message borders can
//! be put anywhere.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::PATIENCE;

/// A socket that gives up after a while.
pub(crate) fn socket(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// TLS that trusts the development certificate in `folder`.
pub(crate) fn tls(address: SocketAddr, folder: &Path) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    let certificate = std::fs::read(folder.join("development-certificate.pem")).unwrap();
    roots.add(CertificateDer::from_pem_slice(&certificate).unwrap()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(connection, socket(address))
}

/// A WebSocket: each write is one binary message.
pub(crate) struct WebSocket<S> {
    stream: S,
    unread: Vec<u8>,
}

/// Asks for an upgrade; returns the head of the answer.
pub(crate) fn upgrade<S: Read + Write>(
    mut stream: S,
    path: &str,
    subprotocol: &str,
) -> (String, WebSocket<S>) {
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: {subprotocol}\r\n\r\n"
    )
    .unwrap();
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    (String::from_utf8(head).unwrap(), WebSocket { stream, unread: Vec::new() })
}

impl<S: Read + Write> Write for WebSocket<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut frame = vec![0x82];
        match u16::try_from(bytes.len()).unwrap() {
            length @ 0..126 => frame.push(0x80 | u8::try_from(length).unwrap()),
            length => {
                frame.push(0x80 | 0x7e);
                frame.extend_from_slice(&length.to_be_bytes());
            }
        }
        let mask = [1, 2, 3, 4];
        frame.extend_from_slice(&mask);
        frame.extend(bytes.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        self.stream.write_all(&frame)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl<S: Read + Write> Read for WebSocket<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.unread.is_empty() {
            let mut head = [0; 2];
            self.stream.read_exact(&mut head)?;
            let length = match head[1] & 0x7f {
                126 => {
                    let mut length = [0; 2];
                    self.stream.read_exact(&mut length)?;
                    usize::from(u16::from_be_bytes(length))
                }
                127 => {
                    let mut length = [0; 8];
                    self.stream.read_exact(&mut length)?;
                    usize::try_from(u64::from_be_bytes(length)).unwrap()
                }
                length => usize::from(length),
            };
            let mut payload = vec![0; length];
            self.stream.read_exact(&mut payload)?;
            match head[0] & 0x0f {
                2 => self.unread = payload,
                8 => return Ok(0),
                _ => {}
            }
        }
        let count = buffer.len().min(self.unread.len());
        buffer[..count].copy_from_slice(&self.unread[..count]);
        self.unread.drain(..count);
        Ok(count)
    }
}
