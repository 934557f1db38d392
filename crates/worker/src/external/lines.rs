//! A long-lived child per slot that reads one JSON object per line and answers each with one: for messages that
//! are too cheap for a process each.
//!
//! To the child: the facts (`entity`, `level`, `message_id`, …, `properties`, `body` or `body_base64`), and in a pool that
//! serves sessions `session_state` or `session_state_base64`, if there is one.
//! From the child: `{"outcome": "complete" | "retry" | "dead-letter" | "defer" | "unavailable" | "failed",
//! "delay_ms", "reason", "description", "reply", "session_state"}`; everything but the outcome may be left out. What it writes to its
//! standard error goes to ours. A child that ends, or answers nonsense, fails its message and is replaced.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value as Json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use vorrang_client::Received;

use super::child::{Group, Leash};
use super::state::State;
use super::{Facts, RESULT_BYTES_MAX};
use crate::context::Context;
use crate::handler::Handler;
use crate::outcome::Outcome;

/// Feeds messages as lines to children, one child for each message at a time.
#[derive(Debug)]
pub struct LineHandler {
    program: OsString,
    arguments: Vec<OsString>,
    /// Children that wait for a message; at most one per slot was ever started.
    idle: Mutex<Vec<LineChild>>,
}

#[derive(Debug)]
struct LineChild {
    child: Child,
    group: Arc<Group>,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl LineHandler {
    /// Starts `program` with `arguments` for each slot that needs one.
    pub fn new(program: impl Into<OsString>, arguments: impl IntoIterator<Item = OsString>) -> LineHandler {
        LineHandler {
            program: program.into(),
            arguments: arguments.into_iter().collect(),
            idle: Mutex::new(Vec::new()),
        }
    }

    /// An idle child, or a new one.
    fn child(&self) -> std::io::Result<LineChild> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(mut child) = idle
            && matches!(child.child.try_wait(), Ok(None))
        {
            return Ok(child);
        }
        let mut command = Command::new(&self.program);
        let (mut child, group) = Group::spawn(command.args(&self.arguments))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::Error::other("the child has no standard input or output"));
        };
        if let Some(mut stderr) = child.stderr.take() {
            // Ends with the child, whose end closes the stream.
            tokio::spawn(async move { tokio::io::copy(&mut stderr, &mut tokio::io::stderr()).await });
        }
        Ok(LineChild { child, group, stdin, stdout: BufReader::new(stdout) })
    }
}

impl LineChild {
    /// One message in, one answer out.
    async fn exchange(&mut self, told: &Json) -> Result<Json, String> {
        let mut line = told.to_string();
        line.push('\n');
        let gone = |error: std::io::Error| format!("the child is gone: {error}");
        self.stdin.write_all(line.as_bytes()).await.map_err(gone)?;
        self.stdin.flush().await.map_err(gone)?;
        let limit = u64::try_from(RESULT_BYTES_MAX).unwrap_or(u64::MAX);
        let mut answer = Vec::new();
        let count = (&mut self.stdout).take(limit).read_until(b'\n', &mut answer).await.map_err(gone)?;
        if answer.last() != Some(&b'\n') {
            return Err(match count {
                0 => "the child ended without an answer".to_owned(),
                _ => format!("the child's answer is cut off or longer than {RESULT_BYTES_MAX} bytes"),
            });
        }
        serde_json::from_slice(&answer).map_err(|error| format!("the child's answer is not JSON: {error}"))
    }
}

impl Handler for LineHandler {
    async fn handle(&self, context: Context, message: Received) -> Outcome {
        self.run(&context, &message).await.unwrap_or_else(|outcome| outcome)
    }
}

impl LineHandler {
    /// What becomes of the message; an error is that, too, told early.
    async fn run(&self, context: &Context, message: &Received) -> Result<Outcome, Outcome> {
        let state = State::read(context).await?;
        let mut told = Facts::of(context, message).json();
        state.tell(&mut told);
        let missing =
            |error| Outcome::Unavailable(format!("cannot start {}: {error}", self.program.display()));
        let mut child = self.child().map_err(missing)?;
        // A child that was cut off in the middle of a message is of no more use: it is killed with its group.
        let leash = Leash::new(&child.group, context.gate());
        let answer = tokio::select! {
            answer = child.exchange(&told) => answer,
            () = context.cancelled() => Err("cancelled".to_owned()),
        };
        let answer = answer.map_err(Outcome::Failed)?;
        let outcome = outcome(&answer).map_err(Outcome::Failed)?;
        leash.release();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(child);
        if outcome == Outcome::Complete {
            state.store(state.told(&answer).map_err(Outcome::Failed)?).await?;
        }
        if let (Some(reply), Some(_)) = (answer.get("reply").and_then(Json::as_str), message.reply_to())
            && let Err(error) = context.reply(reply.as_bytes().to_vec()).await
        {
            return Err(Outcome::Failed(format!("cannot reply: {error}")));
        }
        Ok(outcome)
    }
}

/// What an answer means.
fn outcome(answer: &Json) -> Result<Outcome, String> {
    let text = |name: &str| answer.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
    let delay = answer.get("delay_ms").and_then(Json::as_u64).map(Duration::from_millis);
    match answer.get("outcome").and_then(Json::as_str) {
        Some("complete") => Ok(Outcome::Complete),
        Some("retry" | "abandon") => Ok(Outcome::Retry(delay)),
        Some("dead-letter" | "deadletter") => Ok(Outcome::dead_letter(text("reason"), text("description"))),
        Some("defer") => Ok(Outcome::Defer),
        Some("unavailable") => Ok(Outcome::Unavailable(text("reason"))),
        Some("failed") => Ok(Outcome::Failed(text("reason"))),
        Some(other) => Err(format!("the child's outcome '{other}' is unknown")),
        None => Err("the child's answer has no outcome".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_an_outcome_or_a_failure_with_a_reason() {
        let cases = [
            (json!({"outcome": "complete"}), Ok(Outcome::Complete)),
            (json!({"outcome": "retry"}), Ok(Outcome::Retry(None))),
            (
                json!({"outcome": "abandon", "delay_ms": 50}),
                Ok(Outcome::Retry(Some(Duration::from_millis(50)))),
            ),
            (
                json!({"outcome": "dead-letter", "reason": "r", "description": "d"}),
                Ok(Outcome::dead_letter("r", "d")),
            ),
            (json!({"outcome": "unavailable", "reason": "db"}), Ok(Outcome::Unavailable("db".to_owned()))),
            (json!({"outcome": "explode"}), Err("the child's outcome 'explode' is unknown".to_owned())),
            (json!({}), Err("the child's answer has no outcome".to_owned())),
            (json!([1]), Err("the child's answer has no outcome".to_owned())),
        ];
        for (answer, expected) in cases {
            assert_eq!(outcome(&answer), expected, "{answer}");
        }
    }
}
