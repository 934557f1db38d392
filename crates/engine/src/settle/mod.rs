//! The end of a delivery: completed, given back, put aside or dead-lettered, by its receiver or by time.

mod apply;
mod outcome;
mod plan;
#[cfg(test)]
mod tests;
