//! Link credit: how many deliveries a receiver allows its sender (AMQP 1.0 2.6.7).
//!
//! Credit is always told as "this many, counted from that delivery-count", so that flows and transfers may cross
//! on the wire without harm. The sum of both, the *limit*, never depends on what is in flight.

use super::serial::Serial;

/// Credit of a link on which we send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SendCredit {
    initial: Serial,
    delivery_count: Serial,
    available: u32,
    drain: bool,
}

impl SendCredit {
    /// No credit yet; deliveries are counted from `initial`.
    pub(super) fn new(initial: Serial) -> Self {
        Self { initial, delivery_count: initial, available: 0, drain: false }
    }

    /// Deliveries that may be started now.
    #[inline]
    pub(super) fn available(&self) -> u32 {
        self.available
    }

    /// Deliveries started so far, as a wrapping count.
    pub(super) fn delivery_count(&self) -> Serial {
        self.delivery_count
    }

    /// Whether the receiver asked us to use its credit up at once and has no answer yet.
    pub(super) fn drain(&self) -> bool {
        self.drain
    }

    /// Takes what a flow of the receiver says.
    ///
    /// A receiver that does not name a count has seen nothing yet and means the initial one. A limit behind what
    /// we have sent already is no credit, not a debt.
    pub(super) fn on_flow(&mut self, counted_from: Option<Serial>, credit: u32, drain: bool) {
        let counted_from = counted_from.unwrap_or(self.initial);
        let left = i64::from(counted_from.offset_from(self.delivery_count)) + i64::from(credit);
        self.available = u32::try_from(left.max(0)).unwrap_or(u32::MAX);
        self.drain = drain;
    }

    /// Takes one credit for a delivery; `false` when there is none.
    #[inline]
    pub(super) fn take(&mut self) -> bool {
        let Some(left) = self.available.checked_sub(1) else { return false };
        self.available = left;
        self.delivery_count = self.delivery_count.next();
        true
    }

    /// Answers a drain: gives all credit that is left back, as if it had been used.
    ///
    /// Returns `false`, and does nothing, if the receiver has taken its drain back by a later flow.
    pub(super) fn drained(&mut self) -> bool {
        if !self.drain {
            return false;
        }
        self.drain = false;
        self.delivery_count = self.delivery_count.advanced(self.available);
        self.available = 0;
        true
    }
}

/// Credit of a link on which we receive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReceiveCredit {
    delivery_count: Serial,
    granted: u32,
    beyond: u32,
    /// Whether we ask the sender to use the credit up.
    draining: bool,
    /// The farthest limit we have ever told. An answer to a drain may be on its way while we grant anew, so what
    /// the sender's count is believed up to is not the latest limit.
    limit_max: Serial,
}

impl ReceiveCredit {
    /// No credit granted yet; the sender counts from `initial`.
    pub(super) fn new(initial: Serial) -> Self {
        Self { delivery_count: initial, granted: 0, beyond: 0, draining: false, limit_max: initial }
    }

    /// Deliveries the sender may still start.
    pub(super) fn granted(&self) -> u32 {
        self.granted
    }

    /// Deliveries started so far, as a wrapping count.
    pub(super) fn delivery_count(&self) -> Serial {
        self.delivery_count
    }

    /// Whether we asked the sender to use the credit up.
    pub(super) fn draining(&self) -> bool {
        self.draining
    }

    /// Allows the sender `credit` deliveries from now on, whatever was allowed before.
    pub(super) fn grant(&mut self, credit: u32, drain: bool) {
        self.granted = credit;
        self.beyond = 0;
        self.draining = drain;
        let limit = self.delivery_count.advanced(credit);
        if limit.is_after(self.limit_max) {
            self.limit_max = limit;
        }
    }

    /// Counts a delivery. Returns `false` when the sender went further beyond its credit than `tolerance`.
    ///
    /// Python starts with a credit of its own making and sends before it heard of ours; that is why there is a
    /// tolerance at all.
    #[inline]
    pub(super) fn on_delivery(&mut self, tolerance: u32) -> bool {
        self.delivery_count = self.delivery_count.next();
        if let Some(left) = self.granted.checked_sub(1) {
            self.granted = left;
            return true;
        }
        self.beyond = self.beyond.saturating_add(1);
        self.beyond <= tolerance
    }

    /// Takes the sender's answer to a drain: it advanced its count over the credit it did not use.
    ///
    /// Other flows of a sender are ignored: Python writes a made-up credit into them. Returns whether this flow
    /// ended the drain we ask for.
    pub(super) fn on_flow(&mut self, delivery_count: Option<Serial>, drain: bool) -> bool {
        let Some(advanced) = delivery_count else { return false };
        let believable = !advanced.is_after(self.limit_max) && !self.delivery_count.is_after(advanced);
        if !believable || !(drain || self.draining) {
            return false;
        }
        self.granted = self.granted.saturating_sub(advanced.since(self.delivery_count));
        self.delivery_count = advanced;
        self.granted == 0 && std::mem::take(&mut self.draining)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn credit_counts_from_the_delivery_count_in_the_flow() {
        // (sent before, flow counts from, flow credit, expected)
        let cases = [
            ("fresh link", 0, Some(0), 5, 5),
            ("no count means the initial one", 3, None, 5, 2),
            ("three transfers crossed the flow", 3, Some(0), 5, 2),
            ("a repeated flow gives nothing extra", 5, Some(0), 5, 0),
            ("a limit behind us is no debt", 5, Some(0), 2, 0),
            ("zero stops at once", 2, Some(2), 0, 0),
            ("all there is", 0, Some(0), u32::MAX, u32::MAX),
        ];
        for (case, sent, counted_from, credit, expected) in cases {
            let start = Serial::new(u32::MAX - 1);
            let mut link = SendCredit::new(start);
            link.on_flow(None, sent, false);
            for _ in 0..sent {
                assert!(link.take(), "{case}");
            }
            link.on_flow(counted_from.map(|count| start.advanced(count)), credit, false);
            assert_eq!(link.available(), expected, "{case}");
        }
    }

    #[test]
    fn draining_uses_the_rest_of_the_credit_up() {
        let mut link = SendCredit::new(Serial::new(0));
        link.on_flow(None, 10, true);
        assert!(link.take() && link.take() && link.take());
        assert!(link.drained());
        assert_eq!((link.available(), link.delivery_count()), (0, Serial::new(10)));
        assert!(!link.take());
        assert!(!link.drained(), "a drain is answered once");
        link.on_flow(Some(Serial::new(10)), 0, true);
        assert!(link.drained(), "a drain without credit is answered too");
        assert_eq!(link.delivery_count(), Serial::new(10), "and advances nothing");
        link.on_flow(Some(Serial::new(10)), 5, true);
        link.on_flow(Some(Serial::new(10)), 5, false);
        assert!(!link.drained(), "a later flow took the drain back");
        assert_eq!(link.available(), 5);
    }

    #[test]
    fn a_sender_may_go_beyond_its_credit_as_far_as_tolerated() {
        let mut link = ReceiveCredit::new(Serial::new(0));
        link.grant(1, false);
        assert!(link.on_delivery(2), "within credit");
        assert!(link.on_delivery(2) && link.on_delivery(2), "tolerated");
        assert!(!link.on_delivery(2), "beyond");
        link.grant(1, false);
        assert!(link.on_delivery(0), "a new grant starts over");
    }

    #[test]
    fn only_an_asked_for_drain_moves_the_receivers_count() {
        let mut link = ReceiveCredit::new(Serial::new(0));
        link.grant(10, false);
        assert!(!link.on_flow(Some(Serial::new(10)), false));
        assert_eq!((link.granted(), link.delivery_count()), (10, Serial::new(0)));
        link.grant(10, true);
        assert!(!link.on_flow(Some(Serial::new(11)), true), "an answer beyond the credit is not believed");
        assert!(!link.on_flow(Some(Serial::new(0)), true), "a flow that crossed the drain does not end it");
        assert!(link.on_flow(Some(Serial::new(10)), true));
        assert_eq!((link.granted(), link.draining()), (0, false));
    }

    #[test]
    fn the_answer_to_a_drain_counts_even_if_credit_was_granted_meanwhile() {
        let mut link = ReceiveCredit::new(Serial::new(0));
        link.grant(3, true);
        link.grant(5, false);
        assert!(!link.on_flow(Some(Serial::new(3)), true), "nobody waits for it any more");
        assert_eq!((link.granted(), link.delivery_count()), (2, Serial::new(3)));
    }

    /// The reference: unbounded counters, no wrapping, the limit spelled out.
    struct Reference {
        sent: i64,
        limit: i64,
    }

    impl Reference {
        fn flow(&mut self, seen: i64, credit: i64) {
            self.limit = seen + credit;
        }
        fn take(&mut self) -> bool {
            let may = self.sent < self.limit;
            self.sent += i64::from(may);
            may
        }
        fn drain(&mut self) {
            self.sent = self.sent.max(self.limit);
        }
        fn available(&self) -> i64 {
            (self.limit - self.sent).max(0)
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Flow { behind: u32, credit: u32 },
        Take(u8),
        Drain,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u32..50, prop_oneof![Just(0u32), 1u32..100, Just(0x7fff_0000)])
                .prop_map(|(behind, credit)| Step::Flow { behind, credit }),
            any::<u8>().prop_map(Step::Take),
            Just(Step::Drain),
        ]
    }

    proptest! {
        #[test]
        fn credit_agrees_with_a_reference_without_wrapping(
            start in any::<u32>(),
            steps in prop::collection::vec(step(), 0..60),
        ) {
            let start = Serial::new(start);
            let mut link = SendCredit::new(start);
            let mut reference = Reference { sent: 0, limit: 0 };
            for step in steps {
                match step {
                    Step::Flow { behind, credit } => {
                        let seen = (reference.sent - i64::from(behind)).max(0);
                        reference.flow(seen, i64::from(credit));
                        let counted_from = start.advanced(u32::try_from(seen & 0xffff_ffff).unwrap());
                        link.on_flow(Some(counted_from), credit, false);
                    }
                    Step::Take(times) => {
                        for _ in 0..times {
                            prop_assert_eq!(link.take(), reference.take());
                        }
                    }
                    Step::Drain => {
                        link.drain = true;
                        link.drained();
                        reference.drain();
                    }
                }
                prop_assert_eq!(i64::from(link.available()), reference.available());
                let sent = u32::try_from(reference.sent & 0xffff_ffff).unwrap();
                prop_assert_eq!(link.delivery_count(), start.advanced(sent));
            }
        }
    }
}
