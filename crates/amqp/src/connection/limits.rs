//! Everything a peer can make us hold or do, and how much of it.
//!
//! There is one [`Limits`] per connection, with separate [`StageLimits`] for the time before and after
//! authentication. What happens at each limit is written beside it; the tests reach every one.

use std::num::NonZeroU32;

use crate::frame::FRAME_BYTES_MIN_MAX;

/// A largest frame size. It has no state "none" and cannot be zero: whatever a peer or a configuration says, the
/// value lies between 512, which AMQP guarantees to every peer, and `u32::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameLimit(NonZeroU32);

impl FrameLimit {
    /// The smallest limit AMQP allows.
    pub const MIN: Self = match NonZeroU32::new(FRAME_BYTES_MIN_MAX) {
        Some(bytes) => Self(bytes),
        None => Self(NonZeroU32::MIN),
    };

    /// A limit of this many bytes; anything below 512 is 512.
    pub const fn new(bytes: u32) -> Self {
        match NonZeroU32::new(bytes) {
            Some(bytes) if bytes.get() > Self::MIN.0.get() => Self(bytes),
            _ => Self::MIN,
        }
    }

    /// The limit in bytes.
    pub const fn bytes(self) -> u32 {
        self.0.get()
    }
}

/// Limits that differ before and after authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageLimits {
    /// The largest frame we read. A larger one closes the connection with `amqp:connection:framing-error`.
    pub frame: FrameLimit,
    /// Sessions on the connection. One more closes the connection with `amqp:resource-limit-exceeded`.
    pub sessions_max: u32,
    /// Links on the connection. One more is refused with `amqp:resource-limit-exceeded`; when as many refused
    /// links again wait for the peer's detach, the connection is closed with the same condition.
    pub links_max: u32,
    /// The largest message. A larger one is read, dropped, and reported by [`crate::connection::Event::TooLarge`].
    pub message_bytes_max: u64,
    /// Bytes of unfinished messages on all links together. A link that goes beyond is detached with
    /// `amqp:resource-limit-exceeded`.
    pub assembly_bytes_max: u64,
    /// Unsettled deliveries per session and direction. A peer's transfer beyond it detaches its link with
    /// `amqp:link:transfer-limit-exceeded`; our own is refused with [`crate::connection::SendError::UnsettledFull`].
    pub unsettled_max: u32,
    /// Begins and attaches over time. When it is used up, the connection is closed with
    /// `amqp:resource-limit-exceeded`.
    pub churn: ChurnLimit,
}

/// A budget that is used up by begins and attaches and refilled by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChurnLimit {
    /// What can be used at once.
    pub burst: u32,
    /// What comes back per second.
    pub per_second: u32,
}

/// All limits of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Until [`crate::connection::Connection::authenticated`] is called.
    pub before_authentication: StageLimits,
    /// From then on. Its frame limit is the one announced in `open`.
    pub authenticated: StageLimits,
    /// The highest channel the peer may use, announced in `open`. A higher one closes the connection with
    /// `amqp:connection:framing-error`.
    pub channel_max: u16,
    /// The highest handle the peer may use, announced in `begin`. A higher one closes the connection with
    /// `amqp:connection:framing-error`.
    pub handle_max: u32,
    /// Transfer frames the peer may write before it hears from us; re-opened when half is used. A frame beyond it
    /// ends the session with `amqp:session:window-violation`.
    pub incoming_window: u32,
    /// Deliveries tolerated beyond link credit. One more detaches the link with
    /// `amqp:link:transfer-limit-exceeded`.
    pub credit_overrun_max: u32,
    /// Frames handled by one call of [`crate::connection::Connection::receive`]; the others stay in the input.
    pub frames_per_receive: u32,
    /// Unsettled deliveries looked at for dispositions in one call of `receive`; then it stops as above.
    pub settlements_per_receive: u32,
    /// Bytes of output not yet taken. At the limit input is left unread and sends are refused, until the peer
    /// reads.
    pub output_bytes_max: usize,
    /// Milliseconds from the start until both sides have opened. Then the connection is finished without a word.
    pub handshake_ms: u64,
    /// Milliseconds we wait for the peer's `close` after ours.
    pub close_ms: u64,
    /// The shortest pause between two of our heartbeats, whatever idle time-out the peer announces.
    pub heartbeat_ms_min: u64,
    /// The longest link name. A longer one closes the connection with `amqp:invalid-field`.
    pub link_name_bytes_max: usize,
}

impl Limits {
    pub(super) fn stage(&self, authenticated: bool) -> &StageLimits {
        if authenticated { &self.authenticated } else { &self.before_authentication }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            before_authentication: StageLimits {
                // A token of a large identity provider takes a few KiB; nothing else is sent before it.
                frame: FrameLimit::new(32 * 1024),
                sessions_max: 16,
                links_max: 32,
                message_bytes_max: 64 * 1024,
                assembly_bytes_max: 64 * 1024,
                unsettled_max: 64,
                churn: ChurnLimit { burst: 128, per_second: 8 },
            },
            authenticated: StageLimits {
                frame: FrameLimit::new(256 * 1024),
                sessions_max: 5000,
                links_max: 5000,
                message_bytes_max: 100 * 1024 * 1024,
                assembly_bytes_max: 256 * 1024 * 1024,
                unsettled_max: 65_536,
                // Go opens a session and two links for every token and two more sessions for every link.
                churn: ChurnLimit { burst: 20_000, per_second: 500 },
            },
            channel_max: 4999,
            handle_max: 4999,
            incoming_window: 5000,
            // Python believes in 10,000 credits of its own until it hears of ours.
            credit_overrun_max: 10_000,
            frames_per_receive: 4096,
            settlements_per_receive: 65_536,
            output_bytes_max: 4 * 1024 * 1024,
            handshake_ms: 10_000,
            close_ms: 5_000,
            heartbeat_ms_min: 100,
            link_name_bytes_max: 1024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_makes_a_frame_limit_of_nothing() {
        for (bytes, expected) in
            [(0, 512), (1, 512), (511, 512), (512, 512), (513, 513), (u32::MAX, u32::MAX)]
        {
            assert_eq!(FrameLimit::new(bytes).bytes(), expected);
            assert_eq!(FrameLimit::new(bytes).min(FrameLimit::new(0)).bytes(), 512);
        }
    }
}
