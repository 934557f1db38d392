//! The query of a request: known names alone, each at most once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::str::FromStr;

use super::complaint::Complaints;
use super::failure::Failure;

/// A parameter that a request may have, for the door and for the `OpenAPI` document alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parameter {
    /// Its name.
    pub(super) name: &'static str,
    /// What it may be.
    pub(super) kind: Kind,
    /// What it is for.
    pub(super) help: &'static str,
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A whole number within these bounds.
    Number(u64, u64),
    /// `true` or `false`.
    Flag,
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// What was given.
#[derive(Debug, Default)]
pub(super) struct Query {
    given: BTreeMap<String, String>,
}

impl Query {
    /// Reads a query. What is unknown, given twice or out of bounds is refused, all of it at once.
    pub(super) fn read(text: &str, known: &[Parameter]) -> Result<Query, Failure> {
        let mut query = Query::default();
        let mut complaints = Complaints::default();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (Some(name), Some(value)) = (decoded(name), decoded(value)) else {
                complaints.add(name, "is not percent-encoded UTF-8");
                continue;
            };
            let Some(parameter) = known.iter().find(|parameter| parameter.name == name) else {
                let names: Vec<&str> = known.iter().map(|parameter| parameter.name).collect();
                let allowed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                complaints.add(name, format!("is unknown here; known parameters: {allowed}"));
                continue;
            };
            if let Err(error) = parameter.kind.check(&value) {
                complaints.add(name, error);
            } else if query.given.insert(name.clone(), value).is_some() {
                complaints.add(name, "is given twice");
            }
        }
        complaints.finish(query)
    }

    /// A text, or one of several words.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str)
    }

    /// A number.
    pub(super) fn number<N: FromStr>(&self, name: &str) -> Option<N> {
        self.text(name)?.parse().ok()
    }

    /// Whether a flag is given and true.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.text(name).is_some_and(|text| text.is_empty() || text == "true")
    }

    /// The query with one parameter changed, for the link to the next page.
    pub(super) fn with(&self, name: &str, value: &str) -> String {
        let mut given = self.given.clone();
        given.insert(name.to_owned(), value.to_owned());
        let pair = |(name, value): (&String, &String)| format!("{name}={}", encoded(value));
        given.iter().map(pair).collect::<Vec<_>>().join("&")
    }
}

impl Kind {
    fn check(self, value: &str) -> Result<(), String> {
        let fits = match self {
            Kind::Text => true,
            Kind::Flag => matches!(value, "" | "true" | "false"),
            Kind::Word(words) => words.contains(&value),
            Kind::Number(from, to) => value.parse().is_ok_and(|number: u64| (from..=to).contains(&number)),
        };
        if fits {
            return Ok(());
        }
        Err(match self {
            Kind::Text => "cannot be read".to_owned(),
            Kind::Flag => "must be true or false".to_owned(),
            Kind::Word(words) => format!("must be one of {}", words.join(", ")),
            Kind::Number(from, u64::MAX) => format!("must be a whole number of {from} or more"),
            Kind::Number(from, to) => format!("must be a whole number from {from} to {to}"),
        })
    }
}

/// Percent-encoded text; `+` is a space, as forms have it.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// The opposite; everything but letters, digits and a few marks is encoded.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KNOWN: [Parameter; 3] = [
        Parameter { name: "top", kind: Kind::Number(1, 100), help: "" },
        Parameter { name: "filter", kind: Kind::Text, help: "" },
        Parameter { name: "body", kind: Kind::Flag, help: "" },
    ];

    #[test]
    fn everything_wrong_is_told_at_once() {
        let query = Query::read("top=0&colour=red&body=maybe&filter=a&filter=b&x=%zz", &KNOWN);
        let problem = query.unwrap_err().into_problem();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["top", "colour", "body", "filter", "x"]);
    }

    #[test]
    fn what_is_given_is_understood() {
        let query = Query::read("top=100&filter=a+%3D%20%27%C3%A9%27&body", &KNOWN).unwrap();
        assert_eq!((query.number::<usize>("top"), query.text("filter")), (Some(100), Some("a = 'é'")));
        assert!(query.flag("body"));
        assert_eq!(query.with("top", "5"), "body=&filter=a%20%3D%20%27%C3%A9%27&top=5");
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in "\\PC{0,40}") {
            prop_assert_eq!(decoded(&encoded(&text)), Some(text));
        }

        #[test]
        fn no_query_is_too_strange(text in "[a-z&=%+0-9é]{0,60}") {
            let _ = Query::read(&text, &KNOWN);
        }
    }
}
