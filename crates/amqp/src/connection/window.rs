//! Session windows: how many transfer frames each side may write (AMQP 1.0 2.5.6).
//!
//! Ours is re-opened long before it closes: rhea stops and Python postpones silently at zero. The peer's is obeyed
//! to the frame: rhea's shrinks with every delivery it has not settled. What we tell is written with the next
//! output and counts from then on, so a peer that goes beyond what it can have heard is found out.

use super::serial::Serial;

/// The windows of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Windows {
    next_incoming: Serial,
    incoming: u32,
    incoming_max: u32,
    initial_outgoing: Serial,
    next_outgoing: Serial,
    outgoing: u32,
}

impl Windows {
    /// Windows before the peer's begin: we may write nothing.
    pub(super) fn new(initial_outgoing: Serial, incoming_max: u32) -> Self {
        Self {
            next_incoming: Serial::default(),
            incoming: incoming_max,
            incoming_max,
            initial_outgoing,
            next_outgoing: initial_outgoing,
            outgoing: 0,
        }
    }

    /// Takes the peer's begin.
    pub(super) fn on_begin(&mut self, next_outgoing_id: u32, incoming_window: u32) {
        self.next_incoming = Serial::new(next_outgoing_id);
        self.outgoing = incoming_window;
    }

    pub(super) fn next_incoming(&self) -> Serial {
        self.next_incoming
    }

    pub(super) fn incoming(&self) -> u32 {
        self.incoming
    }

    pub(super) fn next_outgoing(&self) -> Serial {
        self.next_outgoing
    }

    /// Transfer frames we may write.
    #[inline]
    pub(super) fn outgoing(&self) -> u32 {
        self.outgoing
    }

    /// Takes a flow of the peer.
    ///
    /// Its next-outgoing-id is believed, not checked: Python's count of its own frames has gaps, and what we tell
    /// it about our window must be measured with its own yardstick.
    pub(super) fn on_flow(
        &mut self,
        next_incoming_id: Option<u32>,
        incoming_window: u32,
        next_outgoing_id: u32,
    ) {
        self.next_incoming = Serial::new(next_outgoing_id);
        let counted_from = next_incoming_id.map_or(self.initial_outgoing, Serial::new);
        let left = i64::from(counted_from.offset_from(self.next_outgoing)) + i64::from(incoming_window);
        self.outgoing = u32::try_from(left.max(0)).unwrap_or(u32::MAX);
    }

    /// Counts a transfer frame of the peer; `false` when our window was closed.
    #[inline]
    pub(super) fn on_transfer(&mut self) -> bool {
        self.next_incoming = self.next_incoming.next();
        match self.incoming.checked_sub(1) {
            Some(left) => {
                self.incoming = left;
                true
            }
            None => false,
        }
    }

    /// Counts a transfer frame of ours; `false` when the peer's window is closed.
    #[inline]
    pub(super) fn take_outgoing(&mut self) -> bool {
        let Some(left) = self.outgoing.checked_sub(1) else { return false };
        self.outgoing = left;
        self.next_outgoing = self.next_outgoing.next();
        true
    }

    /// Whether half of our window is used and the peer should be told of a new one.
    #[inline]
    pub(super) fn wants_reopening(&self) -> bool {
        self.incoming <= self.incoming_max / 2
    }

    /// Opens our window fully; the caller tells the peer.
    pub(super) fn reopen(&mut self) {
        self.incoming = self.incoming_max;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peers_window_counts_from_the_frames_it_has_seen() {
        // (frames sent, flow's next-incoming-id relative to our first id, flow's window, expected)
        let cases = [
            ("nothing in flight", 3, Some(3), 10, 10),
            ("two frames crossed the flow", 3, Some(1), 10, 8),
            ("no id means our first", 3, None, 10, 7),
            ("window behind what is in flight", 5, Some(0), 3, 0),
            ("closed", 2, Some(2), 0, 0),
        ];
        for (case, sent, seen, window, expected) in cases {
            let start = Serial::new(u32::MAX - 1);
            let mut windows = Windows::new(start, 100);
            windows.on_begin(0, 100);
            for _ in 0..sent {
                assert!(windows.take_outgoing());
            }
            windows.on_flow(seen.map(|seen| start.advanced(seen).get()), window, 0);
            assert_eq!(windows.outgoing(), expected, "{case}");
        }
    }

    #[test]
    fn our_window_asks_to_be_reopened_at_half_and_refuses_at_zero() {
        let mut windows = Windows::new(Serial::default(), 10);
        windows.on_begin(7, 0);
        for frame in 1..=10 {
            assert!(windows.on_transfer());
            assert_eq!(windows.wants_reopening(), frame >= 5, "after {frame} frames");
        }
        assert!(!windows.on_transfer());
        windows.reopen();
        assert_eq!((windows.incoming(), windows.next_incoming()), (10, Serial::new(18)));
    }
}
