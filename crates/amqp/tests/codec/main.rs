//! The codec from outside: round trips, a second codec's opinion, malformed input, and recorded corpora.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise; its helpers are tests too"
)]

mod corpus;
mod differential;
mod malformed;
mod messages;
mod performatives;
mod strategy;
mod values;
mod wide;
