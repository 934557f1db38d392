//! How one class stands against its target.

use std::fmt;

use vorrang_engine::{Level, Span};

/// The part of messages that should meet their target. What may miss it is the budget that a burn rate is
/// measured by.
pub const OBJECTIVE: f64 = 0.99;

/// How well a class is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Health {
    /// In time.
    Ok,
    /// In time so far, but not for long, or the budget of the hour is being used up.
    AtRisk,
    /// Messages wait, or lately waited, longer than they should.
    Breached,
}

impl Health {
    /// Every health there is.
    pub const ALL: [Health; 3] = [Health::Ok, Health::AtRisk, Health::Breached];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Health::Ok => "ok",
            Health::AtRisk => "at risk",
            Health::Breached => "breached",
        }
    }

    /// The same as one word, for machines.
    #[must_use]
    pub fn as_label(self) -> &'static str {
        match self {
            Health::Ok => "ok",
            Health::AtRisk => "at_risk",
            Health::Breached => "breached",
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How one class of one entity stands. Parts are from 0 to 1, and none where nothing was delivered.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The entity's path.
    pub entity: Box<str>,
    /// The class.
    pub class: Box<str>,
    /// Its level.
    pub level: Level,
    /// How long its messages may wait.
    pub target_wait: Span,
    /// The part of the last five minutes' first deliveries that was in time.
    pub attainment_5m: Option<f64>,
    /// The same over the last hour.
    pub attainment_1h: Option<f64>,
    /// The same over the last day.
    pub attainment_24h: Option<f64>,
    /// How fast the hour uses up what may be late: 1 is just as fast as [`OBJECTIVE`] allows.
    pub burn_rate: Option<f64>,
    /// When messages will begin to be late if nothing changes; zero if they are, none if they will not be.
    pub breach_in: Option<Span>,
    /// What all this amounts to.
    pub health: Health,
}

/// How fast what may be late is used up when this part is in time; 1 is just as fast as [`OBJECTIVE`] allows.
#[must_use]
pub fn burn_rate(attainment: f64) -> f64 {
    (1.0 - attainment) / (1.0 - OBJECTIVE)
}

/// A breach that is nearer than this is a risk.
const HORIZON: Span = Span::minutes(5);

impl Standing {
    /// A class of which nothing is known yet.
    #[must_use]
    pub fn unknown(entity: Box<str>, class: Box<str>, level: Level, target_wait: Span) -> Standing {
        Standing {
            entity,
            class,
            level,
            target_wait,
            attainment_5m: None,
            attainment_1h: None,
            attainment_24h: None,
            burn_rate: None,
            breach_in: None,
            health: Health::Ok,
        }
    }

    /// The same with its burn rate and health worked out.
    #[must_use]
    pub(super) fn judged(mut self) -> Standing {
        self.burn_rate = self.attainment_1h.map(burn_rate);
        let late = self.breach_in == Some(Span(0));
        let missed = self.attainment_5m.is_some_and(|met| met < OBJECTIVE);
        let near = self.breach_in.is_some_and(|left| left < HORIZON);
        let burning = self.burn_rate.is_some_and(|rate| rate > 1.0);
        self.health = if late || missed {
            Health::Breached
        } else if near || burning {
            Health::AtRisk
        } else {
            Health::Ok
        };
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_follows_what_was_late_what_is_and_what_will_be() {
        let blank = || Standing::unknown("q".into(), "high".into(), Level(7), Span::seconds(10));
        let cases = [
            ("nothing known", blank(), Health::Ok),
            (
                "all in time",
                Standing { attainment_5m: Some(1.0), attainment_1h: Some(1.0), ..blank() },
                Health::Ok,
            ),
            ("just enough", Standing { attainment_5m: Some(0.99), ..blank() }, Health::Ok),
            ("too many late", Standing { attainment_5m: Some(0.98), ..blank() }, Health::Breached),
            ("late now", Standing { breach_in: Some(Span(0)), ..blank() }, Health::Breached),
            ("late soon", Standing { breach_in: Some(Span(1)), ..blank() }, Health::AtRisk),
            ("late some day", Standing { breach_in: Some(Span::minutes(5)), ..blank() }, Health::Ok),
            ("a bad hour that is over", Standing { attainment_1h: Some(0.9), ..blank() }, Health::AtRisk),
            ("a bad day that is over", Standing { attainment_24h: Some(0.5), ..blank() }, Health::Ok),
        ];
        for (case, standing, health) in cases {
            assert_eq!(standing.judged().health, health, "{case}");
        }
    }

    #[test]
    fn a_burn_rate_of_one_uses_up_exactly_what_may_be_late() {
        let hour = |met| {
            let blank = Standing::unknown("q".into(), "high".into(), Level(7), Span(1));
            Standing { attainment_1h: Some(met), ..blank }.judged().burn_rate.unwrap()
        };
        assert!((hour(0.99) - 1.0).abs() < 1e-9);
        assert!((hour(0.9) - 10.0).abs() < 1e-9);
        assert!(hour(1.0).abs() < 1e-9);
    }
}
