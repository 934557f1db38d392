//! One HTTP request at a time, each on a connection of its own: administration is rare.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;

use crate::client::Client;
use crate::connection_string::Credential;
use crate::error::Error;
use crate::sas;
use crate::transport::{Route, TransportKind};

/// The largest answer we read: a page of entities with room to spare. A larger one is an error.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
const TOKEN_LIFETIME: Duration = Duration::from_mins(10);
/// What of an error without words is shown.
const SHOWN_MAX: usize = 200;

/// Where requests go and who asks.
#[derive(Debug, Clone)]
pub(super) struct Door {
    route: Arc<Route>,
    credential: Credential,
    time_out: Duration,
}

impl Door {
    pub(super) fn new(client: &Client, kind: TransportKind, host: &str, port: u16) -> Self {
        let (credential, tls) = client.credentials();
        let route = Route { kind, host: host.to_owned(), port, tls };
        Door { route: Arc::new(route), credential, time_out: client.operation_time_out() }
    }

    /// Asks, and turns statuses that are no success into errors.
    pub(super) async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let asking = Box::pin(self.exchange(method, path, body));
        let (status, body) = match tokio::time::timeout(self.time_out, asking).await {
            Ok(answer) => answer?,
            Err(_) => return Err(Error::Timeout(self.time_out)),
        };
        let said = || words(&body).into();
        match status {
            200..300 if body.is_empty() => Ok(Value::Null),
            200..300 => serde_json::from_slice(&body)
                .map_err(|error| Error::Protocol(format!("the answer is no JSON: {error}").into())),
            400 => Err(Error::InvalidArgument(said())),
            401 => Err(Error::Unauthorized(said())),
            403 => Err(Error::QuotaExceeded(said())),
            404 => Err(Error::NotFound(said())),
            409 => Err(Error::AlreadyExists(said())),
            429 | 503 => Err(Error::ServerBusy(said())),
            other => Err(Error::Refused { condition: format!("HTTP {other}").into(), text: said() }),
        }
    }

    async fn exchange(&self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Bytes), Error> {
        let wire = self.route.connect(self.time_out).await?;
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(wire)).await;
        let (mut sending, connection) = shaken.map_err(|error| self.route.unreachable(&error))?;
        // Lives as long as the request: nothing else uses the connection.
        let driving = tokio::spawn(connection);
        let answer = sending.send_request(self.request(method, path, body)?).await;
        let answer = answer.map_err(|error| self.route.unreachable(&error))?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| self.route.unreachable(&error))?.to_bytes();
        driving.abort();
        Ok((status, body))
    }

    fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Request<Full<Bytes>>, Error> {
        let unusable = |error: &dyn ToString| Error::InvalidArgument(error.to_string().into());
        let method = Method::from_bytes(method.as_bytes()).map_err(|error| unusable(&error))?;
        let mut request =
            Request::builder().method(method).uri(format!("/{path}")).header(HOST, self.route.endpoint());
        let token = match &self.credential {
            Credential::Key { name, key } => {
                let expires = SystemTime::now() + TOKEN_LIFETIME;
                Some(sas::token(name, key, &format!("https://{}/", self.route.host), expires))
            }
            Credential::Token(token) => Some(token.clone()),
            Credential::None => None,
        };
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        request.body(Full::from(body)).map_err(|error| unusable(&error))
    }
}

/// The words in a problem document, with every field it names, or what there is.
fn words(body: &[u8]) -> String {
    let problem: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let detail = text(&problem, "detail").or_else(|| text(&problem, "title"));
    let mut said = detail.unwrap_or_else(|| String::from_utf8_lossy(body).chars().take(SHOWN_MAX).collect());
    for error in problem.get("errors").and_then(Value::as_array).into_iter().flatten() {
        said.push_str("; ");
        said.push_str(&error.to_string());
    }
    said
}
