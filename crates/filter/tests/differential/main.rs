//! Filters made at random, evaluated by the crate and by a plain second evaluator that shares
//! nothing with it: its own tree, its own printing with as few parentheses as precedence allows,
//! its own rules. They must agree on match, no match and failure.

mod expression;
mod reference;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use vorrang_filter::{Environment, MapMessage, Parameters, ParseError, Sql, fuzzing};

use expression::{Condition, conditions, message, messages, print};
use reference::Flaw;

/// Whether crate and reference agree; none where the text is refused for a limit or its LIKE.
fn agree(condition: &Condition, message: &MapMessage, flaw: Option<Flaw>) -> Option<bool> {
    let text = print(condition);
    let filter = match Sql::parse(&text, Parameters::new()) {
        Ok(filter) => filter,
        Err(ParseError::TooLong { .. } | ParseError::TooDeep { .. } | ParseError::Like { .. }) => {
            return None;
        }
        Err(error) => unreachable!("{text}: {error}"),
    };
    let mut new_id = || 0;
    let outcome = filter.matches(message, &mut Environment::new(&mut new_id));
    Some(outcome.ok() == reference::holds(condition, message, flaw).ok())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]
    #[test]
    fn the_evaluator_agrees_with_a_plain_one(condition in conditions(), message in messages()) {
        prop_assert_ne!(agree(&condition, &message, None), Some(false), "{}", print(&condition));
    }

    #[test]
    fn what_is_printed_parses_to_the_same_filter(condition in conditions()) {
        fuzzing::check_sql(print(&condition).as_bytes());
    }
}

#[test]
fn flaws_planted_in_one_evaluator_are_noticed() {
    for flaw in [
        Flaw::NotUnknownIsTrue,
        Flaw::UnknownIsFalse,
        Flaw::DivisionRoundsDown,
        Flaw::UnderscoreMatchesNothing,
    ] {
        let config = ProptestConfig { cases: 6000, failure_persistence: None, ..ProptestConfig::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let outcome = runner.run(&(conditions(), messages()), |(condition, message)| {
            prop_assert_ne!(agree(&condition, &message, Some(flaw)), Some(false));
            Ok(())
        });
        assert!(outcome.is_err(), "{flaw:?} went unnoticed");
    }
}

#[test]
fn most_random_filters_are_accepted_and_every_outcome_occurs() {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let (mut matches, mut misses, mut failures, mut refused) = (0, 0, 0, 0);
    for _ in 0..2000 {
        let condition = conditions().new_tree(&mut runner).expect("the strategy yields").current();
        if agree(&condition, &message(), None).is_none() {
            refused += 1;
        }
        match reference::holds(&condition, &message(), None) {
            Ok(true) => matches += 1,
            Ok(false) => misses += 1,
            Err(_) => failures += 1,
        }
    }
    assert!(matches > 300 && misses > 300 && failures > 100, "{matches} {misses} {failures}");
    assert!(refused < 200, "{refused} of 2000 were refused");
}
