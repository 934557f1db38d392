//! Text that a peer sent, as a slice of the buffer it came in.

use bytes::Bytes;
use std::fmt;

/// UTF-8 text that shares the bytes of a message: taking one copies nothing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Text(Bytes);

impl Text {
    /// Takes the bytes if they are UTF-8.
    pub fn from_utf8(bytes: Bytes) -> Result<Text, std::str::Utf8Error> {
        std::str::from_utf8(&bytes)?;
        Ok(Text(bytes))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("the bytes were checked when the text was made")
    }

    /// Whether the text has at most so many characters. Short texts are not even counted.
    #[must_use]
    pub fn fits(&self, chars_max: usize) -> bool {
        self.0.len() <= chars_max || self.as_str().chars().nth(chars_max).is_none()
    }

    /// The bytes of the text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_counted_in_characters() {
        for (text, chars_max, fits) in
            [("", 0, true), ("abc", 3, true), ("abcd", 3, false), ("äöü", 3, true), ("äöüx", 3, false)]
        {
            assert_eq!(Text::from(text).fits(chars_max), fits, "{text:?}");
        }
        assert!(Text::from_utf8(Bytes::from_static(b"\xff")).is_err());
    }
}
