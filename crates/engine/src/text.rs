//! The short texts of a message that the engine compares: its id, its session, its partition key.
//!
//! Nearly all of them lie in the payload, so that it is enough to know where: making one allocates nothing, and giving it
//! to another thread counts nothing.

use std::borrow::Cow;

/// A text that belongs to a message. It is [read](Text::of) together with the payload it was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// A part of the payload; made by [`Text::part_of`] alone, which knows that it is text.
    Within(Place),
    /// A number, whose text are its digits.
    Number(u64),
    /// Not a part of the payload.
    Apart(Box<str>),
}

/// Where a text lies in a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    start: u32,
    end: u32,
}

impl Text {
    /// A text that was found in `payload`. One that lies elsewhere is copied.
    #[must_use]
    pub fn part_of(payload: &[u8], text: &str) -> Text {
        let start = text.as_ptr().addr().checked_sub(payload.as_ptr().addr());
        let place = start.and_then(|start| {
            let end = start.checked_add(text.len()).filter(|end| *end <= payload.len())?;
            Some(Place { start: u32::try_from(start).ok()?, end: u32::try_from(end).ok()? })
        });
        place.map_or_else(|| Text::from(text), Text::Within)
    }

    /// The text, with the payload it was made for.
    #[must_use]
    pub fn of<'a>(&'a self, payload: &'a [u8]) -> Cow<'a, str> {
        match self {
            Text::Within(place) => {
                let text = place.of(payload).and_then(|bytes| std::str::from_utf8(bytes).ok());
                Cow::Borrowed(text.expect("it was text when it was found in this payload"))
            }
            Text::Number(number) => Cow::Owned(number.to_string()),
            Text::Apart(text) => Cow::Borrowed(text),
        }
    }

    /// Whether the text has at most so many characters. Short texts are not even counted.
    #[must_use]
    pub fn fits(&self, payload: &[u8], chars_max: usize) -> bool {
        let short = match self {
            Text::Within(place) => place.end.saturating_sub(place.start),
            Text::Number(number) => number.checked_ilog10().map_or(1, |tens| tens.saturating_add(1)),
            Text::Apart(text) => u32::try_from(text.len()).unwrap_or(u32::MAX),
        };
        let short = usize::try_from(short).is_ok_and(|bytes| bytes <= chars_max);
        short || self.of(payload).chars().nth(chars_max).is_none()
    }
}

impl Place {
    fn of(self, payload: &[u8]) -> Option<&[u8]> {
        payload.get(usize::try_from(self.start).ok()?..usize::try_from(self.end).ok()?)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text::Apart(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text as a part of a payload, apart from one and, if it is a number, as one.
    fn spellings(payload: &str, text: &str) -> Vec<Text> {
        let start = payload.find(text).unwrap();
        let within = Text::part_of(payload.as_bytes(), &payload[start..start + text.len()]);
        assert!(matches!(within, Text::Within(_)), "{text:?}");
        let number = text.parse().ok().map(Text::Number);
        [Some(within), Some(Text::from(text)), number].into_iter().flatten().collect()
    }

    #[test]
    fn length_is_counted_in_characters_wherever_the_text_lies() {
        for (text, chars_max, fits) in [
            ("", 0, true),
            ("abc", 3, true),
            ("abcd", 3, false),
            ("äöü", 3, true),
            ("äöüx", 3, false),
            ("0", 1, true),
            ("0", 0, false),
            ("999", 3, true),
            ("1000", 3, false),
        ] {
            let payload = format!("before {text} behind");
            for spelling in spellings(&payload, text) {
                assert_eq!(spelling.fits(payload.as_bytes(), chars_max), fits, "{spelling:?}");
                assert_eq!(spelling.of(payload.as_bytes()), text);
            }
        }
    }

    #[test]
    fn a_text_that_lies_elsewhere_is_copied() {
        let (one, other) = (String::from("before id behind"), String::from("id"));
        assert_eq!(Text::part_of(one.as_bytes(), &other), Text::from("id"));
        // Longer than the payload from where it begins.
        assert_eq!(Text::part_of(&one.as_bytes()[..8], &one[7..9]), Text::from("id"));
    }
}
