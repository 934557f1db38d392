//! Short ways for what makes up nearly all traffic: transfer, disposition, flow, and the header and properties of
//! messages.
//!
//! They know only what clients send all the time: plain encodings, no delivery state but accepted and released, no
//! flow properties. At the first surprise they answer `None` and leave it to the general reader, which understands
//! everything and finds the words for what is wrong. Where they answer, they answer the same; a property test and
//! the fuzz targets hold them to it.

#![allow(
    clippy::option_option,
    clippy::inline_always,
    reason = "the outer `None` is a surprise, the inner one a null field, met with `?` at once; \
              inlined, the fields stay in registers and are written once, into the frame"
)]

use std::borrow::Cow;

use bytes::Bytes;

use crate::constructor as code;
use crate::descriptor;
use crate::message::{Essentials, Header, Identity, MessageId, Properties};
use crate::performative::{
    DELIVERY_TAG_BYTES_MAX, DeliveryState, DeliveryTag, Disposition, Flow, LinkFlow, Role, Transfer,
};
use crate::text::{Symbol, Text, is_utf8};
use crate::uuid::Uuid;
use crate::value::Timestamp;

/// A place in a field list.
#[derive(Clone, Copy)]
struct Fields<'b> {
    rest: &'b [u8],
    left: u8,
}

/// The states known here. A byte, where the real one is large: built last, it is written once and moved nowhere.
#[derive(Clone, Copy)]
enum State {
    Accepted,
    Released,
}

/// A message id as it lies in the buffer; text is not checked yet.
#[derive(Clone, Copy)]
enum Id<'b> {
    Text(&'b [u8]),
    Uuid([u8; 16]),
    Number(u64),
}

/// The properties as they lie in the buffer; text is not checked yet. What nobody asks for costs no more than the way
/// past it.
#[derive(Clone, Copy)]
struct PropertyFields<'b> {
    message_id: Option<Id<'b>>,
    to: Option<&'b [u8]>,
    subject: Option<&'b [u8]>,
    reply_to: Option<&'b [u8]>,
    correlation_id: Option<Id<'b>>,
    content_type: Option<&'b [u8]>,
    content_encoding: Option<&'b [u8]>,
    absolute_expiry_time: Option<Timestamp>,
    creation_time: Option<Timestamp>,
    group_id: Option<&'b [u8]>,
    group_sequence: Option<u32>,
    reply_to_group_id: Option<&'b [u8]>,
}

/// The field list behind a descriptor, if it is a short one, and what follows it.
#[inline(always)]
fn fields(bytes: &[u8]) -> Option<(Fields<'_>, &[u8])> {
    match bytes {
        [code::LIST_8, size, rest @ ..] => {
            let (list, behind) = rest.split_at_checked(usize::from(*size))?;
            let (left, rest) = list.split_first()?;
            Some((Fields { rest, left: *left }, behind))
        }
        [code::LIST_32, s0, s1, s2, s3, rest @ ..] => {
            let size = usize::try_from(u32::from_be_bytes([*s0, *s1, *s2, *s3])).ok()?;
            let (list, behind) = rest.split_at_checked(size)?;
            let ([0, 0, 0, left], rest) = list.split_first_chunk::<4>()? else { return None };
            Some((Fields { rest, left: *left }, behind))
        }
        [code::LIST_0, behind @ ..] => Some((Fields { rest: &[], left: 0 }, behind)),
        _ => None,
    }
}

impl<'b> Fields<'b> {
    /// Starts the next field; false if it is null or was left out.
    #[inline(always)]
    fn present(&mut self) -> Option<bool> {
        let Some(left) = self.left.checked_sub(1) else { return Some(false) };
        self.left = left;
        match self.rest {
            [code::NULL, rest @ ..] => {
                self.rest = rest;
                Some(false)
            }
            [] => None,
            _ => Some(true),
        }
    }

    #[inline(always)]
    fn uint(&mut self) -> Option<Option<u32>> {
        if !self.present()? {
            return Some(None);
        }
        let (number, rest) = match self.rest {
            [code::SMALL_UINT, number, rest @ ..] => (u32::from(*number), rest),
            [code::UINT_0, rest @ ..] => (0, rest),
            [code::UINT, b0, b1, b2, b3, rest @ ..] => (u32::from_be_bytes([*b0, *b1, *b2, *b3]), rest),
            _ => return None,
        };
        self.rest = rest;
        Some(Some(number))
    }

    #[inline(always)]
    fn boolean(&mut self) -> Option<Option<bool>> {
        if !self.present()? {
            return Some(None);
        }
        let (value, rest) = match self.rest {
            [code::TRUE, rest @ ..] => (true, rest),
            [code::FALSE, rest @ ..] => (false, rest),
            _ => return None,
        };
        self.rest = rest;
        Some(Some(value))
    }

    #[inline(always)]
    fn flag(&mut self) -> Option<bool> {
        Some(self.boolean()?.unwrap_or(false))
    }

    #[inline(always)]
    fn tag(&mut self) -> Option<Option<&'b [u8]>> {
        if !self.present()? {
            return Some(None);
        }
        let [code::BINARY_8, length, rest @ ..] = self.rest else { return None };
        let (tag, rest) = rest.split_at_checked(usize::from(*length))?;
        self.rest = rest;
        (tag.len() <= DELIVERY_TAG_BYTES_MAX).then_some(Some(tag))
    }

    #[inline(always)]
    fn state(&mut self) -> Option<Option<State>> {
        const ACCEPTED: u8 = descriptor::ACCEPTED.code;
        const RELEASED: u8 = descriptor::RELEASED.code;
        if !self.present()? {
            return Some(None);
        }
        let (state, rest) = match self.rest {
            [code::DESCRIBED, code::SMALL_ULONG, ACCEPTED, code::LIST_0, rest @ ..] => {
                (State::Accepted, rest)
            }
            [code::DESCRIBED, code::SMALL_ULONG, RELEASED, code::LIST_0, rest @ ..] => {
                (State::Released, rest)
            }
            _ => return None,
        };
        self.rest = rest;
        Some(Some(state))
    }

    #[inline(always)]
    fn ubyte(&mut self) -> Option<Option<u8>> {
        if !self.present()? {
            return Some(None);
        }
        let [code::UBYTE, number, rest @ ..] = self.rest else { return None };
        self.rest = rest;
        Some(Some(*number))
    }

    /// A string or symbol in its short form.
    #[inline(always)]
    fn text(&mut self) -> Option<Option<&'b [u8]>> {
        if !self.present()? {
            return Some(None);
        }
        let [code::STRING_8 | code::SYMBOL_8, length, rest @ ..] = self.rest else { return None };
        let (text, rest) = rest.split_at_checked(usize::from(*length))?;
        self.rest = rest;
        Some(Some(text))
    }

    #[inline(always)]
    fn timestamp(&mut self) -> Option<Option<Timestamp>> {
        if !self.present()? {
            return Some(None);
        }
        let [code::TIMESTAMP, rest @ ..] = self.rest else { return None };
        let (ms, rest) = rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some(Some(Timestamp(i64::from_be_bytes(*ms))))
    }

    /// A message id that is a string, a UUID or a ulong. Symbols are taken for strings, as the general reader does.
    #[inline(always)]
    fn message_id(&mut self) -> Option<Option<Id<'b>>> {
        if !self.present()? {
            return Some(None);
        }
        let (id, rest) = match self.rest {
            [code::STRING_8 | code::SYMBOL_8, length, rest @ ..] => {
                let (text, rest) = rest.split_at_checked(usize::from(*length))?;
                (Id::Text(text), rest)
            }
            [code::UUID, rest @ ..] => {
                let (uuid, rest) = rest.split_first_chunk::<16>()?;
                (Id::Uuid(*uuid), rest)
            }
            [code::SMALL_ULONG, number, rest @ ..] => (Id::Number(u64::from(*number)), rest),
            [code::ULONG_0, rest @ ..] => (Id::Number(0), rest),
            [code::ULONG, rest @ ..] => {
                let (number, rest) = rest.split_first_chunk::<8>()?;
                (Id::Number(u64::from_be_bytes(*number)), rest)
            }
            _ => return None,
        };
        self.rest = rest;
        Some(Some(id))
    }

    /// Passes over a field that must be null.
    #[inline(always)]
    fn nothing(&mut self) -> Option<()> {
        (!self.present()?).then_some(())
    }

    /// Whether all that is left are `N` nulls: one comparison for what nearly every frame ends with.
    #[inline(always)]
    fn only_nulls<const N: usize>(&self) -> bool {
        usize::from(self.left) == N && self.rest == [code::NULL; N]
    }

    /// Makes sure that there was nothing but the fields read.
    #[inline(always)]
    fn end(self) -> Option<()> {
        (self.left == 0 && self.rest.is_empty()).then_some(())
    }
}

/// The transfer whose field list starts `bytes`, and what follows it.
#[inline(always)]
pub(crate) fn transfer(bytes: &[u8]) -> Option<(Transfer, &[u8])> {
    let (mut fields, payload) = fields(bytes)?;
    let handle = fields.uint()??;
    let delivery_id = fields.uint()?;
    let delivery_tag = fields.tag()?;
    let message_format = fields.uint()?;
    let settled = fields.boolean()?;
    let more = fields.flag()?;
    let (mut resume, mut aborted, mut batchable) = (false, false, false);
    if !fields.only_nulls::<5>() {
        fields.nothing()?;
        fields.nothing()?;
        resume = fields.flag()?;
        aborted = fields.flag()?;
        batchable = fields.flag()?;
        fields.end()?;
    }
    let delivery_tag = match delivery_tag {
        Some(tag) => Some(DeliveryTag::new(tag).ok()?),
        None => None,
    };
    let transfer = Transfer {
        handle,
        delivery_id,
        delivery_tag,
        message_format,
        settled,
        more,
        rcv_settle_mode: None,
        state: None,
        resume,
        aborted,
        batchable,
    };
    Some((transfer, payload))
}

/// The disposition whose field list is `bytes`.
#[inline(always)]
pub(crate) fn disposition(bytes: &[u8]) -> Option<Disposition> {
    let (mut fields, behind) = fields(bytes)?;
    let role = if fields.boolean()?? { Role::Receiver } else { Role::Sender };
    let first = fields.uint()??;
    let last = fields.uint()?;
    let settled = fields.flag()?;
    let state = fields.state()?;
    let batchable = fields.flag()?;
    fields.end()?;
    if !behind.is_empty() {
        return None;
    }
    let state = match state {
        Some(State::Accepted) => Some(DeliveryState::ACCEPTED),
        Some(State::Released) => Some(DeliveryState::RELEASED),
        None => None,
    };
    Some(Disposition { role, first, last, settled, state, batchable })
}

/// The flow whose field list is `bytes`.
#[inline(always)]
pub(crate) fn flow(bytes: &[u8]) -> Option<Flow> {
    let (mut fields, behind) = fields(bytes)?;
    let next_incoming_id = fields.uint()?;
    let incoming_window = fields.uint()??;
    let next_outgoing_id = fields.uint()??;
    let outgoing_window = fields.uint()??;
    let handle = fields.uint()?;
    let delivery_count = fields.uint()?;
    let link_credit = fields.uint()?;
    let available = fields.uint()?;
    let drain = fields.flag()?;
    let echo = fields.flag()?;
    fields.nothing()?;
    fields.end()?;
    let link = handle.map(|handle| LinkFlow { handle, delivery_count, link_credit, available, drain });
    behind.is_empty().then_some(Flow {
        next_incoming_id,
        incoming_window,
        next_outgoing_id,
        outgoing_window,
        link,
        echo,
        properties: None,
    })
}

/// The header whose field list is `bytes`.
#[inline]
pub(crate) fn header(bytes: &[u8]) -> Option<Header> {
    let (mut fields, behind) = fields(bytes)?;
    let durable = fields.boolean()?;
    let priority = fields.ubyte()?;
    let ttl = fields.uint()?;
    let first_acquirer = fields.boolean()?;
    let delivery_count = fields.uint()?.unwrap_or(0);
    fields.end()?;
    behind.is_empty().then_some(Header { durable, priority, ttl, first_acquirer, delivery_count })
}

#[inline(always)]
fn property_fields(bytes: &[u8]) -> Option<PropertyFields<'_>> {
    let (mut fields, behind) = fields(bytes)?;
    let message_id = fields.message_id()?;
    fields.nothing()?;
    let found = PropertyFields {
        message_id,
        to: fields.text()?,
        subject: fields.text()?,
        reply_to: fields.text()?,
        correlation_id: fields.message_id()?,
        content_type: fields.text()?,
        content_encoding: fields.text()?,
        absolute_expiry_time: fields.timestamp()?,
        creation_time: fields.timestamp()?,
        group_id: fields.text()?,
        group_sequence: fields.uint()?,
        reply_to_group_id: fields.text()?,
    };
    fields.end()?;
    behind.is_empty().then_some(found)
}

/// The properties whose field list is `bytes`, a part of `source`.
pub(crate) fn properties(bytes: &[u8], source: &Bytes) -> Option<Properties> {
    let fields = property_fields(bytes)?;
    Some(Properties {
        message_id: shared_id(fields.message_id, source)?,
        user_id: None,
        to: shared_text(fields.to, source)?,
        subject: shared_text(fields.subject, source)?,
        reply_to: shared_text(fields.reply_to, source)?,
        correlation_id: shared_id(fields.correlation_id, source)?,
        content_type: shared_text(fields.content_type, source)?.map(Symbol::from),
        content_encoding: shared_text(fields.content_encoding, source)?.map(Symbol::from),
        absolute_expiry_time: fields.absolute_expiry_time,
        creation_time: fields.creation_time,
        group_id: shared_text(fields.group_id, source)?,
        group_sequence: fields.group_sequence,
        reply_to_group_id: shared_text(fields.reply_to_group_id, source)?,
    })
}

/// The essentials among the properties whose field list is `bytes`, which were passed over before: the text of the other
/// properties is not looked at again.
#[inline]
pub(crate) fn essentials(bytes: &[u8]) -> Option<Essentials<'_>> {
    let fields = property_fields(bytes)?;
    let message_id = match fields.message_id {
        Some(Id::Text(text)) => Some(Identity::String(Cow::Borrowed(std::str::from_utf8(text).ok()?))),
        Some(Id::Uuid(uuid)) => Some(Identity::Uuid(Uuid::from_bytes(uuid))),
        Some(Id::Number(number)) => Some(Identity::Ulong(number)),
        None => None,
    };
    let group_id = match fields.group_id {
        Some(text) => Some(Cow::Borrowed(std::str::from_utf8(text).ok()?)),
        None => None,
    };
    Some(Essentials {
        message_id,
        group_id,
        absolute_expiry_time: fields.absolute_expiry_time,
        creation_time: fields.creation_time,
    })
}

/// Text of the buffer, shared with `source`; a surprise if it is not UTF-8.
#[inline]
fn shared_text(text: Option<&[u8]>, source: &Bytes) -> Option<Option<Text>> {
    match text {
        Some(text) if is_utf8(text) => Some(Some(Text::from_checked(source.slice_ref(text)))),
        Some(_) => None,
        None => Some(None),
    }
}

#[inline]
fn shared_id(id: Option<Id<'_>>, source: &Bytes) -> Option<Option<MessageId>> {
    Some(match id {
        Some(Id::Text(text)) => shared_text(Some(text), source)?.map(MessageId::String),
        Some(Id::Uuid(uuid)) => Some(MessageId::Uuid(Uuid::from_bytes(uuid))),
        Some(Id::Number(number)) => Some(MessageId::Ulong(number)),
        None => None,
    })
}
