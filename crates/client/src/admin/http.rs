//! One HTTP request at a time, each on a connection of its own: administration is rare.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, IF_MATCH};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;

use super::fields::TARGETS;
use super::xml::{self, Element};
use crate::connection_string::Credential;
use crate::error::Error;
use crate::sas;
use crate::transport::{Route, TlsOptions, TransportKind};

/// The largest answer we read: a page of entities with room to spare. A larger one is an error.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
const TOKEN_LIFETIME: Duration = Duration::from_mins(10);
const API_VERSION: &str = "2021-05";
/// What of an error without words is shown.
const SHOWN_MAX: usize = 200;
/// The headers that carry the right to forward to another entity, in the order of [`TARGETS`].
const SUPPLEMENTS: [&str; 2] =
    ["ServiceBusSupplementaryAuthorization", "ServiceBusDlqSupplementaryAuthorization"];

/// Whether a description is to be new or to replace one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    Create,
    Update,
}

/// Where requests go and who asks.
#[derive(Debug, Clone)]
pub(super) struct Door {
    pub(super) route: Arc<Route>,
    /// The namespace's host, which tokens and forward targets name.
    pub(super) host: String,
    pub(super) credential: Credential,
    pub(super) time_out: Duration,
}

impl Door {
    /// A door at `endpoint`: `http[s]://host[:port]`.
    pub(super) fn at(
        endpoint: &str,
        host: &str,
        credential: Credential,
        tls: TlsOptions,
    ) -> Result<Self, Error> {
        let wrong = || {
            Error::InvalidArgument(format!("'{endpoint}' is not of the form http[s]://host[:port]").into())
        };
        let (kind, rest) = match endpoint.split_once("://").ok_or_else(wrong)? {
            ("https", rest) => (TransportKind::Tls, rest),
            ("http", rest) => (TransportKind::Tcp, rest),
            _ => return Err(wrong()),
        };
        let authority = rest.trim_end_matches('/');
        let (at, port) = match authority.rsplit_once(':') {
            // An IPv6 address keeps its colons in brackets.
            Some((at, port)) if !port.ends_with(']') => (at, port.parse().map_err(|_| wrong())?),
            _ => (authority, if kind == TransportKind::Tls { 443 } else { 80 }),
        };
        let at = at.strip_prefix('[').and_then(|at| at.strip_suffix(']')).unwrap_or(at);
        if at.is_empty() || at.contains(['/', '?', '@']) {
            return Err(wrong());
        }
        let route = Arc::new(Route { kind, host: at.to_owned(), port, tls });
        Ok(Door { route, host: host.to_owned(), credential, time_out: Duration::from_mins(1) })
    }

    pub(super) async fn get(&self, path: &str, query: &str) -> Result<Element, Error> {
        let answer = self.ask(self.request(Method::GET, path, query, None)?).await?;
        xml::parse(&answer).map_err(|error| Error::Protocol(error.to_string().into()))
    }

    pub(super) async fn put(&self, path: &str, intent: Intent, entry: &Element) -> Result<Element, Error> {
        let answer = self.ask(self.request(Method::PUT, path, "", Some((intent, entry)))?).await?;
        xml::parse(&answer).map_err(|error| Error::Protocol(error.to_string().into()))
    }

    pub(super) async fn delete(&self, path: &str) -> Result<(), Error> {
        self.ask(self.request(Method::DELETE, path, "", None)?).await.map(|_| ())
    }

    /// Asks, and turns statuses that are no success into errors.
    async fn ask(&self, request: Request<Full<Bytes>>) -> Result<Bytes, Error> {
        let changes = request.headers().contains_key(IF_MATCH) || request.method() == Method::DELETE;
        let asking = Box::pin(self.exchange(request));
        let (status, body) = match tokio::time::timeout(self.time_out, asking).await {
            Ok(answer) => answer?,
            Err(_) => return Err(Error::Timeout(self.time_out)),
        };
        if (200..300).contains(&status) { Ok(body) } else { Err(refusal(status, &words(&body), changes)) }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<(u16, Bytes), Error> {
        let wire = self.route.connect(self.time_out).await?;
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(wire)).await;
        let (mut sending, connection) = shaken.map_err(|error| self.route.unreachable(&error))?;
        // Lives as long as the request: nothing else uses the connection.
        let driving = tokio::spawn(connection);
        let answer = sending.send_request(request).await;
        let answer = answer.map_err(|error| self.route.unreachable(&error))?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| self.route.unreachable(&error))?.to_bytes();
        driving.abort();
        Ok((status, body))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        query: &str,
        put: Option<(Intent, &Element)>,
    ) -> Result<Request<Full<Bytes>>, Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/{path}?{query}api-version={API_VERSION}"))
            .header(HOST, self.authority());
        if let Some(token) = self.token() {
            request = request.header(AUTHORIZATION, token);
        }
        let mut body = Bytes::new();
        if let Some((intent, entry)) = put {
            request = request.header(CONTENT_TYPE, "application/atom+xml;type=entry;charset=utf-8");
            if intent == Intent::Update {
                request = request.header(IF_MATCH, "*");
            }
            let description = entry.child("content").and_then(|content| content.children.first());
            for (target, header) in TARGETS.iter().zip(SUPPLEMENTS) {
                let forwards = description.is_some_and(|description| description.value_of(target).is_some());
                if let Some(token) = self.token().filter(|_| forwards) {
                    request = request.header(header, token);
                }
            }
            body = entry.document().into();
        }
        request.body(Full::from(body)).map_err(|error| Error::InvalidArgument(error.to_string().into()))
    }

    /// What the service is called in requests: proxies and certificates go by it.
    fn authority(&self) -> String {
        let Route { kind, host, port, .. } = &*self.route;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        match (kind, port) {
            (TransportKind::Tls, 443) | (TransportKind::Tcp, 80) => host,
            _ => format!("{host}:{port}"),
        }
    }

    /// A token for the whole namespace: an administrator needs no less.
    fn token(&self) -> Option<String> {
        match &self.credential {
            Credential::Key { name, key } => {
                let expires = SystemTime::now() + TOKEN_LIFETIME;
                Some(sas::token(name, key, &format!("https://{}/", self.host), expires))
            }
            Credential::Token(token) => Some(token.clone()),
            Credential::None => None,
        }
    }
}

/// What a status means, with the service's words; `changes` says whether something was to change that was there.
fn refusal(status: u16, said: &str, changes: bool) -> Error {
    let text = said.into();
    match status {
        400 => Error::InvalidArgument(text),
        401 => Error::Unauthorized(text),
        403 if said.contains("SubCode=40301") => Error::NotAllowed(text),
        403 => Error::QuotaExceeded(text),
        404 | 410 => Error::NotFound(text),
        // Somebody else is changing it; a little later it works.
        409 if changes || said.contains("SubCode=40901") => Error::ServerBusy(text),
        409 => Error::AlreadyExists(text),
        408 | 429 | 500 | 502 | 503 | 504 => Error::ServerBusy(text),
        other => Error::Refused { condition: format!("HTTP {other}").into(), text },
    }
}

/// The words in an error document, or what there is.
fn words(body: &[u8]) -> String {
    let document = xml::parse(body).ok();
    let detail = document.as_ref().and_then(|error| error.value_of("Detail"));
    detail.map_or_else(|| String::from_utf8_lossy(body).chars().take(SHOWN_MAX).collect(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(endpoint: &str) -> Result<Door, Error> {
        Door::at(endpoint, "ns.example", Credential::None, TlsOptions::default())
    }

    #[test]
    fn endpoints_are_taken_apart_and_put_together() {
        let cases = [
            ("http://localhost:5300", Some("localhost:5300")),
            ("https://ns.example/", Some("ns.example")),
            ("http://[::1]:5300", Some("[::1]:5300")),
            ("https://[::1]", Some("[::1]")),
            ("ftp://x", None),
            ("http://", None),
            ("http://a:b", None),
            ("http://a/b", None),
            ("localhost", None),
        ];
        for (endpoint, expected) in cases {
            let authority = door(endpoint).ok().map(|door| door.authority());
            assert_eq!(authority.as_deref(), expected, "{endpoint}");
        }
    }

    #[test]
    fn an_update_says_so_and_brings_the_right_to_forward() {
        let key = Credential::Key { name: "n".to_owned(), key: "k".to_owned() };
        let door = Door::at("https://ns.example", "ns.example", key, TlsOptions::default()).unwrap();
        let queue =
            Element::new("", "QueueDescription").with(Element::leaf("ForwardTo", "sb://ns.example/other"));
        let entry = super::super::envelope::wrap(queue);
        let request = door.request(Method::PUT, "a%2Fb", "", Some((Intent::Update, &entry))).unwrap();
        assert_eq!(request.uri(), "/a%2Fb?api-version=2021-05");
        assert_eq!(request.headers()[IF_MATCH], "*");
        assert!(request.headers().contains_key(SUPPLEMENTS[0]));
        assert!(!request.headers().contains_key(SUPPLEMENTS[1]));
        let token = request.headers()[AUTHORIZATION].to_str().unwrap();
        assert!(token.starts_with("SharedAccessSignature sr=https%3A%2F%2Fns.example%2F&sig="), "{token}");
        let request = door.request(Method::PUT, "a", "", Some((Intent::Create, &entry))).unwrap();
        assert!(!request.headers().contains_key(IF_MATCH));
    }

    #[test]
    fn statuses_become_what_a_caller_decides_by() {
        type Case = (u16, &'static str, bool, fn(&Error) -> bool);
        let cases: [Case; 9] = [
            (400, "", false, |error| matches!(error, Error::InvalidArgument(_))),
            (401, "", false, |error| matches!(error, Error::Unauthorized(_))),
            (403, "SubCode=40300", false, |error| matches!(error, Error::QuotaExceeded(_))),
            (403, "SubCode=40301", false, |error| matches!(error, Error::NotAllowed(_))),
            (404, "", true, |error| matches!(error, Error::NotFound(_))),
            (409, "SubCode=40900", false, |error| matches!(error, Error::AlreadyExists(_))),
            (409, "SubCode=40901", false, Error::is_transient),
            (409, "", true, Error::is_transient),
            (503, "", false, Error::is_transient),
        ];
        for (status, said, changes, is) in cases {
            assert!(is(&refusal(status, said, changes)), "{status} {said}");
        }
        assert_eq!(
            words(b"<Error><Code>400</Code><Detail>SubCode=40000. no.</Detail></Error>"),
            "SubCode=40000. no."
        );
        assert_eq!(words(b"bad gateway"), "bad gateway");
    }
}
