//! `vorrang doctor`: is everything in place for a broker, and is the one that runs well?
//!
//! Nothing is changed: the data directory is read, the disk is measured with a file that is removed again, and a
//! running broker is only asked. Whatever is found is told together; the worst decides how the command ends.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use serde::Serialize;
use vorrang_engine::Span;
use vorrang_log::Options as LogOptions;
use vorrang_log::disk::Trouble;
use vorrang_server::config::{Config, Problems, Source};
use vorrang_server::http::api::model::{Clock, Namespace};
use vorrang_server::settings::{Ports, Settings};
use vorrang_server::{date, duration};

use crate::api::Api;
use crate::connection::{self, Connection};
use crate::failure::{Failure, Outcome};
use crate::messages::seconds;
use crate::output::{self, Cell, Format, Mood, Table};
use crate::settings::Given;

/// A disk that syncs slower than this makes every acknowledgement wait noticeably.
const SYNC_SLOW: Duration = Duration::from_millis(20);
/// Syncs that are measured.
const SYNCS: usize = 16;
/// A clock before this (1 January 2025) was never set.
const CLOCK_PLAUSIBLE_S: u64 = 1_735_689_600;

/// What `doctor` can be told: what `serve` can, because it looks at what `serve` would use.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    given: Given,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    state: State,
    detail: String,
}

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
enum State {
    Ok,
    Note,
    Warning,
    Bad,
}

/// Looks at everything and tells it.
pub(crate) fn run(options: &Options, connection: &connection::Options, format: Format) -> Outcome {
    let (config, configuration) = configuration(options.given.load());
    let folder = &config.settings.data_dir;
    let named = matches!(config.source("data_dir"), Source::Flag(_) | Source::Variable(_));
    if named && !folder.is_dir() {
        let text = format!("there is no data directory at {}; name one with --data-dir", folder.display());
        return Err(Failure::NotFound(text));
    }
    let mut findings = vec![configuration, data(folder), disk(folder), clock()];
    findings.extend(ports(&config.settings));
    findings.extend(broker(connection, &config.settings));
    if format == Format::Json {
        output::json(&findings)?;
    } else {
        table(&findings).print()?;
    }
    let bad: Vec<&str> =
        findings.iter().filter(|finding| finding.state == State::Bad).map(|finding| finding.check).collect();
    if bad.is_empty() {
        return Ok(());
    }
    Err(Failure::Unsound(format!("look at: {}", bad.join(", "))))
}

fn table(findings: &[Finding]) -> Table {
    let mut table = Table::new(&["check", "state", "what"]);
    for finding in findings {
        let (word, mood) = match finding.state {
            State::Ok => ("ok", Mood::Good),
            State::Note => ("note", Mood::Plain),
            State::Warning => ("warning", Mood::Warning),
            State::Bad => ("bad", Mood::Bad),
        };
        let mut lines = finding.detail.lines();
        let first = lines.next().unwrap_or_default();
        table.row(vec![finding.check.into(), Cell::from(word).in_mood(mood), first.into()]);
        for line in lines {
            table.row(vec!["".into(), "".into(), line.into()]);
        }
    }
    table
}

/// The configuration `serve` would have; if it is wrong, what is wrong with it, and the defaults to look on with.
fn configuration(loaded: Result<Config, Problems>) -> (Config, Finding) {
    let check = "configuration";
    match loaded {
        Ok(config) => (config, Finding { check, state: State::Ok, detail: "sound".to_owned() }),
        Err(problems) => {
            let detail = format!("`vorrang serve` would not start with it:\n{problems}");
            (
                Config::default(),
                Finding { check, state: State::Bad, detail: output::printable_lines(&detail) },
            )
        }
    }
}

/// Reads every byte that has a checksum.
fn data(folder: &Path) -> Finding {
    let check = "data directory";
    let shown = folder.display();
    if !folder.is_dir() {
        let detail = format!("{shown} is not there yet; the first start makes it");
        return Finding { check, state: State::Note, detail };
    }
    match vorrang_log::verify(folder, &LogOptions::default()) {
        Ok(report) if report.is_sound() => {
            Finding { check, state: State::Ok, detail: format!("{shown} is sound\n{report}") }
        }
        Ok(report) => {
            let advice = "keep a copy of it before anything else, then restore a backup";
            Finding { check, state: State::Bad, detail: format!("{shown} is damaged; {advice}\n{report}") }
        }
        Err(error) if error.trouble == Trouble::Locked => {
            let detail = format!("{shown} is in use by a broker; stop it to have the data verified");
            Finding { check, state: State::Note, detail }
        }
        Err(error) => Finding { check, state: State::Bad, detail: error.to_string() },
    }
}

/// Measures how long a small write takes to be safe.
fn disk(folder: &Path) -> Finding {
    let check = "disk speed";
    let place = if folder.is_dir() { folder } else { folder.parent().unwrap_or(Path::new(".")) };
    let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
    match measure(place) {
        Ok(median) => {
            let slow = median > SYNC_SLOW;
            let advice =
                if slow { "; every acknowledgement waits for one, so a faster disk helps" } else { "" };
            let detail = format!("a write of 4 KiB is safe after {}{advice}", seconds(median.as_secs_f64()));
            Finding { check, state: if slow { State::Warning } else { State::Ok }, detail }
        }
        Err(error) => {
            let detail = format!("cannot write in {}: {error}", place.display());
            Finding { check, state: State::Bad, detail }
        }
    }
}

fn measure(place: &Path) -> io::Result<Duration> {
    let path = place.join(format!(".vorrang-doctor-{}", std::process::id()));
    let mut file = File::create_new(&path)?;
    let mut syncs = || {
        let mut times = Vec::with_capacity(SYNCS);
        for _ in 0..SYNCS {
            let start = Instant::now();
            file.write_all(&[0; 4_096])?;
            file.sync_data()?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        Ok(times.get(SYNCS / 2).copied().unwrap_or_default())
    };
    let measured = syncs();
    fs::remove_file(&path)?;
    measured
}

fn clock() -> Finding {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    if now.as_secs() < CLOCK_PLAUSIBLE_S {
        let detail = "it was never set; tokens and schedules need the time of day".to_owned();
        return Finding { check: "clock", state: State::Bad, detail };
    }
    Finding { check: "clock", state: State::Ok, detail: "plausible".to_owned() }
}

fn ports(settings: &Settings) -> Vec<Finding> {
    let Ports { amqp, amqps, http, https } = settings.ports;
    let (host, plain) = (settings.host, settings.plain_host());
    let doors = [
        ("port AMQP", plain, amqp),
        ("port AMQPS", host, amqps),
        ("port HTTP", plain, http),
        ("port HTTPS", host, https),
    ];
    doors
        .into_iter()
        .map(|(check, host, port)| match TcpListener::bind((host, port)) {
            Ok(_) if port == 0 => {
                Finding { check, state: State::Ok, detail: format!("{host} has a free one") }
            }
            Ok(_) => Finding { check, state: State::Ok, detail: format!("{host}:{port} is free") },
            Err(error) => {
                let detail = format!("{host}:{port} cannot be had ({error}); a running broker may have it");
                Finding { check, state: State::Note, detail }
            }
        })
        .collect()
}

/// Asks a running broker, if there is one: the one the connection names, else the one `serve` would be.
fn broker(options: &connection::Options, settings: &Settings) -> Vec<Finding> {
    let check = "broker";
    let (connection, said) = match options.connection_or(|| Connection::configured(settings)) {
        Ok(connection) => connection,
        Err(failure) => return vec![Finding { check, state: State::Bad, detail: failure.to_string() }],
    };
    let amqp = amqp(&connection.amqp);
    let api = Api::new(connection);
    let health = match api.probe("/readyz") {
        Ok((200, _)) => Finding { check, state: State::Ok, detail: format!("{} is ready", api.address()) },
        Ok((status, text)) => {
            let detail =
                format!("{} is not ready (HTTP {status}): {}", api.address(), output::printable(&text));
            Finding { check, state: State::Bad, detail }
        }
        Err(_) => {
            let detail = format!("none answers at {}", api.address());
            return vec![Finding { check, state: State::Note, detail }];
        }
    };
    let before = SystemTime::now();
    let answer = match api.get::<Namespace>("/api/namespace") {
        Ok(namespace) => {
            let detail = format!("version {}, since {}", namespace.version, namespace.started_at);
            // A developer's broker may have been told to live in the future; that is not its clock's fault.
            let ahead = api.get::<Clock>("/dev/clock").ok();
            let ahead = ahead.and_then(|clock| duration::parse(&clock.ahead).ok()).unwrap_or_default();
            vec![Finding { check: "key", state: State::Ok, detail }, skew(&namespace.now, ahead, before)]
        }
        // Nobody named a key, and the one that everybody knows is rightly refused.
        Err(Failure::Forbidden(_)) if !said => {
            let detail = "not tried; give the connection string to have the rest looked at".to_owned();
            vec![Finding { check: "key", state: State::Note, detail }]
        }
        Err(failure) => vec![Finding { check: "key", state: State::Bad, detail: failure.to_string() }],
    };
    [health, amqp].into_iter().chain(answer).collect()
}

/// Whether somebody is at the AMQP door of a broker whose HTTP door answers.
fn amqp((host, port): &(String, u16)) -> Finding {
    let check = "broker's AMQP";
    let host = host.trim_matches(['[', ']']);
    match TcpStream::connect((host, *port)) {
        Ok(_) => Finding { check, state: State::Ok, detail: format!("{host}:{port} answers") },
        Err(error) => {
            let detail = format!("{host}:{port} does not answer ({error}); check the Endpoint");
            Finding { check, state: State::Warning, detail }
        }
    }
}

/// How far the broker's clock is from ours; `ahead` of that a developer set it.
fn skew(theirs: &str, ahead: Span, ours: SystemTime) -> Finding {
    let check = "broker's clock";
    let Some(theirs) = date::parse(theirs) else {
        return Finding { check, state: State::Warning, detail: "its time cannot be read".to_owned() };
    };
    let ours = ours.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let apart = (theirs.0.saturating_sub(ahead.0) / 1_000).abs_diff(ours);
    let state = if apart > 60 { State::Warning } else { State::Ok };
    let advice = if apart > 60 { "; tokens may be refused, set both clocks" } else { "" };
    let set = match ahead {
        Span(0) => String::new(),
        ahead => {
            format!(", beside the {} it was set ahead with `vorrang dev advance`", duration::to_short(ahead))
        }
    };
    Finding { check, state, detail: format!("{apart} s from this machine's{set}{advice}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measuring_the_disk_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        assert_ne!(disk(&folder.path().join("data")).state, State::Bad);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_clock_that_a_developer_set_ahead_is_not_wrong() {
        let ours = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
        let theirs = |seconds: u64| date::rfc3339(vorrang_engine::Timestamp(seconds * 1_000));
        let cases = [
            ("the same", 1_800_000_000, 0, State::Ok),
            ("a minute off", 1_800_000_060, 0, State::Ok),
            ("more", 1_800_000_061, 0, State::Warning),
            ("set ahead", 1_800_003_600, 3_600, State::Ok),
            ("set ahead, and off", 1_800_003_661, 3_600, State::Warning),
        ];
        for (case, seconds, ahead, expected) in cases {
            assert_eq!(skew(&theirs(seconds), Span::seconds(ahead), ours).state, expected, "{case}");
        }
    }
}
