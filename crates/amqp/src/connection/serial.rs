//! Numbers that wrap: delivery ids, transfer ids and delivery counts (RFC 1982, AMQP 1.0 2.8.10).
//!
//! All arithmetic on such numbers happens here. There is no `Ord`: "before" and "after" only make sense for two
//! numbers less than 2³¹ apart, and sorting needs a reference point.

use std::fmt;

/// A 32-bit sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Serial(u32);

impl Serial {
    /// The number as it is on the wire.
    #[inline]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number as it is on the wire.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number after this one.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        self.advanced(1)
    }

    /// This number moved forward by `steps`.
    #[inline]
    #[must_use]
    pub const fn advanced(self, steps: u32) -> Self {
        Self(self.0.wrapping_add(steps))
    }

    /// Steps from `earlier` forward to this number, going round the circle if need be.
    #[inline]
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Signed distance from `reference`: positive when this number comes after it.
    #[inline]
    pub const fn offset_from(self, reference: Self) -> i32 {
        self.since(reference).cast_signed()
    }

    /// Whether this number comes after `other`.
    #[inline]
    pub const fn is_after(self, other: Self) -> bool {
        self.offset_from(other) > 0
    }
}

impl fmt::Debug for Serial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "#{}", self.0)
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_distance_hold_across_the_wrap() {
        let cases = [
            ("plain", 5, 3, 2, true),
            ("equal", 7, 7, 0, false),
            ("across the wrap", 2, u32::MAX - 1, 4, true),
            ("before, across the wrap", u32::MAX, 1, -2, false),
            ("as far ahead as can be told", 0x7fff_ffff, 0, i32::MAX, true),
            ("one further is behind", 0x8000_0000, 0, i32::MIN, false),
        ];
        for (case, number, reference, offset, after) in cases {
            let (number, reference) = (Serial::new(number), Serial::new(reference));
            assert_eq!(number.offset_from(reference), offset, "{case}");
            assert_eq!(number.is_after(reference), after, "{case}");
        }
    }

    #[test]
    fn advancing_and_measuring_are_inverse() {
        for start in [0, 1, u32::MAX, 0x8000_0000] {
            for steps in [0, 1, 77, u32::MAX] {
                let start = Serial::new(start);
                assert_eq!(start.advanced(steps).since(start), steps);
            }
        }
    }
}
