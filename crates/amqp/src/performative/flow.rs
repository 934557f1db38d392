//! `flow`: session windows, and with a handle, link credit (AMQP 1.0 2.7.4).

use crate::decode::{Composite, FieldReader, Reader};
use crate::descriptor::{self, Descriptor};
use crate::encode::{FieldWriter, Output};
use crate::error::DecodeError;
use crate::value::Map;

/// The state of a session's windows and, if `link` is there, of one link's credit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flow {
    /// The transfer id the sender expects next; null until it has seen the peer's begin.
    pub next_incoming_id: Option<u32>,
    /// Transfer frames the sender can take.
    pub incoming_window: u32,
    /// The id of the next transfer frame the sender will write.
    pub next_outgoing_id: u32,
    /// Transfer frames the sender may write.
    pub outgoing_window: u32,
    /// The link this flow is about; without it, the flow is about the session only.
    pub link: Option<LinkFlow>,
    /// Whether the sender wants a flow in return.
    pub echo: bool,
    /// Flow properties; travel with or without a link.
    pub properties: Option<Map>,
}

/// One link's part of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkFlow {
    /// The sender's handle for the link.
    pub handle: u32,
    /// Deliveries on the link so far, as the sender of this frame knows; a receiver that saw no attach sends null.
    pub delivery_count: Option<u32>,
    /// Deliveries that may follow `delivery_count`.
    pub link_credit: Option<u32>,
    /// Messages waiting at the sending end.
    pub available: Option<u32>,
    /// Whether the sending end shall use or give up its credit now.
    pub drain: bool,
}

impl Composite for Flow {
    const DESCRIPTOR: Descriptor = descriptor::FLOW;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        let next_incoming_id = fields.optional("next-incoming-id", Reader::uint)?;
        let incoming_window = fields.required("incoming-window", Reader::uint)?;
        let next_outgoing_id = fields.required("next-outgoing-id", Reader::uint)?;
        let outgoing_window = fields.required("outgoing-window", Reader::uint)?;
        let handle = fields.optional("handle", Reader::uint)?;
        let delivery_count = fields.optional("delivery-count", Reader::uint)?;
        let link_credit = fields.optional("link-credit", Reader::uint)?;
        let available = fields.optional("available", Reader::uint)?;
        let drain = fields.flag("drain")?;
        let echo = fields.flag("echo")?;
        let properties = fields.optional("properties", Reader::map)?;
        // Without a handle the link fields mean nothing (AMQP 1.0 2.7.4).
        let link = handle.map(|handle| LinkFlow { handle, delivery_count, link_credit, available, drain });
        Ok(Self {
            next_incoming_id,
            incoming_window,
            next_outgoing_id,
            outgoing_window,
            link,
            echo,
            properties,
        })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.next_incoming_id);
        fields.field(&self.incoming_window);
        fields.field(&self.next_outgoing_id);
        fields.field(&self.outgoing_window);
        match &self.link {
            Some(link) => {
                fields.field(&link.handle);
                fields.field(&link.delivery_count);
                fields.field(&link.link_credit);
                fields.field(&link.available);
                fields.flag(link.drain);
            }
            None => {
                for _ in 0..5 {
                    fields.field(&None::<bool>);
                }
            }
        }
        fields.flag(self.echo);
        fields.field(&self.properties);
    }
}
