//! .NET ticks, in which Service Bus states a session's lock expiry: 100 ns units since the year 1.

use crate::value::Timestamp;

/// The Unix epoch in ticks.
const UNIX_EPOCH_TICKS: i64 = 621_355_968_000_000_000;

const TICKS_PER_MS: i64 = 10_000;

/// A point in time in ticks, held at the ends of what 64 bits can say.
pub const fn ticks_of(time: Timestamp) -> i64 {
    time.0.saturating_mul(TICKS_PER_MS).saturating_add(UNIX_EPOCH_TICKS)
}

/// The millisecond in which a tick lies.
pub const fn time_of_ticks(ticks: i64) -> Timestamp {
    Timestamp(ticks.saturating_sub(UNIX_EPOCH_TICKS).div_euclid(TICKS_PER_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_convert_both_ways() {
        let cases = [
            ("the unix epoch", 0, 621_355_968_000_000_000),
            ("a millisecond before it", -1, 621_355_967_999_990_000),
            ("the year 1", -62_135_596_800_000, 0),
            ("the first second of 2026", 1_767_225_600_000, 639_028_224_000_000_000),
        ];
        for (case, ms, ticks) in cases {
            assert_eq!(ticks_of(Timestamp(ms)), ticks, "{case}");
            assert_eq!(time_of_ticks(ticks), Timestamp(ms), "{case}");
        }
    }

    #[test]
    fn a_part_of_a_millisecond_belongs_to_the_one_it_lies_in() {
        assert_eq!(time_of_ticks(UNIX_EPOCH_TICKS + 9_999), Timestamp(0));
        assert_eq!(time_of_ticks(UNIX_EPOCH_TICKS - 1), Timestamp(-1));
    }

    #[test]
    fn extremes_saturate() {
        assert_eq!(ticks_of(Timestamp(i64::MAX)), i64::MAX);
        assert_eq!(ticks_of(Timestamp(i64::MIN)), i64::MIN + UNIX_EPOCH_TICKS);
        assert!(time_of_ticks(i64::MIN).0 < 0);
    }
}
