//! Dates as HTTP and Service Bus write them: RFC 3339 (`2026-01-31T08:15:30.5Z`) and RFC 1123
//! (`Sat, 31 Jan 2026 08:15:30 GMT`), always in UTC.

use vorrang_engine::Timestamp;

const DAY_MS: u64 = 86_400_000;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// The first of January 1970 was a Thursday.
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// The last instant that four digits of year can write.
const LAST_MS: u64 = 253_402_300_799_999;

/// A point in time, taken apart.
struct Civil {
    year: u64,
    month: u64,
    day: u64,
    weekday: &'static str,
    hour: u64,
    minute: u64,
    second: u64,
    millisecond: u64,
}

/// Writes RFC 3339, with as many digits of the second as there are; far futures as the year 9999.
#[must_use]
pub fn rfc3339(at: Timestamp) -> String {
    let Civil { year, month, day, hour, minute, second, millisecond, .. } = civil(at);
    let fraction = match millisecond {
        0 => String::new(),
        part => format!(".{}", format!("{part:03}").trim_end_matches('0')),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Writes RFC 1123, to the second.
#[must_use]
pub fn rfc1123(at: Timestamp) -> String {
    let Civil { year, month, day, weekday, hour, minute, second, .. } = civil(at);
    let month = usize::try_from(month).ok().and_then(|month| MONTHS.get(month.checked_sub(1)?));
    let month = month.copied().unwrap_or("Jan");
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Reads either form; the offset of RFC 3339 is honoured. None before 1970 and for what is no date.
#[must_use]
pub fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.len() > 64 {
        return None;
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) { parse_rfc3339(text) } else { parse_rfc1123(text) }
}

fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut parts = date.split('-');
    let (year, month, day) =
        (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    if parts.next().is_some() {
        return None;
    }
    let (time, offset_minutes) = offset(time)?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut millisecond = 0;
    let mut unit = 100;
    for digit in fraction.chars() {
        millisecond += u64::from(digit.to_digit(10)?) * unit;
        unit /= 10;
    }
    let at = assemble(year, month, day, time)?.checked_add(millisecond)?;
    let at = i64::try_from(at).ok()?.checked_sub(offset_minutes.checked_mul(60_000)?)?;
    u64::try_from(at).ok().map(Timestamp)
}

/// The time without its offset, and the offset in minutes.
fn offset(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let at = time.rfind(['+', '-'])?;
    let (time, offset) = time.split_at_checked(at)?;
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let minutes = i64::try_from(digits(hours, 2)? * 60 + digits(minutes, 2)?).ok()?;
    Some((time, if offset.starts_with('-') { -minutes } else { minutes }))
}

fn parse_rfc1123(text: &str) -> Option<Timestamp> {
    let (weekday, rest) = text.split_once(',')?;
    if !WEEKDAYS.iter().any(|known| known.eq_ignore_ascii_case(weekday)) {
        return None;
    }
    let mut parts = rest.split_ascii_whitespace();
    let day = digits(parts.next()?, 2)?;
    let name = parts.next()?;
    let month = MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name))?;
    let month = u64::try_from(month).ok()?.checked_add(1)?;
    let year = digits(parts.next()?, 4)?;
    let at = assemble(year, month, day, parts.next()?)?;
    let zone = parts.next()?;
    (zone.eq_ignore_ascii_case("GMT") && parts.next().is_none()).then_some(Timestamp(at))
}

/// Milliseconds since 1970 of a date and `hh:mm:ss`.
fn assemble(year: u64, month: u64, day: u64, time: &str) -> Option<u64> {
    let mut parts = time.split(':');
    let hour = digits(parts.next()?, 2).filter(|hour| *hour < 24)?;
    let minute = digits(parts.next()?, 2).filter(|minute| *minute < 60)?;
    let second = digits(parts.next()?, 2).filter(|second| *second < 60)?;
    if parts.next().is_some() || year < 1970 || day < 1 || day > days_in_month(year, month)? {
        return None;
    }
    let days =
        days_before_year(year) + (1..month).filter_map(|month| days_in_month(year, month)).sum::<u64>();
    Some((days + day - 1) * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1_000)
}

fn digits(text: &str, count: usize) -> Option<u64> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_in_month(year: u64, month: u64) -> Option<u64> {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        4 | 6 | 9 | 11 => Some(30),
        2 => Some(if is_leap(year) { 29 } else { 28 }),
        _ => None,
    }
}

/// Days from 1970 to the first of January of `year`, which is not before 1970.
fn days_before_year(year: u64) -> u64 {
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969)
}

fn civil(at: Timestamp) -> Civil {
    let at = at.0.min(LAST_MS);
    let (days, rest) = (at / DAY_MS, at % DAY_MS);
    let weekday = usize::try_from(days % 7).ok().and_then(|place| WEEKDAYS.get(place));
    // An average year is a little shorter than 366 days, so this guess is never too late by much.
    let mut year = 1970 + days / 366;
    while days_before_year(year + 1) <= days {
        year += 1;
    }
    let mut day = days - days_before_year(year);
    let mut month = 1;
    while let Some(length) = days_in_month(year, month)
        && day >= length
    {
        day -= length;
        month += 1;
    }
    Civil {
        year,
        month,
        day: day + 1,
        weekday: weekday.copied().unwrap_or("Thu"),
        hour: rest / 3_600_000,
        minute: rest / 60_000 % 60,
        second: rest / 1_000 % 60,
        millisecond: rest % 1_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants_are_written_in_both_forms() {
        let cases = [
            (0, "1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400_000, "2000-02-29T00:00:00Z", "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_769_847_330_120, "2026-01-31T08:15:30.12Z", "Sat, 31 Jan 2026 08:15:30 GMT"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z", "Sun, 28 Feb 2100 23:59:59 GMT"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z", "Mon, 01 Mar 2100 00:00:00 GMT"),
            (u64::MAX, "9999-12-31T23:59:59.999Z", "Fri, 31 Dec 9999 23:59:59 GMT"),
        ];
        for (at, short, long) in cases {
            assert_eq!(rfc3339(Timestamp(at)), short);
            assert_eq!(rfc1123(Timestamp(at)), long);
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for day in (0..2_932_896).step_by(97) {
            let at = Timestamp(day * DAY_MS + 12_345_000);
            assert_eq!(parse(&rfc3339(at)), Some(at));
            assert_eq!(parse(&rfc1123(at)), Some(at));
        }
    }

    #[test]
    fn offsets_and_fractions_are_honoured() {
        let cases = [
            ("2026-01-31T08:15:30.1234567Z", Some(1_769_847_330_123)),
            ("2026-01-31T10:15:30+02:00", Some(1_769_847_330_000)),
            ("2026-01-31T03:45:30-04:30", Some(1_769_847_330_000)),
            ("1970-01-01T00:00:00+01:00", None),
            ("2026-02-29T00:00:00Z", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-01-31T24:00:00Z", None),
            ("2026-01-31T08:15:30", None),
            ("2026-01-31", None),
            ("Sat, 31 Jan 2026 08:15:30 CET", None),
            ("Xyz, 31 Jan 2026 08:15:30 GMT", None),
            ("", None),
            ("0001-01-01T00:00:00Z", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected.map(Timestamp), "{text}");
        }
    }
}
