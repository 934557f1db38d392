//! `vorrang work`: a worker for everybody, without Rust.
//!
//! A command per message, a long-lived child per slot, or an HTTP endpoint handles what the queues hold; pools,
//! order, preemption, autoscaling and graceful stop are those of the worker crate.

mod pools;
mod status;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use tokio::signal::unix::{SignalKind, signal};
use vorrang_client::{Client, Error};
use vorrang_worker::external::{CommandHandler, HttpHandler, LineHandler};
use vorrang_worker::pool::{OnProblem, Pool, StartError};

use crate::connection::Connection;
use crate::failure::{Failure, Outcome};

use pools::{Entry, ExitEntry, HoursEntry, PoolPlan, SizeText, Stdin, Work};

/// Handle messages with a command, a long-lived child per slot, or an HTTP endpoint
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    flags: Flags,
    /// How long running tasks may go on after a stop is asked for, in seconds
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    drain: u64,
    /// Write the status as JSON lines even to a terminal
    #[arg(long)]
    json: bool,
    /// Seconds between two lines of status when it is written as JSON
    #[arg(long, default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    interval: u64,
}

/// Which pools there are; a file replaces all of these.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// A TOML file with a table for each pool, instead of the flags
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// A queue, or TOPIC/Subscriptions/NAME; given several times, the most important first
    #[arg(long = "queue", value_name = "PATH")]
    queues: Vec<String>,
    /// Serve the queues by turns, with these weights, instead of strictly in order
    #[arg(long, value_delimiter = ',', value_name = "N,N")]
    weights: Vec<u32>,
    /// How many messages are handled at once: 8, 2..16 to follow the load, or suspended
    #[arg(long, value_name = "SIZE", default_value = "1")]
    concurrency: String,
    /// The queue requires sessions: serve so many of them at once as --concurrency says, each in order
    #[arg(long)]
    sessions: bool,
    /// How long a session without messages is kept, in milliseconds
    #[arg(long, value_name = "MS", requires = "sessions")]
    session_idle_ms: Option<u64>,
    /// Messages fetched ahead of a free slot
    #[arg(long, default_value_t = 0, value_name = "N")]
    prefetch: usize,
    /// Failed deliveries after which a message is dead-lettered
    #[arg(long, value_name = "N")]
    attempts: Option<u32>,
    /// The pause before the first retry, in milliseconds; it doubles with each
    #[arg(long, value_name = "MS")]
    retry_ms: Option<u64>,
    /// The longest pause before a retry, in milliseconds
    #[arg(long, value_name = "MS")]
    retry_max_ms: Option<u64>,
    /// Stop lower work for messages of these levels and above
    #[arg(long, value_delimiter = ',', value_name = "LEVEL")]
    preempt: Vec<u8>,
    /// How long a task runs before it can be stopped for another, in milliseconds
    #[arg(long, default_value_t = 0, value_name = "MS")]
    run_min_ms: u64,
    /// How often a task can be stopped for others
    #[arg(long, value_name = "N")]
    preemptions_max: Option<u32>,
    /// Levels whose tasks are never stopped
    #[arg(long, value_delimiter = ',', value_name = "LEVEL")]
    exempt: Vec<u8>,
    /// The longest a message should wait, in milliseconds; a pool with bounds grows to keep it
    #[arg(long, value_name = "MS")]
    target_ms: Option<u64>,
    /// How long a pool with bounds keeps a size that is no longer needed, in milliseconds
    #[arg(long, value_name = "MS")]
    cooldown_ms: Option<u64>,
    /// Another size in hours of the week, such as "mon-fri 22:00-06:00=32"; can be given several times
    #[arg(long, value_name = "WHEN=SIZE")]
    hours: Vec<HoursEntry>,
    /// How far local time is from UTC, in minutes, for --hours
    #[arg(long, default_value_t = 0, value_name = "MINUTES", allow_negative_numbers = true)]
    utc_offset_minutes: i32,
    /// What the command's standard input gets
    #[arg(long, value_enum)]
    stdin: Option<Stdin>,
    /// Post each message to this URL instead of running a command
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    http: Option<String>,
    /// How long an endpoint may take to answer, in milliseconds
    #[arg(long, value_name = "MS", requires = "http")]
    http_timeout_ms: Option<u64>,
    /// The certificates, in PEM, that an https:// URL is checked against instead of the system's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "http")]
    ca_file: Option<PathBuf>,
    /// Send what the command writes to its standard output to whoever asked for an answer
    #[arg(long)]
    reply: bool,
    /// Exit codes that complete the message [default: 0]
    #[arg(long, value_delimiter = ',', value_name = "CODE")]
    exit_complete: Option<Vec<i32>>,
    /// Exit codes that mean: try again after the back-off [default: 75]
    #[arg(long, value_delimiter = ',', value_name = "CODE")]
    exit_retry: Option<Vec<i32>>,
    /// Exit codes that dead-letter the message [default: 65]
    #[arg(long, value_delimiter = ',', value_name = "CODE")]
    exit_dead_letter: Option<Vec<i32>>,
    /// Exit codes that mean: something the command needs is down [default: 69]
    #[arg(long, value_delimiter = ',', value_name = "CODE")]
    exit_unavailable: Option<Vec<i32>>,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<String>,
}

impl Flags {
    fn entry(&self) -> Entry {
        Entry {
            name: None,
            queues: self.queues.clone(),
            weights: self.weights.clone(),
            size: Some(SizeText::Text(self.concurrency.clone())),
            sessions: self.sessions,
            session_idle_ms: self.session_idle_ms,
            prefetch: self.prefetch,
            attempts: self.attempts,
            retry_ms: self.retry_ms,
            retry_max_ms: self.retry_max_ms,
            preempt: self.preempt.clone(),
            run_min_ms: self.run_min_ms,
            preemptions_max: self.preemptions_max,
            exempt: self.exempt.clone(),
            target_ms: self.target_ms,
            cooldown_ms: self.cooldown_ms,
            utc_offset_minutes: self.utc_offset_minutes,
            hours: self.hours.clone(),
            command: self.command.clone(),
            stdin: self.stdin,
            http: self.http.clone(),
            http_timeout_ms: self.http_timeout_ms,
            ca_file: self.ca_file.clone(),
            reply: self.reply,
            exit: ExitEntry {
                complete: self.exit_complete.clone(),
                retry: self.exit_retry.clone(),
                dead_letter: self.exit_dead_letter.clone(),
                unavailable: self.exit_unavailable.clone(),
            },
        }
    }
}

/// Works until it is interrupted, then lets running tasks finish.
pub(crate) fn run(options: &Options, connection: &Connection) -> Outcome {
    let plans = pools::plan(&options.flags).map_err(|problems| Failure::Usage(problems.join("\n  ")))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(work(options, connection, plans))
}

async fn work(options: &Options, connection: &Connection, plans: Vec<PoolPlan>) -> Outcome {
    let client = connect(connection).await?;
    let status = Arc::new(status::Status::new(options.json));
    let mut running = Vec::new();
    for plan in plans {
        running.push(start(&client, plan, &status).await.map_err(failure)?);
    }
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let period =
        if status.is_live() { Duration::from_millis(500) } else { Duration::from_secs(options.interval) };
    let mut ticks = tokio::time::interval(period);
    loop {
        tokio::select! {
            _ = ticks.tick() => status.show(&running),
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
        }
    }
    status.note("stopping: running tasks may finish; interrupt again to drop them");
    let drain = Duration::from_secs(options.drain);
    let stop = async {
        for pool in &running {
            pool.begin_stop(drain).await;
        }
        for pool in &running {
            pool.stopped().await;
        }
    };
    tokio::select! {
        () = stop => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    status.show(&running);
    client.close().await.map_err(failure)
}

async fn start(client: &Client, plan: PoolPlan, status: &Arc<status::Status>) -> Result<Pool, StartError> {
    let on_problem: OnProblem = {
        let status = Arc::clone(status);
        Arc::new(move |problem| status.note(&problem.to_string()))
    };
    let builder = Pool::builder(client, plan.options).on_problem(on_problem);
    match plan.work {
        Work::Command { command, exits, reply } => {
            let (program, arguments) = split(command);
            builder.start(CommandHandler::new(program, arguments).exits(exits).reply(reply)).await
        }
        Work::Lines { command } => {
            let (program, arguments) = split(command);
            builder.start(LineHandler::new(program, arguments)).await
        }
        Work::Http { target, time_max, tls } => {
            builder.start(HttpHandler::new(target, time_max, &tls)?).await
        }
    }
}

fn split(command: Vec<std::ffi::OsString>) -> (std::ffi::OsString, Vec<std::ffi::OsString>) {
    let mut words = command.into_iter();
    (words.next().unwrap_or_default(), words.collect())
}

/// Connects to the broker that flags, environment or profile name.
async fn connect(connection: &Connection) -> Result<Client, Failure> {
    connection.client().await.map_err(failure)
}

fn failure(error: impl Into<StartError>) -> Failure {
    match error.into() {
        StartError::Options(error) => Failure::Usage(error.to_string()),
        StartError::Client(error) => match error {
            Error::Disconnected { .. } | Error::Timeout(_) => Failure::Unreachable(error.to_string()),
            Error::Unauthorized(_) => Failure::Forbidden(error.to_string()),
            Error::NotFound(_) => Failure::NotFound(error.to_string()),
            Error::ConnectionString(_) => Failure::Usage(error.to_string()),
            error => Failure::Refused(error.to_string()),
        },
    }
}
