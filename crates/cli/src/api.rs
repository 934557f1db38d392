//! The commands' way to the broker: the JSON API over HTTP, with a shared access token for each request.
//!
//! Whatever goes wrong becomes one sentence with the remedy; a token or a key is never part of it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::{Method, Request, Response};
use ureq::{Agent, Body};
use vorrang_broker::access::token;
use vorrang_server::http::api::model::{Page, Problem};

use crate::connection::Connection;
use crate::failure::Failure;
use crate::percent;

/// How long a token is good for: longer than any request, shorter than a coffee break.
const TOKEN_LIFE: Duration = Duration::from_mins(20);
/// How long to wait for a broker that does not answer the door.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// The largest answer that is taken into memory.
const ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Requests that answers of the API name as a remedy, and the commands that make them.
const OUR_WORDS: [(&str, &str); 3] = [
    ("GET /api/openapi.json", "the broker's /api/openapi.json"),
    ("GET /dev/snapshots", "`vorrang dev snapshot list`"),
    ("GET /api/connections", "`vorrang connection list`"),
];

/// A broker to ask.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    agent: Agent,
    connection: Connection,
}

impl Api {
    pub(crate) fn new(connection: Connection) -> Api {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_MAX))
            .user_agent(concat!("vorrang/", env!("CARGO_PKG_VERSION")));
        if connection.http.starts_with("https:") {
            config = config.tls_config(connection.trust.https());
        }
        Api { agent: Agent::new_with_config(config.build()), connection }
    }

    /// Where it is asked.
    pub(crate) fn address(&self) -> &str {
        &self.connection.http
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        read(self.send(Method::GET, path, Vec::new())?)
    }

    pub(crate) fn put<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Failure> {
        read(self.send(Method::PUT, path, bytes(body)?)?)
    }

    pub(crate) fn patch<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Failure> {
        read(self.send(Method::PATCH, path, bytes(body)?)?)
    }

    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Failure> {
        read(self.send(Method::POST, path, bytes(body)?)?)
    }

    pub(crate) fn delete(&self, path: &str) -> Result<(), Failure> {
        self.send(Method::DELETE, path, Vec::new()).map(drop)
    }

    /// Every page of a list, or the first `most` of it.
    pub(crate) fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        most: Option<usize>,
    ) -> Result<Vec<T>, Failure> {
        let mut next = Some(path.to_owned());
        let mut items: Vec<T> = Vec::new();
        while let Some(path) = next {
            let page: Page<T> = self.get(&path)?;
            items.extend(page.items);
            if most.is_some_and(|most| items.len() >= most) {
                items.truncate(most.unwrap_or(usize::MAX));
                break;
            }
            next = page.next;
        }
        Ok(items)
    }

    /// Asks for an answer that comes line by line, and hands each on as it comes.
    pub(crate) fn lines<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        mut each: impl FnMut(T) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let response = self.send(Method::POST, path, bytes(body)?)?;
        for line in BufReader::new(response.into_body().into_reader()).lines() {
            let line = line.map_err(|error| self.unreachable(&error))?;
            if !line.trim().is_empty() {
                each(serde_json::from_str(&line).map_err(|error| strange(&error))?)?;
            }
        }
        Ok(())
    }

    /// Asks a door that needs no key, such as `/health`.
    pub(crate) fn probe(&self, path: &str) -> Result<(u16, String), Failure> {
        let url = format!("{}{path}", self.connection.http);
        let response = self.agent.get(&url).call().map_err(|error| self.unreachable(&error))?;
        let status = response.status().as_u16();
        Ok((status, text(response)?))
    }

    fn send(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Response<Body>, Failure> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.connection.http))
            .header("authorization", self.token())
            .header("content-type", "application/json")
            .body(body)
            .map_err(|error| Failure::Usage(format!("{} is no address: {error}", self.connection.http)))?;
        let response = self.agent.run(request).map_err(|error| self.unreachable(&error))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(response)) }
    }

    fn token(&self) -> String {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let expiry = (now + TOKEN_LIFE).as_secs().to_string();
        // The key of an entity opens that entity and nothing beside it; a token that asks for more is refused.
        let entity = self.connection.entity.as_deref().unwrap_or_default();
        let resource = percent::encode(&format!("{}/{entity}", self.connection.http));
        let signature = percent::encode(&token::sign(&self.connection.key, &resource, &expiry));
        let name = percent::encode(&self.connection.key_name);
        format!("SharedAccessSignature sr={resource}&sig={signature}&se={expiry}&skn={name}")
    }

    fn unreachable(&self, error: &dyn std::fmt::Display) -> Failure {
        let error = error.to_string();
        if self.connection.http.starts_with("https:") && error.contains("certificate") {
            return Failure::Unreachable(format!(
                "the broker at {} shows a certificate that is not trusted ({error}); name the file of its authority \
                 with --ca-file",
                self.connection.http
            ));
        }
        Failure::Unreachable(format!(
            "no broker answers at {} ({error}); start one with `vorrang serve --dev`, or say where it is with \
             --connection-string and --http",
            self.connection.http
        ))
    }

    /// What an answer that is not a success means.
    fn refusal(&self, response: Response<Body>) -> Failure {
        let status = response.status().as_u16();
        let body = text(response).unwrap_or_default();
        let problem: Option<Problem> = serde_json::from_str(&body).ok();
        let detail = match &problem {
            Some(problem) => said(problem),
            None => format!("the broker answered with HTTP status {status}"),
        };
        let detail = in_our_words(crate::output::printable_lines(&detail));
        match status {
            401 => Failure::Forbidden(format!(
                "the broker at {} does not accept the key '{}' ({detail}); check the connection string",
                self.connection.http, self.connection.key_name
            )),
            403 if problem.as_ref().is_some_and(|problem| {
                problem.kind.contains("forbidden") || problem.kind.contains("unauthor")
            }) =>
            {
                Failure::Forbidden(format!(
                    "the key '{}' does not permit this: {detail}; use one with more rights",
                    self.connection.key_name
                ))
            }
            404 if problem.is_some() && !detail.contains("messaging entity") => Failure::NotFound(detail),
            404 if problem.is_some() => Failure::NotFound(format!(
                "{}; `vorrang queue list` and `vorrang topic list` show what there is",
                detail.trim_end_matches('.')
            )),
            404 => Failure::Unreachable(format!(
                "what answers at {} is not this version of vorrang; say where the broker is with --http",
                self.connection.http
            )),
            409 if problem.as_ref().is_some_and(|problem| problem.kind.ends_with(":conflict")) => {
                Failure::Refused(format!(
                    "{}; change it with `update`, or say --if-missing to leave it as it is",
                    detail.trim_end_matches('.')
                ))
            }
            503 => {
                Failure::Unreachable(format!("the broker at {} is not ready: {detail}", self.connection.http))
            }
            _ => Failure::Refused(detail),
        }
    }
}

/// What the API says about itself, said about the commands.
fn in_our_words(text: String) -> String {
    OUR_WORDS.iter().fold(text, |text, (theirs, ours)| text.replace(theirs, ours))
}

/// A problem in words: its sentence, and below it what else is wrong; nothing is said twice.
fn said(problem: &Problem) -> String {
    let more = problem.errors.iter().filter(|error| !problem.detail.contains(&error.detail));
    let more = more.map(|error| format!("\n  {}: {}", error.field, error.detail));
    format!("{}{}", problem.detail, more.collect::<String>())
}

fn bytes(body: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(body).map_err(|error| Failure::Other(error.into()))
}

fn text(response: Response<Body>) -> Result<String, Failure> {
    let mut text = String::new();
    response.into_body().into_reader().take(ANSWER_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn read<T: DeserializeOwned>(response: Response<Body>) -> Result<T, Failure> {
    let text = text(response)?;
    // An empty answer reads as null, which every `Value` and `()` takes.
    let text = if text.is_empty() { "null" } else { &text };
    serde_json::from_str(text).map_err(|error| strange(&error))
}

fn strange(error: &serde_json::Error) -> Failure {
    Failure::Other(anyhow::anyhow!(
        "the broker's answer cannot be read ({error}); is it of the same version?"
    ))
}

/// The path of a queue, topic or subscription, as AMQP writes it, in the API: `queues/…` or
/// `topics/…/subscriptions/…`.
pub(crate) fn entity_path(entity: &str) -> String {
    match split_subscription(entity) {
        Some((topic, name)) => subscription_path(topic, name),
        None => format!("/api/queues/{}", percent::encode(entity)),
    }
}

pub(crate) fn subscription_path(topic: &str, name: &str) -> String {
    format!("/api/topics/{}/subscriptions/{}", percent::encode(topic), percent::encode(name))
}

/// Topic and subscription of a path like `events/Subscriptions/high`; the last such word counts.
fn split_subscription(entity: &str) -> Option<(&str, &str)> {
    let at = entity.to_ascii_lowercase().rfind("/subscriptions/")?;
    let (topic, rest) = (entity.get(..at)?, entity.get(at..)?);
    Some((topic, rest.get("/subscriptions/".len()..)?))
}

/// Anything JSON, for answers that are only shown.
pub(crate) type Json = Value;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_one_segment_each() {
        assert_eq!(entity_path("a/b"), "/api/queues/a%2Fb");
        assert_eq!(entity_path("a/b/Subscriptions/c"), "/api/topics/a%2Fb/subscriptions/c");
        assert_eq!(entity_path("t/subscriptions/x y"), "/api/topics/t/subscriptions/x%20y");
    }
}
