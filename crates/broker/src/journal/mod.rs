//! Facts as bytes, for ever.
//!
//! Every fact that outlives a restart has a number, its *kind*, and its fields in a fixed order, little
//! endian. A kind never changes its meaning: a fact that changes its shape gets a new kind, and the
//! old one stays readable. Reading is total: whatever the bytes, the answer is a fact or an error.
//!
//! [`field`] has the trait and the plain types, [`values`] and [`catalogue`] what facts are made of,
//! [`facts`] the table of kinds, [`record`] how facts lie in the log, [`stream`] how they lie in a
//! snapshot.

mod catalogue;
pub mod facts;
mod field;
pub mod fuzzing;
pub mod image;
pub mod record;
pub mod stream;
mod values;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use field::Error;
