//! Which calls met which outcomes: a simulator that never reaches a refusal proves nothing about it.

use crate::history::{Call, Outcome};
use std::collections::BTreeMap;
use std::fmt;

/// How often each kind of call had each kind of outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    cells: BTreeMap<(String, String), u64>,
}

/// The first word of a value's debug form: the name of its variant.
fn name(value: &impl fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

impl Coverage {
    /// Counts a call and what came of it; none if it was not answered.
    pub fn count(&mut self, call: &Call, outcome: Option<&Outcome>) {
        let call = match call {
            Call::Settle { how, transaction: None, .. } => format!("{how:?}"),
            Call::Settle { .. } => "SettleInTransaction".to_owned(),
            Call::Send { transaction: Some(_), .. } => "SendInTransaction".to_owned(),
            Call::ReceiveDeferred { removes: Some(_), .. } => "RemoveDeferred".to_owned(),
            Call::Discharge { rollback: true, .. } => "Rollback".to_owned(),
            other => name(other),
        };
        let outcome = match outcome {
            None => "unanswered".to_owned(),
            Some(Outcome::Refused(why)) => why.clone(),
            Some(_) => "done".to_owned(),
        };
        self.note(call, outcome);
    }

    /// Counts something else that happened.
    pub fn event(&mut self, what: &str) {
        self.note("world".to_owned(), what.to_owned());
    }

    fn note(&mut self, what: String, how: String) {
        *self.cells.entry((what, how)).or_default() += 1;
    }

    /// How often that happened.
    #[must_use]
    pub fn of(&self, what: &str, how: &str) -> u64 {
        self.cells.get(&(what.to_owned(), how.to_owned())).copied().unwrap_or_default()
    }

    /// Adds what another run reached.
    pub fn add(&mut self, other: &Coverage) {
        for (cell, count) in &other.cells {
            *self.cells.entry(cell.clone()).or_default() += count;
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for ((what, how), count) in &self.cells {
            if before != what {
                write!(f, "{}  {what}:", if before.is_empty() { "" } else { "\n" })?;
                before = what;
            }
            write!(f, " {how} {count}")?;
        }
        Ok(())
    }
}
