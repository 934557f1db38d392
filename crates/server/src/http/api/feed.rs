//! What happens in the broker, handed to everybody who listens.
//!
//! One connection watches, from the first listener on; listeners share what it hears through a ring. One who
//! falls behind by the length of the ring misses the oldest and is told how many.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::broadcast;
use vorrang_broker::access::Principal;
use vorrang_broker::api::{self, News, Operation, Outlet, Request, Tag};
use vorrang_broker::shard::{Broker, Connection, NotTaken, Stopped};
use vorrang_engine::Timestamp;
use vorrang_engine::entity::EntityPath;

use super::model::{Event, EventKind};
use crate::date;

/// Events that a slow listener may lag behind.
const EVENTS_MAX: usize = 1_024;

/// What happens, for those who listen.
#[derive(Debug)]
pub struct Feed {
    watching: Mutex<Option<Connection>>,
    ears: Arc<Ears>,
}

/// Where the broker's news arrive.
#[derive(Debug)]
struct Ears(broadcast::Sender<Event>);

impl Default for Feed {
    fn default() -> Self {
        Feed { watching: Mutex::default(), ears: Arc::new(Ears(broadcast::Sender::new(EVENTS_MAX))) }
    }
}

impl Feed {
    /// Events from now on.
    pub(super) fn listen(&self, broker: &Broker) -> Result<broadcast::Receiver<Event>, Stopped> {
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        if watching.is_none() {
            let connection = broker.connect(Arc::<Ears>::clone(&self.ears))?;
            connection.become_principal(Arc::new(Principal::operator()))?;
            let watch = Request { tag: Tag(0), operation: Operation::Watch };
            match connection.try_push(vec![watch], None) {
                Ok(_) => *watching = Some(connection),
                Err(NotTaken::Stopped(stopped)) => return Err(stopped),
                // The next listener tries again; so may this one.
                Err(NotTaken::Full(_)) => {
                    return Err(Stopped { reason: Arc::from("it is too busy; try again") });
                }
            }
        }
        Ok(self.ears.0.subscribe())
    }

    /// Tells what the broker itself does not: of a namespace that has become another there is no entity to speak of.
    pub(super) fn tell(&self, event: Event) {
        // Nobody may be listening.
        let _ = self.ears.0.send(event);
    }
}

impl Outlet for Ears {
    fn effects(&self, batch: Vec<api::Event>) {
        for event in batch {
            if let api::Event::News { news, at } = event {
                // Nobody may be listening.
                let _ = self.0.send(told(&news, at));
            }
        }
    }
}

fn told(news: &News, at: Timestamp) -> Event {
    let about = |kind, path: &EntityPath, count| Event {
        kind,
        at: date::rfc3339(at),
        entity: Some(path.to_string()),
        subject: None,
        count,
        detail: None,
    };
    match news {
        News::Created(path) => about(EventKind::EntityCreated, path, None),
        News::Changed(path) => about(EventKind::EntityChanged, path, None),
        News::Deleted(path) => about(EventKind::EntityDeleted, path, None),
        News::DeadLettered(path, count) => about(EventKind::DeadLettered, path, Some(*count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_that_falls_behind_is_told_how_much_it_missed() {
        let feed = Feed::default();
        let mut events = feed.ears.0.subscribe();
        let path = EntityPath::parse("q").unwrap();
        let news = || api::Event::News { news: News::Changed(path.clone()), at: Timestamp(0) };
        feed.ears.effects((0..EVENTS_MAX + 7).map(|_| news()).collect());
        assert!(matches!(events.try_recv(), Err(broadcast::error::TryRecvError::Lagged(7))));
        assert_eq!(events.try_recv().unwrap().kind, EventKind::EntityChanged);
    }
}
