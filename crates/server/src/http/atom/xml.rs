//! Reading XML: a pull parser feeds a small tree, and nothing a document says can make it large.
//!
//! There are no document types and no entities but the five that XML has by itself, so nothing
//! expands. Elements are known by namespace and local name: every client picks prefixes of its own.
//! Elements of foreign namespaces are read and kept, and nobody asks for them.

use std::str::FromStr;

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::reader::NsReader;

/// Bytes of a document; the largest description with all its rules is well below.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 256 * 1024;
/// Elements within elements; a priority rule's parameter is ten deep.
const DEPTH_MAX: usize = 16;
/// Elements in all.
const ELEMENTS_MAX: usize = 8_192;
/// Attributes of one element.
const ATTRIBUTES_MAX: usize = 32;

const ATOM: &[u8] = b"http://www.w3.org/2005/Atom";
const SERVICE_BUS: &[u8] = b"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
const INSTANCE: &[u8] = b"http://www.w3.org/2001/XMLSchema-instance";
/// The namespace of what Service Bus has no element for.
pub(crate) const PRIORITY: &str = "urn:vorrang:priority";

/// Why a document is not read. Service Bus answers 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// It is not XML.
    #[error("the document is not well-formed XML near byte {at}")]
    Malformed {
        /// Where.
        at: u64,
    },
    /// It is XML that we do not take.
    #[error("the document has {what}, which is not accepted")]
    Forbidden {
        /// What.
        what: &'static str,
    },
    /// There is too much of something.
    #[error("the document has more than {limit} {what}")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// There is no element in it.
    #[error("the document is empty")]
    Empty,
}

/// The vocabularies we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// Entries and their titles.
    Atom,
    /// Descriptions. Elements without a namespace count as these: people write requests by hand.
    ServiceBus,
    /// Priorities.
    Priority,
    /// Anybody else's.
    Foreign,
}

/// An element with what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) space: Space,
    pub(crate) name: String,
    /// The schema type, without its prefix.
    pub(crate) kind: Option<String>,
    /// Whether it says that it has no value.
    pub(crate) nil: bool,
    /// The text directly within, as it is written.
    pub(crate) text: String,
    pub(crate) children: Vec<Element>,
}

impl Element {
    /// The first child of this name in this vocabulary.
    pub(crate) fn child(&self, space: Space, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.space == space && child.name == name)
    }

    /// The first child of this name in the vocabulary of descriptions.
    pub(crate) fn field(&self, name: &str) -> Option<&Element> {
        self.child(Space::ServiceBus, name)
    }

    /// Its text without space around it, if it has a value.
    pub(crate) fn value(&self) -> Option<&str> {
        let text = self.text.trim();
        (!self.nil && !text.is_empty()).then_some(text)
    }
}

/// Reads a whole document.
pub(crate) fn parse(bytes: &[u8]) -> Result<Element, Error> {
    if bytes.len() > DOCUMENT_BYTES_MAX {
        return Err(Error::TooMuch { what: "bytes", limit: DOCUMENT_BYTES_MAX });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Error::Forbidden { what: "text that is not UTF-8" })?;
    let mut reader = NsReader::from_str(text.trim_start_matches('\u{feff}'));
    reader.config_mut().expand_empty_elements = true;
    let mut open: Vec<Element> = Vec::new();
    let mut elements = 0_usize;
    loop {
        let at = reader.buffer_position();
        let malformed = Error::Malformed { at };
        let (space, event) = reader.read_resolved_event().map_err(|_| malformed.clone())?;
        let space = vocabulary(&space);
        match event {
            Event::Start(tag) => {
                elements += 1;
                within(elements, ELEMENTS_MAX, "elements")?;
                within(open.len() + 1, DEPTH_MAX, "levels of elements")?;
                let space = space.ok_or(malformed)?;
                open.push(begin(&reader, space, &tag, at)?);
            }
            Event::End(_) => {
                let closed = open.pop().ok_or_else(|| malformed.clone())?;
                match open.last_mut() {
                    Some(parent) => parent.children.push(closed),
                    None => return finish(&mut reader, closed),
                }
            }
            Event::Text(part) => {
                let part = part.decode().map_err(|_| malformed.clone())?;
                add(&mut open, &part, &malformed)?;
            }
            Event::CData(part) => {
                let part = part.decode().map_err(|_| malformed.clone())?;
                add(&mut open, &part, &malformed)?;
            }
            Event::GeneralRef(reference) => {
                let character =
                    resolve(&reference).ok_or(Error::Forbidden { what: "an entity of its own" })?;
                let mut buffer = [0; 4];
                add(&mut open, character.encode_utf8(&mut buffer), &malformed)?;
            }
            Event::Comment(_) | Event::Decl(_) => {}
            Event::PI(_) => return Err(Error::Forbidden { what: "a processing instruction" }),
            Event::DocType(_) => return Err(Error::Forbidden { what: "a document type" }),
            Event::Eof if open.is_empty() => return Err(Error::Empty),
            // Empty elements are told as a start and an end.
            Event::Empty(_) | Event::Eof => return Err(malformed),
        }
    }
}

/// The vocabulary of a namespace; none for a prefix that stands for nothing.
fn vocabulary(space: &ResolveResult<'_>) -> Option<Space> {
    match space {
        ResolveResult::Bound(Namespace(ATOM)) => Some(Space::Atom),
        ResolveResult::Bound(Namespace(SERVICE_BUS)) | ResolveResult::Unbound => Some(Space::ServiceBus),
        ResolveResult::Bound(Namespace(uri)) if *uri == PRIORITY.as_bytes() => Some(Space::Priority),
        ResolveResult::Bound(_) => Some(Space::Foreign),
        ResolveResult::Unknown(_) => None,
    }
}

fn begin(reader: &NsReader<&[u8]>, space: Space, tag: &BytesStart<'_>, at: u64) -> Result<Element, Error> {
    let malformed = || Error::Malformed { at };
    let name = std::str::from_utf8(tag.local_name().into_inner()).map_err(|_| malformed())?.to_owned();
    let mut element =
        Element { space, name, kind: None, nil: false, text: String::new(), children: Vec::new() };
    for (index, attribute) in tag.attributes().with_checks(false).enumerate() {
        within(index + 1, ATTRIBUTES_MAX, "attributes of one element")?;
        let attribute = attribute.map_err(|_| malformed())?;
        let (space, local) = reader.resolve_attribute(attribute.key);
        if space != ResolveResult::Bound(Namespace(INSTANCE)) {
            continue;
        }
        let value = std::str::from_utf8(&attribute.value).map_err(|_| malformed())?;
        match local.into_inner() {
            b"type" => {
                element.kind = Some(value.rsplit_once(':').map_or(value, |(_, name)| name).to_owned());
            }
            b"nil" => element.nil = value == "true" || value == "1",
            _ => {}
        }
    }
    Ok(element)
}

/// Text between elements; outside of all of them only white space is XML.
fn add(open: &mut [Element], part: &str, malformed: &Error) -> Result<(), Error> {
    match open.last_mut() {
        Some(element) => element.text.push_str(part),
        None if part.trim().is_empty() => {}
        None => return Err(malformed.clone()),
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
        let malformed = Error::Malformed { at: reader.buffer_position() };
        match reader.read_event().map_err(|_| malformed.clone())? {
            Event::Eof => return Ok(root),
            Event::Comment(_) => {}
            Event::Text(text) if text.iter().all(u8::is_ascii_whitespace) => {}
            _ => return Err(malformed),
        }
    }
}

fn within(count: usize, limit: usize, what: &'static str) -> Result<(), Error> {
    if count > limit { Err(Error::TooMuch { what, limit }) } else { Ok(()) }
}

/// Reads an element's text as a number, a flag or anything else that has a text form.
pub(crate) fn read<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_by_namespace_and_not_by_prefix() {
        let text = r#"<?xml version="1.0"?>
            <a:entry xmlns:a="http://www.w3.org/2005/Atom" xmlns:x="http://www.w3.org/2001/XMLSchema-instance">
              <a:title type="text"> t </a:title>
              <q:QueueDescription xmlns:q="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">
                <q:Filter x:type="y:SqlFilter" type="other"><ForwardTo x:nil="true"/></q:Filter>
                <f:Filter xmlns:f="urn:foreign"/>
              </q:QueueDescription>
            </a:entry>"#;
        let entry = parse(text.as_bytes()).unwrap();
        assert_eq!((entry.space, entry.name.as_str()), (Space::Atom, "entry"));
        assert_eq!(entry.child(Space::Atom, "title").unwrap().value(), Some("t"));
        let queue = entry.field("QueueDescription").unwrap();
        let filter = queue.field("Filter").unwrap();
        assert_eq!(filter.kind.as_deref(), Some("SqlFilter"));
        assert!(filter.field("ForwardTo").unwrap().nil);
        assert_eq!(queue.children[1].space, Space::Foreign);
    }

    #[test]
    fn text_is_put_together_from_all_its_parts() {
        let element = parse(b"<a> x &lt;<![CDATA[<b>&amp;]]>&#x41;&#66;<!-- c --> y </a>").unwrap();
        assert_eq!(element.text, " x <<b>&amp;AB y ");
        assert_eq!(element.value(), Some("x <<b>&amp;AB y"));
    }

    #[test]
    fn what_is_not_ours_to_read_is_refused() {
        let deep = |levels: usize| "<a>".repeat(levels) + &"</a>".repeat(levels);
        let many = |count: usize| format!("<a>{}</a>", "<b/>".repeat(count));
        let attributes = |count: usize| format!("<a {}/>", "a=\"\" ".repeat(count));
        let cases = [
            (String::new(), "is empty"),
            (" \n ".to_owned(), "is empty"),
            ("<!-- only -->".to_owned(), "is empty"),
            ("text".to_owned(), "not well-formed"),
            ("<a>".to_owned(), "not well-formed"),
            ("</a>".to_owned(), "not well-formed"),
            ("<a></b>".to_owned(), "not well-formed"),
            ("<a/><b/>".to_owned(), "not well-formed"),
            ("<a/>text".to_owned(), "not well-formed"),
            ("<p:a/>".to_owned(), "not well-formed"),
            ("<a>&lt</a>".to_owned(), "not well-formed"),
            ("<a>&mine;</a>".to_owned(), "an entity of its own"),
            ("<a>&#0;</a>".to_owned(), "an entity of its own"),
            ("<a>&#xD800;</a>".to_owned(), "an entity of its own"),
            ("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>".to_owned(), "a document type"),
            ("<?php ?><a/>".to_owned(), "a processing instruction"),
            (deep(DEPTH_MAX + 1), "more than 16 levels"),
            (many(ELEMENTS_MAX), "more than 8192 elements"),
            (attributes(ATTRIBUTES_MAX + 1), "more than 32 attributes"),
            (format!("<a>{}</a>", "x".repeat(DOCUMENT_BYTES_MAX)), "more than 262144 bytes"),
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
}
