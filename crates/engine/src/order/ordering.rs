//! An entity's order, worked out from its settings once.

use crate::entity::priority::{Policy, PrioritySettings, Rescue, TARGET_WITHOUT_CLASS};
use crate::level::Level;
use crate::time::{Span, Timestamp};

/// Where a message stands among all others, smallest first; ties go by number.
pub(crate) type Rank = (u8, Timestamp);

/// How an entity orders its messages.
#[derive(Debug, Clone)]
pub(crate) struct Ordering {
    policy: Policy,
    pub(crate) rescue: Rescue,
    /// What the classes promise, by level.
    targets: Vec<(Level, Span)>,
    /// How much later than its eligible time a message of each level stands, under policies that look at
    /// times: worked out once, because it is asked for every lane at every delivery.
    delays: Vec<Span>,
    /// Whether a session ranks by its best message instead of its first.
    pub(crate) lift: bool,
    /// How many thousandths of a link's credit are kept for the highest class.
    reserved: u16,
    /// The level of the highest class.
    top: Level,
}

impl Ordering {
    pub(crate) fn new(settings: &PrioritySettings) -> Ordering {
        let classes = settings.all_classes();
        let mut targets: Vec<_> =
            classes.filter_map(|(_, level, target)| target.map(|target| (level, target))).collect();
        targets.sort_unstable_by_key(|(level, _)| *level);
        let delay = |level: u8| match settings.policy {
            Policy::Strict | Policy::Fifo => Span(0),
            Policy::Aged { step } => Span(step.0.saturating_mul(u64::from(u8::MAX.saturating_sub(level)))),
            Policy::Deadline => promised(&targets, Level(level)).unwrap_or(TARGET_WITHOUT_CLASS),
        };
        Ordering {
            policy: settings.policy,
            rescue: settings.rescue,
            delays: (0..=u8::MAX).map(delay).collect(),
            targets,
            lift: settings.lift,
            reserved: 1_000_u16.saturating_sub(settings.prefetch_share.thousandths()),
            top: settings.all_classes().map(|(_, level, _)| level).max().unwrap_or_default(),
        }
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.policy == Policy::Strict
    }

    /// Whether deadlines of single messages count.
    pub(crate) fn by_deadline(&self) -> bool {
        self.policy == Policy::Deadline
    }

    /// Where a message stands. `deadline` is its own, if it has one.
    pub(crate) fn rank(&self, level: Level, eligible: Timestamp, deadline: Option<Timestamp>) -> Rank {
        match (self.policy, deadline) {
            (Policy::Strict, _) => (u8::MAX.saturating_sub(level.0), eligible),
            (Policy::Deadline, Some(deadline)) => (0, deadline),
            (Policy::Aged { .. } | Policy::Deadline | Policy::Fifo, _) => (0, self.stand(level, eligible)),
        }
    }

    /// The time by which a message stands, under policies that look at times.
    pub(crate) fn stand(&self, level: Level, eligible: Timestamp) -> Timestamp {
        eligible.after(self.delays.get(usize::from(level.0)).copied().unwrap_or_default())
    }

    /// The lowest level a receiver may be given when it has this much of its credit left: the reserved
    /// part is for the highest class alone.
    pub(crate) fn floor(&self, min_level: Level, credit: u32, window: u32) -> Level {
        let reserved = u64::from(window).saturating_mul(u64::from(self.reserved)).div_ceil(1_000);
        // However small the window, something must be left for the others.
        let reserved = reserved.min(u64::from(window.saturating_sub(1)));
        if u64::from(credit) <= reserved { min_level.max(self.top) } else { min_level }
    }

    /// The wait that the class of a level promises.
    pub(crate) fn promised(&self, level: Level) -> Option<Span> {
        promised(&self.targets, level)
    }
}

fn promised(targets: &[(Level, Span)], level: Level) -> Option<Span> {
    let found = targets.binary_search_by_key(&level, |(known, _)| *known).ok()?;
    targets.get(found).map(|(_, target)| *target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::priority::{Class, ClassName, Share};

    fn ordering(policy: Policy) -> Ordering {
        let class = |name: &str, level, seconds| Class {
            name: ClassName::parse(name).unwrap(),
            level: Level(level),
            target_wait: Some(Span::seconds(seconds)),
        };
        let classes = vec![class("now", 9, 10), class("soon", 5, 60)];
        Ordering::new(&PrioritySettings { classes, policy, ..PrioritySettings::default() })
    }

    #[test]
    fn each_policy_gives_its_head_start() {
        let at = Timestamp(100_000);
        let earlier = Timestamp(90_000);
        let cases = [
            (Policy::Strict, (9, at), (8, earlier), true),
            (Policy::Strict, (8, at), (8, earlier), false),
            (Policy::Fifo, (9, at), (8, earlier), false),
            // Ten seconds of age against one level of ten seconds: equal; against eleven: behind.
            (Policy::Aged { step: Span(10_001) }, (9, at), (8, earlier), true),
            (Policy::Aged { step: Span(10_000) }, (9, at), (8, earlier), false),
            (Policy::Aged { step: Span(9_999) }, (9, at), (8, earlier), false),
            (Policy::Deadline, (9, at), (5, earlier), true),
            (Policy::Deadline, (5, at), (1, earlier), true),
        ];
        for (policy, left, right, first) in cases {
            let order = ordering(policy);
            let rank = |(level, eligible)| order.rank(Level(level), eligible, None);
            assert_eq!(rank(left) < rank(right), first, "{policy:?} {left:?} {right:?}");
        }
    }

    #[test]
    fn a_message_with_a_deadline_of_its_own_is_ranked_by_it() {
        let order = ordering(Policy::Deadline);
        let of_class = order.rank(Level(9), Timestamp(0), None);
        assert!(order.rank(Level(0), Timestamp(5_000), Some(Timestamp(9_999))) < of_class);
        assert!(order.rank(Level(9), Timestamp(0), Some(Timestamp(10_001))) > of_class);
    }

    #[test]
    fn far_times_and_long_steps_do_not_wrap() {
        let order = ordering(Policy::Aged { step: Span(u64::MAX / 2) });
        assert_eq!(order.rank(Level(0), Timestamp(u64::MAX - 1), None), (0, Timestamp::NEVER));
    }

    #[test]
    fn the_reserved_part_of_a_credit_is_for_the_highest_class() {
        let share = Share::per_mille(750).unwrap();
        let order = Ordering::new(&PrioritySettings { prefetch_share: share, ..PrioritySettings::default() });
        for (credit, window, floor) in
            [(8, 8, 0), (3, 8, 0), (2, 8, 9), (1, 8, 9), (1, 1, 0), (2, 2, 0), (1, 2, 9)]
        {
            assert_eq!(order.floor(Level(0), credit, window), Level(floor), "{credit} of {window}");
        }
        let open = Ordering::new(&PrioritySettings::default());
        assert_eq!(open.floor(Level(2), 1, 1_000), Level(2));
    }
}
