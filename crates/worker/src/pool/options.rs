//! Everything that can be decided about a pool, with defaults that are safe.

use std::time::Duration;

use super::sessions::Sessions;
use crate::plan::autoscale::Scaling;
use crate::plan::breaker::Trip;
use crate::plan::hours::Hours;
use crate::plan::settlement::Retries;
use crate::plan::size::Size;
use crate::plan::slots::{Guards, Preemptible};

/// Entities one pool may serve; the broker allows as many on one link.
pub const ENTITIES_MAX: usize = 64;
/// Messages one pool may fetch ahead.
pub const PREFETCH_MAX: usize = 10_000;

/// A queue or subscription that a pool serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// Its path: `orders`, `topic/Subscriptions/high`.
    pub entity: String,
    /// Its share of the turns, where the order is weighted.
    pub weight: u32,
}

/// How a pool chooses between its entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precedence {
    /// In the order they are listed: at every free slot the first that has a message. One link, one wait.
    #[default]
    Strict,
    /// By turns, each entity its weight.
    Weighted,
}

/// Whether and how running tasks make room for higher ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preemption {
    /// How a task is set aside.
    pub by: Preemptible,
    /// Messages of these levels and above ask for room, on an express link each. In a pool over several entities in
    /// strict order it is the entity that counts instead: each asks for room before those behind it.
    pub levels: Vec<u8>,
    /// What protects running tasks.
    pub guards: Guards,
}

impl Default for Preemption {
    fn default() -> Self {
        Preemption { by: Preemptible::Freeze, levels: vec![7], guards: Guards::default() }
    }
}

/// How a pool works.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its name, for people.
    pub name: String,
    /// What it serves, the most important first.
    pub serves: Vec<Served>,
    /// How it chooses between them.
    pub order: Precedence,
    /// How many tasks may run at once.
    pub size: Size,
    /// Hours of the week with another size.
    pub hours: Hours,
    /// How a size with bounds is found.
    pub scaling: Scaling,
    /// How often the load is looked at while every slot is busy, in the long run; when they fill up it is looked at at once.
    pub scaling_interval: Duration,
    /// Messages fetched beyond what can run: faster for short tasks, but a higher message that comes later
    /// waits behind them.
    pub prefetch: usize,
    /// Whether tasks make room for higher ones.
    pub preemption: Option<Preemption>,
    /// Whether the entity requires sessions. Then the size is how many sessions are served at once, each in order.
    pub sessions: Option<Sessions>,
    /// What becomes of messages that fail.
    pub retries: Retries,
    /// When the circuit breaker opens.
    pub breaker: Trip,
    /// How long a message's lock is kept alive at most.
    pub renew_for: Duration,
    /// How long tasks may go on after they were cancelled, before they are dropped.
    pub grace: Duration,
}

/// Why a pool cannot work like that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// Nothing to serve, or too much.
    #[error("pool '{pool}' serves {count} entities; it must be 1 to {ENTITIES_MAX}")]
    Entities {
        /// The pool.
        pool: String,
        /// How many it names.
        count: usize,
    },
    /// More fetched ahead than allowed.
    #[error("pool '{pool}' fetches {prefetch} messages ahead, beyond the limit of {PREFETCH_MAX}")]
    Prefetch {
        /// The pool.
        pool: String,
        /// How many.
        prefetch: usize,
    },
    /// A size no pool can have.
    #[error("pool '{pool}': {source}")]
    Size {
        /// The pool.
        pool: String,
        /// Why.
        source: crate::plan::size::Error,
    },
    /// Sessions with what does not go with them.
    #[error(
        "pool '{pool}' serves sessions, so it serves one entity, fetches nothing ahead and preempts nobody"
    )]
    Sessions {
        /// The pool.
        pool: String,
    },
    /// Too many express links.
    #[error("pool '{pool}' preempts for {count} levels; it must be 1 to 8")]
    Levels {
        /// The pool.
        pool: String,
        /// How many.
        count: usize,
    },
}

impl Options {
    /// A pool of `size` that serves `entities` in strict order.
    pub fn new<E: Into<String>>(size: Size, entities: impl IntoIterator<Item = E>) -> Options {
        let serves: Vec<Served> =
            entities.into_iter().map(|entity| Served { entity: entity.into(), weight: 1 }).collect();
        Options {
            name: serves.first().map_or_else(String::new, |served| served.entity.clone()),
            serves,
            order: Precedence::Strict,
            size,
            hours: Hours::default(),
            scaling: Scaling::default(),
            scaling_interval: Duration::from_secs(5),
            prefetch: 0,
            preemption: None,
            sessions: None,
            retries: Retries::default(),
            breaker: Trip::default(),
            renew_for: Duration::from_hours(24),
            grace: Duration::from_secs(5),
        }
    }

    /// Checks what can be wrong.
    pub fn check(&self) -> Result<(), OptionsError> {
        let pool = self.name.clone();
        let count = self.serves.len();
        if count == 0 || count > ENTITIES_MAX {
            return Err(OptionsError::Entities { pool, count });
        }
        if self.prefetch > PREFETCH_MAX {
            return Err(OptionsError::Prefetch { pool, prefetch: self.prefetch });
        }
        if let Some(preemption) = &self.preemption
            && !(1..=8).contains(&preemption.levels.len())
        {
            return Err(OptionsError::Levels { pool, count: preemption.levels.len() });
        }
        if self.sessions.is_some() && (count > 1 || self.prefetch > 0 || self.preemption.is_some()) {
            return Err(OptionsError::Sessions { pool });
        }
        self.size.checked().map_err(|source| OptionsError::Size { pool, source })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Options);

    #[test]
    fn a_pool_that_cannot_work_says_why() {
        let pool = |change: fn(&mut Options)| {
            let mut options = Options::new(Size::Fixed(1), ["orders"]);
            change(&mut options);
            options.check().map_err(|error| error.to_string())
        };
        assert_eq!(pool(|_| ()), Ok(()));
        let cases: [(Change, &str); 6] = [
            (|o| o.serves.clear(), "serves 0 entities"),
            (|o| o.serves = vec![o.serves[0].clone(); 65], "serves 65 entities"),
            (|o| o.prefetch = 10_001, "10001 messages ahead"),
            (|o| o.size = Size::Fixed(10_001), "limit of 10000"),
            (|o| (o.sessions, o.prefetch) = (Some(Sessions::default()), 1), "fetches nothing ahead"),
            (|o| o.preemption = Some(Preemption { levels: vec![], ..Preemption::default() }), "for 0 levels"),
        ];
        for (change, part) in cases {
            let error = pool(change).unwrap_err();
            assert!(error.contains("'orders'") && error.contains(part), "{error}");
        }
    }
}
