//! Text within XML: markup is escaped, and what XML cannot carry at all is replaced.

use std::borrow::Cow;

/// The text as XML content or as an attribute's value.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| replacement(c).is_none()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len().saturating_add(16));
    for c in text.chars() {
        match replacement(c) {
            Some(instead) => out.push_str(instead),
            None => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// XML 1.0 has no way to write most control characters; a carriage return would be read as a line feed.
fn replacement(c: char) -> Option<&'static str> {
    match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\r' => Some("&#xD;"),
        '\t' | '\n' => None,
        '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => Some("\u{fffd}"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_forbidden_characters_do_not_get_through() {
        let cases = [
            ("plain é 漢", "plain é 漢"),
            ("<a href=\"x\">&amp;", "&lt;a href=&quot;x&quot;&gt;&amp;amp;"),
            ("]]>", "]]&gt;"),
            ("a\u{0}b\u{1b}[31m\u{ffff}", "a\u{fffd}b\u{fffd}[31m\u{fffd}"),
            ("one\r\n\ttwo", "one&#xD;\n\ttwo"),
        ];
        for (text, expected) in cases {
            assert_eq!(escaped(text), expected);
        }
    }
}
