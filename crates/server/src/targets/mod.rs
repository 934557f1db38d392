//! Targets: is each class served within the time it was promised, and will it be?
//!
//! The engine counts first deliveries in and past their class's target and measures rates and ages. A
//! task beside it ([`sampler`]) reads that every few seconds and keeps what a [`Standing`] needs of the
//! past: the same numbers as they stood over the last hour and day. The [`Board`] holds the newest
//! standing of every class with a target, for metrics and APIs, and tells of changes.

mod forecast;
pub mod sampler;
mod standing;
mod window;
pub mod workers;

pub use standing::{Health, OBJECTIVE, Standing, burn_rate};

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::broadcast;
use vorrang_engine::{EntityId, Level};

/// Changes that a slow listener may lag behind; then it misses the oldest and is told how many.
const CHANGES_MAX: usize = 256;

/// A class's health became another one.
#[derive(Debug, Clone)]
pub struct Change {
    /// What it was; none for a class that is new.
    pub before: Option<Health>,
    /// How it stands now.
    pub standing: Arc<Standing>,
}

/// How classes stand, by entity and level.
pub type Standings = BTreeMap<(EntityId, Level), Arc<Standing>>;

/// How every class with a target stands.
#[derive(Debug)]
pub struct Board {
    standings: Mutex<Arc<Standings>>,
    changes: broadcast::Sender<Change>,
}

impl Default for Board {
    fn default() -> Self {
        Board { standings: Mutex::default(), changes: broadcast::Sender::new(CHANGES_MAX) }
    }
}

impl Board {
    /// Every standing, by entity and level. Cheap: the newest whole is handed out, not copied.
    #[must_use]
    pub fn all(&self) -> Arc<Standings> {
        Arc::clone(&self.standings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The standings of one entity, lowest level first.
    #[must_use]
    pub fn of(&self, entity: EntityId) -> Vec<Arc<Standing>> {
        let all = self.all();
        let own = all.range((entity, Level(0))..=(entity, Level(u8::MAX)));
        own.map(|(_, standing)| Arc::clone(standing)).collect()
    }

    /// Changes of health from now on.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Puts up new standings in place of all that were there, and tells of changes. A class that comes and
    /// is well is no news.
    fn put_up(&self, standings: Standings) {
        let before = self.all();
        for (key, standing) in &standings {
            let was = before.get(key).map(|known| known.health);
            if was.unwrap_or(Health::Ok) != standing.health {
                tracing::info!(
                    entity = %standing.entity,
                    class = %standing.class,
                    health = standing.health.as_str(),
                    was = was.map(Health::as_str),
                    "target"
                );
                // Nobody may be listening.
                let _ = self.changes.send(Change { before: was, standing: Arc::clone(standing) });
            }
        }
        *self.standings.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(standings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vorrang_engine::Span;

    fn standing(health: Health) -> Arc<Standing> {
        let target = Span::seconds(10);
        Arc::new(Standing { health, ..Standing::unknown("orders".into(), "high".into(), Level(7), target) })
    }

    #[tokio::test]
    async fn changes_of_health_are_told_and_nothing_else() {
        let board = Board::default();
        let mut changes = board.changes();
        let key = (EntityId(3), Level(7));
        for health in [Health::Ok, Health::Ok, Health::AtRisk, Health::AtRisk, Health::Breached, Health::Ok] {
            board.put_up(BTreeMap::from([(key, standing(health))]));
        }
        board.put_up(BTreeMap::new());
        let mut told = Vec::new();
        while let Ok(change) = changes.try_recv() {
            told.push((change.before, change.standing.health));
        }
        assert_eq!(
            told,
            [
                (Some(Health::Ok), Health::AtRisk),
                (Some(Health::AtRisk), Health::Breached),
                (Some(Health::Breached), Health::Ok)
            ]
        );
        assert!(board.of(EntityId(3)).is_empty(), "what is gone is taken down");
    }

    #[test]
    fn an_entity_has_its_own_standings_only() {
        let board = Board::default();
        let keys = [(2, 255), (3, 0), (3, 7), (4, 0)];
        let key = |(entity, level)| ((EntityId(entity), Level(level)), standing(Health::Ok));
        board.put_up(keys.into_iter().map(key).collect());
        assert_eq!(board.of(EntityId(3)).len(), 2);
        assert_eq!(board.all().len(), 4);
    }
}
