//! Entries and feeds: the envelope of Atom around descriptions.
//!
//! JavaScript takes every name from the path of `id`, Python takes the second link of a feed for the next
//! page, and all of them take a queue's name from `title`; so these are written with care.

use vorrang_engine::Timestamp;

use super::writer::Writer;
use crate::date;

const ATOM: &str = "http://www.w3.org/2005/Atom";
/// The namespace of descriptions.
const CONNECT: &str = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// What an entry says beside its description.
#[derive(Debug, Clone)]
pub(crate) struct Entry<'a> {
    /// The path of what it describes, names spelled as they were created.
    pub(crate) path: String,
    /// The last name of the path.
    pub(crate) title: &'a str,
    pub(crate) published: Option<Timestamp>,
    pub(crate) updated: Timestamp,
    /// The root element of the description.
    pub(crate) root: &'static str,
}

/// Where a response is written to: what ids and links need.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// As the client wrote it, with the port.
    pub(crate) host: String,
    /// As the client asked for it.
    pub(crate) api_version: String,
    /// The namespace's name.
    pub(crate) namespace: String,
}

impl Origin {
    /// The host without its port.
    pub(crate) fn bare_host(&self) -> &str {
        match self.host.rsplit_once(':') {
            Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => &self.host,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}/{path}?api-version={}", self.host, self.api_version)
    }
}

/// Writes one entry as a document.
pub(crate) fn document(origin: &Origin, entry: &Entry<'_>, description: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::default();
    write(&mut writer, origin, entry, &[("xmlns", ATOM)], description);
    writer.finish()
}

fn write(
    writer: &mut Writer,
    origin: &Origin,
    entry: &Entry<'_>,
    attributes: &[(&str, &str)],
    description: impl FnOnce(&mut Writer),
) {
    let url = origin.url(&entry.path);
    writer.element("entry", attributes, |writer| {
        writer.leaf("id", &url);
        writer.element("title", &[("type", "text")], |writer| writer.text(entry.title));
        writer.leaf_if("published", entry.published.map(date::rfc3339));
        writer.leaf("updated", date::rfc3339(entry.updated));
        writer.element("author", &[], |writer| writer.leaf("name", &origin.namespace));
        writer.element("link", &[("rel", "self"), ("href", &url)], |_| {});
        writer.element("content", &[("type", "application/xml")], |writer| {
            writer.element(entry.root, &[("xmlns", CONNECT), ("xmlns:i", INSTANCE)], description);
        });
    });
}

/// A page of a list.
#[derive(Debug, Clone)]
pub(crate) struct Page<'a> {
    /// The path of the list.
    pub(crate) path: &'a str,
    /// What is listed.
    pub(crate) title: &'a str,
    pub(crate) skip: usize,
    pub(crate) top: usize,
    /// Whether there are more behind this page.
    pub(crate) more: bool,
    pub(crate) updated: Timestamp,
}

/// Writes a feed; `describe` writes the description of the item of an entry.
pub(crate) fn feed<'i, T>(
    origin: &Origin,
    page: &Page<'_>,
    items: &'i [T],
    entry: impl Fn(&'i T) -> Entry<'i>,
    describe: impl Fn(&'i T, &mut Writer),
) -> String {
    let url = |skip: usize| format!("{}&$skip={skip}&$top={}", origin.url(page.path), page.top);
    let here = url(page.skip);
    let mut writer = Writer::default();
    writer.element("feed", &[("xmlns", ATOM)], |writer| {
        writer.element("title", &[("type", "text")], |writer| writer.text(page.title));
        writer.leaf("id", &here);
        writer.leaf("updated", date::rfc3339(page.updated));
        writer.element("link", &[("rel", "self"), ("href", &here)], |_| {});
        if page.more {
            let next = url(page.skip.saturating_add(page.top));
            writer.element("link", &[("rel", "next"), ("href", &next)], |_| {});
        }
        for item in items {
            write(writer, origin, &entry(item), &[], |writer| describe(item, writer));
        }
    });
    writer.finish()
}
