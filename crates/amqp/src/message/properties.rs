//! The `properties` section (AMQP 1.0 3.2.4).

use std::borrow::Cow;

use bytes::Bytes;

use crate::constructor as code;
use crate::decode::{Composite, FieldReader, Reader};
use crate::descriptor::{self, Descriptor};
use crate::encode::{Encode, FieldWriter, Output};
use crate::error::DecodeError;
use crate::text::{Symbol, Text};
use crate::uuid::Uuid;
use crate::value::{Timestamp, Value};

/// A message's identity, in the type its sender chose. Answers must repeat both type and value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MessageId {
    /// A number.
    Ulong(u64),
    /// A UUID.
    Uuid(Uuid),
    /// Bytes.
    Binary(Bytes),
    /// Text.
    String(Text),
}

/// Properties of a message that the standard defines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties {
    /// The message's identity.
    pub message_id: Option<MessageId>,
    /// Who created it.
    pub user_id: Option<Bytes>,
    /// The node it is for.
    pub to: Option<Text>,
    /// What it is about.
    pub subject: Option<Text>,
    /// The node answers go to.
    pub reply_to: Option<Text>,
    /// The identity of the message it belongs to.
    pub correlation_id: Option<MessageId>,
    /// The media type of its data.
    pub content_type: Option<Symbol>,
    /// How its data is encoded beyond that.
    pub content_encoding: Option<Symbol>,
    /// When it ceases to matter.
    pub absolute_expiry_time: Option<Timestamp>,
    /// When it was created.
    pub creation_time: Option<Timestamp>,
    /// The group it belongs to; Service Bus calls it session.
    pub group_id: Option<Text>,
    /// Its place in the group.
    pub group_sequence: Option<u32>,
    /// The group answers belong to.
    pub reply_to_group_id: Option<Text>,
}

/// The properties that decide what a broker does with a message, read without the others and, where they lie in the
/// message as they are, without counting on its memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Essentials<'b> {
    /// The message's identity.
    pub message_id: Option<Identity<'b>>,
    /// The group it belongs to.
    pub group_id: Option<Cow<'b, str>>,
    /// When it ceases to matter.
    pub absolute_expiry_time: Option<Timestamp>,
    /// When it was created.
    pub creation_time: Option<Timestamp>,
}

/// A [`MessageId`] whose text lies in the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity<'b> {
    /// A number.
    Ulong(u64),
    /// A UUID.
    Uuid(Uuid),
    /// Bytes.
    Binary(Bytes),
    /// Text.
    String(Cow<'b, str>),
}

impl From<MessageId> for Identity<'_> {
    fn from(id: MessageId) -> Self {
        match id {
            MessageId::Ulong(number) => Self::Ulong(number),
            MessageId::Uuid(uuid) => Self::Uuid(uuid),
            MessageId::Binary(bytes) => Self::Binary(bytes),
            MessageId::String(text) => Self::String(Cow::Owned(text.as_str().to_owned())),
        }
    }
}

impl From<Properties> for Essentials<'_> {
    fn from(properties: Properties) -> Self {
        let Properties { message_id, group_id, absolute_expiry_time, creation_time, .. } = properties;
        Self {
            message_id: message_id.map(Identity::from),
            group_id: group_id.map(|text| Cow::Owned(text.as_str().to_owned())),
            absolute_expiry_time,
            creation_time,
        }
    }
}

impl MessageId {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let constructor = reader.peek()?;
        match reader.value()? {
            Value::Ulong(number) => Ok(Self::Ulong(number)),
            Value::Uuid(uuid) => Ok(Self::Uuid(uuid)),
            Value::Binary(bytes) => Ok(Self::Binary(bytes)),
            Value::String(text) => Ok(Self::String(text)),
            Value::Symbol(symbol) => Ok(Self::String(symbol.into_text())),
            // Numbers of another width or sign come from clients without a ulong of their own.
            other => match other.as_u64() {
                Some(number) => Ok(Self::Ulong(number)),
                None => Err(DecodeError::UnexpectedType { expected: "a message id", code: constructor }),
            },
        }
    }
}

impl Encode for MessageId {
    fn encode<O: Output>(&self, out: &mut O) {
        match self {
            Self::Ulong(number) => number.encode(out),
            Self::Uuid(uuid) => uuid.encode(out),
            Self::Binary(bytes) => bytes.encode(out),
            Self::String(text) => text.encode(out),
        }
    }
}

impl Composite for Properties {
    const DESCRIPTOR: Descriptor = descriptor::PROPERTIES;

    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self {
            message_id: fields.optional("message-id", MessageId::decode)?,
            user_id: fields.optional("user-id", user_id)?,
            to: fields.optional("to", Reader::text)?,
            subject: fields.optional("subject", Reader::text)?,
            reply_to: fields.optional("reply-to", Reader::text)?,
            correlation_id: fields.optional("correlation-id", MessageId::decode)?,
            content_type: fields.optional("content-type", Reader::symbol)?,
            content_encoding: fields.optional("content-encoding", Reader::symbol)?,
            absolute_expiry_time: fields.optional("absolute-expiry-time", Reader::timestamp)?,
            creation_time: fields.optional("creation-time", Reader::timestamp)?,
            group_id: fields.optional("group-id", Reader::text)?,
            group_sequence: fields.optional("group-sequence", Reader::uint)?,
            reply_to_group_id: fields.optional("reply-to-group-id", Reader::text)?,
        })
    }

    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.message_id);
        fields.field(&self.user_id);
        fields.field(&self.to);
        fields.field(&self.subject);
        fields.field(&self.reply_to);
        fields.field(&self.correlation_id);
        fields.field(&self.content_type);
        fields.field(&self.content_encoding);
        fields.field(&self.absolute_expiry_time);
        fields.field(&self.creation_time);
        fields.field(&self.group_id);
        fields.field(&self.group_sequence);
        fields.field(&self.reply_to_group_id);
    }
}

/// A user id; a string in its place is taken for its bytes.
fn user_id(reader: &mut Reader<'_>) -> Result<Bytes, DecodeError> {
    match reader.peek()? {
        code::BINARY_8 | code::BINARY_32 => reader.binary(),
        _ => reader.text().map(Text::into_bytes),
    }
}
