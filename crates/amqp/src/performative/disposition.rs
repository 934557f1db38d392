//! `disposition`: the state of a range of deliveries (AMQP 1.0 2.7.6).

use crate::decode::{Composite, FieldReader, Reader};
use crate::descriptor::{self, Descriptor};
use crate::encode::{FieldWriter, Output};
use crate::error::DecodeError;
use crate::performative::{DeliveryState, Role};

/// The state and settlement of the deliveries `first` to `last`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disposition {
    /// The role its sender plays on the links concerned.
    pub role: Role,
    /// The first delivery id of the range.
    pub first: u32,
    /// The last delivery id of the range; null means `first`. Never walk the range: clamp it to what is unsettled.
    pub last: Option<u32>,
    /// Whether the sender has forgotten the deliveries.
    pub settled: bool,
    /// Their state; null settles without saying how.
    pub state: Option<DeliveryState>,
    /// Whether the sender can wait for an answer.
    pub batchable: bool,
}

impl Composite for Disposition {
    const DESCRIPTOR: Descriptor = descriptor::DISPOSITION;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self {
            role: fields.required("role", Role::decode)?,
            first: fields.required("first", Reader::uint)?,
            last: fields.optional("last", Reader::uint)?,
            settled: fields.flag("settled")?,
            state: fields.optional("state", DeliveryState::decode)?,
            batchable: fields.flag("batchable")?,
        })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.role);
        fields.field(&self.first);
        fields.field(&self.last);
        fields.flag(self.settled);
        fields.field(&self.state);
        fields.flag(self.batchable);
    }
}
