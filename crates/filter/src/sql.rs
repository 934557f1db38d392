//! SQL filters.

mod ast;
mod equalities;
mod error;
mod evaluate;
mod lexer;
mod like;
mod parser;
mod print;

use std::collections::BTreeMap;
use std::fmt;

pub(crate) use ast::{Node, Property};
pub use error::ParseError;
pub(crate) use evaluate::value;
pub use parser::DEPTH_MAX;
pub(crate) use parser::{Dialect, Parser};

use crate::environment::Environment;
use crate::error::FilterError;
use crate::message::Message;
use crate::value::Value;

/// Most characters in the text of a filter or of an action; longer ones are refused.
pub const TEXT_CHARACTERS_MAX: usize = 1024;

/// Most parameters of a filter or an action; more are refused.
pub const PARAMETERS_MAX: usize = 64;

/// Values for the parameters of a text; the names include their `@`.
pub type Parameters = BTreeMap<String, Value>;

/// A parsed SQL filter. Displays as the text it was parsed from.
#[derive(Debug, Clone, PartialEq)]
pub struct Sql {
    text: Box<str>,
    parameters: Parameters,
    root: Node,
}

impl Sql {
    /// Parses a filter. Parameters it uses must have a value; others are kept for whoever asks.
    pub fn parse(text: &str, parameters: Parameters) -> Result<Self, ParseError> {
        check_count(&parameters)?;
        let root = Parser::new(text, Dialect::Filter, &parameters)?.filter()?;
        Ok(Self { text: text.into(), parameters, root })
    }

    /// The text it was parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The values of its parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The filter in one fixed spelling: filters that differ only in white space, letter case of
    /// keywords or needless parentheses have the same.
    pub fn canonical(&self) -> String {
        self.root.to_string()
    }

    /// Whether the condition is true for the message; false and unknown are no match.
    pub fn matches(
        &self,
        message: &dyn Message,
        environment: &mut Environment<'_>,
    ) -> Result<bool, FilterError> {
        environment.begin();
        evaluate::holds(&self.root, message, environment)
    }

    /// Equalities that every message it matches satisfies; see [`equalities`].
    pub(crate) fn equalities(&self) -> Vec<(&Property, &Value)> {
        equalities::of(&self.root)
    }

    /// Whether both parse to the same tree, however they are spelled.
    pub(crate) fn same_tree(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl fmt::Display for Sql {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

pub(crate) fn check_count(parameters: &Parameters) -> Result<(), ParseError> {
    match parameters.len() {
        count if count > PARAMETERS_MAX => {
            Err(ParseError::TooManyParameters { count, limit: PARAMETERS_MAX })
        }
        _ => Ok(()),
    }
}
