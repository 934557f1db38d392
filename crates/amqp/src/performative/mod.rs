//! The composites that frames carry: nine performatives, five SASL frames, and the types inside them.
//!
//! Fields are named as in AMQP 1.0 part 2, 3.4, 3.5, 4.5 and 5.3. An `Option` is a field that may be null and whose
//! absence means something; a field with a default is plain and holds the default when the peer left it out. On
//! the way out a flag at its default is written as null, every other field is written, and no list is shortened.

mod attach;
mod begin;
mod close;
mod delivery_state;
mod delivery_tag;
mod detach;
mod disposition;
mod end;
mod error;
mod flow;
mod open;
mod sasl;
mod settle_mode;
mod symbols;
mod terminus;
mod transaction;
mod transfer;

pub use attach::Attach;
pub use begin::Begin;
pub use close::Close;
pub use delivery_state::{DeliveryState, Modified, Outcome};
pub use delivery_tag::{DELIVERY_TAG_BYTES_MAX, DeliveryTag};
pub use detach::Detach;
pub use disposition::Disposition;
pub use end::End;
pub use error::Error;
pub use flow::{Flow, LinkFlow};
pub use open::Open;
pub use sasl::{SaslChallenge, SaslCode, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse};
pub use settle_mode::{ReceiverSettleMode, Role, SenderSettleMode};
pub use symbols::Symbols;
pub use terminus::{Coordinator, Source, Target, TargetNode};
pub use transaction::{CoordinatorRequest, Declare, Discharge, TransactionId};
pub use transfer::{MESSAGE_FORMAT_BATCH, MESSAGE_FORMAT_PLAIN, Transfer};
