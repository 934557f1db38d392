//! Entries and feeds: Atom's envelope around descriptions.

use super::xml::{ATOM, Element};

/// What is wrong with an answer that is XML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    /// It is an entry of something else, or of nothing: what was asked for is not there.
    #[error("there is {found}")]
    Other { found: String },
    #[error("the answer is '{root}', not an entry or a feed")]
    Root { root: String },
}

/// A description in the envelope a request has.
pub(super) fn wrap(description: Element) -> Element {
    let content = Element::new(ATOM, "content").with_attribute("type", "application/xml").with(description);
    Element::new(ATOM, "entry").with(content)
}

/// The description of this kind in an answer, with its title.
///
/// Service Bus answers a question for what does not exist with a feed that has no entry, and a question for a queue
/// with whatever has that name.
pub(super) fn unwrap(answer: Element, root: &str) -> Result<(String, Element), Error> {
    match answer.name.as_str() {
        "entry" => unwrap_entry(answer, root),
        "feed" => Err(Error::Other { found: "nothing of that name".to_owned() }),
        _ => Err(Error::Root { root: answer.name }),
    }
}

fn unwrap_entry(entry: Element, root: &str) -> Result<(String, Element), Error> {
    let title = entry.value_of("title").unwrap_or_default().to_owned();
    let content = entry.children.into_iter().find(|child| child.name == "content");
    match content.and_then(|content| content.children.into_iter().next()) {
        Some(description) if description.name == root => Ok((title, description)),
        Some(other) => Err(Error::Other { found: format!("a {} of that name, not a {root}", other.name) }),
        None => Err(Error::Other { found: "an entry without a description".to_owned() }),
    }
}

/// A page of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) items: Vec<(String, Element)>,
    /// Whether it says that there are more.
    pub(super) more: bool,
}

/// Reads a page of descriptions of this kind.
pub(super) fn page(feed: Element, root: &str) -> Result<Page, Error> {
    if feed.name != "feed" {
        return Err(Error::Root { root: feed.name });
    }
    let more =
        feed.children.iter().any(|child| child.name == "link" && child.attribute("rel") == Some("next"));
    let entries = feed.children.into_iter().filter(|child| child.name == "entry");
    let items = entries.map(|entry| unwrap_entry(entry, root)).collect::<Result<Vec<_>, Error>>()?;
    Ok(Page { items, more })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::xml::{self, SERVICE_BUS};

    #[test]
    fn a_description_comes_out_as_it_went_in() {
        let wrapped = wrap(Element::new(SERVICE_BUS, "QueueDescription"));
        let text = wrapped.document();
        assert!(
            text.contains(
                r#"<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><Queue"#
            ),
            "{text}"
        );
        let (title, description) = unwrap(wrapped, "QueueDescription").unwrap();
        assert_eq!((title.as_str(), description.name.as_str()), ("", "QueueDescription"));
    }

    #[test]
    fn what_is_something_else_is_told() {
        let parse = |text: &str| xml::parse(text.as_bytes()).unwrap();
        let topic = "<entry><title>t</title><content><TopicDescription/></content></entry>";
        for (text, expected) in [
            (topic, "there is a TopicDescription of that name, not a QueueDescription"),
            ("<feed><title>Publicly Listed Services</title></feed>", "there is nothing of that name"),
            ("<entry/>", "there is an entry without a description"),
            ("<html/>", "the answer is 'html', not an entry or a feed"),
        ] {
            assert_eq!(unwrap(parse(text), "QueueDescription").unwrap_err().to_string(), expected);
        }
        let feed = format!("<feed><link rel=\"self\"/>{topic}<link rel=\"next\"/></feed>");
        let page = page(parse(&feed), "TopicDescription").unwrap();
        assert_eq!((page.items.len(), page.more), (1, true));
    }
}
