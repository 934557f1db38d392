//! `vorrang top`: entities and their classes, live, with waits against targets.
//!
//! On a terminal it draws over the whole screen until `q`, Escape or Ctrl-C, what needs somebody first; anywhere else
//! it prints the same table once, entity by entity, so that it can be piped. What does not fit is counted, never left
//! out in silence.

use std::cmp::Reverse;
use std::io::{self, IsTerminal, Write as _};
use std::time::Duration;

use clap::Args;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use crossterm::{cursor, execute, queue, style, terminal};
use serde::Serialize;
use vorrang_server::duration;
use vorrang_server::http::api::model::{ClassReport, Entity, EntityKind, Live, Mailbox, Target, TargetState};

use crate::api::{Api, entity_path};
use crate::failure::{Failure, Outcome};
use crate::messages::seconds;
use crate::output::{self, Cell, Format, Mood, Table};
use crate::{targets, watch};

/// Entities that are asked for their classes at a time; a namespace may have thousands.
const ENTITIES_MAX: usize = 100;
/// What is said when there are more.
const LEFT_OUT: &str = "(the first 100 entities by name; /metrics has more)";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How often to look
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = watch::pause)]
    every: Duration,
    /// Print once and end
    #[arg(long)]
    once: bool,
}

/// One class of one entity.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    entity: String,
    #[serde(flatten)]
    class: ClassReport,
    state: Option<TargetState>,
}

pub(crate) fn run(options: &Options, api: &Api, format: Format) -> Outcome {
    if format == Format::Json {
        return output::json(&look(api)?.lines);
    }
    if options.once || !io::stdout().is_terminal() {
        let seen = look(api)?;
        table(&seen.lines).print()?;
        return if seen.left_out { output::line(LEFT_OUT) } else { Ok(()) };
    }
    let screen = Screen::open()?;
    let shown = follow(api, options.every);
    drop(screen);
    shown
}

fn follow(api: &Api, every: Duration) -> Outcome {
    loop {
        let Seen { mut lines, left_out } = look(api)?;
        lines.sort_by_key(|line| Reverse(urgency(line)));
        let note = if left_out { LEFT_OUT } else { "" };
        draw(&format!(
            "vorrang top   {}   {} classes   q ends   {note}\n\n{}",
            api.address(),
            lines.len(),
            table(&lines).render(output::colours_wanted())
        ))?;
        while event::poll(every)? {
            match event::read()? {
                Event::Key(KeyEvent { code: KeyCode::Char('q') | KeyCode::Esc, .. }) => return Ok(()),
                Event::Key(KeyEvent {
                    code: KeyCode::Char('c'), modifiers: KeyModifiers::CONTROL, ..
                }) => {
                    return Ok(());
                }
                Event::Resize(..) => break,
                _ => {}
            }
        }
    }
}

/// What was seen in one look.
struct Seen {
    lines: Vec<Line>,
    /// Whether there are more entities than are looked at.
    left_out: bool,
}

/// How much a class needs somebody: one that misses its target most, then those with most messages. Where nothing
/// differs, lines stay as they came.
fn urgency(line: &Line) -> (u8, u64) {
    let state = match line.state {
        Some(TargetState::Breached) => 2,
        Some(TargetState::AtRisk) => 1,
        Some(TargetState::Ok) | None => 0,
    };
    (state, line.class.counts.active)
}

/// Asks for everything that is shown. An entity that was deleted meanwhile is left out.
fn look(api: &Api) -> Result<Seen, Failure> {
    let mut entities: Vec<Entity> = api.list("/api/queues", Some(ENTITIES_MAX))?;
    for topic in api.list::<Entity>("/api/topics", Some(ENTITIES_MAX))? {
        let path = format!("/api/topics/{}/subscriptions", crate::percent::encode(&topic.name));
        entities.extend(api.list::<Entity>(&path, Some(ENTITIES_MAX))?);
    }
    let targets: Vec<Target> = match api.list("/api/targets", None) {
        // Targets are an extra; the rest is worth showing without them.
        Err(Failure::NotFound(_) | Failure::Refused(_)) => Vec::new(),
        other => other?,
    };
    let mut lines = Vec::new();
    entities.retain(|entity| entity.kind != EntityKind::Topic);
    // A list that is as long as it may be was cut.
    let left_out = entities.len() >= ENTITIES_MAX;
    for entity in entities.iter().take(ENTITIES_MAX) {
        let live: Live = match api.get(&format!("{}/live", entity_path(&entity.path))) {
            Err(Failure::NotFound(_)) => continue,
            other => other?,
        };
        let main = live.mailboxes.into_iter().filter(|mailbox| mailbox.mailbox == Mailbox::Main);
        for class in main.flat_map(|mailbox| mailbox.classes) {
            let same = |target: &&Target| target.entity == entity.path && target.level == class.level;
            let state = targets.iter().find(same).map(|target| target.state);
            lines.push(Line { entity: entity.path.clone(), class, state });
        }
    }
    Ok(Seen { lines, left_out })
}

fn table(lines: &[Line]) -> Table {
    let mut table = Table::new(&[
        "entity", "class", "active", "locked", "in/s", "out/s", "oldest", "wait p50", "p95", "p99", "target",
        "state",
    ]);
    for Line { entity, class, state } in lines {
        let maybe = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), seconds);
        let name = class.class.clone().unwrap_or_else(|| class.level.to_string());
        let target = class.target_wait.as_deref().and_then(|text| duration::parse(text).ok());
        let late = target.is_some_and(|target| {
            class
                .oldest_age_seconds
                .is_some_and(|age| Duration::from_secs_f64(age.max(0.0)).as_millis() > u128::from(target.0))
        });
        let oldest = Cell::from(maybe(class.oldest_age_seconds));
        table.row(vec![
            entity.as_str().into(),
            name.into(),
            class.counts.active.into(),
            class.counts.locked.into(),
            format!("{:.1}", class.rates.enqueued).into(),
            format!("{:.1}", class.rates.completed).into(),
            if late { oldest.in_mood(Mood::Bad) } else { oldest },
            maybe(class.wait.p50_seconds).into(),
            maybe(class.wait.p95_seconds).into(),
            maybe(class.wait.p99_seconds).into(),
            target.map_or_else(|| "-".to_owned(), duration::to_short).into(),
            state.map_or_else(|| Cell::from("-"), targets::state),
        ]);
    }
    table
}

/// Draws over what was there, as much as fits.
fn draw(text: &str) -> io::Result<()> {
    let (_, height) = terminal::size()?;
    let mut out = io::stdout().lock();
    queue!(out, cursor::MoveTo(0, 0), terminal::Clear(terminal::ClearType::All))?;
    for line in fitted(text, usize::from(height)) {
        queue!(out, style::Print(line), cursor::MoveToNextLine(1))?;
    }
    out.flush()
}

/// The first lines; if there are more than fit, the last says how many.
fn fitted(text: &str, height: usize) -> Vec<String> {
    let count = text.lines().count();
    if count <= height {
        return text.lines().map(str::to_owned).collect();
    }
    let shown = height.saturating_sub(1);
    let more = format!("… {} more; a higher window shows them", count - shown);
    text.lines().take(shown).map(str::to_owned).chain([more]).collect()
}

/// The whole terminal, given back when dropped, whatever happened.
struct Screen;

impl Screen {
    fn open() -> io::Result<Screen> {
        terminal::enable_raw_mode()?;
        let screen = Screen;
        // A line that does not fit is cut, so that a line of text is a line of the screen.
        execute!(io::stdout(), terminal::EnterAlternateScreen, terminal::DisableLineWrap, cursor::Hide)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing is left to do if the terminal is gone.
        let _ =
            execute!(io::stdout(), cursor::Show, terminal::EnableLineWrap, terminal::LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(entity: &str, active: u64, state: Option<TargetState>) -> Line {
        let none = json!({ "count": 0, "sumSeconds": 0.0, "maxSeconds": 0.0 });
        let class = json!({
            "level": 4, "promise": "",
            "counts": { "active": active, "locked": 0, "deferred": 0, "scheduled": 0, "delayed": 0 },
            "rates": { "enqueued": 0.0, "delivered": 0.0, "completed": 0.0 },
            "wait": none, "processing": none, "endToEnd": none,
        });
        Line { entity: entity.to_owned(), class: serde_json::from_value(class).unwrap(), state }
    }

    #[test]
    fn what_needs_somebody_comes_first_and_the_rest_stays_in_order() {
        let mut lines = [
            line("a", 0, None),
            line("b", 0, Some(TargetState::Ok)),
            line("busy", 7, None),
            line("late", 1, Some(TargetState::Breached)),
            line("soon", 9, Some(TargetState::AtRisk)),
        ];
        lines.sort_by_key(|line| Reverse(urgency(line)));
        let order: Vec<&str> = lines.iter().map(|line| line.entity.as_str()).collect();
        assert_eq!(order, ["late", "soon", "busy", "a", "b"]);
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let cases = [
            (3, vec!["a", "b", "c"]),
            (2, vec!["a", "… 2 more; a higher window shows them"]),
            (1, vec!["… 3 more; a higher window shows them"]),
        ];
        for (height, expected) in cases {
            assert_eq!(fitted("a\nb\nc", height), expected, "{height}");
        }
    }
}
