//! One request: who asks, what the path names, what the query and the body say.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use vorrang_engine::Sequence;
use vorrang_engine::entity::{EntityName, EntityPath, RuleName, SubQueue, SubscriptionName};

use super::asker::Asker;
use super::complaint::{Complaints, shortened};
use super::failure::Failure;
use super::query::Query;
use crate::caller::Caller;
use crate::config::nearest;
use crate::http::{Site, body, sas};

/// Bytes of an ordinary body; a larger one is refused. Definitions of a whole namespace and batches of
/// messages say their own.
pub(super) const BODY_BYTES_MAX: usize = 1024 * 1024;

/// One request, before it is understood.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) site: Arc<Site>,
    pub(super) headers: HeaderMap,
    pub(super) segments: BTreeMap<String, String>,
    pub(super) query: Query,
    pub(super) path: String,
    /// Behind a lock only because a body cannot be looked at by two at once.
    pub(super) body: Mutex<Body>,
}

impl Call {
    /// The broker, as whoever the request's token says.
    pub(super) fn asker(&self) -> Result<Asker, Failure> {
        let principal = sas::principal(&self.site, &self.headers, None)?;
        let caller =
            Caller::connect(&self.site.broker, principal).map_err(crate::caller::Unanswered::from)?;
        Ok(Asker::new(caller, Arc::clone(&self.site)))
    }

    fn segment(&self, name: &str) -> &str {
        self.segments.get(name).map_or("", String::as_str)
    }

    /// Something the path names, read in its own way.
    pub(super) fn parsed<T, E: std::fmt::Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, Failure> {
        let mut complaints = Complaints::default();
        let parsed = complaints.check(name, parse(self.segment(name)));
        complaints.finish(())?;
        parsed.ok_or_else(|| Failure::malformed(format!("{name} cannot be read")))
    }

    /// The entity the path names: a queue, a topic or a subscription.
    pub(super) fn entity(&self) -> Result<EntityPath, Failure> {
        if self.segments.contains_key("queue") {
            return Ok(EntityPath::of(self.parsed("queue", EntityName::parse)?));
        }
        let topic = self.parsed("topic", EntityName::parse)?;
        if self.segments.contains_key("subscription") {
            let subscription = self.parsed("subscription", SubscriptionName::parse)?;
            return Ok(EntityPath::of_subscription(topic, subscription));
        }
        Ok(EntityPath::of(topic))
    }

    /// The rule the path names.
    pub(super) fn rule(&self) -> Result<RuleName, Failure> {
        self.parsed("rule", RuleName::parse)
    }

    /// The mailbox the path names.
    pub(super) fn mailbox(&self) -> Result<EntityPath, Failure> {
        let sub_queue = self.parsed("mailbox", |text| match text.to_ascii_lowercase().as_str() {
            "main" => Ok(SubQueue::Main),
            "deadletter" => Ok(SubQueue::DeadLetter),
            "transferdeadletter" => Ok(SubQueue::TransferDeadLetter),
            _ => Err("must be main, deadletter or transferdeadletter"),
        })?;
        Ok(EntityPath { sub_queue, ..self.entity()? })
    }

    /// The sequence number the path names.
    pub(super) fn sequence(&self) -> Result<Sequence, Failure> {
        self.parsed("sequence", |text| {
            text.parse().map(Sequence).map_err(|_| "must be a sequence number, such as 42")
        })
    }

    /// A number the path names.
    pub(super) fn number(&self, name: &str) -> Result<u64, Failure> {
        self.parsed(name, |text| text.parse().map_err(|_| "must be a whole number"))
    }

    /// The body as it came.
    pub(super) async fn bytes(&mut self, bytes_max: usize) -> Result<bytes::Bytes, Failure> {
        let body = std::mem::take(self.body.get_mut().unwrap_or_else(PoisonError::into_inner));
        Ok(body::read(body, bytes_max).await?)
    }

    /// The body, read from JSON.
    pub(super) async fn json<T: DeserializeOwned>(&mut self, bytes_max: usize) -> Result<T, Failure> {
        read(&self.bytes(bytes_max).await?)
    }
}

/// Reads a body. If it cannot be read, each member of the object is tried by itself, so that every mistake
/// is told at once.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    // No body says as much as an empty object.
    let bytes = if bytes.iter().all(u8::is_ascii_whitespace) { b"{}" } else { bytes };
    let json: Json = serde_json::from_slice(bytes)
        .map_err(|error| Failure::malformed(format!("the body is not JSON: {error}")))?;
    let Json::Object(members) = &json else {
        return Err(Failure::malformed("the body must be a JSON object"));
    };
    let error = match T::deserialize(&json) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    let mut complaints = Complaints::default();
    for (name, value) in members {
        let alone = serde_json::Map::from_iter([(name.clone(), value.clone())]);
        if let Err(error) = T::deserialize(Json::Object(alone)) {
            complaints.add(name, unquoted(&error));
        }
    }
    complaints.finish(())?;
    Err(Failure::malformed(shortened(unquoted(&error))))
}

/// What a parser says about a value of the wrong kind, without the text it was: that may be a key in the wrong
/// place, and what is said is also logged. Of all the names there are, the one that was probably meant is told.
#[must_use]
pub fn unquoted(error: &serde_json::Error) -> String {
    let said = error.to_string();
    if let Some((unknown, known)) = said.split_once("`, expected one of `")
        && let Some(name) = unknown.strip_prefix("unknown field `")
    {
        let name = shortened(name.to_owned());
        let meant = nearest(&name, known.split('`').step_by(2));
        let remedy = meant.map_or_else(
            || "GET /api/openapi.json says which there are".to_owned(),
            |meant| format!("did you mean `{meant}`?"),
        );
        return format!("unknown field `{name}`; {remedy}");
    }
    match (said.split_once("string \""), said.rsplit_once("\", expected")) {
        (Some((before, _)), Some((_, after))) => format!("{before}a string, expected{after}"),
        _ => said,
    }
}

/// An answer with a JSON body.
pub(super) fn answer(status: StatusCode, value: &impl Serialize) -> Result<Response, Failure> {
    let body = serde_json::to_vec(value).map_err(|error| {
        tracing::error!(%error, "an answer cannot be written");
        Failure::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "The broker failed",
            "the answer cannot be written",
        )
    })?;
    Ok((status, [(axum::http::header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// 200 with a JSON body.
pub(super) fn ok(value: &impl Serialize) -> Result<Response, Failure> {
    answer(StatusCode::OK, value)
}

/// 204.
pub(super) fn done() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::api::model::{Definitions, Properties, ReplayRequest};
    use proptest::prelude::*;

    #[test]
    fn every_member_that_cannot_be_read_is_told() {
        let body = br#"{"lockDuration": 5, "maxDeliveryCount": "many", "colour": "red", "lift": true}"#;
        let problem = read::<Properties>(body).unwrap_err().into_problem();
        let told: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(told, ["colour", "lockDuration", "maxDeliveryCount"]);
        assert!(problem.detail.contains("unknown field `colour`"), "{}", problem.detail);
    }

    #[test]
    fn a_misspelt_member_is_told_what_was_probably_meant() {
        let cases = [
            (r#"{"lockDuraton": "PT30S"}"#, "unknown field `lockDuraton`; did you mean `lockDuration`?"),
            (r#"{"maxdeliverycount": 3}"#, "did you mean `maxDeliveryCount`?"),
            (r#"{"colour": "red"}"#, "unknown field `colour`; GET /api/openapi.json says which there are"),
        ];
        for (body, expected) in cases {
            let problem = read::<Properties>(body.as_bytes()).unwrap_err().into_problem();
            assert!(problem.detail.contains(expected), "{body}: {}", problem.detail);
        }
    }

    #[test]
    fn a_text_in_the_wrong_place_is_not_repeated() {
        let bodies = [
            r#"{"authorizationRules": "hunter2"}"#,
            r#"{"maxDeliveryCount": "hunter2\", expected \"x"}"#,
            r#"{"classes": ["hunter2"]}"#,
        ];
        for body in bodies {
            let problem = read::<Properties>(body.as_bytes()).unwrap_err().into_problem();
            assert!(
                !problem.detail.contains("hunter2") && problem.detail.contains("expected"),
                "{problem:?}"
            );
        }
    }

    #[test]
    fn no_body_is_an_empty_one_and_nonsense_is_refused() {
        assert_eq!(read::<Properties>(b" ").unwrap(), Properties::default());
        for body in [&b"["[..], b"[]", b"null", b"7", b"{\"a\"}", b"\xff"] {
            let problem = read::<Properties>(body).unwrap_err().into_problem();
            assert_eq!(problem.status, 400, "{body:?}");
        }
        let deep = "[".repeat(100_000);
        assert!(read::<Definitions>(deep.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn no_body_is_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[{}\\[\\]\",:a-z0-9 ]{0,200}") {
            let _ = read::<Properties>(&bytes);
            let _ = read::<Definitions>(text.as_bytes());
            let _ = read::<ReplayRequest>(text.as_bytes());
        }
    }
}
