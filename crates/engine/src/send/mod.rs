//! Messages coming in: numbered, given a level, and filed; or refused, all of a send or none.

mod apply;
mod check;
pub(crate) mod draft;
mod plan;
mod replay;
#[cfg(test)]
mod tests;
mod via;

pub(crate) use plan::set_life;
