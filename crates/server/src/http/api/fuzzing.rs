//! What the fuzzers call; the tests call the same.

use serde::Serialize;
use serde::de::DeserializeOwned;
use vorrang_engine::entity::RuleName;

use super::complaint::Complaints;
use super::failure::Failure;
use super::model::{
    Definitions, NewMessage, Properties, PurgeRequest, ReplayRequest, ReprioritiseRequest, RuleDefinition,
};
use super::translation::outgoing::{self, Amendment};
use super::translation::{filter, properties};
use super::{call, definitions, messages, workbench};

/// Bytes of an answer that says what is wrong, whatever is wrong with how much.
const PROBLEM_BYTES_MAX: usize = 1024 * 1024;

/// Reads bytes as every kind of body the API takes: whatever they are, the answer is something that can be
/// written and read again, or a problem that names its place in bounded words.
pub fn check_body(bytes: &[u8]) {
    if let Some(given) = check::<Properties>(bytes) {
        let mut complaints = Complaints::default();
        let _ = properties::read(&given, None, "", &mut complaints);
        if let Some(rules) = &given.rules {
            let _ = properties::read_rules(rules, "", &mut complaints);
        }
        explained(complaints.finish(()));
    }
    if let Some(given) = check::<RuleDefinition>(bytes) {
        let mut complaints = Complaints::default();
        let read = filter::read_rule(RuleName::first(), &given, "", &mut complaints);
        assert_eq!(read.is_some(), complaints.is_empty(), "what is not read is explained");
        explained(complaints.finish(()));
    }
    if let Some(given) = check::<ReplayRequest>(bytes) {
        let mut complaints = Complaints::default();
        let chosen = workbench::selection::read(&given.select, &mut complaints);
        assert_eq!(chosen.is_some(), complaints.is_empty(), "what is not chosen is explained");
        let _ = Amendment::read(given.edit.as_ref(), &mut complaints);
        explained(complaints.finish(()));
    }
    check::<PurgeRequest>(bytes);
    check::<ReprioritiseRequest>(bytes);
    if let Some(given) = check::<Definitions>(bytes) {
        explained(definitions::understood(&given));
    }
    if let Some(given) = check::<NewMessage>(bytes) {
        let mut complaints = Complaints::default();
        let read = outgoing::read(&given, "", &mut complaints);
        assert_eq!(read.is_some(), complaints.is_empty(), "what is not read is explained");
    }
    explained(messages::read_messages(bytes));
}

fn check<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Option<T> {
    let read: T = explained(call::read(bytes))?;
    written_and_read_again(&read);
    Some(read)
}

fn written_and_read_again<T: DeserializeOwned + Serialize>(value: &T) {
    let written = serde_json::to_vec(value).expect("what was read from JSON can be written");
    assert!(call::read::<T>(&written).is_ok(), "what is written is read again");
}

/// What was read, or nothing; a problem is one of the request, and small.
fn explained<T>(read: Result<T, Failure>) -> Option<T> {
    let problem = match read {
        Ok(read) => return Some(read),
        Err(failure) => failure.into_problem(),
    };
    assert!((400..500).contains(&problem.status), "{problem:?}");
    let fields = problem.errors.iter().map(|error| error.field.len() + error.detail.len());
    assert!(problem.detail.len() + fields.sum::<usize>() <= PROBLEM_BYTES_MAX, "a problem is bounded");
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::corpus;
    use proptest::prelude::*;

    #[test]
    fn the_corpus_holds() {
        for input in corpus("json") {
            check_body(&input);
        }
    }

    #[test]
    fn a_long_name_is_not_repeated_with_every_mistake() {
        let name = "n".repeat(1_000_000);
        let wrong = r#"{"lockDuration":"x","autoDeleteOnIdle":"x","defaultMessageTimeToLive":"x"}"#;
        let body = format!("{{\"queues\":{{\"{name}\":{wrong}}}}}");
        check_body(body.as_bytes());
    }

    proptest! {
        #[test]
        fn bodies_with_holes_and_noise_hold(
            which in any::<proptest::sample::Index>(),
            at in any::<proptest::sample::Index>(),
            cut in 0..32_usize,
            noise in "[{}\\[\\]\",:a-z0-9.-]{0,8}",
        ) {
            let inputs = corpus("json");
            let mut input = inputs[which.index(inputs.len())].clone();
            let at = at.index(input.len());
            let end = at.saturating_add(cut).min(input.len());
            input.splice(at..end, noise.into_bytes());
            check_body(&input);
        }
    }
}
