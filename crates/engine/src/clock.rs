//! A clock that can be set ahead, for tests that do not want to wait.
//!
//! Time is an argument of every step; how far it runs ahead of the wall clock is part of the state, so that it
//! survives a restart and time never goes backwards. It is added by whoever makes the steps. Everything that
//! waits for a time (locks, time to live, schedules, ageing, duplicate windows, idle entities) follows by itself.

use crate::effect::{Effect, Outcome, Reply};
use crate::fact::Fact;
use crate::id::RequestTag;
use crate::refusal::Refusal;
use crate::state::State;
use crate::time::Span;

/// How far ahead the clock may run in all: a century. Beyond it the request is refused.
pub const AHEAD_MAX: Span = Span::days(36_525);

impl State {
    /// How far the clock was set ahead of the wall clock.
    #[must_use]
    pub fn clock_ahead(&self) -> Span {
        self.ahead
    }

    pub(crate) fn decide_advance(
        &self,
        request: RequestTag,
        by: Span,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        let ahead = Span(self.ahead.0.saturating_add(by.0));
        if ahead > AHEAD_MAX {
            return Err(Refusal::ClockTooFar { ahead, limit: AHEAD_MAX });
        }
        outcome.facts.push(Fact::ClockAdvanced { ahead });
        outcome.effects.push(Effect::Reply { request, reply: Reply::Done });
        Ok(())
    }

    pub(crate) fn apply_clock_advanced(&mut self, ahead: Span) -> Option<()> {
        // Never backwards, whatever was written.
        let later = ahead >= self.ahead;
        self.ahead = self.ahead.max(ahead);
        later.then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;
    use crate::payloads::NoPayloads;
    use crate::trial::Trial;

    fn advance(trial: &mut Trial, by: Span) -> Result<(), Refusal> {
        let mut outcome = Outcome::default();
        let command = Command::Advance { request: RequestTag(1), by };
        trial.state.decide(trial.now, &command, &NoPayloads, &mut outcome)?;
        for fact in &outcome.facts {
            trial.state.apply(fact);
        }
        Ok(())
    }

    #[test]
    fn the_clock_is_set_ahead_step_by_step_up_to_its_bound_and_a_snapshot_keeps_it() {
        let mut trial = Trial::new();
        advance(&mut trial, Span::seconds(30)).unwrap();
        advance(&mut trial, Span::seconds(12)).unwrap();
        assert_eq!(trial.state.clock_ahead(), Span::seconds(42));
        let left = Span(AHEAD_MAX.0 - Span::seconds(42).0);
        assert!(matches!(advance(&mut trial, Span(left.0 + 1)), Err(Refusal::ClockTooFar { .. })));
        advance(&mut trial, left).unwrap();
        let mut restored = State::new(trial.state.limits().clone());
        for fact in trial.state.freeze().facts() {
            restored.apply(&fact);
        }
        assert_eq!((restored.clock_ahead(), restored.misfits()), (AHEAD_MAX, 0));
    }
}
