//! What is sent to a coordinator as the body of a message (AMQP 1.0 4.5.2, 4.5.3).

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::decode::{Composite, FieldReader, Reader};
use crate::descriptor::{self, Descriptor};
use crate::encode::{Encode, FieldWriter, Output, put_binary};
use crate::error::DecodeError;
use crate::value::Value;

/// A transaction's id, chosen by the coordinator.
///
/// It outlives the frame it came in, so it has memory of its own and does not hold a read buffer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TransactionId(Arc<[u8]>);

impl TransactionId {
    /// The id's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.binary_slice().map(Self::from)
    }
}

impl From<&[u8]> for TransactionId {
    fn from(id: &[u8]) -> Self {
        Self(Arc::from(id))
    }
}

impl Encode for TransactionId {
    fn encode<O: Output>(&self, out: &mut O) {
        put_binary(out, &self.0);
    }
}

impl fmt::Debug for TransactionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in &*self.0 {
            write!(formatter, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// Asks for a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Declare {
    /// An id of a distributed transaction; nobody uses it.
    pub global_id: Option<Value>,
}

/// Ends a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Discharge {
    /// The transaction's id.
    pub txn_id: TransactionId,
    /// Whether to roll back.
    pub fail: bool,
}

impl Composite for Declare {
    const DESCRIPTOR: Descriptor = descriptor::DECLARE;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self { global_id: fields.optional("global-id", Reader::value)? })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.global_id);
    }
}

impl Composite for Discharge {
    const DESCRIPTOR: Descriptor = descriptor::DISCHARGE;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self { txn_id: fields.required("txn-id", TransactionId::decode)?, fail: fields.flag("fail")? })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.txn_id);
        fields.flag(self.fail);
    }
}

/// What a coordinator can be asked; the `amqp-value` of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CoordinatorRequest {
    /// For a new transaction.
    Declare(Declare),
    /// For the end of one.
    Discharge(Discharge),
}

impl CoordinatorRequest {
    /// Reads the encoded value of a message's body.
    pub fn decode(encoded: &Bytes) -> Result<Self, DecodeError> {
        const EXPECTED: &str = "declare or discharge";
        let mut reader = Reader::new(encoded);
        let found = reader.descriptor(EXPECTED)?;
        let request = match u8::try_from(found) {
            Ok(code) if code == descriptor::DECLARE.code => {
                reader.fields(descriptor::DECLARE.name, Declare::read).map(Self::Declare)
            }
            Ok(code) if code == descriptor::DISCHARGE.code => {
                reader.fields(descriptor::DISCHARGE.name, Discharge::read).map(Self::Discharge)
            }
            _ => Err(DecodeError::UnexpectedDescriptor { expected: EXPECTED, found }),
        }?;
        reader.finish()?;
        Ok(request)
    }
}
