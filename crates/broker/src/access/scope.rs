//! A place in the namespace that a permission covers: the whole of it, an entity, or a part of one.
//!
//! Audiences and token resources arrive as URLs in many spellings. They are brought to one form here,
//! once: no scheme, host, port or query, percent-decoded, lower case, no slash at either end. Only
//! whole path segments are compared, so `queue1` does not cover `queue10`. Dots mean nothing: `a/../b`
//! is a path below `a` that no entity has, not another way to write `b`.
//!
//! Only the suffix `$management` is taken away, because it addresses the same entity by other means.
//! A scope that ends in `$deadletterqueue` stays as narrow as it was written.

use super::percent::{self, Plus};
use std::fmt;
use vorrang_engine::entity::{EntityPath, SubQueue};

/// Bytes of an address before decoding: longer than any entity's with every character escaped twice.
pub const ADDRESS_BYTES_MAX: usize = 8 * 1024;

/// A path within the namespace in its one comparable form. The empty path is the whole namespace.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(Box<str>);

/// Why a text addresses nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// More bytes than any address needs.
    #[error("an address of {bytes} bytes exceeds the limit of {ADDRESS_BYTES_MAX}")]
    TooLong {
        /// How many were given.
        bytes: usize,
    },
    /// Broken percent-encoding, or not UTF-8 beneath it.
    #[error("an address is not valid percent-encoded text")]
    Encoding,
}

/// What the first segment of a text without a scheme is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bare {
    Host,
    Path,
}

impl Scope {
    /// The whole namespace.
    #[must_use]
    pub fn namespace() -> Scope {
        Scope(Box::from(""))
    }

    /// Everything below `$resources/<kind>`, such as the list of all queues.
    #[must_use]
    pub fn resources(kind: &str) -> Scope {
        Scope(fold(&format!("$resources/{kind}")).into_boxed_str())
    }

    /// A place that no entity has: what is left of a number that names none.
    pub(crate) fn unknown(number: u32) -> Scope {
        Scope(format!("$unknown/{number}").into_boxed_str())
    }

    /// The place `segment` below this one.
    #[must_use]
    pub fn join(&self, segment: &str) -> Scope {
        let path = if self.0.is_empty() { segment.to_owned() } else { format!("{}/{segment}", self.0) };
        Scope(fold(&path).into_boxed_str())
    }

    /// The place of an entity, or of its sub-queue.
    #[must_use]
    pub fn of_entity(path: &EntityPath) -> Scope {
        let mut text = String::from(path.name.key());
        if let Some(subscription) = &path.subscription {
            text.push_str("/subscriptions/");
            text.push_str(subscription.key());
        }
        text.push_str(match path.sub_queue {
            SubQueue::Main => "",
            SubQueue::DeadLetter => "/$deadletterqueue",
            SubQueue::TransferDeadLetter => "/$transfer/$deadletterqueue",
        });
        Scope(text.into_boxed_str())
    }

    /// Reads an audience or node address: `amqps://host/queue`, `/queue` or `queue`.
    pub fn of_address(text: &str) -> Result<Scope, Error> {
        Scope::read(text, Bare::Path)
    }

    /// Reads the resource of a token, decoded once: a URL, or a host name with or without a path.
    pub fn of_resource(text: &str) -> Result<Scope, Error> {
        Scope::read(text, Bare::Host)
    }

    /// Whether a permission for `self` holds for `other`: the same place, or one within it.
    #[must_use]
    pub fn covers(&self, other: &Scope) -> bool {
        self.0.is_empty()
            || other.0.strip_prefix(&*self.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// This scope and every scope around it, the namespace last.
    pub fn ancestors(&self) -> impl Iterator<Item = &str> {
        let inner = (!self.0.is_empty()).then_some(&*self.0);
        let around = self.0.rmatch_indices('/').filter_map(|(at, _)| self.0.get(..at));
        inner.into_iter().chain(around.filter(|path| !path.is_empty())).chain([""])
    }

    /// The path as it is compared.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn read(text: &str, bare: Bare) -> Result<Scope, Error> {
        if text.len() > ADDRESS_BYTES_MAX {
            return Err(Error::TooLong { bytes: text.len() });
        }
        let path = match (text.split_once("://"), bare) {
            (Some((_, rest)), _) => after_host(rest),
            (None, Bare::Host) => after_host(text),
            (None, Bare::Path) => text,
        };
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let path = percent::decode(path, Plus::Literal).map_err(|_| Error::Encoding)?;
        let path = fold(&path);
        let mut path = path.trim_matches('/');
        if let Some(rest) = path.strip_suffix("/$management") {
            path = rest.trim_end_matches('/');
        }
        Ok(match path.strip_suffix("/$transferdeadletterqueue") {
            Some(rest) => Scope(format!("{rest}/$transfer/$deadletterqueue").into_boxed_str()),
            None => Scope(Box::from(path)),
        })
    }
}

impl std::borrow::Borrow<str> for Scope {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Scope {
    /// The place in words, escaped: it is a peer's text.
    pub(super) fn shown(&self) -> String {
        if self.0.is_empty() { "of the whole namespace".to_owned() } else { format!("{:?}", self.0) }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scope({:?})", self.0)
    }
}

fn after_host(text: &str) -> &str {
    text.find(['/', '?', '#']).and_then(|at| text.get(at..)).unwrap_or_default()
}

/// Folds case as entity names do, character by character.
fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(text: &str) -> String {
        Scope::of_address(text).map_or_else(|error| format!("error: {error}"), |scope| scope.to_string())
    }

    #[test]
    fn every_spelling_of_an_audience_comes_to_one_form() {
        let cases = [
            ("amqps://host/Queue", "queue"),
            ("sb://host:5672/topic/Subscriptions/Sub", "topic/subscriptions/sub"),
            ("sb://host/queue/$management", "queue"),
            ("amqp://host/queue/$DeadLetterQueue/$management", "queue/$deadletterqueue"),
            ("amqp://host/q/$Transfer/$DeadLetterQueue", "q/$transfer/$deadletterqueue"),
            ("q/$TransferDeadLetterQueue", "q/$transfer/$deadletterqueue"),
            ("/queue", "queue"),
            ("queue", "queue"),
            ("queue/", "queue"),
            ("amqps://host/a%2Fb", "a/b"),
            ("amqps://host/gr%C3%B6%C3%9Fe", "größe"),
            ("https://host/queue?api-version=2021-05", "queue"),
            ("https://host", ""),
            ("https://host/", ""),
            ("https://host?x=/queue", ""),
            ("https://host/a/../b", "a/../b"),
            ("https://host/a/%2e%2e/b", "a/../b"),
            ("https://host/a%252fb", "a%2fb"),
            ("https://host/%zz", "error: an address is not valid percent-encoded text"),
            ("$management", "$management"),
        ];
        for (text, expected) in cases {
            assert_eq!(address(text), expected, "{text}");
        }
        let long = "a".repeat(ADDRESS_BYTES_MAX);
        assert!(Scope::of_address(&long).is_ok());
        assert!(Scope::of_address(&format!("{long}a")).is_err());
    }

    #[test]
    fn a_resource_without_a_scheme_begins_with_its_host() {
        let cases = [
            ("localhost", ""),
            ("localhost:5672", ""),
            ("localhost/queue", "queue"),
            ("sb://localhost/queue/", "queue"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(Scope::of_resource(text).unwrap().as_str(), expected, "{text}");
        }
    }

    #[test]
    fn only_whole_segments_are_covered() {
        let cases = [
            ("", "queue", true),
            ("", "", true),
            ("queue", "queue", true),
            ("queue", "queue/$deadletterqueue", true),
            ("topic", "topic/subscriptions/s", true),
            ("queue1", "queue10", false),
            ("queue10", "queue1", false),
            ("queue/$deadletterqueue", "queue", false),
            ("queue", "", false),
            ("a/../b", "b", false),
            ("a/..", "a", false),
        ];
        for (around, within, covered) in cases {
            let (around, within) = (Scope(Box::from(around)), Scope(Box::from(within)));
            assert_eq!(around.covers(&within), covered, "{around} over {within}");
            let listed = within.ancestors().any(|path| path == around.as_str());
            assert_eq!(listed, covered, "{around} among the ancestors of {within}");
        }
    }

    #[test]
    fn an_entity_lies_where_its_address_says() {
        for text in
            ["queue", "a/B", "t/Subscriptions/s", "q/$DeadLetterQueue", "q/$Transfer/$DeadLetterQueue"]
        {
            let path = EntityPath::parse(text).unwrap();
            assert_eq!(Scope::of_entity(&path), Scope::of_address(text).unwrap(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn covering_is_being_an_ancestor(around in "[ab/.]{0,5}", within in "[ab/.]{0,8}") {
            let (around, within) = (Scope::of_address(&around).unwrap(), Scope::of_address(&within).unwrap());
            let listed = within.ancestors().any(|path| path == around.as_str());
            prop_assert_eq!(listed, around.covers(&within));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}|[%a-f0-9/:?]{0,20}") {
            let _ = Scope::of_address(&text);
            let _ = Scope::of_resource(&text);
        }
    }
}
