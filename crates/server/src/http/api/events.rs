//! `$events`: what happens, as server-sent events.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Interval, interval};
use vorrang_broker::api::Question;

use super::asker::Asker;
use super::call::Call;
use super::failure::Failure;
use super::model::{Event, EventKind};
use crate::caller::Unanswered;
use crate::date;
use crate::front::connection::wall_time;
use crate::stop::Stop;
use crate::{registry, targets};

/// How often a silent stream says that it is alive, and whether its listener still may listen is asked.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// Tells what happens until the client goes away, its permission ends, or the server stops.
pub(super) async fn listen(call: Call) -> Result<Response, Failure> {
    let asker = call.asker()?;
    may_observe(&asker).await?;
    let events = call.site.feed.listen(&call.site.broker).map_err(Unanswered::from)?;
    let listener = Listener {
        asker,
        events,
        connections: call.site.watch.registry.changes(),
        targets: call.site.watch.targets.changes(),
        alive: interval(ALIVE_EVERY),
        stop: call.site.stop.clone(),
    };
    let lines = stream::unfold(listener, |mut listener| async {
        let line = listener.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(Bytes::from(line)), listener))
    });
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
    Ok((headers, Body::from_stream(lines)).into_response())
}

/// Whether whoever asks may see what concerns the namespace as a whole: the broker decides.
pub(super) async fn may_observe(asker: &Asker) -> Result<(), Failure> {
    asker.question(Question::Condition, "").await.map(|_| ())
}

struct Listener {
    asker: Asker,
    events: Receiver<Event>,
    connections: Receiver<registry::Change>,
    targets: Receiver<targets::Change>,
    alive: Interval,
    stop: Stop,
}

impl Listener {
    /// The next piece of the stream. The first is a sign of life at once: whoever waits for it knows that
    /// nothing will be missed from then on.
    async fn next(&mut self) -> Option<String> {
        tokio::select! {
            _ = self.alive.tick() => {
                may_observe(&self.asker).await.ok()?;
                Some(": listening\n\n".to_owned())
            }
            event = self.events.recv() => told(event, |event| event),
            change = self.connections.recv() => told(change, |change| connection(&change)),
            change = self.targets.recv() => told(change, |change| target(&change)),
            () = self.stop.requested() => None,
        }
    }
}

/// What was heard, or how much was missed; none if nothing will come any more.
fn told<T>(heard: Result<T, RecvError>, event: impl FnOnce(T) -> Event) -> Option<String> {
    match heard {
        Ok(heard) => Some(written(&event(heard))),
        Err(RecvError::Lagged(count)) => Some(written(&missed(count))),
        Err(RecvError::Closed) => None,
    }
}

fn now(kind: EventKind) -> Event {
    let at = date::rfc3339(wall_time());
    Event { kind, at, entity: None, subject: None, count: None, detail: None }
}

fn missed(count: u64) -> Event {
    let detail = "this client did not read fast enough; look at what it follows anew".to_owned();
    Event { count: Some(count), detail: Some(detail), ..now(EventKind::Missed) }
}

fn connection(change: &registry::Change) -> Event {
    let kind = if change.opened { EventKind::ConnectionOpened } else { EventKind::ConnectionClosed };
    let peer = change.client.peer().to_string();
    Event { subject: Some(change.client.id().0.to_string()), detail: Some(peer), ..now(kind) }
}

fn target(change: &targets::Change) -> Event {
    let standing = &change.standing;
    Event {
        entity: Some(standing.entity.to_string()),
        subject: Some(standing.class.to_string()),
        detail: Some(standing.health.to_string()),
        ..now(EventKind::TargetChanged)
    }
}

fn written(event: &Event) -> String {
    let data = serde_json::to_string(event).unwrap_or_default();
    format!("event: {}\ndata: {data}\n\n", event.kind.as_str())
}
