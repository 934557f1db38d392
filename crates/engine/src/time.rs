//! Time as the engine knows it: an argument, in milliseconds, never a clock.

use std::fmt;

/// An instant: milliseconds since the Unix epoch, as the shard was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub u64);

/// A length of time in milliseconds. [`Span::FOREVER`] is longer than any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub u64);

impl Timestamp {
    /// Later than everything that has a date.
    pub const NEVER: Timestamp = Timestamp(u64::MAX);

    /// The instant `span` later; far futures end at [`Timestamp::NEVER`].
    #[must_use]
    pub fn after(self, span: Span) -> Timestamp {
        Timestamp(self.0.saturating_add(span.0))
    }

    /// The instant `span` earlier, at least the epoch.
    #[must_use]
    pub fn before(self, span: Span) -> Timestamp {
        Timestamp(self.0.saturating_sub(span.0))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Timestamp) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// What Service Bus writes as the largest `TimeSpan`: no end.
    pub const FOREVER: Span = Span(u64::MAX);

    /// A span of whole seconds.
    #[must_use]
    pub const fn seconds(count: u64) -> Span {
        Span(count.saturating_mul(1_000))
    }

    /// A span of whole minutes.
    #[must_use]
    pub const fn minutes(count: u64) -> Span {
        Span::seconds(count.saturating_mul(60))
    }

    /// A span of whole days.
    #[must_use]
    pub const fn days(count: u64) -> Span {
        Span::minutes(count.saturating_mul(24 * 60))
    }

    /// Whether the span has no end.
    #[must_use]
    pub fn is_forever(self) -> bool {
        self == Span::FOREVER
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => f.write_str("forever"),
            ms if ms % 1_000 == 0 => write!(f, "{} s", ms / 1_000),
            ms => write!(f, "{ms} ms"),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}
