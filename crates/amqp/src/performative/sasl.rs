//! The frames of the SASL layer (AMQP 1.0 5.3.3).

use std::fmt;

use bytes::Bytes;

use crate::decode::{Composite, FieldReader, Reader};
use crate::descriptor::{self, Descriptor};
use crate::encode::{Encode, FieldWriter, Output};
use crate::error::DecodeError;
use crate::performative::Symbols;
use crate::text::{Symbol, Text};

/// The mechanisms a server offers; always written as an array.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SaslMechanisms {
    /// Their names.
    pub sasl_server_mechanisms: Symbols,
}

/// A client's choice, maybe with its first message.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SaslInit {
    /// The mechanism's name.
    pub mechanism: Symbol,
    /// Its first message; a secret with `PLAIN`.
    pub initial_response: Option<Bytes>,
    /// The host the client wants to reach.
    pub hostname: Option<Text>,
}

/// A question of the server.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SaslChallenge {
    /// Mechanism bytes.
    pub challenge: Bytes,
}

/// An answer of the client.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SaslResponse {
    /// Mechanism bytes; may be a secret.
    pub response: Bytes,
}

/// How the exchange ended.
#[derive(Clone, PartialEq, Eq)]
pub struct SaslOutcome {
    /// The result.
    pub code: SaslCode,
    /// Mechanism bytes.
    pub additional_data: Option<Bytes>,
}

/// The result of a SASL exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaslCode {
    /// Authenticated.
    Ok,
    /// Credentials refused.
    Auth,
    /// The system failed.
    Sys,
    /// The system failed and will fail again.
    SysPerm,
    /// The system failed and may work later.
    SysTemp,
}

impl SaslCode {
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.ubyte()? {
            0 => Ok(Self::Ok),
            1 => Ok(Self::Auth),
            2 => Ok(Self::Sys),
            3 => Ok(Self::SysPerm),
            4 => Ok(Self::SysTemp),
            _ => Err(DecodeError::OutOfRange { expected: "a sasl code" }),
        }
    }
}

impl Encode for SaslCode {
    fn encode<O: Output>(&self, out: &mut O) {
        let code: u8 = match self {
            Self::Ok => 0,
            Self::Auth => 1,
            Self::Sys => 2,
            Self::SysPerm => 3,
            Self::SysTemp => 4,
        };
        code.encode(out);
    }
}

impl fmt::Debug for SaslInit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SaslInit")
            .field("mechanism", &self.mechanism)
            .field("initial_response", &self.initial_response.as_ref().map(|_| "***"))
            .field("hostname", &self.hostname)
            .finish()
    }
}

impl fmt::Debug for SaslChallenge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SaslChallenge(***)")
    }
}

impl fmt::Debug for SaslResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SaslResponse(***)")
    }
}

impl fmt::Debug for SaslOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SaslOutcome").field("code", &self.code).finish_non_exhaustive()
    }
}

impl Composite for SaslMechanisms {
    const DESCRIPTOR: Descriptor = descriptor::SASL_MECHANISMS;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self { sasl_server_mechanisms: fields.required("sasl-server-mechanisms", Symbols::decode)? })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.sasl_server_mechanisms);
    }
}

impl Composite for SaslInit {
    const DESCRIPTOR: Descriptor = descriptor::SASL_INIT;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self {
            mechanism: fields.required("mechanism", Reader::symbol)?,
            initial_response: fields.optional("initial-response", Reader::binary)?,
            hostname: fields.optional("hostname", Reader::text)?,
        })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.mechanism);
        fields.field(&self.initial_response);
        fields.field(&self.hostname);
    }
}

impl Composite for SaslChallenge {
    const DESCRIPTOR: Descriptor = descriptor::SASL_CHALLENGE;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self { challenge: fields.required("challenge", Reader::binary)? })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.challenge);
    }
}

impl Composite for SaslResponse {
    const DESCRIPTOR: Descriptor = descriptor::SASL_RESPONSE;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self { response: fields.required("response", Reader::binary)? })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.response);
    }
}

impl Composite for SaslOutcome {
    const DESCRIPTOR: Descriptor = descriptor::SASL_OUTCOME;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self {
            code: fields.required("code", SaslCode::decode)?,
            additional_data: fields.optional("additional-data", Reader::binary)?,
        })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.code);
        fields.field(&self.additional_data);
    }
}
