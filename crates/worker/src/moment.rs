//! A point in time as the deciding parts know it: how long ago the worker began.
//!
//! It comes from a clock that never goes backwards, and enters as an argument.

use std::time::Duration;

/// Time since the worker began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(Duration);

impl Moment {
    /// When the worker began.
    pub const START: Moment = Moment(Duration::ZERO);
    /// Later than everything that happens.
    pub const NEVER: Moment = Moment(Duration::MAX);

    /// The moment `elapsed` after the start.
    pub const fn at(elapsed: Duration) -> Moment {
        Moment(elapsed)
    }

    /// The moment so many milliseconds after the start.
    pub const fn millis(milliseconds: u64) -> Moment {
        Moment(Duration::from_millis(milliseconds))
    }

    /// How long after the start this is.
    pub const fn elapsed(self) -> Duration {
        self.0
    }

    /// The moment `duration` later; never past [`Moment::NEVER`].
    #[must_use]
    pub const fn after(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_add(duration))
    }

    /// The moment `duration` earlier, if the worker had begun then.
    pub fn before(self, duration: Duration) -> Option<Moment> {
        self.0.checked_sub(duration).map(Moment)
    }

    /// How much time lies between `earlier` and this; none if it is not earlier.
    pub const fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
