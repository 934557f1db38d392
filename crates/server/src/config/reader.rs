//! Walks the tree of a file and collects what is wrong on the way.
//!
//! A table is read by asking for its keys one at a time; what is left when all have been asked for is
//! unknown, and reported with what was probably meant. So a key cannot be passed over in silence.

use std::path::Path;
use std::sync::Arc;

use vorrang_engine::Span;
use vorrang_engine::entity::priority::Share;

use super::document::{Entry, Node, Value};
use super::problem::{Mistake, Problem, Source, nearest};
use super::shape::{Given, Shape};

/// What has been found wrong so far, in one file.
#[derive(Debug)]
pub(super) struct Reader {
    path: Arc<Path>,
    pub(super) problems: Vec<Problem>,
}

/// A value with the way to it.
#[derive(Debug, Clone)]
pub(super) struct Place<'d> {
    pub(super) key: String,
    pub(super) line: usize,
    pub(super) value: &'d Value,
}

/// A table with the way to it.
#[derive(Debug, Clone)]
pub(super) struct Table<'d> {
    /// The way to it; empty for the file itself.
    pub(super) key: String,
    pub(super) line: usize,
    entries: &'d [Entry],
}

impl<'d> Table<'d> {
    /// The file itself.
    pub(super) fn root(entries: &'d [Entry]) -> Table<'d> {
        Table { key: String::new(), line: 1, entries }
    }

    /// The value of a key.
    pub(super) fn find(&self, name: &str) -> Option<Place<'d>> {
        let entry = self.entries.iter().find(|entry| entry.key == name)?;
        Some(Place { key: self.key_of(name), line: entry.node.line, value: &entry.node.value })
    }

    /// Each key with its value.
    pub(super) fn places(&self) -> impl Iterator<Item = (&'d str, Place<'d>)> {
        let place = |entry: &'d Entry| {
            let Entry { key, node: Node { line, value } } = entry;
            (key.as_str(), Place { key: self.key_of(key), line: *line, value })
        };
        self.entries.iter().map(place)
    }

    /// The way to a key of this table, whether it is there or not.
    pub(super) fn key_of(&self, name: &str) -> String {
        // A name from the file goes out escaped, like every other text from it.
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name = if name.chars().all(plain) { name.to_owned() } else { super::problem::shown(name) };
        if self.key.is_empty() { name } else { format!("{}.{name}", self.key) }
    }
}

impl Reader {
    pub(super) fn new(path: Arc<Path>) -> Reader {
        Reader { path, problems: Vec::new() }
    }

    /// Where a line of this file is.
    pub(super) fn source(&self, line: usize) -> Source {
        Source::File { path: Arc::clone(&self.path), line }
    }

    pub(super) fn problem(&mut self, line: usize, key: &str, mistake: Mistake) {
        let source = self.source(line);
        self.problems.push(Problem { source, key: key.to_owned(), mistake });
    }

    /// Reads a plain value, or says what it should have been.
    pub(super) fn plain<T>(
        &mut self,
        place: &Place<'_>,
        shape: Shape,
        read: impl FnOnce(Given<'_>) -> Option<T>,
    ) -> Option<T> {
        let given = Given::Written(place.value);
        let value = read(given);
        if value.is_none() {
            self.problem(place.line, &place.key, shape.refuse(given));
        }
        value
    }

    /// Reads a duration.
    pub(super) fn span(&mut self, place: &Place<'_>) -> Option<Span> {
        let span = Given::Written(place.value).span();
        self.plain(place, Shape::Span, |_| span)
    }

    /// Reads a part of the whole.
    pub(super) fn share(&mut self, place: &Place<'_>) -> Option<Share> {
        let share = Given::Written(place.value).share();
        self.plain(place, Shape::Share, |_| share)
    }

    /// Reads a text and parses it; the parser says what is wrong with it.
    pub(super) fn parsed<T, E: std::fmt::Display>(
        &mut self,
        place: &Place<'_>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.plain(place, Shape::Text("a text"), |given| given.text().map(str::to_owned))?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                let text = format!("cannot be {}: {error}", super::problem::shown(&text));
                self.problem(place.line, &place.key, Mistake::Other(text));
                None
            }
        }
    }

    /// A key that has to be there.
    pub(super) fn needed<'d>(&mut self, table: &Table<'d>, name: &str, allowed: &str) -> Option<Place<'d>> {
        let place = table.find(name);
        if place.is_none() {
            let mistake = Mistake::Missing { allowed: allowed.to_owned() };
            self.problem(table.line, &table.key_of(name), mistake);
        }
        place
    }

    /// The value as a table.
    pub(super) fn table<'d>(&mut self, place: &Place<'d>) -> Option<Table<'d>> {
        if let Value::Table(entries) = place.value {
            return Some(Table { key: place.key.clone(), line: place.line, entries });
        }
        self.of_another_kind(place, "a table");
        None
    }

    /// The value of a key as a list of tables; an absent one is empty.
    pub(super) fn tables<'d>(&mut self, table: &Table<'d>, name: &str) -> Vec<Table<'d>> {
        let Some(place) = table.find(name) else { return Vec::new() };
        self.items(&place, "a list of tables").iter().filter_map(|item| self.table(item)).collect()
    }

    /// The items of a list.
    pub(super) fn items<'d>(&mut self, place: &Place<'d>, allowed: &str) -> Vec<Place<'d>> {
        let Value::List(items) = place.value else {
            self.of_another_kind(place, allowed);
            return Vec::new();
        };
        let item = |(index, node): (usize, &'d Node)| Place {
            key: format!("{}[{index}]", place.key),
            line: node.line,
            value: &node.value,
        };
        items.iter().enumerate().map(item).collect()
    }

    /// Reports every key of the table that is not among those known.
    pub(super) fn refuse_unknown<'k>(&mut self, table: &Table<'_>, known: impl IntoIterator<Item = &'k str>) {
        let known: Vec<&str> = known.into_iter().collect();
        for (name, place) in table.places() {
            if !known.contains(&name) {
                let nearest = nearest(name, known.iter().copied());
                self.problem(place.line, &place.key, Mistake::Unknown { nearest });
            }
        }
    }

    fn of_another_kind(&mut self, place: &Place<'_>, allowed: &str) {
        let mistake = Mistake::Value { value: place.value.kind().to_owned(), allowed: allowed.to_owned() };
        self.problem(place.line, &place.key, mistake);
    }
}
