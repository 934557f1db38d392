//! XML as a small tree: read within bounds, written so that every reader of Service Bus's dialect takes it.
//!
//! Names are kept by namespace, never by prefix, and so is the type an element says to have; therefore an element that
//! was read can be written into another document. Attributes of foreign namespaces are not kept: nobody uses them.
//! There are no document types and no entities but XML's own five, so nothing in an answer expands.

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::{Namespace, QName, ResolveResult};
use quick_xml::reader::NsReader;

pub(super) const ATOM: &str = "http://www.w3.org/2005/Atom";
pub(super) const SERVICE_BUS: &str = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
pub(super) const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// Elements within elements; a parameter of a priority rule in a feed is thirteen deep.
const DEPTH_MAX: usize = 24;
/// Elements in all: a page of a hundred entities with a thousand elements each, and room to spare.
const ELEMENTS_MAX: usize = 200_000;
/// Attributes of one element.
const ATTRIBUTES_MAX: usize = 32;

/// Why a document is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    #[error("the answer is not well-formed XML near byte {at}")]
    Malformed { at: u64 },
    #[error("the answer has {what}, which is not read")]
    Forbidden { what: &'static str },
    #[error("the answer has more than {limit} {what}")]
    TooMuch { what: &'static str, limit: usize },
    #[error("the answer is empty")]
    Empty,
}

/// An element with what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Element {
    /// Its namespace; empty if it has none.
    pub(super) space: String,
    pub(super) name: String,
    /// The type it says to have: namespace and name.
    pub(super) kind: Option<(String, String)>,
    /// Whether it says that it has no value.
    pub(super) nil: bool,
    /// Attributes without a namespace.
    pub(super) attributes: Vec<(String, String)>,
    /// The text directly within.
    pub(super) text: String,
    pub(super) children: Vec<Element>,
}

impl Element {
    /// An empty element.
    pub(super) fn new(space: &str, name: &str) -> Self {
        Element { space: space.to_owned(), name: name.to_owned(), ..Element::default() }
    }

    /// An element of a description, with a text.
    pub(super) fn leaf(name: &str, text: impl Into<String>) -> Self {
        Element { text: text.into(), ..Element::new(SERVICE_BUS, name) }
    }

    #[must_use]
    pub(super) fn with(mut self, child: Element) -> Self {
        self.children.push(child);
        self
    }

    #[must_use]
    pub(super) fn with_all(mut self, children: impl IntoIterator<Item = Element>) -> Self {
        self.children.extend(children);
        self
    }

    #[must_use]
    pub(super) fn with_attribute(mut self, name: &str, value: &str) -> Self {
        self.attributes.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub(super) fn of_kind(mut self, space: &str, name: &str) -> Self {
        self.kind = Some((space.to_owned(), name.to_owned()));
        self
    }

    /// The first child of this name, in whichever namespace: none of the documents has one name in two of them.
    pub(super) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of the first child of this name, if it has one.
    pub(super) fn value_of(&self, name: &str) -> Option<&str> {
        self.child(name).and_then(Element::value)
    }

    /// Its text without space around it, if it has a value.
    pub(super) fn value(&self) -> Option<&str> {
        let text = self.text.trim();
        (!self.nil && !text.is_empty()).then_some(text)
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The name of its type.
    pub(super) fn kind_name(&self) -> Option<&str> {
        self.kind.as_ref().map(|(_, name)| name.as_str())
    }

    /// Writes it as a document of its own.
    pub(super) fn document(&self) -> String {
        let mut out = String::from(r#"<?xml version="1.0" encoding="utf-8"?>"#);
        self.write(&mut out, "");
        out
    }

    fn write(&self, out: &mut String, around: &str) {
        let mut put = |parts: &[&str]| parts.iter().for_each(|part| out.push_str(part));
        put(&["<", &self.name]);
        if self.space != around {
            put(&[" xmlns=\"", &escaped(&self.space), "\""]);
        }
        // The service's own reader looks for nothing but the namespace; some other readers look for the prefix `i`.
        if self.nil || self.kind.is_some() {
            put(&[" xmlns:i=\"", INSTANCE, "\""]);
        }
        if self.nil {
            put(&[" i:nil=\"true\""]);
        }
        match &self.kind {
            None => {}
            Some((space, name)) if *space == self.space => put(&[" i:type=\"", &escaped(name), "\""]),
            Some((space, name)) => {
                put(&[" xmlns:d6p1=\"", &escaped(space), "\" i:type=\"d6p1:", &escaped(name), "\""]);
            }
        }
        for (name, value) in &self.attributes {
            put(&[" ", name, "=\"", &escaped(value), "\""]);
        }
        if self.text.is_empty() && self.children.is_empty() {
            put(&["/>"]);
            return;
        }
        put(&[">"]);
        // Between elements there is only the white space of somebody's layout.
        if self.children.is_empty() || !self.text.trim().is_empty() {
            put(&[&escaped(&self.text)]);
        }
        for child in &self.children {
            child.write(out, &self.space);
        }
        for part in ["</", &self.name, ">"] {
            out.push_str(part);
        }
    }
}

/// Text as it stands in XML. Control characters that XML cannot hold are left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {}
            other => out.push(other),
        }
    }
    out
}

/// Reads a whole document. How many bytes there may be is decided where they come from.
pub(super) fn parse(bytes: &[u8]) -> Result<Element, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::Forbidden { what: "text that is not UTF-8" })?;
    let mut reader = NsReader::from_str(text.trim_start_matches('\u{feff}'));
    reader.config_mut().expand_empty_elements = true;
    let mut open: Vec<Element> = Vec::new();
    let mut elements = 0_usize;
    loop {
        let at = reader.buffer_position();
        let malformed = || Error::Malformed { at };
        let (space, event) = reader.read_resolved_event().map_err(|_| malformed())?;
        let space = namespace(&space);
        match event {
            Event::Start(tag) => {
                elements = elements.saturating_add(1);
                within(elements, ELEMENTS_MAX, "elements")?;
                within(open.len().saturating_add(1), DEPTH_MAX, "levels of elements")?;
                open.push(begin(&reader, space.ok_or_else(malformed)?, &tag, at)?);
            }
            Event::End(_) => {
                let closed = open.pop().ok_or_else(malformed)?;
                match open.last_mut() {
                    Some(parent) => parent.children.push(closed),
                    None => return finish(&mut reader, closed),
                }
            }
            Event::Text(part) => add(&mut open, &part.decode().map_err(|_| malformed())?, at)?,
            Event::CData(part) => add(&mut open, &part.decode().map_err(|_| malformed())?, at)?,
            Event::GeneralRef(reference) => {
                let letter = resolve(&reference).ok_or(Error::Forbidden { what: "an entity of its own" })?;
                add(&mut open, letter.encode_utf8(&mut [0; 4]), at)?;
            }
            Event::Comment(_) | Event::Decl(_) => {}
            Event::PI(_) => return Err(Error::Forbidden { what: "a processing instruction" }),
            Event::DocType(_) => return Err(Error::Forbidden { what: "a document type" }),
            Event::Eof if open.is_empty() => return Err(Error::Empty),
            // Empty elements are told as a start and an end.
            Event::Empty(_) | Event::Eof => return Err(malformed()),
        }
    }
}

/// The namespace as text, empty for none; nothing for a prefix that stands for nothing.
fn namespace(space: &ResolveResult<'_>) -> Option<String> {
    match space {
        ResolveResult::Bound(Namespace(uri)) => String::from_utf8(uri.to_vec()).ok(),
        ResolveResult::Unbound => Some(String::new()),
        ResolveResult::Unknown(_) => None,
    }
}

fn begin(reader: &NsReader<&[u8]>, space: String, tag: &BytesStart<'_>, at: u64) -> Result<Element, Error> {
    let malformed = || Error::Malformed { at };
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| malformed());
    let mut element = Element { space, name: text(tag.local_name().into_inner())?, ..Element::default() };
    for (index, attribute) in tag.attributes().enumerate() {
        within(index.saturating_add(1), ATTRIBUTES_MAX, "attributes of one element")?;
        let attribute = attribute.map_err(|_| malformed())?;
        if attribute.key.as_namespace_binding().is_some() {
            continue;
        }
        let value = attribute.unescape_value().map_err(|_| malformed())?;
        let (space, local) = reader.resolve_attribute(attribute.key);
        match (namespace(&space).ok_or_else(malformed)?.as_str(), local.into_inner()) {
            ("", name) => element.attributes.push((text(name)?, value.into_owned())),
            (INSTANCE, b"type") => {
                let (space, local) = reader.resolve_element(QName(value.as_bytes()));
                let space = namespace(&space).ok_or_else(malformed)?;
                element.kind = Some((space, text(local.into_inner())?));
            }
            (INSTANCE, b"nil") => element.nil = matches!(&*value, "true" | "1"),
            _ => {}
        }
    }
    Ok(element)
}

/// Text between elements; outside of all of them only white space is XML.
fn add(open: &mut [Element], part: &str, at: u64) -> Result<(), Error> {
    match open.last_mut() {
        Some(element) => element.text.push_str(part),
        None if part.trim().is_empty() => {}
        None => return Err(Error::Malformed { at }),
    }
    Ok(())
}

/// A character reference, or one of XML's own five names.
fn resolve(reference: &BytesRef<'_>) -> Option<char> {
    let name = reference.decode().ok()?;
    let number = |digits: &str, radix| {
        let code = u32::from_str_radix(digits, radix).ok().filter(|code| *code > 0)?;
        char::from_u32(code)
    };
    match &*name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        other => match (other.strip_prefix("#x"), other.strip_prefix('#')) {
            (Some(digits), _) => number(digits, 16),
            (None, Some(digits)) => number(digits, 10),
            (None, None) => None,
        },
    }
}

/// Behind the last end there is nothing but comments and white space.
fn finish(reader: &mut NsReader<&[u8]>, root: Element) -> Result<Element, Error> {
    loop {
        let at = reader.buffer_position();
        match reader.read_event().map_err(|_| Error::Malformed { at })? {
            Event::Eof => return Ok(root),
            Event::Comment(_) => {}
            Event::Text(text) if text.iter().all(u8::is_ascii_whitespace) => {}
            _ => return Err(Error::Malformed { at }),
        }
    }
}

fn within(count: usize, limit: usize, what: &'static str) -> Result<(), Error> {
    if count > limit { Err(Error::TooMuch { what, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_element_keeps_its_meaning_when_prefixes_and_places_change() {
        let text = r#"<?xml version="1.0"?>
            <a:entry xmlns:a="http://www.w3.org/2005/Atom" xmlns:x="http://www.w3.org/2001/XMLSchema-instance">
              <a:link rel="next" href="https://h/?a=1&amp;b=2"/>
              <q:Rule xmlns:q="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">
                <q:Filter x:type="q:SqlFilter"/>
                <q:Value xmlns:y="http://www.w3.org/2001/XMLSchema" x:type="y:string"> a &lt;<![CDATA[&amp;]]>&#x41; </q:Value>
                <q:None x:nil="true"/><f:Foreign xmlns:f="urn:foreign"><f:In/></f:Foreign>
              </q:Rule>
            </a:entry>"#;
        let entry = parse(text.as_bytes()).unwrap();
        assert_eq!((entry.space.as_str(), entry.name.as_str()), (ATOM, "entry"));
        assert_eq!(entry.child("link").unwrap().attribute("href"), Some("https://h/?a=1&b=2"));
        let rule = entry.child("Rule").unwrap();
        assert_eq!(
            rule.child("Filter").unwrap().kind,
            Some((SERVICE_BUS.to_owned(), "SqlFilter".to_owned()))
        );
        let value = rule.child("Value").unwrap();
        assert_eq!((value.text.as_str(), value.kind_name()), (" a <&amp;A ", Some("string")));
        assert!(rule.child("None").unwrap().nil);
        assert_eq!(rule.child("Foreign").unwrap().children[0].space, "urn:foreign");
        // Written elsewhere it means the same.
        let written = rule.document();
        assert_eq!(stripped(parse(written.as_bytes()).unwrap()), stripped(rule.clone()));
        assert!(written.contains(r#"i:type="SqlFilter""#), "{written}");
        assert!(written.contains(r#"xmlns:d6p1="http://www.w3.org/2001/XMLSchema" i:type="d6p1:string""#));
    }

    /// Without the white space between elements.
    fn stripped(mut element: Element) -> Element {
        if !element.children.is_empty() && element.text.trim().is_empty() {
            element.text.clear();
        }
        element.children = element.children.into_iter().map(stripped).collect();
        element
    }

    #[test]
    fn what_is_not_to_be_read_is_refused() {
        let deep = |levels: usize| "<a>".repeat(levels) + &"</a>".repeat(levels);
        let many = |count: usize| format!("<a>{}</a>", "<b/>".repeat(count));
        let attributes = |count: usize| {
            let all: Vec<_> = (0..count).map(|place| format!("a{place}=\"\"")).collect();
            format!("<a {}/>", all.join(" "))
        };
        let cases = [
            (String::new(), "is empty"),
            ("text".to_owned(), "not well-formed"),
            ("<a>".to_owned(), "not well-formed"),
            ("<a></b>".to_owned(), "not well-formed"),
            ("<a/><b/>".to_owned(), "not well-formed"),
            ("<p:a/>".to_owned(), "not well-formed"),
            ("<a>&mine;</a>".to_owned(), "an entity of its own"),
            ("<a b=\"&mine;\"/>".to_owned(), "not well-formed"),
            ("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>".to_owned(), "a document type"),
            ("<?php ?><a/>".to_owned(), "a processing instruction"),
            (deep(DEPTH_MAX + 1), "more than 24 levels"),
            (many(ELEMENTS_MAX), "more than 200000 elements"),
            (attributes(ATTRIBUTES_MAX + 1), "more than 32 attributes"),
        ];
        for (text, expected) in cases {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:.60}: {error}");
        }
        for text in [deep(DEPTH_MAX), many(ELEMENTS_MAX - 1), attributes(ATTRIBUTES_MAX)] {
            assert!(parse(text.as_bytes()).is_ok(), "{text:.60}");
        }
        assert!(parse(b"<a>\xff</a>").is_err());
        assert!(parse("\u{feff}<a/>".as_bytes()).is_ok());
    }

    fn elements() -> impl Strategy<Value = Element> {
        let space = prop::sample::select(vec!["", ATOM, SERVICE_BUS, "urn:x"]);
        let kind = prop::option::of((prop::sample::select(vec![SERVICE_BUS, SCHEMA]), "[A-Z][a-z]{0,5}"));
        let leaf = (space, "[A-Za-z][A-Za-z0-9]{0,8}", kind, any::<bool>(), "[ -~äß€\n\t\r]{0,12}").prop_map(
            |(space, name, kind, nil, text)| Element {
                kind: kind.map(|(space, name)| (space.to_owned(), name)),
                nil,
                text,
                ..Element::new(space, &name)
            },
        );
        leaf.prop_recursive(4, 32, 4, |inner| {
            (inner.clone(), prop::collection::vec(inner, 1..4)).prop_map(|(parent, children)| Element {
                text: String::new(),
                children,
                ..parent
            })
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(element in elements()) {
            prop_assert_eq!(parse(element.document().as_bytes()), Ok(element));
        }

        #[test]
        fn no_answer_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        /// Documents that are nearly right reach further than noise does.
        #[test]
        fn no_damaged_answer_panics(element in elements(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = element.document().into_bytes();
            *at.get_mut(&mut bytes) = byte;
            let _ = parse(&bytes);
            bytes.truncate(at.index(bytes.len()));
            prop_assert!(parse(&bytes).is_err());
        }
    }
}
