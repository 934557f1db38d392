//! Service Bus rules: SQL filters and actions, correlation filters, and an index over many of them.
//!
//! Rules are parsed once, when they are created, and then evaluated on every message published.
//! Both are bounded: text length, nesting and steps per evaluation have limits, and nothing
//! backtracks. Evaluation is a function of the rule, the message and the ids handed in through the
//! [`Environment`]; it reads no clock and draws no random number.

mod action;
mod changes;
mod convert;
pub mod correlation;
mod decimal;
mod environment;
mod equality;
mod error;
mod filter;
pub mod fuzzing;
mod guid;
mod index;
mod message;
pub mod name;
mod number;
mod sql;
mod system;
mod time;
mod value;

pub use action::{Action, STATEMENTS_MAX};
pub use changes::{Change, Changed, Changes};
pub use correlation::Correlation;
pub use decimal::Decimal;
pub use environment::{Environment, STEPS_MAX};
pub use error::FilterError;
pub use filter::Filter;
pub use index::{Match, RuleIndex, SHAPES_MAX};
pub use message::{Lookup, MapMessage, Message};
pub use sql::{DEPTH_MAX, PARAMETERS_MAX, Parameters, ParseError, Sql, TEXT_CHARACTERS_MAX};
pub use system::SystemProperty;
pub use value::{Value, ValueRef};
