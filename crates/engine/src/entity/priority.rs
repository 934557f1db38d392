//! How an entity orders its messages: classes, policy, rescue and priority rules.
//!
//! A *level* is a number that the lanes are sorted by; a *class* is the word people use for one. The
//! settings here are plain data, as they were given and as they are written down; choosing a message
//! by them happens where the lanes are, and deriving a level from a message in [`super::level`].

use super::limits::EntityLimits;
use super::setting::{Problem, Property};
use crate::level::Level;
use crate::time::Span;
use std::fmt;
use std::sync::Arc;
use vorrang_filter::Filter;

/// The longest name of a class, in characters.
pub const CLASS_NAME_CHARS_MAX: usize = 50;

/// Under the deadline policy, the target of levels whose class has none: they are not urgent, but must
/// not wait for ever behind those that are.
pub const TARGET_WITHOUT_CLASS: Span = Span::minutes(5);

/// The classes every entity has unless it names its own: what people expect to find.
const BUILT_IN: [(&str, Level); 4] =
    [("low", Level(1)), ("normal", Level(4)), ("high", Level(7)), ("urgent", Level(9))];

/// The name of a class, compared without case. It is never a number, so that a `Priority` property
/// can be either without doubt.
#[derive(Clone)]
pub struct ClassName(Arc<str>);

impl ClassName {
    /// Checks a class name: a letter, then letters, digits, `-`, `_` and `.`.
    #[must_use]
    pub fn parse(text: &str) -> Option<ClassName> {
        let safe = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        let short = text.chars().take(CLASS_NAME_CHARS_MAX + 1).count() <= CLASS_NAME_CHARS_MAX;
        (short && text.starts_with(char::is_alphabetic) && text.chars().all(safe))
            .then(|| ClassName(Arc::from(text)))
    }

    /// The name as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `text` is this name in any case.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        matches_any_case(&self.0, text)
    }
}

fn matches_any_case(name: &str, text: &str) -> bool {
    name.eq_ignore_ascii_case(text)
        || (!name.is_ascii()
            && name.chars().flat_map(char::to_lowercase).eq(text.chars().flat_map(char::to_lowercase)))
}

impl PartialEq for ClassName {
    fn eq(&self, other: &Self) -> bool {
        self.matches(&other.0)
    }
}
impl Eq for ClassName {}

impl fmt::Display for ClassName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ClassName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// A named level, and how long its messages should wait at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// What people call it.
    pub name: ClassName,
    /// Where its messages queue.
    pub level: Level,
    /// The wait people are promised; measured and alarmed, and the deadline under that policy.
    pub target_wait: Option<Span>,
}

/// In which order lane heads are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Higher levels first, whatever the time; rescue keeps it from starving anybody.
    #[default]
    Strict,
    /// A level is worth a head start of `level × step`.
    Aged {
        /// The worth of one level.
        step: Span,
    },
    /// The earliest deadline first: eligible time plus the class's target.
    Deadline,
    /// Levels do not count.
    Fifo,
}

impl Policy {
    /// The policy's word, without its parameters.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Policy::Strict => "strict",
            Policy::Aged { .. } => "aged",
            Policy::Deadline => "deadline",
            Policy::Fifo => "fifo",
        }
    }
}

/// A part of a whole, in thousandths; never more than the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u16);

impl Share {
    /// Nothing.
    pub const NONE: Share = Share(0);
    /// Everything.
    pub const WHOLE: Share = Share(1_000);

    /// A share of so many thousandths, if that is not more than the whole.
    #[must_use]
    pub const fn per_mille(thousandths: u16) -> Option<Share> {
        if thousandths <= 1_000 { Some(Share(thousandths)) } else { None }
    }

    /// How many thousandths.
    #[must_use]
    pub const fn thousandths(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} %", self.0 / 10, self.0 % 10)
    }
}

/// Who is helped when a strict order starves them, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rescue {
    /// The wait after which a message joins the rescue line.
    pub after: Span,
    /// The part of deliveries that goes to that line while it is not empty; none switches it off.
    pub share: Share,
}

impl Default for Rescue {
    fn default() -> Self {
        Rescue { after: Span::minutes(5), share: Share(100) }
    }
}

/// Messages that match `filter` are of `class`.
#[derive(Debug, Clone, PartialEq)]
pub struct PriorityRule {
    /// A Service Bus filter, in practice an SQL one.
    pub filter: Filter,
    /// One of the entity's classes.
    pub class: ClassName,
}

/// Everything that decides order in one queue or subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct PrioritySettings {
    /// Classes beside, or instead of, the built-in ones of the same name.
    pub classes: Vec<Class>,
    /// In which order lane heads are taken.
    pub policy: Policy,
    /// What keeps the strict policy from starving anybody.
    pub rescue: Rescue,
    /// Rules that give a message its class by what it is; the first match counts.
    pub rules: Vec<PriorityRule>,
    /// The level of a message about which nobody says anything.
    pub default_level: Level,
    /// Whether a session ranks by its best waiting message instead of its first.
    pub lift: bool,
    /// How much of a link's credit lower messages may fill while higher ones are expected.
    pub prefetch_share: Share,
    /// Whether deliveries are held back; sending goes on.
    pub paused: bool,
}

impl Default for PrioritySettings {
    fn default() -> Self {
        PrioritySettings {
            classes: Vec::new(),
            policy: Policy::default(),
            rescue: Rescue::default(),
            rules: Vec::new(),
            default_level: Level::NORMAL,
            lift: false,
            prefetch_share: Share::WHOLE,
            paused: false,
        }
    }
}

impl PrioritySettings {
    /// The level that a class name means here, in any case; `None` if there is no such class.
    #[must_use]
    pub fn level_of(&self, name: &str) -> Option<Level> {
        let own = self.classes.iter().find(|class| class.name.matches(name)).map(|class| class.level);
        own.or_else(|| {
            let built_in = BUILT_IN.iter().find(|(built_in, _)| built_in.eq_ignore_ascii_case(name));
            built_in.map(|(_, level)| *level)
        })
    }

    /// The class whose messages have this level, by name: the entity's own before a built-in one.
    #[must_use]
    pub fn class_of(&self, level: Level) -> Option<&str> {
        let own = self.classes.iter().find(|class| class.level == level).map(|class| class.name.as_str());
        own.or_else(|| {
            let built_in = BUILT_IN.iter().find(|(name, at)| *at == level && !self.redefines(name));
            built_in.map(|(name, _)| *name)
        })
    }

    /// The wait promised to messages of this level.
    #[must_use]
    pub fn target_wait(&self, level: Level) -> Option<Span> {
        self.classes.iter().find(|class| class.level == level).and_then(|class| class.target_wait)
    }

    /// Every class with its level: the entity's own, then the built-in ones it does not redefine.
    pub fn all_classes(&self) -> impl Iterator<Item = (&str, Level, Option<Span>)> {
        let own = self.classes.iter().map(|class| (class.name.as_str(), class.level, class.target_wait));
        let built_in = BUILT_IN
            .iter()
            .filter(|(name, _)| !self.redefines(name))
            .map(|(name, level)| (*name, *level, None));
        own.chain(built_in)
    }

    fn redefines(&self, built_in: &str) -> bool {
        self.classes.iter().any(|class| class.name.matches(built_in))
    }

    /// Finds everything wrong with the settings.
    pub(super) fn check(&self, limits: &EntityLimits, problems: &mut Vec<Problem>) {
        if self.classes.len() > limits.classes_max {
            let value = format!("{} classes", self.classes.len());
            problems.push(Problem::new(Property::Classes, value, format!("at most {}", limits.classes_max)));
        }
        for (index, class) in self.classes.iter().take(limits.classes_max).enumerate() {
            let earlier = self.classes.iter().take(index);
            if earlier.clone().any(|other| other.name == class.name) {
                problems.push(Problem::new(
                    Property::Classes,
                    format!("{} twice", class.name),
                    "each name once",
                ));
            }
            // Otherwise the numbers of one level would be shown under one of two names by chance.
            if earlier.clone().any(|other| other.level == class.level) {
                let value = format!("{} at level {}", class.name, class.level);
                problems.push(Problem::new(Property::Classes, value, "one class for each level"));
            }
            if class.target_wait == Some(Span(0)) {
                let value = format!("{} within no time", class.name);
                problems.push(Problem::new(Property::Classes, value, "a target of 1 ms or more"));
            }
        }
        if let Policy::Aged { step } = self.policy
            && (step == Span(0) || step.is_forever())
        {
            problems.push(Problem::new(
                Property::Policy,
                format!("aged by {step}"),
                "a step of 1 ms or more, with an end",
            ));
        }
        if self.rules.len() > limits.priority_rules_max {
            let value = format!("{} rules", self.rules.len());
            problems.push(Problem::new(
                Property::PriorityRules,
                value,
                format!("at most {}", limits.priority_rules_max),
            ));
            return;
        }
        for rule in &self.rules {
            if self.level_of(rule.class.as_str()).is_none() {
                let value = format!("to class {}", rule.class);
                problems.push(Problem::new(
                    Property::PriorityRules,
                    value,
                    "a class that is built in or defined here",
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, level: u8) -> Class {
        Class { name: ClassName::parse(name).unwrap(), level: Level(level), target_wait: None }
    }

    fn problems(settings: &PrioritySettings) -> Vec<String> {
        let mut found = Vec::new();
        settings.check(&EntityLimits::default(), &mut found);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn class_names_are_words_and_never_numbers() {
        for (text, valid) in [
            ("high", true),
            ("Größe-1_b.c", true),
            ("h", true),
            (&*"x".repeat(50), true),
            (&*"x".repeat(51), false),
            ("", false),
            ("7", false),
            ("7up", false),
            ("-a", false),
            ("a b", false),
            ("a\nb", false),
            ("a\"b", false),
        ] {
            assert_eq!(ClassName::parse(text).is_some(), valid, "{text:?}");
        }
    }

    #[test]
    fn own_classes_come_before_built_in_ones() {
        let settings = PrioritySettings {
            classes: vec![class("gold", 7), class("LOW", 2)],
            ..PrioritySettings::default()
        };
        let levels =
            [("GOLD", Some(7)), ("high", Some(7)), ("low", Some(2)), ("Urgent", Some(9)), ("silver", None)];
        for (name, level) in levels {
            assert_eq!(settings.level_of(name), level.map(Level), "{name}");
        }
        let names = [
            (7, Some("gold")),
            (2, Some("LOW")),
            (1, None),
            (4, Some("normal")),
            (9, Some("urgent")),
            (255, None),
        ];
        for (level, name) in names {
            assert_eq!(settings.class_of(Level(level)), name, "{level}");
        }
        let all: Vec<_> = settings.all_classes().map(|(name, level, _)| (name, level.0)).collect();
        assert_eq!(all, [("gold", 7), ("LOW", 2), ("normal", 4), ("high", 7), ("urgent", 9)]);
    }

    #[test]
    fn defaults_are_sound() {
        assert_eq!(problems(&PrioritySettings::default()), Vec::<String>::new());
    }

    #[test]
    fn contradictions_are_all_reported() {
        let settings = PrioritySettings {
            classes: vec![
                class("a", 1),
                class("A", 2),
                class("b", 1),
                Class { target_wait: Some(Span(0)), ..class("c", 3) },
            ],
            policy: Policy::Aged { step: Span(0) },
            rules: vec![PriorityRule { filter: Filter::True, class: ClassName::parse("unknown").unwrap() }],
            ..PrioritySettings::default()
        };
        assert_eq!(
            problems(&settings),
            [
                "Classes cannot be A twice: allowed is each name once",
                "Classes cannot be b at level 1: allowed is one class for each level",
                "Classes cannot be c within no time: allowed is a target of 1 ms or more",
                "Policy cannot be aged by 0 s: allowed is a step of 1 ms or more, with an end",
                "PriorityRules cannot be to class unknown: allowed is a class that is built in or defined here",
            ]
        );
    }

    #[test]
    fn lists_are_bounded() {
        let limits = EntityLimits::default();
        for (count, sound) in [(limits.classes_max, true), (limits.classes_max + 1, false)] {
            let settings = PrioritySettings {
                classes: (0..count).map(|n| class(&format!("c{n}"), u8::try_from(n).unwrap())).collect(),
                ..PrioritySettings::default()
            };
            assert_eq!(problems(&settings).is_empty(), sound, "{count} classes");
        }
        let rule = PriorityRule { filter: Filter::True, class: ClassName::parse("high").unwrap() };
        for (count, sound) in [(limits.priority_rules_max, true), (limits.priority_rules_max + 1, false)] {
            let settings =
                PrioritySettings { rules: vec![rule.clone(); count], ..PrioritySettings::default() };
            assert_eq!(problems(&settings).is_empty(), sound, "{count} rules");
        }
    }

    #[test]
    fn a_share_is_never_more_than_the_whole() {
        assert_eq!(Share::per_mille(1_000), Some(Share::WHOLE));
        assert_eq!(Share::per_mille(1_001), None);
        assert_eq!(Share::per_mille(125).map(|share| share.to_string()).as_deref(), Some("12.5 %"));
    }
}
