//! Writing XML: elements in the order they are asked for, text escaped, prefixes exactly as given.
//!
//! Some clients match prefixes and attributes literally, so nothing here invents either.

use std::fmt::Display;

use crate::http::escape::escaped;

/// A document being written.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    out: String,
}

impl Writer {
    /// An element with attributes and what `inside` writes. One with nothing inside is written as empty.
    pub(crate) fn element(
        &mut self,
        name: &str,
        attributes: &[(&str, &str)],
        inside: impl FnOnce(&mut Writer),
    ) {
        self.tag(name, attributes);
        self.out.push('>');
        let start = self.out.len();
        inside(self);
        if self.out.len() == start {
            self.out.truncate(start.saturating_sub(1));
            self.out.push_str("/>");
            return;
        }
        for part in ["</", name, ">"] {
            self.out.push_str(part);
        }
    }

    /// An element with nothing but text.
    pub(crate) fn leaf(&mut self, name: &str, value: impl Display) {
        self.element(name, &[], |writer| writer.text(&value.to_string()));
    }

    /// The same, if there is a value.
    pub(crate) fn leaf_if(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.leaf(name, value);
        }
    }

    /// Text.
    pub(crate) fn text(&mut self, text: &str) {
        self.out.push_str(&escaped(text));
    }

    /// What was written.
    pub(crate) fn finish(self) -> String {
        self.out
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.out.push('<');
        self.out.push_str(name);
        for (name, value) in attributes {
            for part in [" ", name, "=\"", &*escaped(value), "\""] {
                self.out.push_str(part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_nest_and_everything_within_is_escaped() {
        let mut writer = Writer::default();
        writer.element("a", &[("xmlns", "urn:\"x\"")], |writer| {
            writer.leaf("b", "1 < 2");
            writer.leaf("c", "");
            writer.leaf_if("d", None::<u8>);
            writer.element("e", &[("i:type", "f")], |_| {});
        });
        let expected = r#"<a xmlns="urn:&quot;x&quot;"><b>1 &lt; 2</b><c/><e i:type="f"/></a>"#;
        assert_eq!(writer.finish(), expected);
    }
}
