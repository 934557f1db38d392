//! The states a delivery can be in, and the outcomes that end it (AMQP 1.0 3.4, 4.5).

use crate::decode::Reader;
use crate::descriptor;
use crate::encode::{Encode, Output, put_composite, put_empty_composite};
use crate::error::DecodeError;
use crate::performative::{Error, TransactionId};
use crate::value::Map;

/// The state of a delivery at one end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryState {
    /// Partly received; only used when links resume.
    Received {
        /// The section reached.
        section_number: u32,
        /// The byte reached in it.
        section_offset: u64,
    },
    /// Decided.
    Outcome(Outcome),
    /// A transaction was declared; the answer to [`crate::performative::Declare`].
    Declared {
        /// The transaction's id.
        txn_id: TransactionId,
    },
    /// Part of a transaction, decided by `outcome` if that commits.
    Transactional {
        /// The transaction's id.
        txn_id: TransactionId,
        /// What the transaction will do with the delivery; null on a transfer.
        outcome: Option<Outcome>,
    },
}

/// How a delivery ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Processed.
    Accepted,
    /// Invalid, or refused for good. Without an error it is written as an empty list.
    Rejected {
        /// Why.
        error: Option<Box<Error>>,
    },
    /// Not processed; as if never delivered.
    Released,
    /// Not processed, with changes.
    Modified(Modified),
}

/// What a receiver changed about a delivery it gives back. Flags are kept as sent: null and false are told apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Modified {
    /// Whether this counts as a failed delivery.
    pub delivery_failed: Option<bool>,
    /// Whether it shall not come here again.
    pub undeliverable_here: Option<bool>,
    /// Annotations to merge; on the heap, so that the many outcomes without stay small.
    pub message_annotations: Option<Box<Map>>,
}

impl DeliveryState {
    /// Processed.
    pub const ACCEPTED: Self = Self::Outcome(Outcome::Accepted);
    /// Not processed; as if never delivered.
    pub const RELEASED: Self = Self::Outcome(Outcome::Released);

    /// The outcome, inside a transaction or not.
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Outcome(outcome) => Some(outcome),
            Self::Transactional { outcome, .. } => outcome.as_ref(),
            Self::Received { .. } | Self::Declared { .. } => None,
        }
    }
}

impl Outcome {
    /// Refused with a reason.
    pub fn rejected(error: Error) -> Self {
        Self::Rejected { error: Some(Box::new(error)) }
    }
}

impl From<Outcome> for DeliveryState {
    fn from(outcome: Outcome) -> Self {
        Self::Outcome(outcome)
    }
}

impl DeliveryState {
    const EXPECTED: &str = "a delivery state";

    #[inline]
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let found = reader.descriptor(Self::EXPECTED)?;
        let Ok(code) = u8::try_from(found) else {
            return Err(DecodeError::UnexpectedDescriptor { expected: Self::EXPECTED, found });
        };
        match code {
            _ if code == descriptor::RECEIVED.code => reader.fields(descriptor::RECEIVED.name, |fields| {
                Ok(Self::Received {
                    section_number: fields.required("section-number", Reader::uint)?,
                    section_offset: fields.required("section-offset", Reader::ulong)?,
                })
            }),
            _ if code == descriptor::DECLARED.code => reader.fields(descriptor::DECLARED.name, |fields| {
                Ok(Self::Declared { txn_id: fields.required("txn-id", TransactionId::decode)? })
            }),
            _ if code == descriptor::TRANSACTIONAL_STATE.code => {
                reader.fields(descriptor::TRANSACTIONAL_STATE.name, |fields| {
                    Ok(Self::Transactional {
                        txn_id: fields.required("txn-id", TransactionId::decode)?,
                        outcome: fields.optional("outcome", Outcome::decode)?,
                    })
                })
            }
            _ => Outcome::decode_fields(reader, code).map(Self::Outcome),
        }
    }
}

impl Outcome {
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        const EXPECTED: &str = "an outcome";
        let found = reader.descriptor(EXPECTED)?;
        let code = u8::try_from(found)
            .map_err(|_| DecodeError::UnexpectedDescriptor { expected: EXPECTED, found })?;
        Self::decode_fields(reader, code)
    }

    #[inline]
    fn decode_fields(reader: &mut Reader<'_>, code: u8) -> Result<Self, DecodeError> {
        match code {
            _ if code == descriptor::ACCEPTED.code => {
                reader.fields(descriptor::ACCEPTED.name, |_| Ok(Self::Accepted))
            }
            _ if code == descriptor::REJECTED.code => reader.fields(descriptor::REJECTED.name, |fields| {
                Ok(Self::Rejected { error: fields.optional("error", Error::decode_boxed)? })
            }),
            _ if code == descriptor::RELEASED.code => {
                reader.fields(descriptor::RELEASED.name, |_| Ok(Self::Released))
            }
            _ if code == descriptor::MODIFIED.code => reader.fields(descriptor::MODIFIED.name, |fields| {
                Ok(Self::Modified(Modified {
                    delivery_failed: fields.optional("delivery-failed", Reader::boolean)?,
                    undeliverable_here: fields.optional("undeliverable-here", Reader::boolean)?,
                    message_annotations: fields.optional("message-annotations", Reader::map)?.map(Box::new),
                }))
            }),
            _ => Err(DecodeError::UnexpectedDescriptor { expected: "an outcome", found: code.into() }),
        }
    }
}

impl Encode for DeliveryState {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        match self {
            Self::Outcome(outcome) => outcome.encode(out),
            Self::Received { section_number, section_offset } => {
                put_composite(out, descriptor::RECEIVED, |fields| {
                    fields.field(section_number);
                    fields.field(section_offset);
                });
            }
            Self::Declared { txn_id } => {
                put_composite(out, descriptor::DECLARED, |fields| fields.field(txn_id));
            }
            Self::Transactional { txn_id, outcome } => {
                put_composite(out, descriptor::TRANSACTIONAL_STATE, |fields| {
                    fields.field(txn_id);
                    fields.field(outcome);
                });
            }
        }
    }
}

impl Encode for Outcome {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        match self {
            Self::Accepted => put_empty_composite(out, descriptor::ACCEPTED),
            Self::Released => put_empty_composite(out, descriptor::RELEASED),
            // Clients take any error here for a failure, so a plain echo carries not even a null.
            Self::Rejected { error: None } => put_empty_composite(out, descriptor::REJECTED),
            Self::Rejected { error } => {
                put_composite(out, descriptor::REJECTED, |fields| fields.field(error));
            }
            Self::Modified(modified) => put_composite(out, descriptor::MODIFIED, |fields| {
                fields.field(&modified.delivery_failed);
                fields.field(&modified.undeliverable_here);
                fields.field(&modified.message_annotations);
            }),
        }
    }
}
