//! What decides. No clock, no socket, no task: time is an argument, and what is to be done is returned.
//!
//! The same traces therefore run on a virtual clock in a test and on the real one in a worker.

pub mod autoscale;
pub mod backoff;
pub mod breaker;
pub mod hours;
pub mod looking;
pub mod renewal;
pub mod settlement;
pub mod share;
pub mod size;
pub mod slots;
