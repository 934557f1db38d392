//! The two ends of a link: source, target, and the coordinator of transactions (AMQP 1.0 3.5.3, 3.5.4, 4.5.1).

use crate::decode::{Composite, FieldReader, Reader};
use crate::descriptor::{self, Descriptor};
use crate::encode::{Encode, FieldWriter, Output};
use crate::error::DecodeError;
use crate::performative::Symbols;
use crate::text::{Symbol, Text};
use crate::value::{Map, Value};

/// Where messages come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// The node's address, as the peer wrote it.
    pub address: Option<Text>,
    /// What of the terminus survives: 0 nothing, 1 its configuration, 2 its unsettled state too.
    pub durable: Option<u32>,
    /// When the terminus may be forgotten.
    pub expiry_policy: Option<Symbol>,
    /// Seconds the terminus stays after that.
    pub timeout: Option<u32>,
    /// Whether the peer shall create the node.
    pub dynamic: bool,
    /// Properties of the node to create.
    pub dynamic_node_properties: Option<Map>,
    /// `move` or `copy`.
    pub distribution_mode: Option<Symbol>,
    /// What to select; keys name the filters, values may be described or plain.
    pub filter: Option<Map>,
    /// The outcome of unsettled deliveries when the link ends. Carried for the echo, never interpreted.
    pub default_outcome: Option<Value>,
    /// Outcomes that may be used.
    pub outcomes: Option<Symbols>,
    /// Extensions.
    pub capabilities: Option<Symbols>,
}

/// Where messages go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Target {
    /// The node's address, as the peer wrote it.
    pub address: Option<Text>,
    /// What of the terminus survives: 0 nothing, 1 its configuration, 2 its unsettled state too.
    pub durable: Option<u32>,
    /// When the terminus may be forgotten.
    pub expiry_policy: Option<Symbol>,
    /// Seconds the terminus stays after that.
    pub timeout: Option<u32>,
    /// Whether the peer shall create the node.
    pub dynamic: bool,
    /// Properties of the node to create.
    pub dynamic_node_properties: Option<Map>,
    /// Extensions.
    pub capabilities: Option<Symbols>,
}

/// The transaction coordinator as a target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coordinator {
    /// Kinds of transactions.
    pub capabilities: Option<Symbols>,
}

/// What an attach may name as its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetNode {
    /// A node that takes messages.
    Node(Target),
    /// The coordinator, which takes `declare` and `discharge`.
    Coordinator(Coordinator),
}

impl Source {
    /// The source at an address.
    pub fn at(address: impl Into<Text>) -> Self {
        Self { address: Some(address.into()), ..Self::default() }
    }
}

impl Target {
    /// The target at an address.
    pub fn at(address: impl Into<Text>) -> Self {
        Self { address: Some(address.into()), ..Self::default() }
    }
}

impl Composite for Source {
    const DESCRIPTOR: Descriptor = descriptor::SOURCE;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self {
            address: fields.optional("address", Reader::text)?,
            durable: fields.optional("durable", Reader::uint)?,
            expiry_policy: fields.optional("expiry-policy", Reader::symbol)?,
            timeout: fields.optional("timeout", Reader::uint)?,
            dynamic: fields.flag("dynamic")?,
            dynamic_node_properties: fields.optional("dynamic-node-properties", Reader::map)?,
            distribution_mode: fields.optional("distribution-mode", Reader::symbol)?,
            filter: fields.optional("filter", Reader::map)?,
            default_outcome: fields.optional("default-outcome", Reader::value)?,
            outcomes: fields.optional("outcomes", Symbols::decode)?,
            capabilities: fields.optional("capabilities", Symbols::decode)?,
        })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.address);
        fields.field(&self.durable);
        fields.field(&self.expiry_policy);
        fields.field(&self.timeout);
        fields.flag(self.dynamic);
        fields.field(&self.dynamic_node_properties);
        fields.field(&self.distribution_mode);
        fields.field(&self.filter);
        fields.field(&self.default_outcome);
        fields.field(&self.outcomes);
        fields.field(&self.capabilities);
    }
}

impl Composite for Target {
    const DESCRIPTOR: Descriptor = descriptor::TARGET;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self {
            address: fields.optional("address", Reader::text)?,
            durable: fields.optional("durable", Reader::uint)?,
            expiry_policy: fields.optional("expiry-policy", Reader::symbol)?,
            timeout: fields.optional("timeout", Reader::uint)?,
            dynamic: fields.flag("dynamic")?,
            dynamic_node_properties: fields.optional("dynamic-node-properties", Reader::map)?,
            capabilities: fields.optional("capabilities", Symbols::decode)?,
        })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.address);
        fields.field(&self.durable);
        fields.field(&self.expiry_policy);
        fields.field(&self.timeout);
        fields.flag(self.dynamic);
        fields.field(&self.dynamic_node_properties);
        fields.field(&self.capabilities);
    }
}

impl Composite for Coordinator {
    const DESCRIPTOR: Descriptor = descriptor::COORDINATOR;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self { capabilities: fields.optional("capabilities", Symbols::decode)? })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.capabilities);
    }
}

impl TargetNode {
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        const EXPECTED: &str = "a target or a coordinator";
        let found = reader.descriptor(EXPECTED)?;
        match u8::try_from(found) {
            Ok(code) if code == descriptor::TARGET.code => {
                reader.fields(descriptor::TARGET.name, Target::read).map(Self::Node)
            }
            Ok(code) if code == descriptor::COORDINATOR.code => {
                reader.fields(descriptor::COORDINATOR.name, Coordinator::read).map(Self::Coordinator)
            }
            _ => Err(DecodeError::UnexpectedDescriptor { expected: EXPECTED, found }),
        }
    }
}

impl Encode for TargetNode {
    fn encode<O: Output>(&self, out: &mut O) {
        match self {
            Self::Node(target) => target.encode(out),
            Self::Coordinator(coordinator) => coordinator.encode(out),
        }
    }
}
