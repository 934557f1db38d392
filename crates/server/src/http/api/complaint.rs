//! Everything wrong with a request, gathered so that it is told at once.

use std::fmt::Display;

use super::failure::Failure;
use super::model::FieldProblem;

/// Mistakes told in one answer; what is beyond is not listed, since fixing these comes first anyway.
const COMPLAINTS_MAX: usize = 100;

/// Characters of a name or a reason that are told. A long name has every mistake within it told by its beginning.
const TOLD_CHARS_MAX: usize = 500;

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Complaints(Vec<FieldProblem>);

impl Complaints {
    /// Notes that something is wrong with a field.
    pub(super) fn add(&mut self, field: impl Into<String>, detail: impl Display) {
        if self.0.len() < COMPLAINTS_MAX {
            let (field, detail) = (shortened(field.into()), shortened(detail.to_string()));
            self.0.push(FieldProblem { field, detail });
        }
    }

    /// The value, or the complaint in its place.
    pub(super) fn check<T, E: Display>(&mut self, field: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(field, error)).ok()
    }

    /// Whether nothing is wrong.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `value` if nothing is wrong.
    pub(super) fn finish<T>(self, value: T) -> Result<T, Failure> {
        if self.0.is_empty() { Ok(value) } else { Err(Failure::invalid(self.0)) }
    }
}

/// What a parser says may quote what it was given, which may be long.
pub(super) fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TOLD_CHARS_MAX) {
        text.truncate(end);
    }
    text
}
