//! What a peer can do wrong, what it costs, and the word for it on the wire.

use crate::error::DecodeError;
use crate::performative::Error;

/// How much is closed when a rule is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The link is detached; its session lives on.
    Link,
    /// The session is ended; the connection lives on.
    Session,
    /// The connection is closed.
    Connection,
}

/// A broken rule of the protocol, or a limit that was run into.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The bytes do not begin with a protocol header we serve.
    #[error("protocol header is not one we serve")]
    ProtocolHeader,
    /// The SASL exchange was refused or out of order.
    #[error("sasl exchange failed: {0}")]
    Sasl(&'static str),
    /// The handshake took too long.
    #[error("connection was not open after {limit_ms} ms")]
    HandshakeTimeout {
        /// The time allowed.
        limit_ms: u64,
    },
    /// The peer was silent for too long.
    #[error("connection was inactive for more than the allowed {limit_ms} milliseconds")]
    Silent {
        /// The idle time-out we announced.
        limit_ms: u64,
    },
    /// A frame is broken, or what it carries cannot be read.
    #[error("{0}")]
    Frame(#[from] DecodeError),
    /// A frame that has no place in the present state.
    #[error("{frame} is not allowed {state}")]
    OutOfPlace {
        /// The performative.
        frame: &'static str,
        /// The state, in words.
        state: &'static str,
    },
    /// A frame on a channel without a session.
    #[error("channel {channel} has no session")]
    UnknownChannel {
        /// The peer's channel.
        channel: u16,
    },
    /// A begin on a channel whose session still lives, or an answer to a begin we did not send.
    #[error("channel {channel} cannot begin a session")]
    ChannelInUse {
        /// The peer's channel.
        channel: u16,
    },
    /// A channel above the announced maximum.
    #[error("channel {channel} exceeds the maximum of {limit}")]
    ChannelTooHigh {
        /// The peer's channel.
        channel: u16,
        /// The highest allowed.
        limit: u16,
    },
    /// A handle above the announced maximum.
    #[error("handle {handle} exceeds the maximum of {limit}")]
    HandleTooHigh {
        /// The peer's handle.
        handle: u32,
        /// The highest allowed.
        limit: u32,
    },
    /// A link name beyond the limit.
    #[error("link name of {length} bytes exceeds the limit of {limit}")]
    LinkNameTooLong {
        /// Its length.
        length: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// Too many sessions.
    #[error("more than {limit} sessions on one connection")]
    TooManySessions {
        /// The most allowed.
        limit: u32,
    },
    /// Too many links.
    #[error("more than {limit} links on one connection")]
    TooManyLinks {
        /// The most allowed.
        limit: u32,
    },
    /// Sessions and links were opened faster than allowed.
    #[error("sessions and links are opened too fast: more than {burst} at once and {per_second} per second")]
    Churn {
        /// What is allowed at once.
        burst: u32,
        /// What is allowed per second.
        per_second: u32,
    },
    /// A transfer frame beyond the session window.
    #[error("transfer exceeds the session window")]
    WindowExceeded,
    /// A frame for a handle without a link.
    #[error("handle {handle} is not attached")]
    UnattachedHandle {
        /// The peer's handle.
        handle: u32,
    },
    /// An attach with a handle that is in use.
    #[error("handle {handle} is in use")]
    HandleInUse {
        /// The peer's handle.
        handle: u32,
    },
    /// A delivery id that does not follow those before it.
    #[error("delivery id {delivery} does not follow the ids before it")]
    DeliveryOrder {
        /// The id.
        delivery: u32,
    },
    /// A delivery without an id, or frames of two deliveries mixed on one link.
    #[error("transfer does not belong to a delivery: {0}")]
    DeliveryMixed(&'static str),
    /// A delivery too far beyond link credit.
    #[error("more deliveries than link credit and a tolerance of {tolerance} allow")]
    CreditExceeded {
        /// Deliveries tolerated beyond credit.
        tolerance: u32,
    },
    /// Too many unsettled deliveries.
    #[error("more than {limit} unsettled deliveries")]
    UnsettledExceeded {
        /// The most allowed.
        limit: u32,
    },
    /// Unfinished messages take too much memory.
    #[error("unfinished messages exceed {limit} bytes")]
    AssemblyExceeded {
        /// The most allowed.
        limit: u64,
    },
    /// A transfer on a link where the peer is the receiver.
    #[error("transfer on a link whose receiver wrote it")]
    WrongDirection,
    /// The peer attached a link of the same name and role again.
    #[error("link was attached again under the same name")]
    Stolen,
    /// An attach that needs authentication.
    #[error("unauthorized access: a token must be put to $cbs before this address can be attached")]
    Unauthorized,
}

impl Violation {
    /// How much is closed.
    pub fn scope(&self) -> Scope {
        match self {
            Self::ProtocolHeader
            | Self::Sasl(_)
            | Self::HandshakeTimeout { .. }
            | Self::Silent { .. }
            | Self::Frame(_)
            | Self::OutOfPlace { .. }
            | Self::UnknownChannel { .. }
            | Self::ChannelInUse { .. }
            | Self::ChannelTooHigh { .. }
            | Self::HandleTooHigh { .. }
            | Self::LinkNameTooLong { .. }
            | Self::TooManySessions { .. }
            | Self::TooManyLinks { .. }
            | Self::Churn { .. } => Scope::Connection,
            Self::WindowExceeded
            | Self::UnattachedHandle { .. }
            | Self::HandleInUse { .. }
            | Self::DeliveryOrder { .. } => Scope::Session,
            Self::DeliveryMixed(_)
            | Self::CreditExceeded { .. }
            | Self::UnsettledExceeded { .. }
            | Self::AssemblyExceeded { .. }
            | Self::WrongDirection
            | Self::Stolen
            | Self::Unauthorized => Scope::Link,
        }
    }

    /// The condition on the wire.
    pub fn condition(&self) -> &'static str {
        match self {
            Self::ProtocolHeader
            | Self::Sasl(_)
            | Self::UnknownChannel { .. }
            | Self::ChannelInUse { .. }
            | Self::ChannelTooHigh { .. }
            | Self::HandleTooHigh { .. } => "amqp:connection:framing-error",
            Self::Frame(problem) => frame_condition(problem),
            Self::HandshakeTimeout { .. } | Self::Silent { .. } => "amqp:connection:forced",
            Self::OutOfPlace { .. } => "amqp:illegal-state",
            Self::LinkNameTooLong { .. } | Self::DeliveryOrder { .. } | Self::DeliveryMixed(_) => {
                "amqp:invalid-field"
            }
            Self::TooManySessions { .. }
            | Self::TooManyLinks { .. }
            | Self::Churn { .. }
            | Self::AssemblyExceeded { .. } => "amqp:resource-limit-exceeded",
            Self::WindowExceeded => "amqp:session:window-violation",
            Self::UnattachedHandle { .. } => "amqp:session:unattached-handle",
            Self::HandleInUse { .. } => "amqp:session:handle-in-use",
            Self::CreditExceeded { .. } | Self::UnsettledExceeded { .. } => {
                "amqp:link:transfer-limit-exceeded"
            }
            Self::WrongDirection => "amqp:not-allowed",
            Self::Stolen => "amqp:link:stolen",
            Self::Unauthorized => "amqp:unauthorized-access",
        }
    }

    /// The error to put into a detach, end or close.
    pub(super) fn to_error(&self) -> Error {
        Error::new(self.condition(), self.to_string())
    }
}

/// Damage to the frame itself is a framing error; a body that cannot be read is a decode error.
fn frame_condition(problem: &DecodeError) -> &'static str {
    match problem {
        DecodeError::FrameTooLarge { .. }
        | DecodeError::FrameTooSmall { .. }
        | DecodeError::DataOffset { .. }
        | DecodeError::FrameType { .. } => "amqp:connection:framing-error",
        _ => "amqp:decode-error",
    }
}
