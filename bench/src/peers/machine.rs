//! The machine, in words that say how fast it is and not whose it is.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, fs};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::disk;

/// Tells the run inside a system of the peers' which commit it measures.
pub(crate) const COMMIT: &str = "VORRANG_BENCH_COMMIT";

/// What figures depend on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) processor: String,
    pub(crate) memory_gb: u64,
    pub(crate) kernel: String,
    /// Whose packages the peers are.
    #[serde(default)]
    pub(crate) system: String,
    /// Processes that wanted a core when the run began, beside ours: the one-minute load.
    pub(crate) load: String,
    /// One synced write of 4 KiB after another.
    pub(crate) sync_p50_ms: f64,
    pub(crate) sync_p99_ms: f64,
}

impl Machine {
    pub(crate) fn measure(folder: &Path) -> Result<Machine> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let sync = disk::measure(folder, 4_096, Duration::from_secs(2))?;
        Ok(Machine {
            cores: thread::available_parallelism()?.get(),
            processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
            memory_gb: field(&read("/proc/meminfo"), "MemTotal")
                .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
                .map_or(0, |kilobytes| (kilobytes + 500_000) / 1_000_000),
            // What follows the version names a build, which is the machine's owner's.
            kernel: read("/proc/sys/kernel/osrelease")
                .trim()
                .split('-')
                .next()
                .unwrap_or_default()
                .to_owned(),
            system: read("/etc/os-release")
                .lines()
                .find_map(|line| line.strip_prefix("PRETTY_NAME="))
                .map(|name| name.trim_matches('"').to_owned())
                .unwrap_or_default(),
            load: read("/proc/loadavg").split_whitespace().next().unwrap_or_default().to_owned(),
            sync_p50_ms: sync.quantile_ms(500),
            sync_p99_ms: sync.quantile_ms(990),
        })
    }
}

/// The first value of that name in lines of names and values.
fn field(text: &str, name: &str) -> Option<String> {
    let (_, value) =
        text.lines().filter_map(|line| line.split_once(':')).find(|(found, _)| found.trim() == name)?;
    Some(value.trim().to_owned())
}

/// The commit of the folder this is started in, and whether what our server is made of has changed since. Nothing where there is
/// no git, or no commit.
pub(crate) fn commit() -> Option<String> {
    // Within a system of the peers' there is no git; who went in has asked before.
    if let Ok(known) = env::var(COMMIT) {
        return Some(known).filter(|known| !known.is_empty());
    }
    let ask = |words: &[&str]| {
        let output = Command::new("git").args(words).stdin(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = ask(&["rev-parse", "--short", "HEAD"])?;
    let changed = ask(&["status", "--porcelain", "--", "crates", "Cargo.toml", "Cargo.lock"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit} with changes") })
}

/// Now, in UTC, to the minute.
pub(crate) fn minute() -> String {
    minute_of(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

fn minute_of(seconds: u64) -> String {
    let (year, month, day) = date_of(seconds / 86_400);
    let (hour, minute) = (seconds / 3_600 % 24, seconds / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

/// The date so many days after 1970-01-01, counted year by year and month by month.
fn date_of(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    loop {
        let length = if leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if leap(year) { 29 } else { 28 };
    for (month, length) in (1..).zip([31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) {
        if days < length {
            return (year, month, days + 1);
        }
        days -= length;
    }
    (year, 12, 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        let cases = [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (789, (1972, 2, 29)),
            (11_016, (2000, 2, 29)),
            (20_454, (2026, 1, 1)),
        ];
        for (days, date) in cases {
            assert_eq!(date_of(days), date, "{days} days");
        }
    }

    #[test]
    fn seconds_become_minutes_of_a_day() {
        assert_eq!(minute_of(0), "1970-01-01 00:00");
        assert_eq!(minute_of(1_767_225_600 + 23 * 3_600 + 59 * 60 + 59), "2026-01-01 23:59");
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "model\t: 7\nmodel name\t: Fast One\n";
        assert_eq!(field(text, "model name").as_deref(), Some("Fast One"));
        assert_eq!(field(text, "name"), None);
    }
}
