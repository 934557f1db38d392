//! Lanes: one queue of ready messages for each level in use.
//!
//! Within a lane the order is by eligible time, then by number. New messages come at the end and the
//! next one leaves at the front, so a lane is a linked list through the records. A message that comes
//! back goes to its own place, which is nearly always the very front; where it is not, it waits in a
//! small ordered map beside the list, and the lane's head is the smaller of the two heads.

#[expect(clippy::module_inception, reason = "one lane, in the module of lanes")]
pub(crate) mod lane;
pub(crate) mod lanes;
pub(crate) mod list;
pub(crate) mod run;

pub(crate) use lane::{Head, Lane};
pub(crate) use lanes::Lanes;
pub(crate) use list::List;
pub(crate) use run::{Gaps, Run};
