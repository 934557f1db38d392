//! Why a request was not carried out, as an answer: one shape for all of the API.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use vorrang_broker::api::Refused;
use vorrang_engine::Refusal;
use vorrang_engine::entity;

use super::model::{FieldProblem, Problem};
use crate::caller::Unanswered;
use crate::http::fault::{Fault, RETRY_SECONDS};

/// What problem types begin with.
const PREFIX: &str = "urn:vorrang:problem:";

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(Box<Problem>);

impl Failure {
    pub(super) fn new(status: StatusCode, kind: &str, title: &str, detail: impl Into<String>) -> Failure {
        Failure(Box::new(Problem {
            kind: format!("{PREFIX}{kind}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            errors: Vec::new(),
        }))
    }

    /// The body or the query is wrong, in these places.
    pub(super) fn invalid(errors: Vec<FieldProblem>) -> Failure {
        let told = |error: &FieldProblem| format!("{}: {}", error.field, error.detail);
        let detail = errors.iter().map(told).collect::<Vec<_>>().join("; ");
        let mut failure =
            Failure::new(StatusCode::BAD_REQUEST, "invalid", "The request cannot be understood", detail);
        failure.0.errors = errors;
        failure
    }

    /// The request as a whole is wrong.
    pub(super) fn malformed(detail: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, "malformed", "The request cannot be understood", detail)
    }

    /// There is no such thing.
    pub(super) fn not_found(detail: impl Into<String>) -> Failure {
        Failure::new(StatusCode::NOT_FOUND, "not-found", "There is no such thing", detail)
    }

    /// What the broker said no to; `path` is the entity as the client knows it.
    pub(super) fn refused(refused: &Refused, path: &str) -> Failure {
        let fault = Fault::refused(refused, path);
        let mut failure = Failure::from(fault);
        if let Refused::Impossible(Refusal::Entity(entity::Refusal::Invalid { problems })) = refused {
            failure.0.errors = problems
                .iter()
                .map(|problem| FieldProblem {
                    field: camel(problem.property.name()),
                    detail: format!("cannot be {}: allowed is {}", problem.value, problem.allowed),
                })
                .collect();
        }
        failure
    }

    /// Whether there is no such thing.
    pub(super) fn is_not_found(&self) -> bool {
        self.0.status == StatusCode::NOT_FOUND.as_u16()
    }

    /// Whether the broker does not answer at all.
    pub(super) fn is_unavailable(&self) -> bool {
        self.0.status == StatusCode::SERVICE_UNAVAILABLE.as_u16()
    }

    /// Whether it exists already.
    pub(super) fn is_conflict(&self) -> bool {
        self.0.status == StatusCode::CONFLICT.as_u16()
    }

    /// What is wrong, for people.
    pub(super) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The whole problem, to be told within another answer.
    pub(super) fn into_problem(self) -> Problem {
        *self.0
    }
}

/// `LockDuration` as it is written in JSON.
pub(super) fn camel(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect()
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        let (kind, title) = match fault.status {
            StatusCode::UNAUTHORIZED => {
                let detail = format!(
                    "{} Send the header 'Authorization: SharedAccessSignature …' of a key that has the right.",
                    fault.text
                );
                return Failure::new(fault.status, "unauthorized", "The right is missing", detail);
            }
            StatusCode::NOT_FOUND => ("not-found", "There is no such thing"),
            StatusCode::CONFLICT => ("conflict", "It exists already"),
            StatusCode::PAYLOAD_TOO_LARGE => ("too-large", "The body is too large"),
            StatusCode::SERVICE_UNAVAILABLE => ("unavailable", "The broker does not answer"),
            StatusCode::FORBIDDEN => ("limit", "A limit is reached"),
            status if status.is_server_error() => ("internal", "The broker failed"),
            _ => ("refused", "The request was refused"),
        };
        Failure::new(fault.status, kind, title, fault.text)
    }
}

impl From<Unanswered> for Failure {
    fn from(unanswered: Unanswered) -> Failure {
        Failure::from(Fault::from(unanswered))
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        tracing::debug!(status = self.0.status, detail = ?self.0.detail, "request refused");
        let body = serde_json::to_vec(&self.0).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("SharedAccessSignature"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
        }
        response
    }
}
