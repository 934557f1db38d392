//! A command per message: the body on its standard input, facts in its environment, its exit code the outcome.
//!
//! The command leads a process group of its own. When the task is set aside the whole group is stopped
//! (`SIGSTOP`) and continued later; when the task is dropped the group is killed. Nothing a message contains is
//! ever part of the command line. In a pool that serves sessions it finds the session's state in a file.

use std::ffi::OsString;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use vorrang_client::Received;

use super::child::{Group, Leash, head, tail};
use super::state::{self, State};
use super::{COMPLAINT_BYTES_MAX, Facts, RESULT_BYTES_MAX};
use crate::context::Context;
use crate::handler::Handler;
use crate::outcome::Outcome;

/// How long a command may go on after it was asked to end.
const GRACE: Duration = Duration::from_secs(5);

/// What exit codes mean; the defaults are those of `sysexits`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exits {
    /// Done.
    pub complete: Vec<i32>,
    /// Try again later: `EX_TEMPFAIL`.
    pub retry: Vec<i32>,
    /// Never try again: `EX_DATAERR`.
    pub dead_letter: Vec<i32>,
    /// Something it needs is down: `EX_UNAVAILABLE`.
    pub unavailable: Vec<i32>,
}

impl Default for Exits {
    fn default() -> Self {
        Exits { complete: vec![0], retry: vec![75], dead_letter: vec![65], unavailable: vec![69] }
    }
}

/// Runs a command for each message.
#[derive(Debug, Clone)]
pub struct CommandHandler {
    program: OsString,
    arguments: Vec<OsString>,
    exits: Exits,
    /// Whether what it writes to its standard output answers the message.
    reply: bool,
}

impl CommandHandler {
    /// Runs `program` with `arguments`.
    pub fn new(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> CommandHandler {
        let arguments = arguments.into_iter().collect();
        CommandHandler { program: program.into(), arguments, exits: Exits::default(), reply: false }
    }

    /// Changes what exit codes mean.
    #[must_use]
    pub fn exits(mut self, exits: Exits) -> CommandHandler {
        self.exits = exits;
        self
    }

    /// Sends what the command writes to its standard output to whoever the message asks to answer.
    #[must_use]
    pub fn reply(mut self, reply: bool) -> CommandHandler {
        self.reply = reply;
        self
    }
}

impl Handler for CommandHandler {
    async fn handle(&self, context: Context, message: Received) -> Outcome {
        self.run(&context, &message).await.unwrap_or_else(|outcome| outcome)
    }
}

impl CommandHandler {
    /// What becomes of the message; an error is that, too, told early.
    async fn run(&self, context: &Context, message: &Received) -> Result<Outcome, Outcome> {
        let facts = Facts::of(context, message);
        let state = State::read(context).await?;
        let state_file = state.file().await?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(facts.variables());
        command.envs(state_file.as_ref().map(|file| (state::VARIABLE, file.path())));
        // The command is missing or the machine is full: no fault of the message.
        let missing =
            |error| Outcome::Unavailable(format!("cannot start {}: {error}", self.program.display()));
        let (mut child, group) = Group::spawn(&mut command).map_err(missing)?;
        let leash = Leash::new(&group, context.gate());
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A command that does not read its input closes it; that is its right.
                let _ = stdin.write_all(&facts.body).await;
            }
        };
        let said = async {
            match stdout {
                Some(stdout) => head(stdout, RESULT_BYTES_MAX).await,
                None => Vec::new(),
            }
        };
        let complained = async {
            match stderr {
                Some(stderr) => tail(stderr, COMPLAINT_BYTES_MAX).await,
                None => Vec::new(),
            }
        };
        let ended = async {
            let mut ended = tokio::select! {
                status = child.wait() => Some(status),
                () = context.cancelled() => None,
            };
            if ended.is_none() {
                leash.group.signal(Signal::TERM);
                ended = tokio::time::timeout(GRACE, child.wait()).await.ok();
            }
            // What the command left behind would keep its streams open, and us waiting.
            leash.group.signal(Signal::KILL);
            match ended {
                Some(status) => status,
                None => child.wait().await,
            }
        };
        let (status, (), said, complained) = tokio::join!(ended, feed, said, complained);
        leash.release();
        let status =
            status.map_err(|error| Outcome::Failed(format!("cannot wait for the command: {error}")))?;
        let outcome = self.exits.outcome(status, &String::from_utf8_lossy(&complained));
        if outcome != Outcome::Complete {
            return Ok(outcome);
        }
        if let Some(file) = state_file {
            state.store(file.left().await.map_err(Outcome::Failed)?).await?;
        }
        if self.reply
            && message.reply_to().is_some()
            && let Err(error) = context.reply(said).await
        {
            return Err(Outcome::Failed(format!("cannot reply: {error}")));
        }
        Ok(outcome)
    }
}

impl Exits {
    fn outcome(&self, status: ExitStatus, complaint: &str) -> Outcome {
        let complaint = complaint.trim();
        let explained =
            |what: String| if complaint.is_empty() { what } else { format!("{what}: {complaint}") };
        let Some(code) = status.code() else {
            return Outcome::Failed(explained(format!("ended by {status}")));
        };
        if self.complete.contains(&code) {
            Outcome::Complete
        } else if self.retry.contains(&code) {
            Outcome::Retry(None)
        } else if self.dead_letter.contains(&code) {
            Outcome::dead_letter(format!("exit code {code}"), complaint)
        } else if self.unavailable.contains(&code) {
            Outcome::Unavailable(explained(format!("exit code {code}")))
        } else {
            Outcome::Failed(explained(format!("exit code {code}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn the_exit_code_decides() {
        let exits = Exits::default();
        let exited = |code: i32| exits.outcome(ExitStatus::from_raw(code << 8), " disk full \n");
        let failed = |text: &str| Outcome::Failed(text.to_owned());
        let cases = [
            (0, Outcome::Complete),
            (75, Outcome::Retry(None)),
            (65, Outcome::dead_letter("exit code 65", "disk full")),
            (69, Outcome::Unavailable("exit code 69: disk full".to_owned())),
            (1, failed("exit code 1: disk full")),
            (76, failed("exit code 76: disk full")),
        ];
        for (code, outcome) in cases {
            assert_eq!(exited(code), outcome, "{code}");
        }
        let killed = exits.outcome(ExitStatus::from_raw(9), "");
        assert!(matches!(&killed, Outcome::Failed(text) if text.contains("signal: 9")), "{killed:?}");
        let mine = Exits { complete: vec![0, 3], ..Exits::default() };
        assert_eq!(mine.outcome(ExitStatus::from_raw(3 << 8), ""), Outcome::Complete);
    }
}
