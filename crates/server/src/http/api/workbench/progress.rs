//! Work that goes on while its client listens: one line of JSON for each step.

use std::future::Future;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;

use crate::http::api::failure::Failure;
use crate::http::api::model::{Failure as Failed, WorkReport};
use crate::stop::Stop;

/// Failures told one by one; of others only the number is told.
const FAILURES_MAX: usize = 100;
/// How long to wait for the disk before asking again.
pub(crate) const DISK_PAUSE: Duration = Duration::from_millis(5);
/// How often to ask again before giving up on a message that does not come from the disk.
pub(crate) const DISK_TRIES_MAX: u32 = 1_000;

/// Work in steps. Dropping it ends it between two steps or within a wait.
pub(crate) trait Work: Send + 'static {
    /// Goes on for a bounded while and says whether it is done.
    fn step(&mut self) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// How far it has come.
    fn report(&mut self) -> &mut WorkReport;
}

/// Notes that a message could not be handled.
pub(crate) fn note_failure(report: &mut WorkReport, sequence_number: u64, detail: impl Into<String>) {
    report.failed = report.failed.saturating_add(1);
    if report.failures.len() < FAILURES_MAX {
        report.failures.push(Failed { sequence_number, detail: detail.into() });
    }
}

/// Answers with a line for each step; the last one is marked.
pub(crate) fn answer(work: impl Work, stop: Stop) -> Response {
    let lines = stream::unfold(Some((work, stop)), |state| async {
        let (mut work, mut stop) = state?;
        let stepped = tokio::select! {
            stepped = work.step() => stepped,
            () = stop.requested() => Err(Failure::new(
                axum::http::StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "The broker stops",
                "the work ended here because the broker stops; ask again to go on",
            )),
        };
        let report = work.report();
        let done = match stepped {
            Ok(done) => done,
            Err(failure) => {
                report.problem = Some(failure.into_problem());
                true
            }
        };
        report.done = done;
        let mut line = serde_json::to_vec(report).unwrap_or_default();
        line.push(b'\n');
        let rest = (!done).then_some((work, stop));
        Some((Ok::<Bytes, std::convert::Infallible>(Bytes::from(line)), rest))
    });
    ([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}
