//! Priority settings of a queue or subscription: an element of Vorrang's own namespace within its description.
//!
//! Everything is optional, and what is absent stays as it is on the broker. `docs/wire.md` shows the element.

use std::time::Duration;

use super::fields::Written;
use super::rule;
use super::xml::Element;
use crate::rules::RuleFilter;

const SPACE: &str = "urn:vorrang:priority";

/// In which order messages are given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The highest level first; those that wait too long are rescued.
    Strict,
    /// A level is worth this much waiting.
    Aged {
        /// The worth of one level.
        step: Duration,
    },
    /// The one whose target wait ends first.
    Deadline,
    /// As they came.
    Fifo,
}

/// A name for a level, with what is promised to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Its level; higher goes first.
    pub level: u8,
    /// How long its messages are to wait at most.
    pub target_wait: Option<Duration>,
}

/// Gives messages a class by what they are.
#[derive(Debug, Clone, PartialEq)]
pub struct PriorityRule {
    /// Which messages.
    pub filter: RuleFilter,
    /// The class they get.
    pub class: String,
}

/// Priority settings; `None` leaves a setting as it is.
///
/// ```
/// use std::time::Duration;
/// use vorrang_client::admin::{Class, Policy, Priority, QueueProperties};
///
/// let gold = Class { name: "gold".to_owned(), level: 9, target_wait: Some(Duration::from_secs(10)) };
/// let priority = Priority { policy: Some(Policy::Deadline), classes: Some(vec![gold]), ..Priority::default() };
/// let queue = QueueProperties::new("orders").with_priority(&priority);
/// assert_eq!(queue.priority(), Some(priority));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Priority {
    /// In which order messages are given out.
    pub policy: Option<Policy>,
    /// With [`Policy::Strict`]: a message that waited so long counts as neglected.
    pub rescue_after: Option<Duration>,
    /// Of a thousand deliveries so many go to the neglected; 0 switches the rescue off.
    pub rescue_per_mille: Option<u32>,
    /// The level of messages that say none.
    pub default_level: Option<u8>,
    /// Whether a session ranks by its best message.
    pub lift: Option<bool>,
    /// Of a thousand prefetched messages so many may be below the highest.
    pub prefetch_per_mille: Option<u32>,
    /// Whether nothing is given out for now.
    pub paused: Option<bool>,
    /// The classes, in place of those there were.
    pub classes: Option<Vec<Class>>,
    /// The rules that give classes, in place of those there were.
    pub rules: Option<Vec<PriorityRule>>,
}

impl Priority {
    pub(super) fn element(&self) -> Element {
        let mut element = Element::new(SPACE, "Priority");
        let mut put =
            |name: &str, text: Option<String>| element.children.extend(text.map(|text| leaf(name, text)));
        if let Some(policy) = self.policy {
            let (name, step) = match policy {
                Policy::Strict => ("strict", None),
                Policy::Aged { step } => ("aged", Some(step.write())),
                Policy::Deadline => ("deadline", None),
                Policy::Fifo => ("fifo", None),
            };
            put("Policy", Some(name.to_owned()));
            put("AgedStep", step);
        }
        put("RescueAfter", self.rescue_after.map(|time| time.write()));
        put("RescueShare", self.rescue_per_mille.map(|share| share.write()));
        put("DefaultLevel", self.default_level.map(|level| level.write()));
        put("Lift", self.lift.map(|lift| lift.write()));
        put("PrefetchShare", self.prefetch_per_mille.map(|share| share.write()));
        put("Paused", self.paused.map(|paused| paused.write()));
        let list = |name: &str, items: Vec<Element>| Element::new(SPACE, name).with_all(items);
        if let Some(classes) = &self.classes {
            element.children.push(list("Classes", classes.iter().map(class).collect()));
        }
        if let Some(rules) = &self.rules {
            element.children.push(list("Rules", rules.iter().map(priority_rule).collect()));
        }
        element
    }

    /// Reads what can be read; the broker writes nothing else.
    pub(super) fn read(element: &Element) -> Self {
        let policy = element.value_of("Policy").and_then(|name| match name {
            "strict" => Some(Policy::Strict),
            "aged" => Some(Policy::Aged { step: value(element, "AgedStep")? }),
            "deadline" => Some(Policy::Deadline),
            "fifo" => Some(Policy::Fifo),
            _ => None,
        });
        Priority {
            policy,
            rescue_after: value(element, "RescueAfter"),
            rescue_per_mille: value(element, "RescueShare"),
            default_level: value(element, "DefaultLevel"),
            lift: value(element, "Lift"),
            prefetch_per_mille: value(element, "PrefetchShare"),
            paused: value(element, "Paused"),
            classes: element
                .child("Classes")
                .map(|list| list.children.iter().filter_map(read_class).collect()),
            rules: element.child("Rules").map(|list| list.children.iter().filter_map(read_rule).collect()),
        }
    }
}

fn leaf(name: &str, text: String) -> Element {
    Element { text, ..Element::new(SPACE, name) }
}

fn value<T: Written>(element: &Element, name: &str) -> Option<T> {
    element.value_of(name).and_then(T::read)
}

fn class(class: &Class) -> Element {
    let target = class.target_wait.map(|time| leaf("TargetWait", time.write()));
    let named = [leaf("Name", class.name.clone()), leaf("Level", class.level.write())];
    Element::new(SPACE, "Class").with_all(named).with_all(target)
}

fn read_class(element: &Element) -> Option<Class> {
    let (name, level) = (element.value_of("Name")?.to_owned(), value(element, "Level")?);
    Some(Class { name, level, target_wait: value(element, "TargetWait") })
}

fn priority_rule(priority_rule: &PriorityRule) -> Element {
    let filter = rule::write_filter(&priority_rule.filter);
    Element::new(SPACE, "Rule").with(leaf("Class", priority_rule.class.clone())).with(filter)
}

fn read_rule(element: &Element) -> Option<PriorityRule> {
    let filter = rule::read_filter(element.child("Filter")?)?;
    Some(PriorityRule { filter, class: element.value_of("Class")?.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::super::xml::SERVICE_BUS;
    use super::*;
    use crate::rules::Rule;

    #[test]
    fn settings_read_back_as_they_were_written() {
        let full = Priority {
            policy: Some(Policy::Aged { step: Duration::from_secs(10) }),
            rescue_after: Some(Duration::from_mins(5)),
            rescue_per_mille: Some(100),
            default_level: Some(4),
            lift: Some(true),
            prefetch_per_mille: Some(250),
            paused: Some(false),
            classes: Some(vec![Class { name: "gold".to_owned(), level: 9, target_wait: None }]),
            rules: Some(vec![PriorityRule {
                filter: Rule::sql("", "vip = 1").filter,
                class: "gold".to_owned(),
            }]),
        };
        assert_eq!(Priority::read(&full.element()), full);
        assert_eq!(Priority::read(&Priority::default().element()), Priority::default());
        let none = Priority { classes: Some(Vec::new()), ..Priority::default() };
        assert_eq!(Priority::read(&none.element()), none, "an empty list takes all classes away");
        // The filter stays in the service's own vocabulary.
        let rules = full.element();
        let filter = rules
            .child("Rules")
            .and_then(|rules| rules.children.first())
            .and_then(|rule| rule.child("Filter"));
        assert_eq!(filter.map(|filter| filter.space.as_str()), Some(SERVICE_BUS));
    }
}
