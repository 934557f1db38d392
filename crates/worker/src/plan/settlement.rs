//! From what a handler says to what the broker is told.
//!
//! Failures come back after a growing wait, and end in the dead-letter queue with the handler's own words; what
//! is no fault of the message goes back to its place without counting.

use std::time::Duration;

use super::backoff::Backoff;
use crate::outcome::{Checkpoint, Outcome};

/// The reason of a message that failed too often.
pub const FAILED: &str = "HandlerFailed";
/// The reason of a message that was put off too often.
pub const RETRIED: &str = "RetriesExhausted";
/// Texts on a message are cut to this.
pub const TEXT_BYTES_MAX: usize = 4 * 1_024;

/// How often and how soon a message is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// After so many failed deliveries the message is dead-lettered; a smaller maximum of the entity comes first.
    pub attempts_max: u32,
    /// How long it waits in between.
    pub backoff: Backoff,
}

impl Default for Retries {
    fn default() -> Self {
        Retries { attempts_max: 10, backoff: Backoff::default() }
    }
}

/// What the broker is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// Remove it.
    Complete,
    /// Count a delivery and bring it again after a while.
    Abandon {
        /// The while.
        delay: Duration,
        /// What went wrong, kept with the message.
        error: Option<String>,
    },
    /// Keep it for whoever asks for its number.
    Defer,
    /// Put it into the dead-letter queue.
    DeadLetter {
        /// Why, in a word.
        reason: String,
        /// Why, in more words.
        description: String,
    },
    /// Put it back to its place without counting a delivery, with this checkpoint if there is one.
    Suspend(Option<Checkpoint>),
    /// Nothing: the handler did it.
    None,
}

/// What a task's end means for counters and for the circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It went well, whatever became of the message.
    Done,
    /// It failed or panicked.
    Failed,
    /// It yielded for another.
    Suspended,
    /// What it needs is down.
    Unavailable,
}

/// Decides the settlement of a message that was delivered `deliveries` times before; `seed` stands for the message.
pub fn settlement(outcome: Outcome, retries: &Retries, deliveries: u32, seed: u64) -> (Settlement, Verdict) {
    let failures = deliveries.saturating_add(1);
    let exhausted = failures >= retries.attempts_max;
    let wait = retries.backoff.wait(failures, seed);
    match outcome {
        Outcome::Complete => (Settlement::Complete, Verdict::Done),
        Outcome::Settled => (Settlement::None, Verdict::Done),
        Outcome::Defer => (Settlement::Defer, Verdict::Done),
        Outcome::DeadLetter { reason, description } => {
            (Settlement::DeadLetter { reason: cut(reason), description: cut(description) }, Verdict::Done)
        }
        Outcome::Retry(_) if exhausted => (dead(RETRIED, format!("put off {failures} times")), Verdict::Done),
        Outcome::Retry(delay) => {
            (Settlement::Abandon { delay: delay.unwrap_or(wait), error: None }, Verdict::Done)
        }
        Outcome::Failed(error) if exhausted => (dead(FAILED, error), Verdict::Failed),
        Outcome::Failed(error) => {
            (Settlement::Abandon { delay: wait, error: Some(cut(error)) }, Verdict::Failed)
        }
        Outcome::Suspend(checkpoint) => (Settlement::Suspend(Some(checkpoint)), Verdict::Suspended),
        Outcome::Unavailable(_) => (Settlement::Suspend(None), Verdict::Unavailable),
    }
}

fn dead(reason: &str, description: String) -> Settlement {
    Settlement::DeadLetter { reason: reason.to_owned(), description: cut(description) }
}

/// The beginning of a text, at most [`TEXT_BYTES_MAX`] long.
fn cut(mut text: String) -> String {
    let mut end = TEXT_BYTES_MAX.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.truncate(end);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(2);

    fn retries() -> Retries {
        let backoff = Backoff { first: WAIT, factor: 1, spread_percent: 0, ..Backoff::default() };
        Retries { attempts_max: 3, backoff }
    }

    #[test]
    fn every_outcome_has_its_settlement() {
        let failed = || Outcome::Failed("no stock".to_owned());
        let abandon =
            |delay, error: Option<&str>| Settlement::Abandon { delay, error: error.map(str::to_owned) };
        let dead = |reason: &str, description: &str| Settlement::DeadLetter {
            reason: reason.to_owned(),
            description: description.to_owned(),
        };
        let checkpoint = Checkpoint(bytes::Bytes::from_static(b"row 5"));
        let second = Duration::from_secs(1);
        let cases = [
            ("done", Outcome::Complete, 0, Settlement::Complete, Verdict::Done),
            ("done by itself", Outcome::Settled, 0, Settlement::None, Verdict::Done),
            ("deferred", Outcome::Defer, 0, Settlement::Defer, Verdict::Done),
            ("first failure", failed(), 0, abandon(WAIT, Some("no stock")), Verdict::Failed),
            ("last but one", failed(), 1, abandon(WAIT, Some("no stock")), Verdict::Failed),
            ("last", failed(), 2, dead(FAILED, "no stock"), Verdict::Failed),
            ("long after", failed(), u32::MAX, dead(FAILED, "no stock"), Verdict::Failed),
            ("put off", Outcome::Retry(None), 0, abandon(WAIT, None), Verdict::Done),
            ("put off for a time", Outcome::Retry(Some(second)), 0, abandon(second, None), Verdict::Done),
            (
                "put off too often",
                Outcome::Retry(Some(second)),
                2,
                dead(RETRIED, "put off 3 times"),
                Verdict::Done,
            ),
            ("refused", Outcome::dead_letter("bad", "why"), 0, dead("bad", "why"), Verdict::Done),
            (
                "yielded, even at the last attempt",
                Outcome::Suspend(checkpoint.clone()),
                2,
                Settlement::Suspend(Some(checkpoint)),
                Verdict::Suspended,
            ),
            (
                "something is down, however often",
                Outcome::Unavailable("db".to_owned()),
                9,
                Settlement::Suspend(None),
                Verdict::Unavailable,
            ),
        ];
        for (case, outcome, deliveries, expected, verdict) in cases {
            assert_eq!(settlement(outcome, &retries(), deliveries, 7), (expected, verdict), "{case}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut("x".repeat(TEXT_BYTES_MAX)).len(), TEXT_BYTES_MAX);
        let umlauts = cut("ü".repeat(TEXT_BYTES_MAX));
        assert_eq!(umlauts.len(), TEXT_BYTES_MAX);
        assert_eq!(cut(format!("x{}", "ü".repeat(TEXT_BYTES_MAX))).len(), TEXT_BYTES_MAX - 1);
    }
}
