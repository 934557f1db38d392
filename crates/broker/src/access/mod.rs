//! Who may do what: shared access tokens, key rings, claims, and the one door.
//!
//! Every operation, whichever protocol brought it, passes [`authorise`]. A peer's permissions are
//! the [`Principal`] of its connection: a set of grants, each for a [`Scope`], with an end. Tokens are
//! read once into a typed [`Token`], checked against the [`KeyRing`], and become a grant; nothing
//! later looks at their text again.

pub mod action;
pub mod door;
pub mod keys;
mod percent;
pub mod principal;
pub mod scope;
pub mod token;

pub use action::{Action, Need};
pub use door::{Denied, authorise};
pub use keys::{KeyNumber, KeyRing, Rejected};
pub use principal::{Grant, Principal};
pub use scope::Scope;
pub use token::Token;
