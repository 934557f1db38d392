//! How much work waits at the broker, for the autoscaler.
//!
//! The usual gauge peeks at the head of each entity: that works with every broker that speaks the dialect, costs one
//! request per entity and look, and tells the age of the oldest message and the length up to a bound. Somebody with
//! exact numbers, from the management API or from metrics, gives a gauge of their own.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use vorrang_client::{Client, MessageState, Source};

/// Messages a look counts per entity; a longer queue counts as this long.
const PEEKED_MAX: u32 = 256;

/// What waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Active messages that nobody has settled, those locked by anybody included.
    pub unsettled: u64,
    /// How long ago the oldest of them came.
    pub oldest: Duration,
}

/// Looks at the backlog; none if that is not possible now.
pub type Gauge = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Option<Backlog>> + Send>> + Send + Sync>;

/// The gauge of a pool, and whether somebody gave it.
pub(super) struct Chosen {
    pub(super) gauge: Gauge,
    pub(super) own: bool,
}

/// Looks at the head of each of a pool's entities.
pub fn peeking(client: &Client, options: &super::Options) -> Gauge {
    let client = client.clone();
    let entities: Arc<[String]> = options.serves.iter().map(|served| served.entity.clone()).collect();
    Arc::new(move || {
        let (client, entities) = (client.clone(), Arc::clone(&entities));
        Box::pin(async move {
            let mut backlog = Backlog::default();
            for entity in entities.iter() {
                let one = look(&client, entity).await?;
                backlog.unsettled = backlog.unsettled.saturating_add(one.unsettled);
                backlog.oldest = backlog.oldest.max(one.oldest);
            }
            Some(backlog)
        })
    })
}

async fn look(client: &Client, entity: &str) -> Option<Backlog> {
    // A link of its own per look: an idle pool keeps none open for it, and a pool that scales looks seldom.
    let receiver = client.receiver(Source::from(entity)).await.ok()?;
    let peeked = receiver.peek_from(0, PEEKED_MAX).await.ok()?;
    let active: Vec<_> = peeked.into_iter().filter(|one| one.state() == MessageState::Active).collect();
    let now = SystemTime::now();
    let ages = active.iter().filter_map(|one| now.duration_since(one.enqueued_time()?).ok());
    Some(Backlog {
        unsettled: u64::try_from(active.len()).unwrap_or(u64::MAX),
        oldest: ages.max().unwrap_or_default(),
    })
}
