//! How a client spelled the names of its headers.
//!
//! HTTP's headers have no case, and the parser keeps none. But names of application properties travel as headers, and
//! those have: Service Bus gives them back as they were sent. So what is read from a connection is looked at on its
//! way to the parser, and the head of each request is found in it again.
//!
//! What is kept is bounded, and what cannot be found (a head behind so much of a body that it was not kept) leaves
//! names in lower case. A client can mislead this about its own requests alone: nobody else's bytes come this way.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use axum::http::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::HEAD_BYTES_MAX;

/// Bytes kept at most; beyond it the newest remain that a head may take.
const KEPT_BYTES_MAX: usize = 4 * HEAD_BYTES_MAX;

/// A connection whose bytes are looked at as they are read.
#[derive(Debug)]
pub(super) struct Overheard<S> {
    stream: S,
    heard: Heard,
}

/// What was read of a connection lately.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard(Arc<Mutex<Option<Vec<u8>>>>);

/// The names of a request's headers that are not written in lower case alone, as they were written.
#[derive(Debug, Clone, Default)]
pub(super) struct Spelling(Vec<String>);

impl Spelling {
    /// A header's name as it was written, given as the parser has it.
    pub(super) fn of<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.iter().find(|written| written.eq_ignore_ascii_case(name)).map_or(name, String::as_str)
    }
}

impl<S> Overheard<S> {
    pub(super) fn new(stream: S) -> (Overheard<S>, Heard) {
        let heard = Heard(Arc::new(Mutex::new(Some(Vec::new()))));
        (Overheard { stream, heard: heard.clone() }, heard)
    }
}

impl Heard {
    /// How the names in this request's head were written; none are known if it cannot be found.
    pub(super) fn spelling<B>(&self, request: &Request<B>) -> Spelling {
        let mut kept = self.lock();
        let Some(bytes) = kept.as_mut() else { return Spelling::default() };
        let line = format!("{} {} HTTP/1", request.method(), request.uri());
        let Some(start) = find(bytes, line.as_bytes()) else { return Spelling::default() };
        let head = bytes.get(start..).unwrap_or_default();
        let end = find(head, b"\r\n\r\n").unwrap_or(head.len());
        let spelling = Spelling(head.get(..end).map(names).unwrap_or_default());
        // What follows belongs to the next request, or to this one's body.
        bytes.drain(..start.saturating_add(end).min(bytes.len()));
        spelling
    }

    /// Looks at nothing more: from now on another protocol is spoken.
    pub(super) fn stop(&self) {
        *self.lock() = None;
    }

    fn hear(&self, read: &[u8]) {
        let mut kept = self.lock();
        let Some(bytes) = kept.as_mut() else { return };
        bytes.extend_from_slice(read);
        if bytes.len() > KEPT_BYTES_MAX {
            bytes.drain(..bytes.len().saturating_sub(HEAD_BYTES_MAX));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The names in a head that have a case.
fn names(head: &[u8]) -> Vec<String> {
    let lines = head.split(|byte| *byte == b'\n').skip(1);
    let name = |line: &[u8]| {
        let name = line.split(|byte| *byte == b':').next()?;
        let name = std::str::from_utf8(name).ok()?;
        name.bytes().any(|byte| byte.is_ascii_uppercase()).then(|| name.to_owned())
    };
    lines.filter_map(name).collect()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

impl<S: AsyncRead + Unpin> AsyncRead for Overheard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.heard.hear(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Overheard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, uri: &str) -> Request<()> {
        Request::builder().method(method).uri(uri).body(()).unwrap()
    }

    fn heard(pieces: &[&[u8]]) -> Heard {
        let (_, heard) = Overheard::new(());
        for piece in pieces {
            heard.hear(piece);
        }
        heard
    }

    #[test]
    fn names_are_as_they_were_written_one_request_after_the_other() {
        let first = b"POST /q/messages?x=1 HTTP/1.1\r\nHost: h\r\nCustomerTier: 7\r\nplain: 1\r\n\r\nbo";
        let second = b"dyPOST /q/messages HTTP/1.1\r\nCUSTOMERTIER: 8\r\n\r\n";
        let heard = heard(&[&first[..20], &first[20..], second]);
        let spelling = heard.spelling(&request("POST", "/q/messages?x=1"));
        assert_eq!(spelling.of("customertier"), "CustomerTier");
        assert_eq!((spelling.of("plain"), spelling.of("other")), ("plain", "other"));
        let spelling = heard.spelling(&request("POST", "/q/messages"));
        assert_eq!(spelling.of("customertier"), "CUSTOMERTIER");
    }

    #[test]
    fn what_is_not_found_is_in_lower_case_and_what_is_kept_is_bounded() {
        let heard = heard(&[b"nonsense"]);
        assert_eq!(heard.spelling(&request("GET", "/")).of("a"), "a");
        let body = vec![b'x'; 64 * 1024];
        for _ in 0..100 {
            heard.hear(&body);
        }
        assert!(heard.lock().as_ref().unwrap().len() <= KEPT_BYTES_MAX);
        heard.hear(b"GET /late HTTP/1.1\r\nName: v\r\n\r\n");
        assert_eq!(heard.spelling(&request("GET", "/late")).of("name"), "Name");
        heard.stop();
        heard.hear(b"GET / HTTP/1.1\r\nName: v\r\n\r\n");
        assert_eq!(heard.spelling(&request("GET", "/")).of("name"), "name");
    }
}
