//! Which level a message has in an entity, decided once when it comes in.
//!
//! The first that has something to say decides: the entity's priority rules, the message's `Priority`
//! property, its header, the entity's default. A property that names no class of the entity and no
//! level counts as absent, because a typing mistake of a sender must not lose or refuse a message;
//! it is reported, so that it can be counted and seen.

use super::priority::PrioritySettings;
use crate::level::{Level, LevelOrigin};
use vorrang_filter::{Environment, Message, ValueRef};

/// The application property that carries a level or the name of a class.
pub const PROPERTY: &str = "Priority";

/// The outcome for one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Determined {
    /// Its level.
    pub level: Level,
    /// Who decided.
    pub origin: LevelOrigin,
    /// Whether a `Priority` property was set aside because it means nothing here.
    pub unknown_class: bool,
}

/// Decides the level of `message`, whose header says `header`, under an entity's `settings`.
#[must_use]
pub fn determine(
    settings: &PrioritySettings,
    header: Option<u8>,
    message: &dyn Message,
    environment: &mut Environment<'_>,
) -> Determined {
    let decided = |level, origin| Determined { level, origin, unknown_class: false };
    if let Some(level) = by_rules(settings, message, environment) {
        return decided(level, LevelOrigin::Rule);
    }
    let property = message.user(PROPERTY).value();
    if let Some(level) = property.and_then(|value| read(settings, value)) {
        return decided(level, LevelOrigin::Property);
    }
    let rest = match header {
        Some(priority) => decided(Level(priority), LevelOrigin::Header),
        None => decided(settings.default_level, LevelOrigin::Default),
    };
    Determined { unknown_class: property.is_some(), ..rest }
}

/// Decides the level of a message that brings one along from where it was before: it keeps it, unless
/// a priority rule of this entity says otherwise.
#[must_use]
pub fn keep(
    settings: &PrioritySettings,
    brought: (Level, LevelOrigin),
    message: &dyn Message,
    environment: &mut Environment<'_>,
) -> Determined {
    let (level, origin) = match by_rules(settings, message, environment) {
        Some(level) => (level, LevelOrigin::Rule),
        None => brought,
    };
    Determined { level, origin, unknown_class: false }
}

fn by_rules(
    settings: &PrioritySettings,
    message: &dyn Message,
    environment: &mut Environment<'_>,
) -> Option<Level> {
    let matching = settings.rules.iter().find(|rule| {
        // A rule that fails on a message does not match it: order must not decide about existence.
        rule.filter.matches(message, environment).unwrap_or(false)
    });
    matching.and_then(|rule| settings.level_of(rule.class.as_str()))
}

/// Reads a level from a property: a whole number of any type from 0 to 255, or a class name.
fn read(settings: &PrioritySettings, value: ValueRef<'_>) -> Option<Level> {
    match value {
        ValueRef::Int(number) => u8::try_from(number).ok().map(Level),
        ValueRef::String(text) => settings.level_of(text).or_else(|| text.parse().ok().map(Level)),
        ValueRef::Double(number) => (0..=u8::MAX).find(|whole| f64::from(*whole).eq(&number)).map(Level),
        ValueRef::Decimal(number) => number.to_string().parse().ok().map(Level),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::priority::{Class, ClassName, PriorityRule};
    use proptest::prelude::*;
    use std::sync::Arc;
    use vorrang_filter::{Correlation, Filter, MapMessage, SystemProperty, Value};

    fn class_name(text: &str) -> ClassName {
        ClassName::parse(text).unwrap()
    }

    fn rule(label: &str, class: &str) -> PriorityRule {
        let fields = [(SystemProperty::Label, label.to_owned())];
        PriorityRule {
            filter: Filter::Correlation(Arc::new(Correlation::new(fields, []).unwrap())),
            class: class_name(class),
        }
    }

    fn settings() -> PrioritySettings {
        PrioritySettings {
            classes: vec![Class { name: class_name("Gold"), level: Level(200), target_wait: None }],
            rules: vec![rule("vip", "gold"), rule("vip", "low"), rule("bulk", "LOW")],
            default_level: Level(3),
            ..PrioritySettings::default()
        }
    }

    fn level(header: Option<u8>, message: &MapMessage) -> (u8, LevelOrigin, bool) {
        let mut new_id = || 0;
        let found = determine(&settings(), header, message, &mut Environment::new(&mut new_id));
        (found.level.0, found.origin, found.unknown_class)
    }

    #[test]
    fn the_first_that_has_something_to_say_decides() {
        let labelled = |label: &str| MapMessage::new().with_system(SystemProperty::Label, label.to_owned());
        let with = |value: Value| MapMessage::new().with(PROPERTY, value);
        let text = |text: &str| with(Value::String(text.into()));
        let cases = [
            (
                "rule before everything",
                Some(1),
                labelled("vip").with(PROPERTY, 9_i64),
                (200, LevelOrigin::Rule, false),
            ),
            ("another rule", None, labelled("bulk"), (1, LevelOrigin::Rule, false)),
            ("property before header", Some(1), with(Value::Int(9)), (9, LevelOrigin::Property, false)),
            ("class name in any case", Some(1), text("uRGENT"), (9, LevelOrigin::Property, false)),
            ("own class", None, text("gold"), (200, LevelOrigin::Property, false)),
            ("number as text", None, text("17"), (17, LevelOrigin::Property, false)),
            ("whole double", None, with(Value::Double(255.0)), (255, LevelOrigin::Property, false)),
            ("lowest", None, with(Value::Int(0)), (0, LevelOrigin::Property, false)),
            ("highest", None, with(Value::Int(255)), (255, LevelOrigin::Property, false)),
            ("too high", Some(6), with(Value::Int(256)), (6, LevelOrigin::Header, true)),
            ("negative", None, with(Value::Int(-1)), (3, LevelOrigin::Default, true)),
            ("broken double", None, with(Value::Double(7.5)), (3, LevelOrigin::Default, true)),
            ("not a number", None, with(Value::Double(f64::NAN)), (3, LevelOrigin::Default, true)),
            ("another type", None, with(Value::Bool(true)), (3, LevelOrigin::Default, true)),
            ("unknown class", Some(7), text("platinum"), (7, LevelOrigin::Header, true)),
            (
                "null is absent",
                Some(7),
                MapMessage::new().with_null(PROPERTY),
                (7, LevelOrigin::Header, false),
            ),
            ("header", Some(0), MapMessage::new(), (0, LevelOrigin::Header, false)),
            ("nothing", None, MapMessage::new(), (3, LevelOrigin::Default, false)),
        ];
        for (case, header, message, expected) in cases {
            assert_eq!(level(header, &message), expected, "{case}");
        }
    }

    #[test]
    fn a_level_brought_along_is_kept_unless_a_rule_says_otherwise() {
        let brought = (Level(42), LevelOrigin::Header);
        let labelled = |label: &str| MapMessage::new().with_system(SystemProperty::Label, label.to_owned());
        let cases = [("vip", (200, LevelOrigin::Rule)), ("other", (42, LevelOrigin::Header))];
        for (label, (level, origin)) in cases {
            let message = labelled(label).with(PROPERTY, 9_i64);
            let mut new_id = || 0;
            let found = keep(&settings(), brought, &message, &mut Environment::new(&mut new_id));
            assert_eq!(found, Determined { level: Level(level), origin, unknown_class: false }, "{label}");
        }
    }

    proptest! {
        #[test]
        fn a_level_in_any_spelling_is_the_same_level(number in 0..=255_u8, header: Option<u8>) {
            let spellings = [
                Value::Int(i64::from(number)),
                Value::Double(f64::from(number)),
                Value::String(number.to_string().into()),
            ];
            for value in spellings {
                let found = level(header, &MapMessage::new().with(PROPERTY, value));
                prop_assert_eq!(found, (number, LevelOrigin::Property, false));
            }
        }

        #[test]
        fn no_property_makes_a_message_fail(text in "\\PC{0,12}", number: i64, double: f64) {
            for value in [Value::String(text.into()), Value::Int(number), Value::Double(double)] {
                let _ = level(Some(4), &MapMessage::new().with(PROPERTY, value));
            }
        }
    }
}
