//! Looking at messages and moving them up: `peek`, `explain`, `reprioritise`, `session list`, `pause`, `resume`.

use clap::{ArgGroup, Args, Subcommand};
use serde_json::Value;
use vorrang_server::http::api::model::{
    Entity, Explanation, Message, MessageBody, ReprioritiseReport, ReprioritiseRequest, Selection, Session,
};

use crate::api::{Api, entity_path};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, Table};
use crate::{entity, percent};

/// A place where messages lie.
#[derive(Debug, Clone, Args)]
pub(crate) struct Place {
    /// A queue, or a subscription as TOPIC/Subscriptions/NAME
    entity: String,
    /// Look into the dead-letter queue
    #[arg(long)]
    dead_letter: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Peek {
    #[command(flatten)]
    place: Place,
    /// Begin at this sequence number
    #[arg(long, value_name = "NUMBER")]
    from: Option<u64>,
    /// Show at most so many
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    top: usize,
    /// Only those for which this SQL condition holds
    #[arg(long, value_name = "SQL")]
    filter: Option<String>,
    /// Only those of this level
    #[arg(long, value_name = "LEVEL")]
    level: Option<u8>,
    /// Only those of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    place: Place,
    /// Its sequence number
    sequence: u64,
}

/// Which messages are meant.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("selection").args(["sequence", "filter", "all"]).required(true).multiple(true))]
pub(crate) struct Which {
    /// This sequence number; may be repeated
    #[arg(long, value_name = "NUMBER")]
    sequence: Vec<u64>,
    /// Those for which this SQL condition holds
    #[arg(long, value_name = "SQL")]
    filter: Option<String>,
    /// Every message
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("precedence").args(["level", "class"]).required(true))]
pub(crate) struct Reprioritise {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    which: Which,
    /// Their new level
    #[arg(long, value_name = "LEVEL")]
    level: Option<u8>,
    /// Their new class
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    /// Only the first so many
    #[arg(long, value_name = "COUNT")]
    max: Option<u64>,
    /// Only say what would change
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions of a queue or subscription that have messages or a state
    List {
        /// A queue, or a subscription as TOPIC/Subscriptions/NAME
        entity: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Pause {
    /// A queue, or a subscription as TOPIC/Subscriptions/NAME
    entity: String,
}

impl Place {
    /// The mailbox in the API.
    pub(crate) fn path(&self) -> String {
        let mailbox = if self.dead_letter { "deadletter" } else { "main" };
        format!("{}/mailboxes/{mailbox}", entity_path(&self.entity))
    }
}

impl Which {
    pub(crate) fn selection(&self) -> Selection {
        Selection { sequence_numbers: self.sequence.clone(), filter: self.filter.clone(), all: self.all }
    }
}

impl Peek {
    fn query(&self) -> String {
        let page = self.top.clamp(1, 100);
        let mut query = format!("?body=true&top={page}");
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                query.extend(["&", name, "=", &percent::encode(&value)]);
            }
        };
        add("from", self.from.map(|from| from.to_string()));
        add("filter", self.filter.clone());
        add("level", self.level.map(|level| level.to_string()));
        add("session", self.session.clone());
        query
    }
}

pub(crate) fn peek(peek: &Peek, api: &Api, format: Format) -> Outcome {
    let path = format!("{}/messages{}", peek.place.path(), peek.query());
    let messages: Vec<Message> = api.list(&path, Some(peek.top))?;
    show(&messages, format)
}

/// Shows messages, one line each.
pub(crate) fn show(messages: &[Message], format: Format) -> Outcome {
    if format == Format::Json {
        return messages.iter().try_for_each(output::json_line);
    }
    let mut table = Table::new(&[
        "sequence",
        "state",
        "level",
        "class",
        "enqueued",
        "deliveries",
        "id",
        "session",
        "body",
    ]);
    for message in messages {
        table.row(vec![
            message.sequence_number.into(),
            format!("{:?}", message.state).to_lowercase().into(),
            message.level.into(),
            message.class.clone().unwrap_or_default().into(),
            message.enqueued_at.as_str().into(),
            message.delivery_count.into(),
            message.message_id.clone().unwrap_or_default().into(),
            message.session_id.clone().unwrap_or_default().into(),
            body(message.body.as_ref()).into(),
        ]);
    }
    table.print()
}

/// The beginning of a body, as much as fits beside the rest.
pub(crate) fn body(body: Option<&MessageBody>) -> String {
    const CHARS_MAX: usize = 48;
    let text = match body {
        None => String::new(),
        Some(MessageBody::Text(text)) => text.clone(),
        Some(MessageBody::Json(value) | MessageBody::Value(value)) => value.to_string(),
        Some(MessageBody::Base64(text)) => format!("base64 {text}"),
    };
    let mut short: String = text.chars().take(CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

pub(crate) fn explain(explain: &Explain, api: &Api, format: Format) -> Outcome {
    let path = format!("{}/messages/{}/explanation", explain.place.path(), explain.sequence);
    let answer: Explanation = api.get(&path).map_err(|failure| match failure {
        Failure::NotFound(text) if !text.contains("messaging entity") => Failure::NotFound(format!(
            "{}; `vorrang peek {}` shows what there is",
            text.trim_end_matches('.'),
            output::printable(&explain.place.entity)
        )),
        other => other,
    })?;
    if format == Format::Json {
        return output::json(&answer);
    }
    output::line(&output::printable(&answer.summary))?;
    let mut table = Table::new(&["what", "value"]);
    let level = match &answer.class {
        Some(class) => format!("{} ({class}), from {}", answer.level, answer.level_origin),
        None => format!("{}, from {}", answer.level, answer.level_origin),
    };
    table.row(vec!["level".into(), level.into()]);
    table.row(vec!["waited".into(), seconds(answer.waited_seconds).into()]);
    for ahead in &answer.ahead {
        let count = if ahead.at_least { format!("{} or more", ahead.count) } else { ahead.count.to_string() };
        table.row(vec![format!("ahead at level {}", ahead.level).into(), count.into()]);
    }
    for blocker in &answer.blockers {
        table.row(vec!["held back".into(), blocker.detail.as_str().into()]);
    }
    if let Some(estimate) = answer.estimate_seconds {
        table.row(vec!["delivered in about".into(), seconds(estimate).into()]);
    }
    table.row(vec!["promise".into(), answer.promise.as_str().into()]);
    table.print()
}

pub(crate) fn reprioritise(change: &Reprioritise, api: &Api, format: Format) -> Outcome {
    let request = ReprioritiseRequest {
        select: change.which.selection(),
        level: change.level,
        class: change.class.clone(),
        max: change.max,
        dry_run: change.dry_run,
    };
    let report: ReprioritiseReport = api.post(&format!("{}/reprioritise", change.place.path()), &request)?;
    if format == Format::Json {
        return output::json(&report);
    }
    let verb = if change.dry_run { "would get" } else { "got" };
    let more = if report.incomplete { "; there are more, run it again" } else { "" };
    output::line(&format!("{} messages {verb} level {}{more}", report.count, report.level))
}

pub(crate) fn session(command: &SessionCommand, api: &Api, format: Format) -> Outcome {
    let SessionCommand::List { entity } = command;
    let sessions: Vec<Session> = api.list(&format!("{}/sessions", entity_path(entity)), None)?;
    if format == Format::Json {
        return output::json(&sessions);
    }
    let mut table = Table::new(&["session"]);
    for session in &sessions {
        table.row(vec![session.session_id.as_str().into()]);
    }
    table.print()
}

/// Holds deliveries back, or lets them go on.
pub(crate) fn pause(pause: &Pause, verb: &str, api: &Api, format: Format) -> Outcome {
    let answer: Entity = api.post(&format!("{}/{verb}", entity_path(&pause.entity)), &Value::Null)?;
    let what =
        if verb == "pause" { "is paused: sending goes on, nothing is delivered" } else { "delivers again" };
    entity::done(&answer, what, format)
}

/// A duration in the unit people would choose.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 0.001 => format!("{:.0} µs", s * 1_000_000.0),
        s if s < 1.0 => format!("{:.0} ms", s * 1_000.0),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7_200.0 => format!("{:.1} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3_600.0),
        s => format!("{:.1} d", s / 86_400.0),
    }
}
