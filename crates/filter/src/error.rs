//! What can go wrong while a filter or an action is evaluated.
//!
//! The texts end up in the description of dead-lettered messages.

use crate::system::SystemProperty;

/// Why a filter or action could not be evaluated on a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// An operator got operands it is not defined for.
    #[error("operator '{operator}' is not defined for {left} and {right}")]
    Operands {
        /// The operator as written in SQL.
        operator: &'static str,
        /// Type of the left operand.
        left: &'static str,
        /// Type of the right operand.
        right: &'static str,
    },
    /// A sign stood before something that is not a number.
    #[error("sign '{sign}' is not defined for {found}")]
    Sign {
        /// The sign as written in SQL.
        sign: &'static str,
        /// Type of the operand.
        found: &'static str,
    },
    /// A whole or decimal number was divided by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A whole or decimal result is out of range.
    #[error("result of '{operator}' is out of range")]
    Overflow {
        /// The operator as written in SQL.
        operator: &'static str,
    },
    /// An operand of LIKE is not a string.
    #[error("{role} of LIKE must be a string, found {found}")]
    Like {
        /// Which operand.
        role: &'static str,
        /// Its type.
        found: &'static str,
    },
    /// The ESCAPE operand is not a string of one character.
    #[error("ESCAPE needs a string of one character, found {length}")]
    Escape {
        /// How many characters it has.
        length: usize,
    },
    /// A LIKE pattern ends with its escape character, which then escapes nothing.
    #[error("LIKE pattern ends with its escape character")]
    DanglingEscape,
    /// Something used as a condition is not a boolean.
    #[error("condition must be a boolean, found {found}")]
    Condition {
        /// Its type.
        found: &'static str,
    },
    /// The argument of `property()` is not a string.
    #[error("property name must be a string, found {found}")]
    PropertyName {
        /// Its type.
        found: &'static str,
    },
    /// `property()` named a system property that does not exist.
    #[error("no system property is called {name:?}")]
    UnknownSystemProperty {
        /// The start of the name asked for.
        name: String,
    },
    /// An action computed a value that its system property cannot take.
    #[error("sys.{} cannot be set to {found}", property.name())]
    Unsettable {
        /// The property.
        property: SystemProperty,
        /// What was computed: a type, or for the priority the number.
        found: String,
    },
    /// The evaluation took more steps than it may.
    #[error("evaluation exceeds the limit of {limit} steps")]
    Budget {
        /// The limit.
        limit: u32,
    },
}
