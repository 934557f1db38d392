//! Durations as people and Service Bus write them: `30s`, `5m`, `PT30S`, `P1DT2H`.
//!
//! .NET's largest `TimeSpan` (and anything longer) means *forever*, and so does that word.

use vorrang_engine::Span;

/// What is wrong with a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no duration; write it like 30s, 5m, 2h, 1d, or in ISO 8601 like PT30S or P1DT2H")]
pub struct Error {
    text: String,
}

/// .NET's `TimeSpan.MaxValue`, in whole milliseconds.
const TIMESPAN_MAX_MS: u64 = 922_337_203_685_477;

const FOREVER: &str = "forever";

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// Reads either form.
pub fn parse(text: &str) -> Result<Span, Error> {
    let trimmed = text.trim();
    if trimmed.eq_ignore_ascii_case(FOREVER) {
        return Ok(Span::FOREVER);
    }
    let milliseconds = match trimmed.strip_prefix(['P', 'p']) {
        Some(rest) => iso(rest),
        None => short(trimmed),
    };
    match milliseconds {
        Some(milliseconds) if milliseconds >= TIMESPAN_MAX_MS => Ok(Span::FOREVER),
        Some(milliseconds) => Ok(Span(milliseconds)),
        None => Err(Error { text: text.chars().take(64).collect() }),
    }
}

/// Writes a span in ISO 8601, forever as .NET's largest `TimeSpan`.
#[must_use]
pub fn to_iso(span: Span) -> String {
    if span.0 >= TIMESPAN_MAX_MS {
        return "P10675199DT2H48M5.4775807S".to_owned();
    }
    let days = match span.0 / DAY_MS {
        0 => String::new(),
        days => format!("{days}D"),
    };
    let rest = span.0 % DAY_MS;
    if rest == 0 && !days.is_empty() {
        return format!("P{days}");
    }
    let part = |size: u64, within: u64, unit: char| match rest % within / size {
        0 => String::new(),
        count => format!("{count}{unit}"),
    };
    let hours = part(HOUR_MS, DAY_MS, 'H');
    let minutes = part(MINUTE_MS, HOUR_MS, 'M');
    let seconds = match (rest % MINUTE_MS / SECOND_MS, rest % SECOND_MS) {
        (0, 0) if rest > 0 => String::new(),
        (seconds, 0) => format!("{seconds}S"),
        (seconds, milliseconds) => {
            let fraction = format!("{milliseconds:03}");
            format!("{seconds}.{}S", fraction.trim_end_matches('0'))
        }
    };
    format!("P{days}T{hours}{minutes}{seconds}")
}

/// Writes a span as people do, in the largest unit that keeps it whole: `30s`, `5m`, `forever`.
#[must_use]
pub fn to_short(span: Span) -> String {
    if span.0 >= TIMESPAN_MAX_MS {
        return FOREVER.to_owned();
    }
    let units = [(DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "m"), (SECOND_MS, "s")];
    let whole = units.iter().find(|(size, _)| span.0 >= *size && span.0.is_multiple_of(*size));
    match whole {
        Some((size, unit)) => format!("{}{unit}", span.0 / size),
        None => format!("{}ms", span.0),
    }
}

/// `nD T nH nM n[.f]S`, units in this order, at least one of them. Years and months have no fixed length.
fn iso(text: &str) -> Option<u64> {
    let (date, time) = match text.split_once(['T', 't']) {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return None,
        None => (text, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let date = units(date, &[('W', 7 * DAY_MS), ('D', DAY_MS)])?;
    let time = units(time, &[('H', HOUR_MS), ('M', MINUTE_MS), ('S', SECOND_MS)])?;
    Some(date.saturating_add(time))
}

/// Numbers with their units; each unit at most once and in the order given.
fn units(mut text: &str, mut known: &[(char, u64)]) -> Option<u64> {
    let mut total = 0_u64;
    while !text.is_empty() {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, rest) = text.split_at(end);
        let unit = rest.chars().next()?.to_ascii_uppercase();
        let place = known.iter().position(|(name, _)| *name == unit)?;
        let (_, size) = known.get(place)?;
        total = total.saturating_add(scaled(number, *size)?);
        known = known.get(place + 1..)?;
        text = rest.get(1..)?;
    }
    Some(total)
}

/// `30s`, `500ms`, `1.5h`.
fn short(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    let size = match unit.trim().to_ascii_lowercase().as_str() {
        "ms" => 1,
        "s" => SECOND_MS,
        "m" | "min" => MINUTE_MS,
        "h" => HOUR_MS,
        "d" => DAY_MS,
        _ => return None,
    };
    scaled(number, size)
}

/// A decimal number times a unit, in milliseconds; what is finer is cut off, what is larger saturates.
fn scaled(number: &str, size: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole = whole.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(size);
    let mut part = 0_u64;
    let mut unit = size;
    for digit in fraction.chars().take(18) {
        unit /= 10;
        part += u64::from(digit.to_digit(10)?) * unit;
    }
    Some(whole.saturating_add(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_writing_are_read() {
        let cases = [
            ("30s", 30_000),
            ("500ms", 500),
            ("5m", 300_000),
            ("1.5h", 5_400_000),
            ("2d", 172_800_000),
            ("PT30S", 30_000),
            ("PT1M", 60_000),
            ("pt1h", 3_600_000),
            ("P1DT2H3M4.5S", 93_784_500),
            ("P14D", 1_209_600_000),
            ("P2W", 1_209_600_000),
            ("PT0.001S", 1),
            ("PT0S", 0),
            ("P10675199DT2H48M5.4775807S", u64::MAX),
            ("P99999999999999999999D", u64::MAX),
        ];
        for (text, milliseconds) in cases {
            assert_eq!(parse(text), Ok(Span(milliseconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_by_name() {
        for text in [
            "",
            "30",
            "s",
            "P",
            "PT",
            "P1",
            "PT5",
            "P1M",
            "PT1S1M",
            "PT1S2S",
            "1.2.3s",
            "-5s",
            "5 parsecs",
            "PTS",
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("'{text}' is no duration")), "{error}");
        }
    }

    #[test]
    fn written_spans_read_back_the_same() {
        for milliseconds in
            [0, 1, 500, 1_000, 60_000, 61_001, 3_600_000, 86_400_000, 90_000_000, 93_784_500, u64::MAX]
        {
            for text in [to_iso(Span(milliseconds)), to_short(Span(milliseconds))] {
                assert_eq!(parse(&text), Ok(Span(milliseconds)), "{text}");
            }
        }
        assert_eq!(to_iso(Span::minutes(1)), "PT1M");
        assert_eq!(to_iso(Span::days(14)), "P14D");
        assert_eq!(to_iso(Span(0)), "PT0S");
        let short = [
            (0, "0ms"),
            (1_500, "1500ms"),
            (30_000, "30s"),
            (300_000, "5m"),
            (5_400_000, "90m"),
            (172_800_000, "2d"),
        ];
        for (milliseconds, text) in short {
            assert_eq!(to_short(Span(milliseconds)), text);
        }
        assert_eq!(to_short(Span::FOREVER), "forever");
    }
}
