//! An HTTP endpoint as the handler: each message is posted to it, and the status is the outcome.
//!
//! 2xx completes. 408, 425 and 429 put the message off, for `Retry-After` where it is given in seconds. 400, 413, 415
//! and 422 dead-letter it: the endpoint says that it will never be able to handle this. 502, 503, 504 and no
//! connection at all mean that the endpoint is down, which the circuit breaker hears of. Everything else is a failure.
//!
//! Facts about the message travel as `vorrang-…` headers, its content type as what it is; so does the state of its session, in
//! base64, in a pool that serves sessions, and an answer with that header sets it. Connections are kept
//! alive and reused. An `https://` endpoint must prove who it is, to the system's roots or to those that are given.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use vorrang_client::{Error, Received, TlsClient, TlsOptions};

use super::state::{self, State};
use super::{Facts, RESULT_BYTES_MAX};
use crate::context::Context;
use crate::handler::Handler;
use crate::outcome::Outcome;

/// How long a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Where messages are posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    secure: bool,
    host: String,
    port: u16,
    path: String,
}

/// Why a URL is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not a URL.
    #[error("'{url}' is not a URL such as http://localhost:8080/handle")]
    Form {
        /// What was given.
        url: String,
    },
    /// Another scheme.
    #[error("'{url}' must begin with http:// or https://")]
    Scheme {
        /// What was given.
        url: String,
    },
}

impl Target {
    /// Reads `http://host:port/path` or `https://host:port/path`.
    pub fn parse(url: &str) -> Result<Target, TargetError> {
        let form = || TargetError::Form { url: url.to_owned() };
        let uri: Uri = url.parse().map_err(|_| form())?;
        let (secure, port) = match uri.scheme_str() {
            Some("http") => (false, 80),
            Some("https") => (true, 443),
            Some(_) => return Err(TargetError::Scheme { url: url.to_owned() }),
            None => return Err(form()),
        };
        let host = uri.host().ok_or_else(form)?.to_owned();
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Target { secure, host, port: uri.port_u16().unwrap_or(port), path })
    }

    /// The host as a certificate names it: an address of IPv6 has no brackets there.
    fn host_name(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// Posts messages to an endpoint.
#[derive(Debug)]
pub struct HttpHandler {
    target: Target,
    time_max: Duration,
    tls: Option<TlsClient>,
    /// Connections that wait for a message; at most one per slot was ever made.
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

/// What came back.
struct Response {
    status: StatusCode,
    retry_after: Option<Duration>,
    /// The header with the session's next state.
    state: Option<String>,
    body: Bytes,
}

impl HttpHandler {
    /// Posts to `target`, which answers within `time_max`; `tls` says whom an `https://` target is believed to be.
    pub fn new(target: Target, time_max: Duration, tls: &TlsOptions) -> Result<HttpHandler, Error> {
        let tls = if target.secure { Some(tls.client(target.host_name())?) } else { None };
        Ok(HttpHandler { target, time_max, tls, idle: Mutex::new(Vec::new()) })
    }

    async fn connection(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match idle {
                Some(connection) if connection.is_ready() => return Ok(connection),
                Some(_) => {}
                None => break,
            }
        }
        let address = self.target.authority();
        let connecting = async {
            let stream = TcpStream::connect(&address).await?;
            match &self.tls {
                None => shake(stream).await,
                Some(tls) => shake(tls.connect(stream).await?).await,
            }
        };
        let connected = tokio::time::timeout(CONNECT_MAX, connecting).await;
        let connected = connected.map_err(|_| format!("{address}: no connection in time"))?;
        connected.map_err(|error| format!("{address}: {error}"))
    }

    async fn exchange(
        connection: &mut SendRequest<Full<Bytes>>,
        request: Request<Full<Bytes>>,
    ) -> Result<Response, String> {
        let response = connection.send_request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let retry_after =
            response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let state = response.headers().get(state::HEADER).map(|value| value.to_str().map(str::to_owned));
        let state = state.transpose().map_err(|error| format!("{}: {error}", state::HEADER))?;
        let body = Limited::new(response.into_body(), RESULT_BYTES_MAX).collect().await;
        let body = body.map_err(|error| format!("the answer cannot be read: {error}"))?.to_bytes();
        Ok(Response { status, retry_after: retry_after.map(Duration::from_secs), state, body })
    }

    fn request(&self, facts: &Facts, state: &State<'_>) -> Result<Request<Full<Bytes>>, String> {
        let mut request = Request::post(&self.target.path).header(HOST, self.target.authority());
        if let Some(state) = state.header()? {
            request = request.header(state::HEADER, state);
        }
        for (name, text) in &facts.named {
            let name = match *name {
                "content_type" => CONTENT_TYPE,
                "traceparent" => HeaderName::from_static("traceparent"),
                name => match format!("vorrang-{}", name.replace('_', "-")).parse() {
                    Ok(name) => name,
                    Err(_) => continue,
                },
            };
            // What no header can carry is left out, rather than refusing the message for it.
            if let Ok(value) = HeaderValue::from_str(text) {
                request = request.header(name, value);
            }
        }
        request.body(Full::new(facts.body.clone())).map_err(|error| error.to_string())
    }
}

async fn shake<S>(stream: S) -> io::Result<SendRequest<Full<Bytes>>>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // Ends when its sender is dropped or the peer closes.
    tokio::spawn(connection);
    Ok(sender)
}

impl Handler for HttpHandler {
    async fn handle(&self, context: Context, message: Received) -> Outcome {
        self.run(&context, &message).await.unwrap_or_else(|outcome| outcome)
    }
}

impl HttpHandler {
    /// What becomes of the message; an error is that, too, told early.
    async fn run(&self, context: &Context, message: &Received) -> Result<Outcome, Outcome> {
        let state = State::read(context).await?;
        let request = self.request(&Facts::of(context, message), &state).map_err(Outcome::Failed)?;
        let mut connection = self.connection().await.map_err(Outcome::Unavailable)?;
        let answered = tokio::select! {
            answered = tokio::time::timeout(self.time_max, Self::exchange(&mut connection, request)) => answered,
            () = context.cancelled() => return Err(Outcome::Failed("cancelled".to_owned())),
        };
        let late = |_| Outcome::Failed(format!("no answer within {:?}", self.time_max));
        let response = answered.map_err(late)?.map_err(Outcome::Failed)?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        let outcome = outcome(response.status, response.retry_after, &response.body);
        if outcome != Outcome::Complete {
            return Ok(outcome);
        }
        state.store(state.headed(response.state.as_deref()).map_err(Outcome::Failed)?).await?;
        if message.reply_to().is_some()
            && !response.body.is_empty()
            && let Err(error) = context.reply(response.body).await
        {
            return Err(Outcome::Failed(format!("cannot reply: {error}")));
        }
        Ok(outcome)
    }
}

fn outcome(status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> Outcome {
    let said =
        String::from_utf8_lossy(body.get(..body.len().min(super::COMPLAINT_BYTES_MAX)).unwrap_or_default());
    let explained =
        || if said.trim().is_empty() { status.to_string() } else { format!("{status}: {}", said.trim()) };
    match status.as_u16() {
        200..=299 => Outcome::Complete,
        408 | 425 | 429 => Outcome::Retry(retry_after),
        400 | 413 | 415 | 422 => Outcome::dead_letter(status.to_string(), said.trim()),
        502..=504 => Outcome::Unavailable(explained()),
        _ => Outcome::Failed(explained()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_decides() {
        let second = Duration::from_secs(1);
        let cases = [
            (200, None, Outcome::Complete),
            (204, None, Outcome::Complete),
            (429, Some(second), Outcome::Retry(Some(second))),
            (408, None, Outcome::Retry(None)),
            (422, None, Outcome::dead_letter("422 Unprocessable Entity", "why")),
            (503, None, Outcome::Unavailable("503 Service Unavailable: why".to_owned())),
            (500, None, Outcome::Failed("500 Internal Server Error: why".to_owned())),
            (301, None, Outcome::Failed("301 Moved Permanently: why".to_owned())),
        ];
        for (status, retry_after, expected) in cases {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(outcome(status, retry_after, b" why\n"), expected, "{status}");
        }
    }

    #[test]
    fn a_target_is_an_http_or_https_url() {
        let cases = [
            ("http://localhost:8080/a?b=c", false, "localhost", 8_080, "/a?b=c"),
            ("http://example.org", false, "example.org", 80, "/"),
            ("https://example.org/x", true, "example.org", 443, "/x"),
            ("https://[::1]:8443/", true, "[::1]", 8_443, "/"),
        ];
        for (url, secure, host, port, path) in cases {
            let expected = Target { secure, host: host.to_owned(), port, path: path.to_owned() };
            assert_eq!(Target::parse(url), Ok(expected), "{url}");
        }
        assert_eq!(Target::parse("https://[::1]:8443/").unwrap().host_name(), "::1");
        assert!(matches!(Target::parse("ftp://localhost"), Err(TargetError::Scheme { .. })));
        for url in ["", "localhost", "/path", "http://", "http://a b"] {
            assert!(matches!(Target::parse(url), Err(TargetError::Form { .. })), "{url}");
        }
    }
}
