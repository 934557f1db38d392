//! Which message is next: the policies and the rescue of the starving.
//!
//! Every policy is one number for each message that does not change while it waits, so nothing is ever
//! sorted again as messages grow older. Only lane heads are compared.

mod choose;
#[cfg(test)]
mod model_tests;
mod ordering;

pub(crate) use choose::{Choice, Dated, choose};
pub(crate) use ordering::{Ordering, Rank};
