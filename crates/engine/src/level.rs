//! The precedence of a message: 0 to 255, higher first.

use std::fmt;

/// A message's precedence. Higher levels are served first under the `strict` policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(pub u8);

impl Level {
    /// What a message has when nobody says anything: AMQP's default `header.priority`.
    pub const NORMAL: Level = Level(4);
}

impl Default for Level {
    fn default() -> Self {
        Level::NORMAL
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What gave a message its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LevelOrigin {
    /// One of the entity's priority rules.
    Rule,
    /// The application property `Priority`.
    Property,
    /// AMQP's `header.priority`.
    Header,
    /// The entity's default.
    Default,
    /// An operator, later.
    Operator,
}
