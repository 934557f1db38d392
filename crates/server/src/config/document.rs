//! A TOML file as a tree that knows its lines.
//!
//! The tree is small and owned: what reads it asks for tables, lists and plain values, and each knows
//! where it stands. Errors of the syntax never repeat the file's text, which may hold keys.

use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Mistake, Problem, Source, shown};

/// The largest file that is read; a namespace of ten thousand entities fits in several times.
pub const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Switch(bool),
    /// A date, or a number that no computer word holds: nothing here takes one.
    Other(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key of a table, with its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) node: Node,
}

impl Value {
    /// The value as it may be shown: lists and tables, which may hold secrets, only by their kind.
    pub(super) fn shown(&self) -> String {
        match self {
            Value::Text(text) | Value::Other(text) => shown(text),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Switch(switch) => switch.to_string(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    /// The kind of value, for what must not be repeated at all.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Integer(_) | Value::Float(_) => "a number",
            Value::Switch(_) => "true or false",
            Value::Other(_) => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

/// Reads the text of a file; whatever is not TOML is reported, each with its line.
pub(super) fn parse(path: &Arc<Path>, text: &str) -> Result<Vec<Entry>, Vec<Problem>> {
    let lines = Lines::of(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(table(document.get_ref(), &lines));
    }
    let problem = |error: toml::de::Error| {
        let line = lines.at(error.span().map_or(0, |span| span.start));
        let source = Source::File { path: Arc::clone(path), line };
        let text = format!("this is not TOML: {}", error.message());
        Problem { source, key: String::new(), mistake: Mistake::Other(text) }
    };
    Err(errors.into_iter().map(problem).collect())
}

fn table(table: &DeTable<'_>, lines: &Lines) -> Vec<Entry> {
    let entries = table.iter();
    entries
        .map(|(key, value)| {
            let mut node = node(value, lines);
            // A table's own place is its header; the key's is the better one for everything else.
            if !matches!(node.value, Value::Table(_) | Value::List(_)) {
                node.line = lines.at(key.span().start);
            }
            Entry { key: key.get_ref().to_string(), node }
        })
        .collect()
}

fn node(value: &Spanned<DeValue<'_>>, lines: &Lines) -> Node {
    let line = lines.at(value.span().start);
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::Other(number.as_str().to_owned()), Value::Integer),
        DeValue::Float(number) => {
            number.as_str().parse().map_or_else(|_| Value::Other(number.as_str().to_owned()), Value::Float)
        }
        DeValue::Boolean(switch) => Value::Switch(*switch),
        DeValue::Datetime(date) => Value::Other(date.to_string()),
        DeValue::Array(items) => Value::List(items.iter().map(|item| node(item, lines)).collect()),
        DeValue::Table(inner) => Value::Table(table(inner, lines)),
    };
    Node { line, value }
}

/// Where each line of a text begins.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Lines(std::iter::once(0).chain(breaks).collect())
    }

    /// The line, from 1, that holds the byte at `offset`.
    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> Arc<Path> {
        Arc::from(Path::new("vorrang.toml"))
    }

    #[test]
    fn values_know_their_lines() {
        let text =
            "dev = true\n\n[[queue]]\nname = \"a\"\nclass = [\n  { name = \"x\" },\n  { name = \"y\" } ]\n";
        let entries = parse(&path(), text).unwrap();
        assert_eq!(entries[0].node, Node { line: 1, value: Value::Switch(true) });
        let Value::List(queues) = &entries[1].node.value else { panic!("a list") };
        let Value::Table(queue) = &queues[0].value else { panic!("a table") };
        assert_eq!((queues[0].line, queue[0].node.line, queue[1].node.line), (3, 4, 5));
        let Value::List(classes) = &queue[1].node.value else { panic!("a list") };
        assert_eq!((classes[0].line, classes[1].line), (6, 7));
    }

    #[test]
    fn every_break_of_the_syntax_is_reported_without_the_text() {
        let problems = parse(&path(), "a = hunter2\nb = 1\nc = [1,\n").unwrap_err();
        let text = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(problems.len() >= 2 && text.contains("vorrang.toml:1: this is not TOML"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}
