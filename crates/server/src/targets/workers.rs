//! How many workers an entity calls for, from what waits, how long it may, and how long a message takes.
//!
//! To start everything that waits within its target takes `waiting × service ÷ target` workers, and work
//! that keeps coming takes `rate × service` more. When the oldest message has used up part of its target,
//! what is left of it counts instead, down to a quarter. Autoscalers read this as
//! `vorrang_desired_workers`, or as `desiredWorkers` of an entity's live report; worker pools of this project compute the same for themselves.

use vorrang_engine::observe::Histogram;
use vorrang_engine::survey::{LevelSurvey, MailboxSurvey};
use vorrang_engine::{Span, Timestamp};

/// The target where a class has none: what waits should be started within a minute.
const TARGET_WITHOUT_CLASS: Span = Span::minutes(1);
/// How long a message takes before one was measured.
const SERVICE_ASSUMED: Span = Span(500);
/// The span over which rates are taken.
const RATE_OVER: Span = Span::minutes(1);
/// More than anybody starts; a larger wish is cut.
pub const WORKERS_MAX: u32 = 100_000;

/// What is known about the messages of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Messages that wait.
    pub waiting: u64,
    /// Messages that are being worked on.
    pub locked: u64,
    /// How long the oldest of those that wait has waited.
    pub oldest: Span,
    /// Messages that come in a thousand seconds.
    pub arrivals_per_kilosecond: u64,
    /// How long a message takes on average; none before one was measured.
    pub service: Option<Span>,
    /// How long a message may wait.
    pub target: Option<Span>,
}

/// Workers for the messages of one class, in thousandths: several classes share their workers, so the
/// parts are added up before they are rounded up to whole ones.
fn millis(load: &Load) -> u128 {
    let service = u128::from(load.service.unwrap_or(SERVICE_ASSUMED).0.max(1));
    let target = u128::from(load.target.unwrap_or(TARGET_WITHOUT_CLASS).0.max(1));
    let slack = target.saturating_sub(u128::from(load.oldest.0)).max(target / 4).max(1);
    let backlog = u128::from(load.waiting).saturating_mul(service).saturating_mul(1_000) / slack;
    // Messages in 10^6 milliseconds, each taking so many of them.
    let steady = u128::from(load.arrivals_per_kilosecond).saturating_mul(service) / 1_000;
    backlog.saturating_add(steady)
}

/// Workers for all classes of an entity. None only when nothing waits and nothing is worked on.
#[must_use]
pub fn desired(classes: &[Load]) -> u32 {
    let wanted = classes.iter().map(millis).fold(0_u128, u128::saturating_add).div_ceil(1_000);
    let wanted = u32::try_from(wanted).unwrap_or(WORKERS_MAX).min(WORKERS_MAX);
    let busy = classes.iter().any(|load| load.waiting > 0 || load.locked > 0);
    if busy { wanted.max(1) } else { wanted }
}

/// The same for a mailbox, as it is now.
#[must_use]
pub fn desired_for(now: Timestamp, mailbox: &MailboxSurvey) -> u32 {
    let loads: Vec<Load> = mailbox.levels.iter().map(|level| load(now, level)).collect();
    desired(&loads)
}

fn load(now: Timestamp, level: &LevelSurvey) -> Load {
    let series = level.series.as_deref();
    let mean = |histogram: &Histogram| histogram.sum().checked_div(histogram.count()).map(Span);
    Load {
        waiting: level.counts.ready,
        locked: level.counts.locked,
        oldest: level.oldest.map(|since| now.since(since)).unwrap_or_default(),
        arrivals_per_kilosecond: series
            .map_or(0, |series| series.arrival_rate.per_kilosecond(now, RATE_OVER)),
        service: series.and_then(|series| mean(&series.processing)),
        target: level.target_wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(change: impl Fn(&mut Load)) -> Load {
        let mut load =
            Load { service: Some(Span(1_000)), target: Some(Span::seconds(10)), ..Load::default() };
        change(&mut load);
        load
    }

    #[test]
    fn the_count_follows_length_age_service_time_and_target() {
        let cases = [
            ("nothing to do", load(|_| {}), 0),
            ("something is worked on", load(|load| load.locked = 3), 1),
            ("one waits", load(|load| load.waiting = 1), 1),
            ("exactly as many as one can start in time", load(|load| load.waiting = 10), 1),
            ("one more", load(|load| load.waiting = 11), 2),
            ("a backlog", load(|load| load.waiting = 1_000), 100),
            (
                "a longer target",
                load(|load| (load.waiting, load.target) = (1_000, Some(Span::minutes(1)))),
                17,
            ),
            ("no target", load(|load| (load.waiting, load.target) = (1_000, None)), 17),
            ("nothing measured", load(|load| (load.waiting, load.service) = (1_000, None)), 50),
            ("half the target used up", load(|load| (load.waiting, load.oldest) = (1_000, Span(5_000))), 200),
            (
                "never more than four times",
                load(|load| (load.waiting, load.oldest) = (1_000, Span(99_000))),
                400,
            ),
            ("a steady stream of ten a second", load(|load| load.arrivals_per_kilosecond = 10_000), 10),
            (
                "absurd",
                load(|load| (load.waiting, load.service) = (u64::MAX, Some(Span(u64::MAX)))),
                WORKERS_MAX,
            ),
            ("a target of nothing", load(|load| (load.waiting, load.target) = (1, Some(Span(0)))), 1_000),
        ];
        for (case, load, workers) in cases {
            assert_eq!(desired(&[load]), workers, "{case}");
        }
    }

    #[test]
    fn classes_share_workers_so_parts_are_added_before_they_are_rounded() {
        let few = load(|load| load.waiting = 3);
        assert_eq!(desired(&[few, few, few]), 1, "nine of the ten one worker can start in time");
        assert_eq!(desired(&[few, few, few, few]), 2);
        assert_eq!(desired(&[]), 0);
    }
}
