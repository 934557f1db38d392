//! All definitions as one file: exported, and applied.

mod apply;
mod export;
mod namespace;

pub(super) use apply::{apply, understood};
pub(super) use export::export;
