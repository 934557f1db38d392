//! Text forms of points in time (ISO 8601) and of durations.
//!
//! A point in time is milliseconds since 1970 UTC, as in AMQP; a duration is ticks of 100 ns, as
//! in Service Bus. Only the years 1 to 9999 have a text form.

use std::fmt;

const DAY_MS: i64 = 86_400_000;
const TICKS_PER_MS: i64 = 10_000;

/// Reads `2024-05-31`, optionally followed by `T10:20`, `:30`, `.123`, and `Z` or `+02:00`. Without
/// an offset the time is UTC. Digits beyond the millisecond are dropped.
pub(crate) fn parse_timestamp(text: &str) -> Option<i64> {
    let mut reader = Reader { rest: text.as_bytes() };
    let year = reader.digits(4)?;
    reader.byte(b'-')?;
    let month = reader.digits(2)?;
    reader.byte(b'-')?;
    let day = reader.digits(2)?;
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day)
    {
        return None;
    }
    let mut at_ms = days_from_civil(year, month, day) * DAY_MS;
    if reader.byte(b'T').or_else(|| reader.byte(b't')).or_else(|| reader.byte(b' ')).is_some() {
        at_ms += reader.time_of_day()?;
        at_ms -= reader.offset()?;
    }
    reader.rest.is_empty().then_some(at_ms)
}

/// Reads `[-][days.]hours:minutes:seconds[.fraction]` as ticks of 100 ns.
pub(crate) fn parse_timespan(text: &str) -> Option<i64> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (days, text) = match (text.find('.'), text.find(':')) {
        (Some(dot), Some(colon)) if dot < colon => (text.get(..dot)?, text.get(dot + 1..)?),
        _ => ("0", text),
    };
    if days.is_empty() || days.len() > 8 || !days.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let days: i64 = days.parse().ok()?;
    let mut reader = Reader { rest: text.as_bytes() };
    let hours = reader.digits(2)?;
    reader.byte(b':')?;
    let minutes = reader.digits(2)?;
    reader.byte(b':')?;
    let seconds = reader.digits(2)?;
    let ticks = if reader.byte(b'.').is_some() { reader.fraction(7)? } else { 0 };
    if hours > 23 || minutes > 59 || seconds > 59 || !reader.rest.is_empty() {
        return None;
    }
    let whole_seconds = days.checked_mul(86_400)?.checked_add(hours * 3600 + minutes * 60 + seconds)?;
    whole_seconds.checked_mul(1000 * TICKS_PER_MS)?.checked_add(ticks)?.checked_mul(sign)
}

/// Writes a point in time as `2024-05-31T10:20:30.123Z`.
pub(crate) fn write_timestamp(at_ms: i64, out: &mut impl fmt::Write) -> fmt::Result {
    let (year, month, day) = civil_from_days(at_ms.div_euclid(DAY_MS));
    let of_day = at_ms.rem_euclid(DAY_MS);
    let (hours, minutes) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (seconds, millis) = (of_day / 1000 % 60, of_day % 1000);
    write!(out, "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
}

/// Writes a duration as `[-][days.]hours:minutes:seconds[.fraction]`.
pub(crate) fn write_timespan(ticks: i64, out: &mut impl fmt::Write) -> fmt::Result {
    let magnitude = ticks.unsigned_abs();
    if ticks < 0 {
        out.write_char('-')?;
    }
    let (seconds, fraction) = (magnitude / 10_000_000, magnitude % 10_000_000);
    if seconds >= 86_400 {
        write!(out, "{}.", seconds / 86_400)?;
    }
    write!(out, "{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)?;
    if fraction > 0 {
        write!(out, ".{fraction:07}")?;
    }
    Ok(())
}

struct Reader<'t> {
    rest: &'t [u8],
}

impl Reader<'_> {
    fn byte(&mut self, expected: u8) -> Option<()> {
        let (first, rest) = self.rest.split_first()?;
        (*first == expected).then(|| self.rest = rest)
    }

    fn digit(&mut self) -> Option<i64> {
        let (first, rest) = self.rest.split_first()?;
        first.is_ascii_digit().then(|| {
            self.rest = rest;
            i64::from(first - b'0')
        })
    }

    fn digits(&mut self, count: u32) -> Option<i64> {
        let mut number = 0;
        for _ in 0..count {
            number = number * 10 + self.digit()?;
        }
        Some(number)
    }

    /// The digits after a decimal point as a number of `places` digits; at least one must stand.
    fn fraction(&mut self, places: u32) -> Option<i64> {
        let mut number = self.digit()?;
        let mut taken = 1;
        while let Some(digit) = self.digit() {
            if taken < places {
                number = number * 10 + digit;
                taken += 1;
            }
        }
        Some(number * 10_i64.pow(places - taken))
    }

    fn time_of_day(&mut self) -> Option<i64> {
        let hours = self.digits(2)?;
        self.byte(b':')?;
        let minutes = self.digits(2)?;
        let (mut seconds, mut millis) = (0, 0);
        if self.byte(b':').is_some() {
            seconds = self.digits(2)?;
            if self.byte(b'.').is_some() {
                millis = self.fraction(3)?;
            }
        }
        let valid = hours <= 23 && minutes <= 59 && seconds <= 59;
        valid.then_some(((hours * 60 + minutes) * 60 + seconds) * 1000 + millis)
    }

    fn offset(&mut self) -> Option<i64> {
        if self.rest.is_empty() || self.byte(b'Z').or_else(|| self.byte(b'z')).is_some() {
            return Some(0);
        }
        let sign = if self.byte(b'+').is_some() { 1 } else { self.byte(b'-').map(|()| -1)? };
        let hours = self.digits(2)?;
        self.byte(b':')?;
        let minutes = self.digits(2)?;
        (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes) * 60_000)
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar. Years are counted from March, so that the leap
/// day is the last of its year, and in eras of 400 years, which are all equally long.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time_are_read_as_iso_8601() {
        let cases = [
            ("1970-01-01", Some(0)),
            ("1970-01-01T00:00Z", Some(0)),
            ("1970-01-01T00:00:00.001Z", Some(1)),
            ("1970-01-01 00:00:01", Some(1000)),
            ("1970-01-01T02:00:00+02:00", Some(0)),
            ("1969-12-31T22:30:00-01:30", Some(0)),
            ("2024-02-29T23:59:59.9999999Z", Some(1_709_251_199_999)),
            ("2000-03-01", Some(951_868_800_000)),
            ("0001-01-01", Some(-62_135_596_800_000)),
            ("9999-12-31T23:59:59.999Z", Some(253_402_300_799_999)),
            ("2023-02-29", None),
            ("1900-02-29", None),
            ("2024-13-01", None),
            ("2024-00-01", None),
            ("2024-01-32", None),
            ("0000-01-01", None),
            ("2024-01-01T24:00", None),
            ("2024-01-01T23:60", None),
            ("2024-01-01T23:59:60", None),
            ("2024-01-01T10", None),
            ("2024-01-01T10:00:00.", None),
            ("2024-01-01T10:00:00+0200", None),
            ("2024-01-01Z", None),
            ("2024-1-1", None),
            ("20240101", None),
            ("2024-01-01T10:00:00Zjunk", None),
            ("", None),
        ];
        for (text, at_ms) in cases {
            assert_eq!(parse_timestamp(text), at_ms, "{text}");
        }
    }

    #[test]
    fn every_day_of_the_calendar_writes_and_reads_back() {
        let mut days = days_from_civil(1, 1, 1);
        let last = days_from_civil(9999, 12, 31);
        while days <= last {
            let at_ms = days * DAY_MS + 123;
            let mut text = String::new();
            write_timestamp(at_ms, &mut text).unwrap();
            assert_eq!(parse_timestamp(&text), Some(at_ms), "{text}");
            days += 13;
        }
    }

    #[test]
    fn durations_are_read_and_written_in_ticks() {
        let cases = [
            ("00:00:00", 0),
            ("00:00:01", 10_000_000),
            ("01:02:03", 37_230_000_000),
            ("1.00:00:00", 864_000_000_000),
            ("-00:00:00.0000001", -1),
            ("10675199.02:48:05.4775807", i64::MAX),
        ];
        for (text, ticks) in cases {
            assert_eq!(parse_timespan(text), Some(ticks), "{text}");
            let mut written = String::new();
            write_timespan(ticks, &mut written).unwrap();
            assert_eq!(written, text);
        }
        let refused =
            ["", "1", "24:00:00", "00:60:00", "00:00:60", "10675199.02:48:05.4775808", ".00:00:00", "00:00"];
        for text in refused {
            assert_eq!(parse_timespan(text), None, "{text}");
        }
    }
}
