//! From an address to an entity: the grammar of paths within a namespace.
//!
//! The text arrives normalised: no scheme or host, percent-decoded once, no slash at either end.
//! Because entity names may contain slashes, a path is read from its end: first the `$` suffixes,
//! then the last `/subscriptions/`; what remains is the name of a queue or topic. Whether such an
//! entity exists is the catalogue's to say.

use super::name::{self, EntityName, SubscriptionName};
use std::fmt;

/// Which of an entity's mailboxes a path means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum SubQueue {
    /// Where messages are sent to and received from.
    #[default]
    Main,
    /// `$DeadLetterQueue`: messages that could not be processed.
    DeadLetter,
    /// `$Transfer/$DeadLetterQueue`: messages that could not be forwarded.
    TransferDeadLetter,
}

/// A well-formed address of a queue, topic or subscription, or of something that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityPath {
    /// The queue, or the topic.
    pub name: EntityName,
    /// The subscription of that topic, if the path goes on to one.
    pub subscription: Option<SubscriptionName>,
    /// The mailbox meant.
    pub sub_queue: SubQueue,
    /// Whether the path ends in `$management`: requests about the mailbox, not messages in it.
    pub management: bool,
}

impl EntityPath {
    /// Reads a normalised path.
    pub fn parse(text: &str) -> Result<EntityPath, name::Error> {
        let (rest, management) = match strip_suffix(text, "/$management") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let suffixes = [
            ("/$transfer/$deadletterqueue", SubQueue::TransferDeadLetter),
            ("/$transferdeadletterqueue", SubQueue::TransferDeadLetter),
            ("/$deadletterqueue", SubQueue::DeadLetter),
        ];
        let (rest, sub_queue) = suffixes
            .iter()
            .find_map(|(suffix, which)| Some((strip_suffix(rest, suffix)?, *which)))
            .unwrap_or((rest, SubQueue::Main));
        let (name, subscription) = match split_subscription(rest) {
            Some((topic, subscription)) => (topic, Some(SubscriptionName::parse(subscription)?)),
            None => (rest, None),
        };
        Ok(EntityPath { name: EntityName::parse(name)?, subscription, sub_queue, management })
    }

    /// The path of a queue's or topic's main mailbox.
    #[must_use]
    pub fn of(name: EntityName) -> EntityPath {
        EntityPath { name, subscription: None, sub_queue: SubQueue::Main, management: false }
    }

    /// The path of a subscription's main mailbox.
    #[must_use]
    pub fn of_subscription(topic: EntityName, subscription: SubscriptionName) -> EntityPath {
        EntityPath { subscription: Some(subscription), ..EntityPath::of(topic) }
    }
}

impl fmt::Display for EntityPath {
    /// As Service Bus spells it: `topic/Subscriptions/sub/$DeadLetterQueue`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if let Some(subscription) = &self.subscription {
            write!(f, "/Subscriptions/{subscription}")?;
        }
        match self.sub_queue {
            SubQueue::Main => {}
            SubQueue::DeadLetter => f.write_str("/$DeadLetterQueue")?,
            SubQueue::TransferDeadLetter => f.write_str("/$Transfer/$DeadLetterQueue")?,
        }
        if self.management {
            f.write_str("/$management")?;
        }
        Ok(())
    }
}

/// Removes `suffix`, which is in lower case, in whatever case the text has it.
fn strip_suffix<'a>(text: &'a str, suffix: &str) -> Option<&'a str> {
    let at = text.len().checked_sub(suffix.len())?;
    let (rest, end) = text.split_at_checked(at)?;
    end.eq_ignore_ascii_case(suffix).then_some(rest)
}

/// Splits at the last `/subscriptions/`, in any case.
fn split_subscription(text: &str) -> Option<(&str, &str)> {
    let (topic, subscription) = text.rsplit_once('/')?;
    Some((strip_suffix(topic, "/subscriptions")?, subscription))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        EntityPath::parse(text).map_or_else(|error| format!("error: {error}"), |path| format!("{path}"))
    }

    #[test]
    fn the_shapes_that_clients_write_mean_what_they_should() {
        let cases = [
            ("queue", "queue"),
            ("a/b/c", "a/b/c"),
            ("queue/$DeadLetterQueue", "queue/$DeadLetterQueue"),
            ("queue/$deadletterqueue", "queue/$DeadLetterQueue"),
            ("queue/$Transfer/$deadletterqueue", "queue/$Transfer/$DeadLetterQueue"),
            ("queue/$TransferDeadLetterQueue", "queue/$Transfer/$DeadLetterQueue"),
            ("queue/$management", "queue/$management"),
            ("queue/$DEADLETTERQUEUE/$MANAGEMENT", "queue/$DeadLetterQueue/$management"),
            ("t/subscriptions/s", "t/Subscriptions/s"),
            ("a/t/SUBSCRIPTIONS/s/$DeadLetterQueue", "a/t/Subscriptions/s/$DeadLetterQueue"),
            (
                "t/Subscriptions/s/$Transfer/$DeadLetterQueue/$management",
                "t/Subscriptions/s/$Transfer/$DeadLetterQueue/$management",
            ),
            ("subscriptions", "subscriptions"),
            ("subscriptions/s", "subscriptions/s"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn paths_that_name_nothing_are_refused() {
        for text in [
            "",
            "/",
            "$management",
            "/$management",
            "$cbs",
            "$deadletterqueue",
            "q/$management/$management",
            "q/$deadletterqueue/$deadletterqueue",
            "q/$transfer",
            "q/$deadletterqueue/x",
            "t/subscriptions/",
            "/subscriptions/s",
            "t/subscriptions/a/b",
            "t/subscriptions/a/subscriptions/b",
            "q/$unknown",
            "t/subscriptions/$deadletterqueue",
            "é/$management/é",
            "../q",
            "q/..",
        ] {
            assert!(EntityPath::parse(text).is_err(), "{text:?} gave {}", shown(text));
        }
    }

    proptest! {
        #[test]
        fn a_path_is_read_back_as_it_was_written(
            name in "[a-zA-Z]{1,5}(/[a-z0-9]{1,4}){0,2}",
            subscription in proptest::option::of("[a-z$]{2,6}"),
            sub_queue in 0..3_u8,
            management: bool,
        ) {
            let path = EntityPath {
                name: EntityName::parse(&name).unwrap(),
                subscription: subscription.map(|text| SubscriptionName::parse(&text).unwrap()),
                sub_queue: match sub_queue {
                    0 => SubQueue::Main,
                    1 => SubQueue::DeadLetter,
                    _ => SubQueue::TransferDeadLetter,
                },
                management,
            };
            prop_assert_eq!(EntityPath::parse(&path.to_string()), Ok(path.clone()));
            prop_assert_eq!(EntityPath::parse(&path.to_string().to_lowercase()), Ok(path));
        }

        #[test]
        fn no_text_is_too_strange(text in "\\PC{0,40}|[a-z/$.]{0,40}") {
            let _ = EntityPath::parse(&text);
        }
    }
}
