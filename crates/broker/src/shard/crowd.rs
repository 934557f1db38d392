//! Whether others wait while the shard commits.
//!
//! A small batch is committed by the shard itself, which is sooner for who waits for it (`docs/decisions/004`). While it
//! syncs, the shard decides nothing: right for somebody who is alone and waits for each answer, and wrong where several want
//! something at a time, who would all wait for each other's syncs, also for what needs none. So if something came in
//! meanwhile, commits are left to the log's thread for a while.

use vorrang_engine::{Span, Timestamp};

/// For how long. A crowd that stays costs a wait for one sync in as much time.
const CROWDED_FOR: Span = Span(100);

/// Whether somebody was kept waiting lately.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    until: Timestamp,
}

impl Crowd {
    /// Something came in while the shard committed.
    pub(super) fn came(&mut self, now: Timestamp) {
        self.until = now.after(CROWDED_FOR);
    }

    pub(super) fn is_there(&self, now: Timestamp) -> bool {
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_is_there_from_the_moment_it_came_and_for_a_while() {
        let mut crowd = Crowd::default();
        assert!(!crowd.is_there(Timestamp(0)));
        crowd.came(Timestamp(1_000));
        for (now, there) in [(1_000, true), (1_099, true), (1_100, false)] {
            assert_eq!(crowd.is_there(Timestamp(now)), there, "{now}");
        }
    }
}
