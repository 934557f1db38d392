//! What `vorrang work` shall do, from flags or from a file: one typed value, complete before anything connects.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use vorrang_client::TlsOptions;
use vorrang_worker::external::{Exits, Target};
use vorrang_worker::plan::hours::{Hours, Window};
use vorrang_worker::plan::size::Size;
use vorrang_worker::plan::slots::{Guards, Preemptible};
use vorrang_worker::pool::{Options, Precedence, Preemption, Served, Sessions};

use super::Flags;

/// A pool and what handles its messages.
#[derive(Debug, Clone)]
pub(super) struct PoolPlan {
    pub(super) options: Options,
    pub(super) work: Work,
}

/// What handles a message.
#[derive(Debug, Clone)]
pub(super) enum Work {
    /// A command per message.
    Command { command: Vec<OsString>, exits: Exits, reply: bool },
    /// A long-lived child per slot.
    Lines { command: Vec<OsString> },
    /// An HTTP endpoint.
    Http { target: Target, time_max: Duration, tls: TlsOptions },
}

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    pool: Vec<Entry>,
}

/// One `[[pool]]` of the file; the flags make one, too.
#[derive(Debug, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Entry {
    pub(super) name: Option<String>,
    pub(super) queues: Vec<String>,
    pub(super) weights: Vec<u32>,
    pub(super) size: Option<SizeText>,
    pub(super) sessions: bool,
    pub(super) session_idle_ms: Option<u64>,
    pub(super) prefetch: usize,
    pub(super) attempts: Option<u32>,
    pub(super) retry_ms: Option<u64>,
    pub(super) retry_max_ms: Option<u64>,
    pub(super) preempt: Vec<u8>,
    pub(super) run_min_ms: u64,
    pub(super) preemptions_max: Option<u32>,
    pub(super) exempt: Vec<u8>,
    pub(super) target_ms: Option<u64>,
    pub(super) cooldown_ms: Option<u64>,
    pub(super) utc_offset_minutes: i32,
    pub(super) hours: Vec<HoursEntry>,
    pub(super) command: Vec<String>,
    pub(super) stdin: Option<Stdin>,
    pub(super) http: Option<String>,
    pub(super) http_timeout_ms: Option<u64>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) reply: bool,
    pub(super) exit: ExitEntry,
}

/// What a child's standard input gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Stdin {
    /// The body; one child per message
    Body,
    /// One JSON object per line; one long-lived child per slot
    Jsonl,
}

/// A size as a number or as text.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum SizeText {
    Number(u32),
    Text(String),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HoursEntry {
    pub(super) when: String,
    pub(super) size: SizeText,
}

/// As a flag: `mon-fri 22:00-06:00=32`.
impl FromStr for HoursEntry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (when, size) =
            text.rsplit_once('=').ok_or_else(|| format!("'{text}' is not of the form WHEN=SIZE"))?;
        Ok(HoursEntry { when: when.trim().to_owned(), size: SizeText::Text(size.trim().to_owned()) })
    }
}

#[derive(Debug, Clone, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ExitEntry {
    pub(super) complete: Option<Vec<i32>>,
    pub(super) retry: Option<Vec<i32>>,
    pub(super) dead_letter: Option<Vec<i32>>,
    pub(super) unavailable: Option<Vec<i32>>,
}

/// The pools that flags and file ask for; every mistake, together.
pub(super) fn plan(flags: &Flags) -> Result<Vec<PoolPlan>, Vec<String>> {
    let entries = match &flags.config {
        Some(path) => read(path).map_err(|problem| vec![problem])?,
        None => vec![flags.entry()],
    };
    if entries.is_empty() {
        return Err(vec!["the file names no [[pool]]".to_owned()]);
    }
    let (mut pools, mut problems) = (Vec::new(), Vec::new());
    for (index, entry) in entries.into_iter().enumerate() {
        let place = match (&flags.config, &entry.name) {
            (None, _) => String::new(),
            (Some(_), Some(name)) => format!("pool '{name}': "),
            (Some(_), None) => format!("pool {}: ", index + 1),
        };
        match entry.plan() {
            Ok(pool) => pools.push(pool),
            Err(found) => problems.extend(found.into_iter().map(|problem| format!("{place}{problem}"))),
        }
    }
    if problems.is_empty() { Ok(pools) } else { Err(problems) }
}

fn read(path: &Path) -> Result<Vec<Entry>, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let file: File = toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(file.pool)
}

impl SizeText {
    fn size(&self) -> Result<Size, String> {
        let text = match self {
            SizeText::Number(number) => number.to_string(),
            SizeText::Text(text) => text.clone(),
        };
        Size::parse(&text).map_err(|error| error.to_string())
    }
}

impl Entry {
    fn plan(self) -> Result<PoolPlan, Vec<String>> {
        let mut problems = Vec::new();
        let mut noted = |result: Result<(), String>| problems.extend(result.err());
        let size = self.size.as_ref().map_or(Ok(Size::Fixed(1)), SizeText::size);
        noted(size.as_ref().map(|_| ()).map_err(Clone::clone));
        let hours = self.hours();
        noted(hours.as_ref().map(|_| ()).map_err(Clone::clone));
        let work = self.work();
        noted(work.as_ref().map(|_| ()).map_err(Clone::clone));
        if !self.weights.is_empty() && self.weights.len() != self.queues.len() {
            noted(Err(format!(
                "{} weights for {} queues; give one for each, in their order",
                self.weights.len(),
                self.queues.len()
            )));
        }
        let mut options = Options::new(size.unwrap_or(Size::Suspended), self.queues.clone());
        if let Some(name) = &self.name {
            options.name.clone_from(name);
        }
        if !self.weights.is_empty() {
            options.order = Precedence::Weighted;
            let serves = self.queues.iter().zip(&self.weights);
            options.serves =
                serves.map(|(entity, weight)| Served { entity: entity.clone(), weight: *weight }).collect();
        }
        options.hours = hours.unwrap_or_default();
        options.prefetch = self.prefetch;
        let idle = self.session_idle_ms.map_or(Sessions::default().idle, Duration::from_millis);
        options.sessions = self.sessions.then_some(Sessions { idle });
        self.limits(&mut options);
        noted(options.check().map_err(|error| error.to_string()));
        match work {
            Ok(work) if problems.is_empty() => Ok(PoolPlan { options, work }),
            _ => Err(problems),
        }
    }

    /// Retries, preemption and scaling.
    fn limits(&self, options: &mut Options) {
        let milliseconds =
            |value: Option<u64>, default: Duration| value.map_or(default, Duration::from_millis);
        let retries = &mut options.retries;
        retries.attempts_max = self.attempts.unwrap_or(retries.attempts_max).max(1);
        retries.backoff.first = milliseconds(self.retry_ms, retries.backoff.first);
        retries.backoff.max = milliseconds(self.retry_max_ms, retries.backoff.max).max(retries.backoff.first);
        options.scaling.target = milliseconds(self.target_ms, options.scaling.target);
        options.scaling.cooldown = milliseconds(self.cooldown_ms, options.scaling.cooldown);
        if !self.preempt.is_empty() {
            let default = Guards::default();
            let guards = Guards {
                run_min: Duration::from_millis(self.run_min_ms),
                preemptions_max: self.preemptions_max.unwrap_or(default.preemptions_max),
                exempt: self.exempt.iter().map(|level| *level..=*level).collect(),
                ..default
            };
            options.preemption =
                Some(Preemption { by: Preemptible::Freeze, levels: self.preempt.clone(), guards });
        }
    }

    fn hours(&self) -> Result<Hours, String> {
        let window = |entry: &HoursEntry| {
            Window::parse(&entry.when, entry.size.size()?).map_err(|error| error.to_string())
        };
        let windows = self.hours.iter().map(window).collect::<Result<Vec<_>, String>>()?;
        Hours::new(self.utc_offset_minutes, windows).map_err(|error| error.to_string())
    }

    fn work(&self) -> Result<Work, String> {
        let command: Vec<OsString> = self.command.iter().map(OsString::from).collect();
        match (&self.http, command.is_empty(), self.stdin) {
            (Some(_), false, _) => Err("both a command and an HTTP target are given; choose one".to_owned()),
            (Some(url), true, _) => {
                let target = Target::parse(url).map_err(|error| error.to_string())?;
                let time_max = self.http_timeout_ms.map_or(Duration::from_mins(1), Duration::from_millis);
                Ok(Work::Http { target, time_max, tls: self.tls()? })
            }
            (None, true, _) => {
                Err("nothing handles the messages: give a command after --, or --http URL".to_owned())
            }
            (None, false, Some(Stdin::Jsonl)) => Ok(Work::Lines { command }),
            (None, false, _) => Ok(Work::Command { command, exits: self.exits(), reply: self.reply }),
        }
    }

    /// Whom an `https://` target is believed to be.
    fn tls(&self) -> Result<TlsOptions, String> {
        let Some(path) = &self.ca_file else { return Ok(TlsOptions::platform_roots()) };
        let pem = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        TlsOptions::roots_from_pem(&pem).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn exits(&self) -> Exits {
        let default = Exits::default();
        let exit = self.exit.clone();
        Exits {
            complete: exit.complete.unwrap_or(default.complete),
            retry: exit.retry.unwrap_or(default.retry),
            dead_letter: exit.dead_letter.unwrap_or(default.dead_letter),
            unavailable: exit.unavailable.unwrap_or(default.unavailable),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        flags: Flags,
    }

    fn given(line: &str) -> Result<Vec<PoolPlan>, Vec<String>> {
        given_with(line, &[])
    }

    /// The words of a line, and some that have spaces in them.
    fn given_with(line: &str, more: &[&str]) -> Result<Vec<PoolPlan>, Vec<String>> {
        let words = std::iter::once("work").chain(line.split_whitespace()).chain(more.iter().copied());
        plan(&Line::try_parse_from(words).unwrap().flags)
    }

    fn written(text: &str) -> Result<Vec<PoolPlan>, Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("work.toml");
        std::fs::write(&path, text).unwrap();
        given(&format!("--config {}", path.display()))
    }

    #[test]
    fn a_queue_and_a_command_are_enough() {
        let pools = given("--queue orders --concurrency 8 -- ./handle-order --fast").unwrap();
        let [PoolPlan { options, work: Work::Command { command, .. } }] = &pools[..] else {
            panic!("{pools:?}")
        };
        assert_eq!((options.name.as_str(), options.size), ("orders", Size::Fixed(8)));
        assert_eq!(command, &["./handle-order", "--fast"]);
    }

    #[test]
    fn flags_and_file_say_the_same() {
        let flags = "--queue high --queue low --weights 3,1 --concurrency 2..9 --preempt 7 --run-min-ms 50 --attempts 4 \
                     --retry-ms 5 --retry-max-ms 9 --preemptions-max 3 --exempt 9 --target-ms 70 --cooldown-ms 80 \
                     --utc-offset-minutes -60 --http http://localhost:1/x --http-timeout-ms 500";
        let file = "[[pool]]\nqueues = ['high', 'low']\nweights = [3, 1]\nsize = '2..9'\npreempt = [7]\nrun_min_ms = 50\n\
                    attempts = 4\nretry_ms = 5\nretry_max_ms = 9\npreemptions_max = 3\nexempt = [9]\ntarget_ms = 70\n\
                    cooldown_ms = 80\nhours = [{ when = 'mon-fri 08:00-18:00', size = '4' }]\nutc_offset_minutes = -60\n\
                    http = 'http://localhost:1/x'\nhttp_timeout_ms = 500\n";
        let (from_flags, from_file) =
            (given_with(flags, &["--hours", "mon-fri 08:00-18:00=4"]).unwrap(), written(file).unwrap());
        assert_eq!(format!("{from_flags:?}"), format!("{from_file:?}"));
        assert_eq!(from_file[0].options.order, Precedence::Weighted);
    }

    #[test]
    fn exit_codes_mean_what_flags_or_file_say() {
        let flags = "--queue q --exit-complete 0,3 --exit-retry 4 --exit-dead-letter 5 --exit-unavailable 6 -- ./handle";
        let file = "[[pool]]\nqueues = ['q']\nsize = '1'\ncommand = ['./handle']\n\
                    exit = { complete = [0, 3], retry = [4], dead_letter = [5], unavailable = [6] }\n";
        let (from_flags, from_file) = (given(flags).unwrap(), written(file).unwrap());
        assert_eq!(format!("{from_flags:?}"), format!("{from_file:?}"));
        let Work::Command { exits, .. } = &from_flags[0].work else { panic!("{from_flags:?}") };
        assert_eq!((&exits.complete[..], &exits.unavailable[..]), (&[0, 3][..], &[6][..]));
        let partly = given("--queue q --exit-retry 1 -- ./handle").unwrap();
        let Work::Command { exits, .. } = &partly[0].work else { panic!("{partly:?}") };
        assert_eq!(
            (&exits.retry[..], &exits.complete[..]),
            (&[1][..], &[0][..]),
            "the others keep their meaning"
        );
    }

    #[test]
    fn sessions_are_served_one_queue_at_a_time() {
        let flags = "--queue orders --concurrency 4 --sessions --session-idle-ms 200 -- ./handle";
        let file = "[[pool]]\nqueues = ['orders']\nsize = '4'\nsessions = true\nsession_idle_ms = 200\ncommand = ['./handle']\n";
        let (from_flags, from_file) = (given(flags).unwrap(), written(file).unwrap());
        assert_eq!(format!("{from_flags:?}"), format!("{from_file:?}"));
        assert_eq!(from_file[0].options.sessions, Some(Sessions { idle: Duration::from_millis(200) }));
        let problems = given("--queue a --queue b --sessions -- ./handle").unwrap_err();
        assert!(problems[0].contains("serves one entity"), "{problems:?}");
    }

    #[test]
    fn every_mistake_is_told_at_once() {
        let problems = written(
            "[[pool]]\nname = 'a'\nqueues = ['q']\nweights = [1, 2]\nsize = 'many'\nhours = [{ when = 'noon', size = 1 }]\n\
             [[pool]]\nsize = 3\ncommand = ['x']\nhttp = 'http://h'\n",
        )
        .unwrap_err();
        let expected = [
            "pool 'a': 'many'",
            "pool 'a': 'noon'",
            "nothing handles",
            "2 weights for 1",
            "pool 2: both",
            "0 entities",
        ];
        for part in expected {
            assert!(problems.iter().any(|problem| problem.contains(part)), "{part} in {problems:#?}");
        }
        let missing = given("--queue q --http https://h --ca-file /no/such/file").unwrap_err();
        assert!(missing[0].contains("cannot read /no/such/file"), "{missing:?}");
        assert!(written("[[pool]]\nqueue = ['q']").unwrap_err()[0].contains("unknown field"));
        assert!(written("").unwrap_err()[0].contains("no [[pool]]"));
        assert!(given("--queue q").unwrap_err()[0].contains("nothing handles"));
    }
}
