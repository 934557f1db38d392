//! Why a text is not a filter or an action.

use crate::error::FilterError;

/// Why a text was refused. Positions count characters from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text is too long.
    #[error("text has {length} characters, the limit is {limit}")]
    TooLong {
        /// How long it is.
        length: usize,
        /// How long it may be.
        limit: usize,
    },
    /// Something else should stand there.
    #[error("expected {expected}, found {found} at position {position}")]
    Expected {
        /// What should stand there.
        expected: &'static str,
        /// What does.
        found: String,
        /// Where.
        position: usize,
    },
    /// Parentheses, signs and NOTs are nested too deeply.
    #[error("nesting at position {position} exceeds the limit of {limit} levels")]
    TooDeep {
        /// Where the limit was passed.
        position: usize,
        /// The limit.
        limit: usize,
    },
    /// A number has no representation.
    #[error("number at position {position} is out of range")]
    NumberOutOfRange {
        /// Where it stands.
        position: usize,
    },
    /// There is no such property under `sys.`.
    #[error("no system property is called {name:?} at position {position}")]
    UnknownSystemProperty {
        /// The name asked for.
        name: String,
        /// Where it stands.
        position: usize,
    },
    /// An action may not change that property.
    #[error("sys.{name} at position {position} cannot be changed")]
    NotSettable {
        /// The property's name.
        name: &'static str,
        /// Where it stands.
        position: usize,
    },
    /// No value was given for a parameter.
    #[error("parameter {name} at position {position} has no value")]
    UnboundParameter {
        /// The parameter's name with its `@`.
        name: String,
        /// Where it stands.
        position: usize,
    },
    /// The constant pattern or escape of a LIKE is unusable.
    #[error("{error} at position {position}")]
    Like {
        /// What is wrong with it.
        error: FilterError,
        /// Where the pattern starts.
        position: usize,
    },
    /// More parameters than a filter can have.
    #[error("filter has {count} parameters, the limit is {limit}")]
    TooManyParameters {
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// More statements than an action can have.
    #[error("action has more than {limit} statements")]
    TooManyStatements {
        /// How many there may be.
        limit: usize,
    },
}
