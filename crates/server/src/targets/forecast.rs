//! When will a class begin to miss its target, if nothing changes?
//!
//! A message that comes now waits for those ahead of it, at the rate at which the entity delivers. While
//! more come than leave, that wait grows; it reaches the target when the line is as long as what is
//! delivered within the target. Where nothing is delivered at all, the oldest message itself is the clock.

use vorrang_engine::Span;

/// What decides about the wait of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Traffic {
    /// Messages that are ahead of one that comes now: of its own level and of those that go first.
    pub(super) ahead: u64,
    /// How many of those come in a thousand seconds.
    pub(super) arrivals_per_kilosecond: u64,
    /// How many messages of any level are delivered in a thousand seconds.
    pub(super) deliveries_per_kilosecond: u64,
    /// How long the oldest of the class has waited; none if none waits.
    pub(super) oldest: Option<Span>,
}

/// The time left until messages of a class wait longer than its target; zero if they do already, none if
/// they will not.
#[must_use]
pub(super) fn breach_in(target: Span, traffic: &Traffic) -> Option<Span> {
    if traffic.oldest.is_some_and(|oldest| oldest > target) {
        return Some(Span(0));
    }
    if traffic.deliveries_per_kilosecond == 0 {
        return traffic.oldest.map(|oldest| Span(target.0.saturating_sub(oldest.0)));
    }
    // In messages per 10^6 milliseconds throughout.
    let served = u128::from(traffic.deliveries_per_kilosecond);
    let longest = served.saturating_mul(u128::from(target.0)) / 1_000_000;
    let ahead = u128::from(traffic.ahead);
    if ahead > longest {
        // Those at the end of the line are late already; the first of them notices when it is served.
        return Some(Span(target.0.saturating_sub(traffic.oldest.unwrap_or_default().0)));
    }
    let grows = u128::from(traffic.arrivals_per_kilosecond).checked_sub(served).filter(|grows| *grows > 0)?;
    let left = (longest - ahead).saturating_mul(1_000_000) / grows;
    u64::try_from(left).ok().map(Span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_breach_comes_when_the_line_is_longer_than_what_is_served_in_time() {
        let calm = Traffic { deliveries_per_kilosecond: 10_000, ..Traffic::default() };
        let seconds = |seconds| Some(Span::seconds(seconds));
        let cases = [
            ("nothing happens", Traffic::default(), None),
            ("nobody waits", calm, None),
            ("as many come as leave", Traffic { arrivals_per_kilosecond: 10_000, ahead: 50, ..calm }, None),
            // Ten a second are served, so a line of 100 is ten seconds long.
            ("five a second more come", Traffic { arrivals_per_kilosecond: 15_000, ..calm }, seconds(20)),
            (
                "half the line is there",
                Traffic { arrivals_per_kilosecond: 15_000, ahead: 50, ..calm },
                seconds(10),
            ),
            (
                "the line is just as long",
                Traffic { arrivals_per_kilosecond: 15_000, ahead: 100, ..calm },
                seconds(0),
            ),
            ("it is too long already", Traffic { ahead: 101, oldest: seconds(4), ..calm }, seconds(6)),
            ("nobody is served", Traffic { ahead: 5, oldest: seconds(4), ..Traffic::default() }, seconds(6)),
            ("at the target", Traffic { oldest: seconds(10), ..calm }, None),
            ("beyond it", Traffic { oldest: Some(Span(10_001)), ..calm }, seconds(0)),
            ("absurd", Traffic { arrivals_per_kilosecond: u64::MAX, ahead: u64::MAX, ..calm }, seconds(10)),
        ];
        for (case, traffic, expected) in cases {
            assert_eq!(breach_in(Span::seconds(10), &traffic), expected, "{case}");
        }
    }
}
