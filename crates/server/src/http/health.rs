//! Answers for probes: the emulator's shape, and the usual two.
//!
//! The doors open only when the broker has recovered, so whoever gets an answer knows that much. Being
//! ready is more: the shard answers and its log takes commits. A disk without room for more messages does
//! not make a broker unready: receivers must reach it to make room. That is shown as a warning.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::time::timeout;
use vorrang_broker::api::{Answer, Condition, Operation, Question};

use super::Site;
use crate::caller::{Answered, Caller};

/// How long the shard may take to answer a probe. Answers wait for the disk, so this notices a stuck one.
const ANSWER_MAX: Duration = Duration::from_secs(2);

pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new().route("/health", get(emulator)).route("/livez", get(live)).route("/readyz", get(ready))
}

/// `/health`, word for word what test modules written for the emulator look for.
async fn emulator(State(site): State<Arc<Site>>) -> (StatusCode, Json<Health>) {
    let (code, status, message) = match site.broker.stopped() {
        None => (StatusCode::OK, "healthy", "Service is healthy.".to_owned()),
        Some(stopped) => (StatusCode::SERVICE_UNAVAILABLE, "unhealthy", stopped.reason.to_string()),
    };
    (code, Json(Health { status, message }))
}

/// The emulator's members, in its order.
#[derive(Serialize)]
struct Health {
    status: &'static str,
    message: String,
}

/// `/livez`: the process answers.
async fn live() -> &'static str {
    "ok\n"
}

/// `/readyz`: the broker serves. With `?verbose` every check is listed.
async fn ready(State(site): State<Arc<Site>>, RawQuery(query): RawQuery) -> (StatusCode, String) {
    let condition = ask(&site).await;
    let free = site.watch.disk.free_bytes().ok();
    let checks = checks(condition.as_deref(), site.stop.is_requested(), free);
    let verbose = query.is_some_and(|query| query.split('&').any(|part| part.starts_with("verbose")));
    report(&checks, verbose)
}

/// How the shard is doing, or why that cannot be said.
async fn ask(site: &Site) -> Result<Box<Condition>, String> {
    let caller = Caller::operator(&site.broker).map_err(|stopped| stopped.to_string())?;
    match timeout(ANSWER_MAX, caller.ask(Operation::Ask(Question::Condition))).await {
        Ok(Ok(Ok(Answered::Answer(Answer::Condition(condition))))) => Ok(condition),
        Ok(Ok(other)) => Err(format!("the broker gave another answer than asked for: {other:?}")),
        Ok(Err(unanswered)) => Err(unanswered.to_string()),
        Err(_) => Err(format!("the log does not answer within {} s", ANSWER_MAX.as_secs())),
    }
}

/// One thing that was looked at.
#[derive(Debug, PartialEq, Eq)]
struct Check {
    name: &'static str,
    verdict: Verdict,
    text: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    /// Something is wrong, and serving goes on all the same.
    Warned,
    Failed,
}

fn checks(condition: Result<&Condition, &String>, stopping: bool, free: Option<u64>) -> Vec<Check> {
    let check = |name, verdict, text: String| Check { name, verdict, text };
    let serving = if stopping {
        check("serving", Verdict::Failed, "the broker is stopping".to_owned())
    } else {
        check("serving", Verdict::Passed, "ok".to_owned())
    };
    // The doors were opened after recovery, or there would be no answer.
    let recovery = check("recovery", Verdict::Passed, "done".to_owned());
    let log = match condition {
        Ok(condition) => check("log", Verdict::Passed, format!("{} commits", condition.commits)),
        Err(reason) => check("log", Verdict::Failed, reason.clone()),
    };
    let room = match condition.map(|condition| condition.room) {
        Ok(Ok(())) => check("disk", Verdict::Passed, free_text(free)),
        Ok(Err(no_room)) => {
            check("disk", Verdict::Warned, format!("sends are refused: {no_room}; {}", free_text(free)))
        }
        Err(_) => check("disk", Verdict::Warned, format!("unknown; {}", free_text(free))),
    };
    vec![serving, recovery, log, room]
}

fn free_text(free: Option<u64>) -> String {
    free.map_or_else(|| "the free space is unknown".to_owned(), |bytes| format!("{bytes} bytes free"))
}

/// The answer in the shape of the Kubernetes API server, which people and tools know.
fn report(checks: &[Check], verbose: bool) -> (StatusCode, String) {
    let failed = checks.iter().any(|check| check.verdict == Verdict::Failed);
    let status = if failed { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    if !failed && !verbose {
        return (status, "ok\n".to_owned());
    }
    let mut text: String = checks
        .iter()
        .map(|Check { name, verdict, text }| match verdict {
            Verdict::Passed => format!("[+]{name} ok: {text}\n"),
            Verdict::Warned => format!("[!]{name} warning: {text}\n"),
            Verdict::Failed => format!("[-]{name} failed: {text}\n"),
        })
        .collect();
    text.push_str(if failed { "readyz check failed\n" } else { "readyz check passed\n" });
    (status, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vorrang_engine::Timestamp;
    use vorrang_log::{NoRoom, Pressure};

    fn condition(room: Result<(), NoRoom>) -> Condition {
        Condition {
            now: Timestamp(0),
            connections: 1,
            locks: 0,
            held_events: 0,
            ring: Pressure {
                used_segments: 1,
                live_segments: 1,
                resting_segments: 0,
                ring_segments: 9,
                segment_bytes: 1,
                evacuate: None,
                snapshot_wanted: false,
                disk_short: false,
            },
            extents: 0,
            bytes_since_snapshot: 0,
            snapshot_at: Timestamp(0),
            commits: 7,
            room,
        }
    }

    #[test]
    fn a_full_disk_warns_and_a_log_that_does_not_answer_or_a_stop_fails() {
        let full = Err(NoRoom::Ring { used: 2, limit: 1 });
        let silent = "the log does not answer within 2 s".to_owned();
        let cases = [
            ("all well", Ok(condition(Ok(()))), false, 200, "[+]disk ok: 5 bytes free"),
            ("no room", Ok(condition(full)), false, 200, "[!]disk warning: sends are refused"),
            ("stopping", Ok(condition(Ok(()))), true, 503, "[-]serving failed: the broker is stopping"),
            ("silent", Err(silent), false, 503, "[-]log failed: the log does not answer"),
        ];
        for (case, condition, stopping, status, line) in cases {
            let checks = checks(condition.as_ref(), stopping, Some(5));
            let (code, text) = report(&checks, true);
            assert_eq!(code.as_u16(), status, "{case}");
            assert!(text.contains(line), "{case}: {text}");
            let (short_code, short) = report(&checks, false);
            assert_eq!(short_code, code);
            assert_eq!(short == "ok\n", status == 200, "{case}: {short}");
        }
    }
}
