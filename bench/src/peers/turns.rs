//! In which order peers are measured, and what several turns of one of them come to.
//!
//! A disk or a machine that others share has bad seconds. So that they do not fall upon the same peer every time, the order
//! is turned around from round to round and from turn to turn; and where a figure is a matter of single milliseconds, a
//! peer is measured in several short turns between those of the others, of which the median counts.

use std::collections::BTreeMap;

use super::workload::Figures;

/// The peers in the order of this turn: from the first to the last, or the other way round.
pub(crate) fn order<T: Copy>(peers: &[T], round: u32, turn: u32) -> Vec<T> {
    let mut order = peers.to_vec();
    if (round + turn).is_multiple_of(2) {
        order.reverse();
    }
    order
}

/// For each figure the median of the turns that have it, or the mean of the middle two.
pub(crate) fn median(turns: &[Figures]) -> Figures {
    let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, value) in turns.iter().flatten() {
        all.entry(name).or_default().push(*value);
    }
    all.into_iter().filter_map(|(name, values)| Some((name.to_owned(), middle(values)?))).collect()
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (below, above) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some(f64::midpoint(*below, *above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_first_is_last_in_the_next_turn_and_in_the_next_round() {
        assert_eq!(order(&["a", "b", "c"], 1, 0), ["a", "b", "c"]);
        assert_eq!(order(&["a", "b", "c"], 1, 1), ["c", "b", "a"]);
        assert_eq!(order(&["a", "b", "c"], 2, 0), ["c", "b", "a"]);
    }

    #[test]
    fn one_bad_turn_does_not_decide() {
        let turn = |value: f64| Figures::from([("p99".to_owned(), value)]);
        let p99 = |values: &[f64]| {
            median(&values.iter().copied().map(turn).collect::<Vec<_>>()).get("p99").copied()
        };
        assert_eq!(p99(&[0.4, 800.0, 0.5]), Some(0.5));
        assert_eq!(p99(&[0.4, 0.5]), Some(0.45));
        assert_eq!(p99(&[0.4]), Some(0.4));
        assert_eq!(p99(&[]), None);
    }
}
