//! Why an HTTP request is not answered as hoped: one type for every door.
//!
//! It says what the refusals of AMQP say (see [`condition`]), because clients of both act on the same
//! words. Doors of Service Bus write it as XML, which is what [`IntoResponse`] does; a door with another
//! format takes the parts.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use vorrang_broker::api::Refused;

use super::escape::escaped;
use crate::caller::Unanswered;
use crate::date;
use crate::front::condition::{self, name};
use crate::front::connection::wall_time;

/// When to try again what passes by itself, as the SDKs do over AMQP.
pub(super) const RETRY_SECONDS: &str = "4";

/// A request that failed: a status for machines, a condition for programs, a text for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The status line.
    pub status: StatusCode,
    /// The same condition that AMQP clients are told.
    pub condition: &'static str,
    /// A sentence.
    pub text: String,
}

impl Fault {
    /// A fault of these parts.
    pub fn new(status: StatusCode, condition: &'static str, text: impl Into<String>) -> Fault {
        Fault { status, condition, text: text.into() }
    }

    /// The request itself is wrong.
    pub fn malformed(text: impl Into<String>) -> Fault {
        Fault::new(StatusCode::BAD_REQUEST, name::ARGUMENT_ERROR, text)
    }

    /// Nobody knows who asks.
    pub fn unauthorized(text: impl Into<String>) -> Fault {
        Fault::new(StatusCode::UNAUTHORIZED, name::UNAUTHORIZED, text)
    }

    /// The broker cannot answer now.
    pub fn unavailable(text: impl Into<String>) -> Fault {
        Fault::new(StatusCode::SERVICE_UNAVAILABLE, name::INTERNAL_ERROR, text)
    }

    /// There is nothing at this path.
    pub fn not_found(path: &str) -> Fault {
        Fault::refused(&Refused::NotFound { path: path.into() }, path)
    }

    /// The path is known, the method is not for it.
    pub fn method_not_allowed(text: impl Into<String>) -> Fault {
        Fault::new(StatusCode::METHOD_NOT_ALLOWED, name::NOT_ALLOWED, text)
    }

    /// A body larger than this door takes.
    pub fn too_large(bytes_max: usize) -> Fault {
        let text = format!("The body of the request exceeds the limit of {bytes_max} bytes.");
        Fault::new(StatusCode::PAYLOAD_TOO_LARGE, name::MESSAGE_SIZE_EXCEEDED, text)
    }

    /// What the broker said no to; `path` is the entity as the client knows it.
    pub fn refused(refused: &Refused, path: &str) -> Fault {
        let told = condition::told(refused, path);
        let status = u16::try_from(told.status).ok().and_then(|status| StatusCode::from_u16(status).ok());
        Fault::new(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), told.condition, told.text)
    }

    /// The broker gave another answer than was asked for.
    pub fn unexpected(answered: &impl std::fmt::Debug) -> Fault {
        tracing::error!(?answered, "the broker gave another answer than asked for");
        let text = "The broker gave another answer than asked for.";
        Fault::new(StatusCode::INTERNAL_SERVER_ERROR, name::INTERNAL_ERROR, text)
    }

    /// The service's finer number for the status.
    fn sub_code(&self) -> u32 {
        u32::from(self.status.as_u16()).saturating_mul(100)
    }
}

impl From<Unanswered> for Fault {
    fn from(unanswered: Unanswered) -> Fault {
        match unanswered {
            // What was asked may be asked of the next one.
            Unanswered::Stopped { .. } => Fault::unavailable(unanswered.to_string()),
            Unanswered::Busy => {
                let told = condition::busy(&unanswered.to_string());
                Fault::new(StatusCode::SERVICE_UNAVAILABLE, told.condition, told.text)
            }
        }
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let tracking = getrandom::u64().unwrap_or_default();
        tracing::debug!(status = self.status.as_u16(), text = ?self.text, tracking, "request refused");
        let now = date::rfc3339(wall_time());
        let body = format!(
            "<Error><Code>{}</Code><Detail>SubCode={}. {} TrackingId:{tracking:016x}, Timestamp:{now}</Detail></Error>",
            self.status.as_u16(),
            self.sub_code(),
            escaped(&self.text),
        );
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml; charset=utf-8"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("SharedAccessSignature"));
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
        }
        response
    }
}
