//! Short ways for what makes up nearly all traffic: transfer, disposition, flow, and the properties of messages.
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

use bytes::Bytes;

use crate::constructor as code;
use crate::descriptor;
use crate::message::{MessageId, Properties};
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

    /// A string or symbol in its short form, shared with `source`.
    #[inline(always)]
    fn text(&mut self, source: &Bytes) -> Option<Option<Text>> {
        if !self.present()? {
            return Some(None);
        }
        let [code::STRING_8 | code::SYMBOL_8, length, rest @ ..] = self.rest else { return None };
        let (text, rest) = rest.split_at_checked(usize::from(*length))?;
        self.rest = rest;
        is_utf8(text).then(|| Some(Text::from_checked(source.slice_ref(text))))
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

    /// A message id that is a string or a UUID.
    #[inline(always)]
    fn message_id(&mut self, source: &Bytes) -> Option<Option<MessageId>> {
        if let [code::UUID, rest @ ..] = self.rest
            && self.left > 0
        {
            let (uuid, rest) = rest.split_first_chunk::<16>()?;
            self.rest = rest;
            self.left = self.left.saturating_sub(1);
            return Some(Some(MessageId::Uuid(Uuid::from_bytes(*uuid))));
        }
        Some(self.text(source)?.map(MessageId::String))
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

/// The properties whose field list is `bytes`, a part of `source`.
///
/// Symbols are taken for strings in the place of a message id, as the general reader does.
pub(crate) fn properties(bytes: &[u8], source: &Bytes) -> Option<Properties> {
    let (mut fields, behind) = fields(bytes)?;
    let message_id = fields.message_id(source)?;
    fields.nothing()?;
    let to = fields.text(source)?;
    let subject = fields.text(source)?;
    let reply_to = fields.text(source)?;
    let correlation_id = fields.message_id(source)?;
    let content_type = fields.text(source)?;
    let content_encoding = fields.text(source)?;
    let absolute_expiry_time = fields.timestamp()?;
    let creation_time = fields.timestamp()?;
    let group_id = fields.text(source)?;
    let group_sequence = fields.uint()?;
    let reply_to_group_id = fields.text(source)?;
    fields.end()?;
    behind.is_empty().then_some(Properties {
        message_id,
        user_id: None,
        to,
        subject,
        reply_to,
        correlation_id,
        content_type: content_type.map(Symbol::from),
        content_encoding: content_encoding.map(Symbol::from),
        absolute_expiry_time,
        creation_time,
        group_id,
        group_sequence,
        reply_to_group_id,
    })
}
