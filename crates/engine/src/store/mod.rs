//! Where messages are kept in memory: fixed-size records in pages, found by handle or by number.
//!
//! A ready message with nothing unusual costs a 48-byte record and about four bytes of index. Pages
//! are shared with a snapshot until one side writes, so taking a snapshot copies page *pointers* only.

pub(crate) mod extras;
pub(crate) mod record;
pub(crate) mod regions;
pub(crate) mod runs;
pub(crate) mod sequence_index;
pub(crate) mod slab;

pub(crate) use extras::Extra;
pub(crate) use record::{Place, Record};
pub(crate) use regions::Regions;
pub(crate) use runs::Runs;
pub(crate) use sequence_index::SequenceIndex;
pub(crate) use slab::{Handle, Slab};
