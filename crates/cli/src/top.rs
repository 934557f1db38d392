//! `vorrang top`: entities and their classes, live, with waits against targets.
//!
//! On a terminal it draws over the whole screen until `q`, Escape or Ctrl-C; anywhere else it prints the same
//! table once, so that it can be piped.

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
        return output::json(&look(api)?);
    }
    if options.once || !io::stdout().is_terminal() {
        return table(&look(api)?).print();
    }
    let screen = Screen::open()?;
    let shown = follow(api, options.every);
    drop(screen);
    shown
}

fn follow(api: &Api, every: Duration) -> Outcome {
    loop {
        let lines = look(api)?;
        draw(&format!(
            "vorrang top   {}   {} classes   q ends\n\n{}",
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

/// Asks for everything that is shown. An entity that was deleted meanwhile is left out.
fn look(api: &Api) -> Result<Vec<Line>, Failure> {
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
    for entity in entities.iter().filter(|entity| entity.kind != EntityKind::Topic).take(ENTITIES_MAX) {
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
    Ok(lines)
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
    for line in text.lines().take(usize::from(height)) {
        queue!(out, style::Print(line), cursor::MoveToNextLine(1))?;
    }
    out.flush()
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
