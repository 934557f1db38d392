//! The configuration in force, written as a file would write it, with every secret masked.

use std::fmt::Write as _;

use vorrang_engine::entity::authorization::{AuthorizationRule, Rights};
use vorrang_engine::entity::priority::{Policy, Share};
use vorrang_engine::entity::{RuleDescription, Setting};
use vorrang_filter::{Filter, Value as Property};

use super::property::key_of;
use super::rules::FIELDS;
use super::{Config, KEYS};
use crate::definitions::Definitions;
use crate::duration::to_short;

/// What stands for a key; never the key.
pub(super) const MASK: &str = "***";

/// The whole configuration; behind each setting, where it comes from.
#[must_use]
pub fn config(config: &Config) -> String {
    let mut out = String::new();
    for key in KEYS {
        let source = config.source(key.name);
        let line = match (key.show)(config) {
            Some(value) => format!("{} = {value}", key.name),
            None => format!("# {} is not set", key.name),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{line:<40} # {source}");
    }
    for rule in &config.settings.keys {
        let _ = writeln!(out, "\n[[key]]\n{}", authorization(rule, "\n"));
    }
    out.push_str(&definitions(&config.settings.definitions));
    out
}

/// Entities as the file writes them.
#[must_use]
pub fn definitions(definitions: &Definitions) -> String {
    let mut out = String::new();
    for queue in &definitions.queues {
        entity(&mut out, "queue", queue.name.as_str(), &queue.settings);
    }
    for topic in &definitions.topics {
        entity(&mut out, "topic", topic.name.as_str(), &topic.settings);
        for subscription in &topic.subscriptions {
            entity(&mut out, "topic.subscription", subscription.name.as_str(), &subscription.settings);
            for rule in &subscription.rules {
                let _ = writeln!(out, "\n[[topic.subscription.rule]]\n{}", self::rule(rule));
            }
        }
    }
    out
}

fn entity(out: &mut String, kind: &str, name: &str, settings: &[Setting]) {
    let _ = writeln!(out, "\n[[{kind}]]\nname = {}", text(name));
    for setting in settings {
        let _ = writeln!(out, "{} = {}", key_of(setting.property()), value(setting));
    }
}

/// The value of a setting, on one line.
fn value(setting: &Setting) -> String {
    match setting {
        Setting::LockDuration(span)
        | Setting::DuplicateDetectionHistoryTimeWindow(span)
        | Setting::DefaultMessageTimeToLive(span)
        | Setting::AutoDeleteOnIdle(span) => text(&to_short(*span)),
        Setting::MaxSizeInMegabytes(number) | Setting::MaxMessageSizeInKilobytes(number) => {
            number.to_string()
        }
        Setting::MaxDeliveryCount(number) => number.to_string(),
        Setting::DefaultLevel(level) => level.0.to_string(),
        Setting::RequiresDuplicateDetection(switch)
        | Setting::RequiresSession(switch)
        | Setting::DeadLetteringOnMessageExpiration(switch)
        | Setting::DeadLetteringOnFilterEvaluationExceptions(switch)
        | Setting::EnableBatchedOperations(switch)
        | Setting::SupportOrdering(switch)
        | Setting::FilteringMessagesBeforePublishing(switch)
        | Setting::Lift(switch)
        | Setting::Paused(switch) => switch.to_string(),
        Setting::Status(status) => text(status.as_str()),
        Setting::ForwardTo(target) | Setting::ForwardDeadLetteredMessagesTo(target) => {
            text(target.as_ref().map_or("", |name| name.as_str()))
        }
        Setting::UserMetadata(note) => text(note.as_deref().unwrap_or("")),
        Setting::Policy(policy) => text(&self::policy(*policy)),
        Setting::PrefetchShare(part) => share(*part),
        Setting::Rescue(rescue) => {
            format!("{{ after = {}, share = {} }}", text(&to_short(rescue.after)), share(rescue.share))
        }
        Setting::Classes(classes) => list(classes.iter().map(|class| {
            let target = class
                .target_wait
                .map_or_else(String::new, |span| format!(", target_wait = {}", text(&to_short(span))));
            format!("{{ name = {}, level = {}{target} }}", text(class.name.as_str()), class.level.0)
        })),
        Setting::PriorityRules(rules) => list(
            rules
                .iter()
                .map(|rule| format!("{{ {}, class = {} }}", filter(&rule.filter), text(rule.class.as_str()))),
        ),
        Setting::AuthorizationRules(rules) => {
            list(rules.iter().map(|rule| format!("{{ {} }}", authorization(rule, ", "))))
        }
    }
}

/// A policy with its step, as [`super::property::policy`] reads it.
#[must_use]
pub fn policy(policy: Policy) -> String {
    match policy {
        Policy::Aged { step } => format!("aged:{}", to_short(step)),
        other => other.as_str().to_owned(),
    }
}

fn share(part: Share) -> String {
    let thousandths = part.thousandths();
    format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
}

fn rule(rule: &RuleDescription) -> String {
    let mut out = format!("name = {}\n{}", text(rule.name.as_str()), filter(&rule.filter));
    if let Some(action) = &rule.action {
        let _ = write!(out, "\naction = {}", text(action.text()));
    }
    out
}

fn filter(filter: &Filter) -> String {
    match filter {
        Filter::True => "filter = \"1=1\"".to_owned(),
        Filter::False => "filter = \"1=0\"".to_owned(),
        Filter::Sql(sql) => format!("filter = {}", text(sql.text())),
        Filter::Correlation(fields) => {
            let system = fields.system().map(|(field, value)| {
                let known = FIELDS.iter().find(|(_, known)| *known == field);
                format!("{} = {}", known.map_or("", |(name, _)| *name), text(value))
            });
            let mut parts: Vec<String> = system.collect();
            let user: Vec<String> =
                fields.user().map(|(name, value)| format!("{} = {}", text(name), property(value))).collect();
            if !user.is_empty() {
                parts.push(format!("properties = {{ {} }}", user.join(", ")));
            }
            format!("correlation = {{ {} }}", parts.join(", "))
        }
    }
}

fn property(value: &Property) -> String {
    match value {
        Property::Bool(switch) => switch.to_string(),
        Property::Int(number) => number.to_string(),
        Property::Double(number) => format!("{number:?}"),
        other => text(&other.as_ref().text()),
    }
}

fn authorization(rule: &AuthorizationRule, between: &str) -> String {
    let Rights { send, listen, manage } = rule.rights;
    let words = [(send, "Send"), (listen, "Listen"), (manage, "Manage")];
    let words = words.iter().filter(|(has, _)| *has).map(|(_, word)| text(word));
    let rights = format!("rights = {}", list(words));
    let keys = format!("primary_key = \"{MASK}\"{between}secondary_key = \"{MASK}\"");
    format!("name = {}{between}{rights}{between}{keys}", text(&rule.key_name))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// A text as a basic string of TOML.
pub(super) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}
