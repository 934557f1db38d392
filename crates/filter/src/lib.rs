//! Service Bus rules: SQL filters and actions, correlation filters, and an index over many of them.
//!
//! Rules are parsed once, when they are created, and then evaluated on every message published.
//! Both are bounded: text length, nesting and steps per evaluation have limits, and nothing
//! backtracks. Evaluation is a function of the rule, the message and the ids handed in through the
//! [`Environment`]; it reads no clock and draws no random number.

#![allow(dead_code, reason = "arithmetic and ordering are used by the SQL evaluator, which joins next")]

pub mod correlation;
mod decimal;
mod environment;
mod equality;
mod error;
mod filter;
mod guid;
mod message;
pub mod name;
mod number;
mod system;
mod time;
mod value;

pub use correlation::Correlation;
pub use decimal::Decimal;
pub use environment::{Environment, STEPS_MAX};
pub use error::FilterError;
pub use filter::Filter;
pub use message::{Lookup, MapMessage, Message};
pub use system::SystemProperty;
pub use value::{Value, ValueRef};
