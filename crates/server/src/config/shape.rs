//! What a plain value may be: one description for reading it, for the sentence that refuses it, and for
//! the schema.

use serde_json::{Value as Json, json};
use vorrang_engine::Span;
use vorrang_engine::entity::priority::Share;

use super::document::Value;
use super::problem::{Mistake, shown};
use crate::duration;

/// The values that a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Any text; the words say of what kind.
    Text(&'static str),
    /// A text that is never repeated.
    Secret(&'static str),
    /// Yes or no.
    Switch,
    /// A whole number within its bounds.
    Number(u64, u64),
    /// A duration.
    Span,
    /// One of these words, in any case.
    Word(&'static [&'static str]),
    /// A part of the whole, from 0 to 1, in steps of a thousandth.
    Share,
}

/// A value as it was given: on the command line or in the environment as text, in a file with a type.
#[derive(Debug, Clone, Copy)]
pub(super) enum Given<'v> {
    Typed(&'v str),
    Written(&'v Value),
}

impl Shape {
    /// What is allowed, in words.
    #[must_use]
    pub fn allowed(self) -> String {
        match self {
            Shape::Text(what) | Shape::Secret(what) => what.to_owned(),
            Shape::Switch => "true or false".to_owned(),
            Shape::Number(least, most) => format!("a whole number from {least} to {most}"),
            Shape::Span => "a duration like \"30s\", \"5m\", \"1d\" or \"PT30S\"".to_owned(),
            Shape::Word(words) => words.join(", "),
            Shape::Share => "a part from 0 to 1, like 0.1".to_owned(),
        }
    }

    /// The shape in the terms of JSON Schema.
    #[must_use]
    pub fn schema(self) -> Json {
        match self {
            Shape::Text(_) | Shape::Secret(_) => json!({ "type": "string" }),
            Shape::Switch => json!({ "type": "boolean" }),
            Shape::Number(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Shape::Span => json!({ "type": "string", "pattern": "^([0-9.]+ *(ms|s|m|min|h|d)|[Pp].+)$" }),
            Shape::Word(words) => json!({ "type": "string", "enum": words }),
            Shape::Share => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        }
    }

    /// Why `given` is refused.
    pub(super) fn refuse(self, given: Given<'_>) -> Mistake {
        let value = match (self, given) {
            (Shape::Secret(_), Given::Typed(_)) => "this".to_owned(),
            (Shape::Secret(_), Given::Written(value)) => value.kind().to_owned(),
            (_, Given::Typed(text)) => shown(text),
            (_, Given::Written(value)) => value.shown(),
        };
        Mistake::Value { value, allowed: self.allowed() }
    }
}

impl<'v> Given<'v> {
    pub(super) fn text(self) -> Option<&'v str> {
        match self {
            Given::Typed(text) => Some(text),
            Given::Written(Value::Text(text)) => Some(text),
            Given::Written(_) => None,
        }
    }

    /// A text that says something.
    pub(super) fn words(self) -> Option<&'v str> {
        self.text().filter(|text| !text.trim().is_empty())
    }

    pub(super) fn switch(self) -> Option<bool> {
        match self {
            Given::Written(Value::Switch(switch)) => Some(*switch),
            Given::Written(_) => None,
            Given::Typed(text) => match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Some(true),
                "false" | "0" | "no" | "off" => Some(false),
                _ => None,
            },
        }
    }

    /// A whole number within the bounds of `shape` and of `N`.
    pub(super) fn number<N: TryFrom<u64>>(self, shape: Shape) -> Option<N> {
        let number = match self {
            Given::Written(Value::Integer(number)) => u64::try_from(*number).ok()?,
            Given::Written(_) => return None,
            Given::Typed(text) => text.parse().ok()?,
        };
        match shape {
            Shape::Number(least, most) if number < least || number > most => None,
            _ => N::try_from(number).ok(),
        }
    }

    pub(super) fn span(self) -> Option<Span> {
        duration::parse(self.text()?).ok()
    }

    /// The place of the word in the list, whatever its case.
    pub(super) fn word(self, shape: Shape) -> Option<&'static str> {
        let (Shape::Word(words), text) = (shape, self.text()?) else { return None };
        words.iter().copied().find(|word| word.eq_ignore_ascii_case(text))
    }

    pub(super) fn share(self) -> Option<Share> {
        let part = match self {
            Given::Written(Value::Integer(0)) => 0.0,
            Given::Written(Value::Integer(1)) => 1.0,
            Given::Written(Value::Float(part)) => *part,
            Given::Written(_) => return None,
            Given::Typed(text) => text.parse().ok()?,
        };
        share(part)
    }
}

/// The nearest thousandth.
fn share(part: f64) -> Option<Share> {
    if !(0.0..=1.0).contains(&part) {
        return None;
    }
    // Few enough to look: no cast is needed, and none can go wrong.
    let thousandths = (0..=1_000_u16).find(|step| (f64::from(*step) / 1_000.0 - part).abs() < 0.000_5)?;
    Share::per_mille(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_and_written_values_are_read_alike_where_they_mean_the_same() {
        assert_eq!(Given::Typed("on").switch(), Some(true));
        assert_eq!(Given::Written(&Value::Switch(false)).switch(), Some(false));
        assert_eq!(Given::Written(&Value::Text("true".to_owned())).switch(), None);
        let port = Shape::Number(0, 65_535);
        for (text, expected) in
            [("0", Some(0)), ("65535", Some(65_535)), ("65536", None), ("-1", None), ("", None)]
        {
            assert_eq!(Given::Typed(text).number::<u16>(port), expected, "{text}");
        }
        assert_eq!(Given::Written(&Value::Integer(5)).number::<u16>(port), Some(5));
        assert_eq!(Given::Written(&Value::Text("5".to_owned())).number::<u16>(port), None);
        assert_eq!(Given::Typed("PT30S").span(), Some(Span::seconds(30)));
        assert_eq!(Given::Typed("30s").span(), Some(Span::seconds(30)));
        assert_eq!(Given::Typed("JSON").word(Shape::Word(&["text", "json"])), Some("json"));
    }

    #[test]
    fn shares_are_parts_of_the_whole() {
        let cases = [
            (0.0, Some(0)),
            (0.1, Some(100)),
            (0.125, Some(125)),
            (1.0, Some(1_000)),
            (1.001, None),
            (-0.1, None),
            (f64::NAN, None),
        ];
        for (part, expected) in cases {
            assert_eq!(share(part).map(Share::thousandths), expected, "{part}");
        }
        assert_eq!(Given::Typed("0.05").share().map(Share::thousandths), Some(50));
    }

    #[test]
    fn a_refused_secret_is_not_repeated() {
        let shape = Shape::Secret("1 to 256 bytes");
        for given in [Given::Typed("hunter2"), Given::Written(&Value::Text("hunter2".to_owned()))] {
            let Mistake::Value { value, .. } = shape.refuse(given) else { panic!("a value") };
            assert!(!value.contains("hunter2"));
        }
    }
}
