//! Another state in place of this one: everything is taken away and something that was kept is put there.
//!
//! It is one decision, written whole or not at all: after a crash there is either the old state or the new one.
//! What must never repeat goes on from where it is, whatever is put back: numbers of entities and rules, so that
//! one that a client looked up before is either the same or gone; lock tokens; and time. Sequence numbers do
//! start where the kept state had them.

use crate::effect::{Effect, Outcome, Reply};
use crate::fact::Fact;
use crate::id::RequestTag;
use crate::refusal::Refusal;
use crate::state::{Identity, State};
use crate::time::Timestamp;

impl State {
    pub(crate) fn decide_replace(
        &self,
        now: Timestamp,
        request: RequestTag,
        parts: &[Fact],
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        let seed = self.identity.seed.ok_or(Refusal::NamespaceState)?;
        // What was kept may be damaged: nothing is taken away for something that does not fit together.
        let mut trial = State::new(self.limits.clone());
        for part in parts {
            trial.apply(part);
        }
        if trial.misfits() > 0 {
            return Err(Refusal::PartsDoNotFit { count: trial.misfits() });
        }
        let (next_entity, next_rule) = self.catalogue.next_numbers();
        let (kept_entity, kept_rule) = trial.catalogue.next_numbers();
        outcome.facts.push(Fact::Cleared { at: now });
        outcome.facts.push(Fact::RestoredNamespace {
            seed,
            generation: self.identity.generation,
            tokens: self.identity.made,
            next_entity: next_entity.max(kept_entity),
            next_rule: next_rule.max(kept_rule),
            now,
        });
        let ours =
            |part: &&Fact| !matches!(part, Fact::RestoredNamespace { .. } | Fact::ClockAdvanced { .. });
        outcome.facts.extend(parts.iter().filter(ours).cloned());
        outcome.effects.push(Effect::Reply { request, reply: Reply::Done });
        Ok(())
    }

    pub(crate) fn apply_cleared(&mut self, at: Timestamp) -> Option<()> {
        self.identity.seed?;
        let old = std::mem::take(self);
        *self = State {
            identity: Identity { seed: None, ..old.identity },
            limits: old.limits,
            now: old.now.max(at),
            ahead: old.ahead,
            regions: old.regions.cleared(),
            runs: old.runs.cleared(),
            misfits: old.misfits,
            live: old.live,
            ..State::default()
        };
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Command, Settlement};
    use crate::payloads::NoPayloads;
    use crate::trial::Trial;

    fn replace(trial: &mut Trial, parts: Vec<Fact>) -> Result<(), Refusal> {
        let mut outcome = Outcome::default();
        let command = Command::Replace { request: RequestTag(1), parts };
        trial.state.decide(trial.now, &command, &NoPayloads, &mut outcome)?;
        for fact in &outcome.facts {
            trial.state.apply(fact);
        }
        assert_eq!((trial.state.misfits(), trial.state.audit()), (0, Vec::new()));
        Ok(())
    }

    #[test]
    fn what_was_kept_comes_back_and_what_came_later_is_gone_but_numbers_go_on() {
        let mut trial = Trial::new();
        trial.queue("kept", vec![]);
        trial.attach("kept", 1, 1);
        trial.send("kept", &["a", "b"]).unwrap();
        let held = trial.receive().pop().unwrap();
        let kept: Vec<Fact> = trial.state.freeze().facts().collect();
        trial.settle(&held, Settlement::Complete).unwrap();
        trial.send("kept", &["c"]).unwrap();
        trial.queue("later", vec![]);
        let later = trial.mailbox("later").entity();
        replace(&mut trial, kept).unwrap();
        assert_eq!(trial.state.counts(trial.mailbox("kept")).ready, 1, "the other is locked, as it was");
        assert_eq!(trial.state.lock_count(), 1);
        trial.queue("again", vec![]);
        assert!(trial.mailbox("again").entity() > later, "no number means another entity than before");
    }

    #[test]
    fn nothing_at_all_can_be_put_there_and_regions_become_free() {
        let mut trial = Trial::new();
        trial.queue("q", vec![]);
        trial.send("q", &["a"]).unwrap();
        replace(&mut trial, Vec::new()).unwrap();
        assert_eq!(trial.state.catalogue().len(), 0);
        assert_ne!(trial.state.take_emptied_regions(), []);
        trial.queue("q", vec![]);
        trial.send("q", &["b"]).unwrap();
        assert_eq!(trial.ids("q"), ["b"]);
    }

    #[test]
    fn parts_that_do_not_fit_together_change_nothing() {
        let mut trial = Trial::new();
        trial.queue("q", vec![]);
        trial.send("q", &["a"]).unwrap();
        let mut parts: Vec<Fact> = trial.state.freeze().facts().collect();
        parts.extend(parts.clone());
        assert!(matches!(replace(&mut trial, parts), Err(Refusal::PartsDoNotFit { .. })));
        assert_eq!(trial.ids("q"), ["a"]);
    }
}
