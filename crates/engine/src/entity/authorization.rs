//! Shared access rules: a key name, its keys, and what they permit.
//!
//! The engine only keeps them with the entity they belong to; deciding who may do what happens in
//! one place elsewhere. The keys never show in debug output.

use super::setting::{Problem, Property};
use std::fmt;
use std::sync::Arc;

/// Characters in a key name, as Service Bus allows.
pub const KEY_NAME_CHARS_MAX: usize = 256;
/// Bytes in a key: a 256-bit key is 44 in base64; anything far longer is a mistake.
pub const KEY_BYTES_MAX: usize = 256;

/// A text that must not appear in any output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps a secret text.
    #[must_use]
    pub fn new(text: &str) -> Secret {
        Secret(Arc::from(text))
    }

    /// The text itself, for the one who must compare or hand it over.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// What a key permits. `manage` implies the other two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights {
    /// Sending messages.
    pub send: bool,
    /// Receiving messages.
    pub listen: bool,
    /// Changing the entity.
    pub manage: bool,
}

/// One rule of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationRule {
    /// The name a token refers to.
    pub key_name: Arc<str>,
    /// The key in use.
    pub primary_key: Secret,
    /// The key to change over to.
    pub secondary_key: Secret,
    /// What both permit.
    pub rights: Rights,
}

/// Checks a whole list: bounded, names unique, every rule permits something.
pub(super) fn check(rules: &[AuthorizationRule], rules_max: usize, problems: &mut Vec<Problem>) {
    let mut complain = |value: String, allowed: String| {
        problems.push(Problem { property: Property::AuthorizationRules, value, allowed });
    };
    if rules.len() > rules_max {
        complain(format!("{} rules", rules.len()), format!("at most {rules_max}"));
        return;
    }
    for (index, rule) in rules.iter().enumerate() {
        let name = format!("{:?}", rule.key_name.chars().take(64).collect::<String>());
        let name_chars = rule.key_name.chars().count();
        if name_chars == 0 || name_chars > KEY_NAME_CHARS_MAX || rule.key_name.chars().any(char::is_control) {
            complain(format!("key name {name}"), format!("1 to {KEY_NAME_CHARS_MAX} printable characters"));
        }
        if rules.iter().take(index).any(|earlier| earlier.key_name == rule.key_name) {
            complain(format!("key name {name} twice"), "each key name once".to_owned());
        }
        let Rights { send, listen, manage } = rule.rights;
        if !(send || listen || manage) {
            complain(format!("key name {name} without rights"), "Send, Listen or Manage".to_owned());
        }
        for key in [&rule.primary_key, &rule.secondary_key] {
            if key.expose().is_empty() || key.expose().len() > KEY_BYTES_MAX {
                complain(
                    format!("a key of {} bytes in {name}", key.expose().len()),
                    format!("1 to {KEY_BYTES_MAX} bytes"),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str) -> AuthorizationRule {
        AuthorizationRule {
            key_name: Arc::from(name),
            primary_key: Secret::new("primary"),
            secondary_key: Secret::new("secondary"),
            rights: Rights { send: true, ..Rights::default() },
        }
    }

    fn problems(rules: &[AuthorizationRule]) -> usize {
        let mut found = Vec::new();
        check(rules, 12, &mut found);
        found.len()
    }

    #[test]
    fn the_list_is_bounded_and_its_names_are_unique() {
        let many = |count: usize| (0..count).map(|n| rule(&format!("key{n}"))).collect::<Vec<_>>();
        assert_eq!(problems(&many(11)), 0);
        assert_eq!(problems(&many(12)), 0);
        assert_eq!(problems(&many(13)), 1);
        assert_eq!(problems(&[rule("a"), rule("a")]), 1);
        assert_eq!(problems(&[rule("a"), rule("A")]), 0);
    }

    #[test]
    fn a_rule_needs_a_name_keys_and_rights() {
        let long = "n".repeat(KEY_NAME_CHARS_MAX);
        assert_eq!(problems(&[rule(&long)]), 0);
        assert_eq!(problems(&[rule(&format!("{long}n"))]), 1);
        assert_eq!(problems(&[rule("")]), 1);
        let without_rights = AuthorizationRule { rights: Rights::default(), ..rule("a") };
        assert_eq!(problems(&[without_rights]), 1);
        let without_key = AuthorizationRule { primary_key: Secret::new(""), ..rule("a") };
        assert_eq!(problems(&[without_key]), 1);
    }

    #[test]
    fn keys_do_not_show() {
        assert!(!format!("{:?}", rule("a")).contains("primary\""));
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "***");
    }
}
