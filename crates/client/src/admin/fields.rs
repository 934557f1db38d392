//! The elements of a description: read by name, set in the place the schema has for them, and otherwise kept.
//!
//! Service Bus reads a description in the order of its schema and passes over in silence what stands elsewhere. So a
//! value is replaced where it stands, or put before the first element that comes later in the schema; elements nobody
//! here knows stay where they were read.

use std::fmt;
use std::time::Duration;

use super::iso;
use super::xml::{Element, SERVICE_BUS};

/// What an entity shows of its life; it is not sent back with an update.
pub(super) const OBSERVED: [&str; 10] = [
    "SizeInBytes",
    "MessageCount",
    "CreatedAt",
    "UpdatedAt",
    "AccessedAt",
    "CountDetails",
    "SubscriptionCount",
    "SqlFilterCount",
    "CorrelationFilterCount",
    "EntityAvailabilityStatus",
];

/// The elements in a description.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Fields {
    elements: Vec<Element>,
}

impl Fields {
    pub(super) fn of(description: Element) -> Self {
        Fields { elements: description.children }
    }

    pub(super) fn element(&self, name: &str) -> Option<&Element> {
        self.elements.iter().find(|element| element.name == name)
    }

    pub(super) fn get<T: Written>(&self, name: &str) -> Option<T> {
        self.element(name).and_then(Element::value).and_then(T::read)
    }

    pub(super) fn set<T: Written>(&mut self, order: &[&str], name: &str, value: &T) {
        self.put(order, Element::leaf(name, value.write()));
    }

    /// Puts an element in its place.
    pub(super) fn put(&mut self, order: &[&str], element: Element) {
        if let Some(present) = self.elements.iter_mut().find(|present| present.name == element.name) {
            *present = element;
            return;
        }
        let rank = |name: &str| order.iter().position(|known| *known == name);
        let place = rank(&element.name).and_then(|wanted| {
            self.elements.iter().position(|present| rank(&present.name).is_some_and(|rank| rank > wanted))
        });
        self.elements.insert(place.unwrap_or(self.elements.len()), element);
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.elements.retain(|element| element.name != name);
    }

    /// The description as it is sent: everything but what is only observed. Entities that are named as targets get
    /// the address the service asks for.
    pub(super) fn description(&self, root: &str, host: &str) -> Element {
        let sent = self.elements.iter().filter(|element| !OBSERVED.contains(&element.name.as_str()));
        let sent = sent.map(|element| match element.value() {
            Some(name) if TARGETS.contains(&element.name.as_str()) && !name.contains("://") => {
                Element::leaf(&element.name, format!("sb://{host}/{name}"))
            }
            _ => element.clone(),
        });
        Element::new(SERVICE_BUS, root).with_all(sent)
    }
}

/// Elements that name another entity.
pub(super) const TARGETS: [&str; 2] = ["ForwardTo", "ForwardDeadLetteredMessagesTo"];

/// Values only: a description holds the keys of its entity.
impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leaves = self.elements.iter().filter(|element| element.children.is_empty());
        f.debug_map().entries(leaves.map(|element| (&element.name, &element.text))).finish()
    }
}

/// What the text of an element can be.
pub(super) trait Written: Sized {
    fn read(text: &str) -> Option<Self>;
    fn write(&self) -> String;
}

macro_rules! written_as_text {
    ($($type:ty),*) => { $(
        impl Written for $type {
            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }
            fn write(&self) -> String {
                self.to_string()
            }
        }
    )* };
}

written_as_text!(String, bool, u8, u32, u64);

impl Written for Duration {
    fn read(text: &str) -> Option<Self> {
        iso::read_span(text)
    }

    fn write(&self) -> String {
        iso::write_span(*self)
    }
}

/// Whether messages go in and out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Both.
    Active,
    /// Neither.
    Disabled,
    /// Out only.
    SendDisabled,
    /// In only.
    ReceiveDisabled,
}

impl Status {
    const ALL: [(Status, &'static str); 4] = [
        (Status::Active, "Active"),
        (Status::Disabled, "Disabled"),
        (Status::SendDisabled, "SendDisabled"),
        (Status::ReceiveDisabled, "ReceiveDisabled"),
    ];
}

impl Written for Status {
    fn read(text: &str) -> Option<Self> {
        Status::ALL.iter().find(|(_, name)| *name == text).map(|(status, _)| *status)
    }

    fn write(&self) -> String {
        Status::ALL
            .iter()
            .find(|(status, _)| status == self)
            .map_or(String::new(), |(_, name)| (*name).to_owned())
    }
}

/// An entity that another one forwards to: its name, whichever address the service has for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target(pub(super) String);

impl Written for Target {
    fn read(text: &str) -> Option<Self> {
        let path = match text.split_once("://") {
            Some((_, rest)) => rest.split_once('/')?.1,
            None => text,
        };
        Some(Target(path.trim_matches('/').to_owned()))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::xml;

    const ORDER: [&str; 4] = ["LockDuration", "MaxDeliveryCount", "Status", "ForwardTo"];

    fn fields(text: &str) -> Fields {
        Fields::of(xml::parse(text.as_bytes()).unwrap())
    }

    fn names(fields: &Fields) -> Vec<&str> {
        fields.elements.iter().map(|element| element.name.as_str()).collect()
    }

    #[test]
    fn a_value_stands_where_the_schema_has_it_and_what_is_unknown_stays() {
        let mut fields =
            fields("<Q><LockDuration>PT1M</LockDuration><New>1</New><Status>Active</Status><Last/></Q>");
        fields.set(&ORDER, "MaxDeliveryCount", &3_u32);
        assert_eq!(names(&fields), ["LockDuration", "New", "MaxDeliveryCount", "Status", "Last"]);
        fields.set(&ORDER, "LockDuration", &Duration::from_secs(5));
        fields.set(&ORDER, "ForwardTo", &Target("other".to_owned()));
        assert_eq!(
            names(&fields),
            ["LockDuration", "New", "MaxDeliveryCount", "Status", "Last", "ForwardTo"]
        );
        assert_eq!(fields.get("LockDuration"), Some(Duration::from_secs(5)));
        assert_eq!(fields.get("Status"), Some(Status::Active));
        assert_eq!(fields.get::<u32>("New"), Some(1));
        assert_eq!(fields.get::<u32>("Absent"), None);
    }

    #[test]
    fn what_is_observed_is_not_sent_and_targets_get_addresses() {
        let text = "<Q><MessageCount>7</MessageCount><ForwardTo>a/b</ForwardTo><New/></Q>";
        let sent = fields(text).description("QueueDescription", "h.example");
        assert!(sent.child("MessageCount").is_none());
        assert_eq!(sent.value_of("ForwardTo"), Some("sb://h.example/a/b"));
        assert!(sent.child("New").is_some());
        for (text, name) in [("sb://h/a/b", "a/b"), ("https://h:1/a/", "a"), ("a/b", "a/b")] {
            assert_eq!(Target::read(text), Some(Target(name.to_owned())), "{text}");
        }
    }

    #[test]
    fn keys_are_not_shown() {
        let text = "<Q><Status>Active</Status><AuthorizationRules><AuthorizationRule><PrimaryKey>secret</PrimaryKey>\
                    </AuthorizationRule></AuthorizationRules></Q>";
        let shown = format!("{:?}", fields(text));
        assert!(shown.contains("Active") && !shown.contains("secret"), "{shown}");
    }
}
