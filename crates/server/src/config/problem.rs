//! What is wrong with a configuration: where it stands, which key, what it was, what it may be.
//!
//! Everything wrong is collected and told at once. A value that may be secret is never part of a problem;
//! other values are shortened and escaped, so that a file cannot forge a line of our output.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Characters of a wrong value that are repeated; enough to recognise it.
const VALUE_CHARS_MAX: usize = 64;

/// Where a value was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nowhere: it is what we chose.
    Default,
    /// A line of a file.
    File {
        /// Which file.
        path: Arc<Path>,
        /// Which line, from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// A flag of the command line.
    Flag(String),
    /// A file that lies where the emulator's container expects it.
    EmulatorMount,
    /// Somewhere in the emulator's file.
    EmulatorFile(Arc<Path>),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File { path, line } => write!(f, "{}:{line}", path.display()),
            Source::Variable(name) => write!(f, "variable {name}"),
            Source::Flag(name) => write!(f, "flag --{name}"),
            Source::EmulatorMount => f.write_str("the emulator's mount path"),
            Source::EmulatorFile(path) => write!(f, "{}", path.display()),
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it stands.
    pub source: Source,
    /// The key, with the way to it: `queue[2].lock_duration`. Empty for a file as a whole.
    pub key: String,
    /// What is wrong with it.
    pub mistake: Mistake,
}

/// What is wrong with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mistake {
    /// Its value is not among those allowed.
    Value {
        /// What was given, safe to show.
        value: String,
        /// What would have been taken.
        allowed: String,
    },
    /// There is no such key.
    Unknown {
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// It has to be there.
    Missing {
        /// What would have been taken.
        allowed: String,
    },
    /// Anything else, in words.
    Other(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.source)?;
        if !self.key.is_empty() {
            write!(f, "{} ", self.key)?;
        }
        match &self.mistake {
            Mistake::Value { value, allowed } => write!(f, "cannot be {value}: allowed is {allowed}"),
            Mistake::Unknown { nearest: Some(nearest) } => {
                write!(f, "is not a key here; did you mean {nearest}?")
            }
            Mistake::Unknown { nearest: None } => {
                f.write_str("is not a key here; `vorrang config schema` lists them")
            }
            Mistake::Missing { allowed } => write!(f, "is missing: allowed is {allowed}"),
            Mistake::Other(text) => f.write_str(text),
        }
    }
}

/// Everything that is wrong, in the order it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Problems(pub Vec<Problem>);

/// A text as it may be shown: quoted, escaped, and cut where it is long.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(VALUE_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// The one of `known` that `text` was probably meant to be: at most two fifths of it are different.
#[must_use]
pub fn nearest<'k>(text: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    let text: Vec<char> = text.to_lowercase().replace('-', "_").chars().take(VALUE_CHARS_MAX).collect();
    let scored = known.into_iter().map(|name| (distance(&text, name), name));
    let (changes, name) = scored.min_by_key(|(changes, _)| *changes)?;
    (changes * 5 <= name.chars().count() * 2).then(|| name.to_owned())
}

/// How many letters must be put in, left out or replaced to make `name` of `text`.
fn distance(text: &[char], name: &str) -> usize {
    let mut row: Vec<usize> = (0..=text.len()).collect();
    for (index, wanted) in name.chars().enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        let mut next = Vec::with_capacity(row.len());
        next.push(left);
        for (above, found) in row.iter().skip(1).zip(text) {
            let replaced = diagonal + usize::from(*found != wanted);
            left = replaced.min(above + 1).min(left + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_is_recognised_and_nonsense_is_not() {
        let known = ["lock_duration", "max_delivery_count", "name"];
        let cases = [
            ("lock_duraton", Some("lock_duration")),
            ("lock-duration", Some("lock_duration")),
            ("LockDuration", Some("lock_duration")),
            ("max_delivery", Some("max_delivery_count")),
            ("maxdeliverycount", Some("max_delivery_count")),
            ("nam", Some("name")),
            ("colour", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(nearest(text, known).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn distances_are_those_of_the_textbook() {
        for (one, other, changes) in [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("a", "a", 0)]
        {
            assert_eq!(distance(&one.chars().collect::<Vec<_>>(), other), changes, "{one} {other}");
        }
    }

    #[test]
    fn shown_values_are_short_and_cannot_forge_a_line() {
        assert_eq!(shown("a\nb"), "\"a\\nb\"");
        assert!(shown(&"x".repeat(1_000)).chars().count() < 70);
    }
}
