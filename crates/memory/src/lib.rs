//! What safe code has no words for: what the allocator keeps, and what the processor's cache should have.
//!
//! The one crate with `unsafe` in it, which is forbidden everywhere else.

mod cache;
mod heap;

pub use cache::fetch;
pub use heap::{give_back, keep_little};
