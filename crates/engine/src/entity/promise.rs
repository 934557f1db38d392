//! What an entity's settings promise to the messages of a level, in words and numbers.
//!
//! Derived from the settings alone, so that people can read what they get before the first message.

use super::priority::{Policy, PrioritySettings, TARGET_WITHOUT_CLASS};
use crate::level::Level;
use crate::time::Span;
use std::fmt;

/// The most a message of some level can be overtaken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// By every message of a higher level, for ever: the rescue is switched off.
    AfterHigher,
    /// By every message of a higher level, until the message has waited for `after`; then the n-th
    /// oldest of those that have is delivered within n times `one_in` deliveries.
    Rescued {
        /// The wait after which it joins the rescue line.
        after: Span,
        /// One delivery of so many goes to that line.
        one_in: u32,
    },
    /// By messages that became eligible at most this much later than it.
    OvertakenWithin {
        /// The head start of the highest level over this one.
        span: Span,
    },
    /// By messages whose deadline is earlier: it is due this long after it became eligible.
    Due {
        /// The class's target, or what stands for one.
        within: Span,
    },
    /// By nobody.
    InOrder,
}

/// The promise to messages of `level`.
#[must_use]
pub fn promise(settings: &PrioritySettings, level: Level) -> Promise {
    match settings.policy {
        Policy::Strict => match u32::from(settings.rescue.share.thousandths()) {
            0 => Promise::AfterHigher,
            share => Promise::Rescued { after: settings.rescue.after, one_in: 1_000_u32.div_ceil(share) },
        },
        Policy::Aged { step } => {
            let above = u64::from(u8::MAX.saturating_sub(level.0));
            Promise::OvertakenWithin { span: Span(step.0.saturating_mul(above)) }
        }
        Policy::Deadline => {
            Promise::Due { within: settings.target_wait(level).unwrap_or(TARGET_WITHOUT_CLASS) }
        }
        Policy::Fifo => Promise::InOrder,
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::AfterHigher => f.write_str("after every message of a higher level"),
            Promise::Rescued { after, one_in } => write!(
                f,
                "after every message of a higher level, until it has waited {after}; then 1 of {one_in} deliveries goes to the longest waiting"
            ),
            Promise::OvertakenWithin { span } => {
                write!(f, "overtaken only by messages that come at most {span} later")
            }
            Promise::Due { within } => write!(f, "due {within} after it became eligible, earliest first"),
            Promise::InOrder => f.write_str("in the order of arrival"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::priority::{Class, ClassName, Rescue, Share};

    #[test]
    fn each_policy_promises_what_it_keeps() {
        let gold = Class {
            name: ClassName::parse("gold").unwrap(),
            level: Level(9),
            target_wait: Some(Span::seconds(10)),
        };
        let with = |policy, share| PrioritySettings {
            policy,
            classes: vec![gold.clone()],
            rescue: Rescue { after: Span::minutes(5), share: Share::per_mille(share).unwrap() },
            ..PrioritySettings::default()
        };
        let rescued = |one_in| Promise::Rescued { after: Span::minutes(5), one_in };
        let cases = [
            (with(Policy::Strict, 100), 1, rescued(10)),
            (with(Policy::Strict, 333), 1, rescued(4)),
            (with(Policy::Strict, 1_000), 1, rescued(1)),
            (with(Policy::Strict, 0), 1, Promise::AfterHigher),
            (
                with(Policy::Aged { step: Span::seconds(1) }, 100),
                250,
                Promise::OvertakenWithin { span: Span::seconds(5) },
            ),
            (
                with(Policy::Aged { step: Span::seconds(1) }, 100),
                255,
                Promise::OvertakenWithin { span: Span(0) },
            ),
            (with(Policy::Deadline, 100), 9, Promise::Due { within: Span::seconds(10) }),
            (with(Policy::Deadline, 100), 8, Promise::Due { within: TARGET_WITHOUT_CLASS }),
            (with(Policy::Fifo, 100), 0, Promise::InOrder),
        ];
        for (settings, level, expected) in cases {
            assert_eq!(promise(&settings, Level(level)), expected, "{:?} {level}", settings.policy);
            assert!(!expected.to_string().is_empty());
        }
    }
}
