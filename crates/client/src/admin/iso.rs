//! Spans and dates of the administration API: ISO 8601 durations, RFC 3339 times, down to a hundred nanoseconds.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

/// The longest span there is, which means *for ever*: .NET's `TimeSpan.MaxValue`.
pub const FOREVER: Duration = Duration::new(922_337_203_685, 477_580_700);

const DAY: u64 = 86_400;

/// Writes a span; what is longer than [`FOREVER`] is that.
pub(super) fn write_span(span: Duration) -> String {
    let span = span.min(FOREVER);
    let (days, seconds) = (span.as_secs() / DAY, span.as_secs() % DAY);
    let mut out = String::from("P");
    if days > 0 {
        // Writing to a string cannot fail.
        let _ = write!(out, "{days}D");
    }
    let ticks = span.subsec_nanos() / 100;
    if seconds == 0 && ticks == 0 && days > 0 {
        return out;
    }
    out.push('T');
    let (hours, minutes, seconds) = (seconds / 3_600, seconds % 3_600 / 60, seconds % 60);
    for (count, unit) in [(hours, 'H'), (minutes, 'M')] {
        if count > 0 {
            let _ = write!(out, "{count}{unit}");
        }
    }
    if ticks > 0 {
        let fraction = format!("{ticks:07}");
        let _ = write!(out, "{seconds}.{}S", fraction.trim_end_matches('0'));
    } else if seconds > 0 || out.ends_with('T') {
        let _ = write!(out, "{seconds}S");
    }
    out
}

/// Reads `PnDTnHnMn.nS`, with at least one part. Years and months have no length of their own and do not appear.
pub(super) fn read_span(text: &str) -> Option<Duration> {
    let rest = text.trim().strip_prefix('P')?;
    let (date, time) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None if rest.is_empty() => return None,
        None => (rest, ""),
    };
    let mut total = Duration::ZERO;
    let mut left = date;
    for (units, in_time) in [(&[('D', DAY)][..], false), (&[('H', 3_600), ('M', 60)][..], true)] {
        if in_time {
            if !left.is_empty() {
                return None;
            }
            left = time;
        }
        for (unit, length) in units {
            if let Some((count, rest)) = left.split_once(*unit) {
                let seconds = digits(count)?.checked_mul(*length)?;
                total = total.checked_add(Duration::from_secs(seconds))?;
                left = rest;
            }
        }
    }
    if let Some(seconds) = left.strip_suffix('S') {
        let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
        total = total.checked_add(Duration::new(digits(whole)?, nanoseconds(fraction)?))?;
        left = "";
    }
    left.is_empty().then_some(total.min(FOREVER))
}

/// Writes a time with milliseconds, in UTC.
pub(super) fn write_time(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / DAY, since.as_secs() % DAY);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (seconds / 3_600, seconds % 3_600 / 60, seconds % 60);
    let milliseconds = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// Reads a time in UTC; none before 1970, which is how the service writes *never*.
pub(super) fn read_time(text: &str) -> Option<SystemTime> {
    let (date, time) = text.trim().split_once('T')?;
    let time = time.strip_suffix('Z').unwrap_or(time);
    let mut date = date.splitn(3, '-').map(digits);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut clock = whole.splitn(3, ':').map(digits);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let sane =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
    let year = Some(year).filter(|year| sane && (1970..=9999).contains(year))?;
    let seconds = days_since_1970(year, month, day)? * DAY + hour * 3_600 + minute * 60 + second;
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds(fraction)?))
}

/// A whole number with nothing around it: `parse` would take a sign.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A fraction of a second from the digits behind the point; beyond nine of them nothing counts.
fn nanoseconds(fraction: &str) -> Option<u32> {
    digits(fraction.get(..fraction.len().min(9))?)?;
    digits(format!("{fraction:0<9}").get(..9)?).and_then(|all| u32::try_from(all).ok())
}

/// Days of a date since 1970, in the proleptic Gregorian calendar (years from March, so that the leap day is last).
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let from_march = (month + 9) % 12;
    let days_of_year = (153 * from_march + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + days_of_year;
    // Days from 0000-03-01 to 1970-01-01.
    days.checked_sub(719_468)
}

/// The reverse.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days.saturating_add(719_468);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_are_written_as_service_bus_writes_them() {
        let cases = [
            (Duration::ZERO, "PT0S"),
            (Duration::from_secs(30), "PT30S"),
            (Duration::from_millis(90_500), "PT1M30.5S"),
            (Duration::from_hours(1), "PT1H"),
            (Duration::from_hours(48), "P2D"),
            (Duration::from_secs(86_401), "P1DT1S"),
            (FOREVER, "P10675199DT2H48M5.4775807S"),
        ];
        for (span, text) in cases {
            assert_eq!(write_span(span), text);
            assert_eq!(read_span(text), Some(span), "{text}");
        }
        assert_eq!(write_span(Duration::MAX), "P10675199DT2H48M5.4775807S");
        for wrong in [
            "",
            "P",
            "PT",
            "30S",
            "P1M",
            "PT1S1M",
            "PT-1S",
            "PT+1S",
            "P1D1H",
            "PT1.xS",
            "PT99999999999999999999S",
        ] {
            assert_eq!(read_span(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_read_in_the_services_spellings() {
        let at =
            |seconds, nanoseconds| SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds));
        let cases = [
            ("1970-01-01T00:00:00Z", at(0, 0)),
            ("2026-01-31T08:15:30.1234567Z", at(1_769_847_330, 123_456_700)),
            ("2024-02-29T23:59:59", at(1_709_251_199, 0)),
            ("0001-01-01T00:00:00Z", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-01-01", None),
            ("x", None),
        ];
        for (text, expected) in cases {
            assert_eq!(read_time(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn spans_and_times_read_back(ticks in 0..9_223_372_036_854_775_807_u64, seconds in 0..250_000_000_000_u64) {
            let span = Duration::new(ticks / 10_000_000, u32::try_from(ticks % 10_000_000 * 100).unwrap());
            prop_assert_eq!(read_span(&write_span(span)), Some(span));
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            prop_assert_eq!(read_time(&write_time(at)), Some(at));
        }

        #[test]
        fn no_text_panics(text in "[PTDHMS0-9.:Z+ä-]{0,24}") {
            let _ = (read_span(&text), read_time(&text));
        }
    }
}
