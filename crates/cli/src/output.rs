//! How answers are shown: tables for people, JSON for programs.
//!
//! Text that came from a broker is shown with its control characters escaped: a message or a name must not
//! be able to move the cursor, colour the screen or forge a line. Colours are for terminals alone.

use std::io::{self, IsTerminal, Write as _};

use clap::ValueEnum;
use serde::Serialize;

use crate::failure::{Failure, Outcome};

/// How answers are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people
    Table,
    /// JSON for programs
    Json,
}

/// Prints JSON, readable.
pub(crate) fn json(value: &impl Serialize) -> Outcome {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Other(error.into()))?;
    line(&text)
}

/// Prints one line of JSON.
pub(crate) fn json_line(value: &impl Serialize) -> Outcome {
    let text = serde_json::to_string(value).map_err(|error| Failure::Other(error.into()))?;
    line(&text)
}

/// Prints a line. A reader that has gone away (`… | head`) has seen enough: that is no failure.
pub(crate) fn line(text: &str) -> Outcome {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}

/// Columns under their headings.
#[derive(Debug, Default)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// One cell: its text, and whether it is good or bad news.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    mood: Mood,
}

/// What a colour would say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mood {
    #[default]
    Plain,
    Good,
    Warning,
    Bad,
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: printable(&text.to_string()), mood: Mood::Plain }
    }
}

impl Cell {
    /// The cell in a colour.
    pub(crate) fn in_mood(self, mood: Mood) -> Cell {
        Cell { mood, ..self }
    }
}

impl Table {
    pub(crate) fn new(headings: &[&'static str]) -> Table {
        Table { headings: headings.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Prints it, in colour if that is a terminal and nobody asked for none.
    pub(crate) fn print(&self) -> Outcome {
        line(self.render(io::stdout().is_terminal() && colours_wanted()).trim_end_matches('\n'))
    }

    /// The whole table as text.
    pub(crate) fn render(&self, colours: bool) -> String {
        let columns = self.headings.len();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let heading = self.headings.get(column).map_or(0, |heading| heading.chars().count());
            cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0).max(heading)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        let headings = self.headings.iter().map(|heading| Cell::from(heading.to_uppercase()));
        render_row(&mut out, &headings.collect::<Vec<_>>(), &widths, false);
        for row in &self.rows {
            render_row(&mut out, row, &widths, colours);
        }
        out
    }
}

/// Whether colours are wanted: `NO_COLOR`, set to anything, says no.
pub(crate) fn colours_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn render_row(out: &mut String, cells: &[Cell], widths: &[usize], colours: bool) {
    let mut row = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let gap = " ".repeat(width.saturating_sub(cell.text.chars().count()) + 2);
        match (colours, cell.mood.code()) {
            (true, Some(code)) => {
                row.extend([&format!("\u{1b}[{code}m"), cell.text.as_str(), "\u{1b}[0m", &gap]);
            }
            _ => row.extend([cell.text.as_str(), &gap]),
        }
    }
    out.push_str(row.trim_end());
    out.push('\n');
}

impl Mood {
    fn code(self) -> Option<u8> {
        match self {
            Mood::Plain => None,
            Mood::Good => Some(32),
            Mood::Warning => Some(33),
            Mood::Bad => Some(31),
        }
    }
}

/// A text of several lines, each printable.
pub(crate) fn printable_lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}

/// The text with everything escaped that is not plainly visible.
pub(crate) fn printable(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().fold(String::with_capacity(text.len()), |mut out, letter| {
        if hidden(letter) {
            out.extend(letter.escape_unicode());
        } else {
            out.push(letter);
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_colours_do_not_move_them() {
        let mut table = Table::new(&["name", "state"]);
        table.row(vec!["a".into(), Cell::from("ok").in_mood(Mood::Good)]);
        table.row(vec!["longer".into(), "x".into()]);
        assert_eq!(table.render(false), "NAME    STATE\na       ok\nlonger  x\n");
        assert_eq!(table.render(true), "NAME    STATE\na       \u{1b}[32mok\u{1b}[0m\nlonger  x\n");
    }

    #[test]
    fn hidden_characters_show_themselves() {
        assert_eq!(printable("a\u{1b}[31m\n"), "a\\u{1b}[31m\\u{a}");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(printable("größe 日本"), "größe 日本");
    }
}
