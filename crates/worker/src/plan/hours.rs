//! Hours of the week in which a pool has another size: nights for the low pools, working days without them.
//!
//! A window belongs to the day it begins on, and may run past midnight. Where windows overlap the first one
//! listed wins. Hours are counted at a fixed distance from UTC: the worker knows no time zones, and says so
//! rather than being wrong twice a year.

use super::size::Size;

const DAY: u32 = 24 * 60;
const WEEK: u32 = 7 * DAY;
/// Windows one pool may have.
pub const WINDOWS_MAX: usize = 64;
const NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// One window, each week.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Which days it begins on, Monday first.
    days: [bool; 7],
    /// Minutes after midnight.
    from: u32,
    /// How many minutes it lasts.
    minutes: u32,
    /// The pool's size in it.
    size: Size,
}

/// All windows of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hours {
    /// Minutes east of UTC.
    offset_minutes: i32,
    windows: Vec<Window>,
}

/// Why hours cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not days and times.
    #[error(
        "'{text}' is not a window: write days and times, as in 'mon-fri 22:00-06:00' or 'daily 12:00-13:00'"
    )]
    Form {
        /// What was written.
        text: String,
    },
    /// Further from UTC than any place is.
    #[error("an offset of {minutes} minutes from UTC exceeds the limit of 14 hours")]
    Offset {
        /// What was asked for.
        minutes: i32,
    },
    /// More windows than a pool may have.
    #[error("{count} windows exceed the limit of {WINDOWS_MAX}")]
    TooMany {
        /// How many there are.
        count: usize,
    },
}

impl Window {
    /// Reads `mon-fri 22:00-06:00`, `sat,sun 00:00-24:00`, `daily 12:00-13:00`.
    pub fn parse(text: &str, size: Size) -> Result<Window, Error> {
        let window = || {
            let (days, times) = text.trim().split_once(char::is_whitespace)?;
            let (from, to) = times.trim().split_once('-')?;
            let (from, to) = (minute_of_day(from)?, minute_of_day(to)?);
            if from >= DAY {
                return None;
            }
            // A window that ends when it begins lasts a whole day.
            let minutes = if to > from { to - from } else { to.checked_add(DAY)?.checked_sub(from)? };
            Some(Window { days: days_of(days)?, from, minutes, size })
        };
        window().ok_or_else(|| Error::Form { text: text.to_owned() })
    }

    /// The minutes of the week at which it begins and ends, for each of its days.
    fn spans(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..7_u32).zip(self.days).filter(|(_, on)| *on).map(|(day, _)| {
            let from = day * DAY + self.from;
            (from, from + self.minutes)
        })
    }

    fn covers(&self, minute: u32) -> bool {
        // The end of Sunday's window may lie in the next week.
        self.spans().any(|(from, to)| (from..to).contains(&minute) || (from..to).contains(&(minute + WEEK)))
    }
}

impl Hours {
    /// The windows of a place so many minutes east of UTC, the most important first.
    pub fn new(offset_minutes: i32, windows: Vec<Window>) -> Result<Hours, Error> {
        if offset_minutes.abs() > 14 * 60 {
            return Err(Error::Offset { minutes: offset_minutes });
        }
        if windows.len() > WINDOWS_MAX {
            return Err(Error::TooMany { count: windows.len() });
        }
        Ok(Hours { offset_minutes, windows })
    }

    /// The size that holds at this time, where a window names one.
    pub fn size_at(&self, unix_seconds: u64) -> Option<Size> {
        let minute = self.minute_of_week(unix_seconds);
        self.windows.iter().find(|window| window.covers(minute)).map(|window| window.size)
    }

    /// After how many seconds a window begins or ends next; none if there are no windows.
    pub fn seconds_to_change(&self, unix_seconds: u64) -> Option<u64> {
        let minute = self.minute_of_week(unix_seconds);
        let edges = self.windows.iter().flat_map(Window::spans).flat_map(|(from, to)| [from, to]);
        let ahead = edges.map(|edge| match (edge % WEEK + WEEK - minute) % WEEK {
            0 => WEEK,
            minutes => minutes,
        });
        ahead.min().map(|minutes| u64::from(minutes) * 60 - unix_seconds % 60)
    }

    fn minute_of_week(&self, unix_seconds: u64) -> u32 {
        let minutes = i64::try_from(unix_seconds / 60).unwrap_or(i64::MAX);
        let local = minutes.saturating_add(i64::from(self.offset_minutes));
        // 1 January 1970 was a Thursday: the fourth day of its week.
        let minute = local.saturating_add(i64::from(3 * DAY)).rem_euclid(i64::from(WEEK));
        u32::try_from(minute).unwrap_or(0)
    }
}

fn days_of(text: &str) -> Option<[bool; 7]> {
    if text.eq_ignore_ascii_case("daily") {
        return Some([true; 7]);
    }
    let number = |name: &str| NAMES.iter().position(|known| known.eq_ignore_ascii_case(name));
    let mut days = [false; 7];
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        let length = (last + 7 - first) % 7;
        for day in (first..=first + length).map(|day| day % 7) {
            *days.get_mut(day)? = true;
        }
    }
    Some(days)
}

fn minute_of_day(text: &str) -> Option<u32> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let two = |part: &str| (part.len() == 2).then(|| part.parse::<u32>().ok()).flatten();
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    let minute = hours * 60 + minutes;
    (minutes < 60 && minute <= DAY).then_some(minute)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Monday, 5 January 1970, 00:00 UTC.
    const MONDAY: u64 = 4 * 86_400;

    fn at(day: u64, hour: u64, minute: u64) -> u64 {
        MONDAY + day * 86_400 + hour * 3_600 + minute * 60
    }

    fn hours(offset: i32, windows: &[(&str, Size)]) -> Hours {
        let windows = windows.iter().map(|(text, size)| Window::parse(text, *size).unwrap());
        Hours::new(offset, windows.collect()).unwrap()
    }

    #[test]
    fn a_window_holds_from_its_first_minute_until_before_its_last() {
        let night = hours(0, &[("mon-fri 22:00-06:00", Size::Fixed(9))]);
        let cases = [
            ("before it begins", at(0, 21, 59), false),
            ("as it begins", at(0, 22, 0), true),
            ("past midnight", at(1, 5, 59), true),
            ("as it ends", at(1, 6, 0), false),
            ("Friday's runs into Saturday", at(5, 3, 0), true),
            ("Saturday has none", at(5, 22, 0), false),
            ("Sunday's would run into Monday", at(0, 3, 0), false),
        ];
        for (case, now, inside) in cases {
            assert_eq!(night.size_at(now), inside.then_some(Size::Fixed(9)), "{case}");
        }
        let sunday = hours(0, &[("sun 22:00-06:00", Size::Suspended)]);
        assert_eq!(
            sunday.size_at(at(0, 3, 0)),
            Some(Size::Suspended),
            "the week's end runs into its beginning"
        );
    }

    #[test]
    fn the_first_window_listed_wins_and_the_offset_counts() {
        let both = hours(60, &[("daily 12:00-13:00", Size::Suspended), ("mon 00:00-24:00", Size::Fixed(2))]);
        assert_eq!(both.size_at(at(0, 11, 0)), Some(Size::Suspended), "noon one hour east");
        assert_eq!(both.size_at(at(0, 12, 0)), Some(Size::Fixed(2)));
        assert_eq!(both.size_at(at(0, 23, 0)), None, "there it is Tuesday");
        assert_eq!(Hours::default().size_at(0), None);
    }

    #[test]
    fn what_is_no_window_is_refused() {
        for text in [
            "",
            "mon",
            "mon 22:00",
            "mon 22:00-",
            "xyz 10:00-11:00",
            "mon 24:00-25:00",
            "mon 9:00-10:00",
            "mon 10:60-11:00",
            "mon- 10:00-11:00",
            "mon 10:00-24:01",
            "mon -1:00-02:00",
        ] {
            assert!(Window::parse(text, Size::Suspended).is_err(), "{text}");
        }
        assert_eq!(Hours::new(841, Vec::new()), Err(Error::Offset { minutes: 841 }));
        let window = Window::parse("daily 00:00-01:00", Size::Suspended).unwrap();
        assert!(Hours::new(0, vec![window.clone(); WINDOWS_MAX]).is_ok());
        assert_eq!(
            Hours::new(0, vec![window; WINDOWS_MAX + 1]),
            Err(Error::TooMany { count: WINDOWS_MAX + 1 })
        );
    }

    proptest! {
        /// Until the announced change nothing changes, so a pool may sleep until then.
        #[test]
        fn nothing_changes_before_the_announced_change(
            now in MONDAY..MONDAY + 14 * 86_400,
            from in 0_u32..1_440,
            to in 0_u32..=1_440,
            offset in -840_i32..=840,
        ) {
            let text = format!("tue,fri-sun {:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60);
            let hours = hours(offset, &[(&text, Size::Suspended)]);
            let change = hours.seconds_to_change(now).unwrap();
            let before = hours.size_at(now);
            for fraction in 0..20 {
                prop_assert_eq!(hours.size_at(now + change * fraction / 20), before);
            }
            prop_assert_eq!(hours.size_at(now + change - 1), before);
        }
    }
}
