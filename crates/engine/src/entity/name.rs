//! The names of entities and rules, checked once and safe everywhere after.
//!
//! Service Bus compares names without regard to case and shows them as they were created. We accept
//! what it accepts of letters, digits and the punctuation that a URL path carries unescaped, and no
//! more: a name ends up in log lines, metric labels, URLs and web pages, so control characters,
//! white space, quotes, invisible and direction-changing characters are refused here, where one
//! check protects every later use. Names never become file names.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

/// The longest name of a queue or topic, in characters.
pub const ENTITY_NAME_CHARS_MAX: usize = 260;
/// The longest name of a subscription or rule, in characters.
pub const SHORT_NAME_CHARS_MAX: usize = 50;

/// Path segments that address something other than an entity of that name.
const RESERVED_SEGMENTS: [&str; 5] =
    ["$cbs", "$deadletterqueue", "$management", "$transfer", "$transferdeadletterqueue"];

/// Punctuation that a URL path segment carries unescaped (RFC 3986, `pchar`), without `*` and `@`,
/// which Service Bus forbids.
const PUNCTUATION: &str = "-._~!$&'()+,;=:";

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing was given.
    #[error("a {kind} name must not be empty")]
    Empty {
        /// What the name was meant for.
        kind: &'static str,
    },
    /// More characters than the kind allows.
    #[error("a {kind} name has at most {chars_max} characters, this one has {chars}")]
    TooLong {
        /// What the name was meant for.
        kind: &'static str,
        /// How many characters were given.
        chars: usize,
        /// How many are allowed.
        chars_max: usize,
    },
    /// A character that names do not have.
    #[error("a {kind} name must not contain {character:?}")]
    Forbidden {
        /// What the name was meant for.
        kind: &'static str,
        /// The first one found.
        character: char,
    },
    /// A leading, trailing or doubled slash.
    #[error("a {kind} name must not begin or end with '/' or contain '//'")]
    EmptySegment {
        /// What the name was meant for.
        kind: &'static str,
    },
    /// A path segment that means something else, such as `..` or `$management`.
    #[error("a {kind} name must not contain the path segment {segment:?}")]
    ReservedSegment {
        /// What the name was meant for.
        kind: &'static str,
        /// The segment as given.
        segment: String,
    },
}

/// What distinguishes the three kinds of names.
struct Grammar {
    kind: &'static str,
    chars_max: usize,
    slashes: bool,
    /// Whether a segment may begin with `$`: `$Default` is the name of every first rule, while
    /// `$Resources` and its like are addresses beside the entities.
    dollar: bool,
}

const ENTITY: Grammar =
    Grammar { kind: "queue or topic", chars_max: ENTITY_NAME_CHARS_MAX, slashes: true, dollar: false };
const SUBSCRIPTION: Grammar =
    Grammar { kind: "subscription", chars_max: SHORT_NAME_CHARS_MAX, slashes: false, dollar: true };
const RULE: Grammar = Grammar { kind: "rule", chars_max: SHORT_NAME_CHARS_MAX, slashes: false, dollar: true };

/// A checked text: as it was written, and folded for comparison. Names are kept by the hundred thousand
/// and copied with every description, so one is a single pointer.
#[derive(Clone)]
struct Folded(Arc<Spelling>);

struct Spelling {
    shown: Box<str>,
    /// None if it is the same.
    key: Option<Box<str>>,
}

impl Folded {
    fn parse(text: &str, grammar: &Grammar) -> Result<Folded, Error> {
        let kind = grammar.kind;
        if text.is_empty() {
            return Err(Error::Empty { kind });
        }
        // Length first, so that a huge text is not searched; bytes bound characters from above.
        let chars = text.chars().take(grammar.chars_max * 4).count();
        if chars > grammar.chars_max {
            return Err(Error::TooLong { kind, chars, chars_max: grammar.chars_max });
        }
        let allowed =
            |c: char| c.is_alphanumeric() || PUNCTUATION.contains(c) || (c == '/' && grammar.slashes);
        if let Some(character) = text.chars().find(|&c| !allowed(c)) {
            return Err(Error::Forbidden { kind, character });
        }
        let key = fold(text);
        for (index, segment) in key.split('/').enumerate() {
            if segment.is_empty() {
                return Err(Error::EmptySegment { kind });
            }
            let dots_only = segment.chars().all(|c| c == '.');
            let dollar = segment.starts_with('$') && !grammar.dollar;
            // `a/subscriptions/b` always addresses a subscription of `a`.
            let subscriptions = index > 0 && segment == "subscriptions";
            if dots_only || dollar || subscriptions || RESERVED_SEGMENTS.contains(&segment) {
                return Err(Error::ReservedSegment { kind, segment: segment.to_owned() });
            }
        }
        let key = (key != text).then(|| key.into_boxed_str());
        Ok(Folded(Arc::new(Spelling { shown: text.into(), key })))
    }
}

impl Folded {
    fn shown(&self) -> &str {
        &self.0.shown
    }

    fn key(&self) -> &str {
        self.0.key.as_deref().unwrap_or(&self.0.shown)
    }
}

/// Folds case character by character, so that the result does not depend on a character's place.
fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $grammar:expr) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(Folded);

        impl $name {
            /// Checks `text` and keeps it as written.
            pub fn parse(text: &str) -> Result<$name, Error> {
                Folded::parse(text, &$grammar).map($name)
            }

            /// The name as it was written when the thing was created.
            #[must_use]
            pub fn as_str(&self) -> &str {
                self.0.shown()
            }

            /// The name as it is compared: in lower case.
            #[must_use]
            pub fn key(&self) -> &str {
                self.0.key()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.0.0, &other.0.0) || self.key() == other.key()
            }
        }
        impl Eq for $name {}
        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.key().cmp(other.key())
            }
        }
        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.key().hash(state);
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.as_str())
            }
        }
    };
}

name! {
    /// The name of a queue or topic, such as `orders` or `eu/orders.v2`.
    EntityName, ENTITY
}
name! {
    /// The name of a subscription within its topic.
    SubscriptionName, SUBSCRIPTION
}
name! {
    /// The name of a rule within its subscription.
    RuleName, RULE
}

impl RuleName {
    /// The rule that every subscription starts with unless its creator brings another.
    #[must_use]
    pub fn first() -> RuleName {
        static FIRST: LazyLock<RuleName> =
            LazyLock::new(|| RuleName::parse("$Default").expect("`$Default` is a valid rule name"));
        FIRST.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_are_counted_in_characters_and_hold_at_the_edge() {
        let cases = [(259, true), (260, true), (261, false), (100_000, false)];
        for (length, valid) in cases {
            for letter in ["a", "é", "漢"] {
                let name = letter.repeat(length);
                assert_eq!(EntityName::parse(&name).is_ok(), valid, "{length} × {letter}");
            }
        }
        for (length, valid) in [(49, true), (50, true), (51, false)] {
            let name = "s".repeat(length);
            assert_eq!(SubscriptionName::parse(&name).is_ok(), valid, "{length}");
            assert_eq!(RuleName::parse(&name).is_ok(), valid, "{length}");
        }
    }

    #[test]
    fn names_people_use_are_accepted() {
        for name in [
            "orders",
            "a",
            "eu/orders.v2",
            "MassTransit~fault",
            "a-b_c.d",
            "under_score",
            "0",
            "größe",
            "очередь",
            "待ち行列",
            "a+b",
            "tenant:7",
            "a/b/c/d",
            "subscriptions",
            "...x",
            "subscriptions/a",
            "a$b",
        ] {
            assert!(EntityName::parse(name).is_ok(), "{name}");
        }
        for name in ["sub", "$Default", "name$client$D", "subscriptions", "a.b~c"] {
            assert!(SubscriptionName::parse(name).is_ok(), "{name}");
            assert!(RuleName::parse(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn names_that_could_mislead_a_reader_or_a_machine_are_refused() {
        let nasty = [
            "",
            " ",
            "a b",
            "/",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "../etc/passwd",
            "a/../b",
            "a/./b",
            "a/..",
            "...",
            "a@b",
            "a?b",
            "a#b",
            "a*b",
            "a\\b",
            "a%2fb",
            "%00",
            "a\0b",
            "a\nb",
            "a\r\nb: c",
            "a\tb",
            "\u{7f}",
            "a\u{85}b",
            "a\u{a0}b",
            "a\u{200b}b",
            "a\u{202e}b",
            "a\u{2028}b",
            "\u{feff}a",
            "a\u{2066}b",
            "\u{fffd}",
            "\u{fffe}",
            "<script>alert(1)</script>",
            "\"a\"",
            "`a`",
            "a|b",
            "a^b",
            "{a}",
            "[a]",
            "a>b",
            "\u{1b}[31mred",
            "🦀",
            "$cbs",
            "$management",
            "q/$management",
            "q/$DeadLetterQueue",
            "q/$Transfer/$DeadLetterQueue",
            "$Resources/queues",
            "q/$TransferDeadLetterQueue",
            "topic/Subscriptions/sub",
            "a/subscriptions",
        ];
        for name in nasty {
            assert!(EntityName::parse(name).is_err(), "{name:?}");
        }
        for name in nasty.iter().filter(|name| !name.starts_with("$Res")) {
            assert!(SubscriptionName::parse(name).is_err(), "{name:?}");
            assert!(RuleName::parse(name).is_err(), "{name:?}");
        }
        assert!(SubscriptionName::parse("a/b").is_err());
        assert!(RuleName::parse("a/b").is_err());
    }

    #[test]
    fn case_is_shown_but_not_compared() {
        let created = EntityName::parse("Größe/Orders").unwrap();
        let asked = EntityName::parse("GRÖßE/orders").unwrap();
        assert_eq!(created, asked);
        assert_eq!(created.cmp(&asked), Ordering::Equal);
        assert_eq!(created.to_string(), "Größe/Orders");
        assert_eq!(created.key(), "größe/orders");
        assert_ne!(created, EntityName::parse("orders").unwrap());
    }

    #[test]
    fn an_error_shows_the_offending_character_escaped() {
        let error = EntityName::parse("a\nb").unwrap_err();
        assert_eq!(error.to_string(), "a queue or topic name must not contain '\\n'");
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_safe_in_a_line_and_unchanged(text in "\\PC{0,20}|[a-z/.$@\\x00-\\x1f]{0,12}") {
            if let Ok(name) = EntityName::parse(&text) {
                prop_assert_eq!(name.as_str(), text.as_str());
                prop_assert!(!text.chars().any(|c| c.is_control() || c.is_whitespace()));
                prop_assert!(text.split('/').all(|s| !s.is_empty() && s != "." && s != ".."));
                let shouted: String = text.to_uppercase();
                if shouted.to_lowercase() == text.to_lowercase()
                    && let Ok(shouted) = EntityName::parse(&shouted) {
                    prop_assert_eq!(shouted.key().len(), name.key().len());
                }
            }
        }
    }
}
