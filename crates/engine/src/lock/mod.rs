//! Peek-lock: which message is locked under which token, and until when.
//!
//! A lock belongs to one delivery. It ends by settlement or by expiry; whichever comes first wins, and
//! the other is refused. Both are decided here, by one owner, so that replay decides them the same way.

pub(crate) mod renew;
pub(crate) mod table;
pub(crate) mod token;

pub(crate) use table::{Lock, LockTable};
