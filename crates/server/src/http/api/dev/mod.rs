//! What only developers do, under `/dev/`: reset, snapshots by name, a clock that can be set ahead, faults.
//!
//! A broker in production has none of it: without development mode every path says so. Whoever may manage the
//! namespace may do this; the broker's one door decides, as everywhere.

pub(super) mod clock;
pub(super) mod faults;
pub(super) mod snapshots;

use vorrang_broker::api::{Answer, Develop};

use super::asker::Asker;
use super::call::Call;
use super::failure::Failure;
use super::model::{Event, EventKind};
use crate::date;
use crate::front::connection::wall_time;
use crate::registry::Wish;
use crate::workshop::Workshop;

/// What clients are told whose namespace has become another.
const REPLACED: &str = "the namespace was reset or restored";

/// The tools, if this broker has any.
fn workshop(call: &Call) -> Result<&Workshop, Failure> {
    call.site.workshop.as_ref().ok_or_else(|| {
        Failure::not_found(
            "this is for developers alone: start the broker with --dev to have what is under /dev/",
        )
    })
}

/// The broker, for whoever may develop.
async fn developer(call: &Call) -> Result<Asker, Failure> {
    let asker = call.asker()?;
    asker.develop(Develop::Clock).await?;
    Ok(asker)
}

/// Tells whoever listens that everything known of the namespace is to be looked at anew.
async fn tell_everybody(call: &Call, asker: &Asker, kind: EventKind, subject: Option<String>, detail: &str) {
    let at = match asker.develop(Develop::Clock).await {
        Ok(Some(Answer::Clock { now, .. })) => now,
        // The news is worth more than its minute.
        _ => wall_time(),
    };
    let detail = Some(detail.to_owned());
    call.site.feed.tell(Event { kind, at: date::rfc3339(at), entity: None, subject, count: None, detail });
}

/// Nobody who was connected before knows this namespace: every client begins anew.
fn send_everybody_away(call: &Call) {
    for client in call.site.watch.registry.list(None, usize::MAX) {
        client.ask(Wish::Close(REPLACED));
    }
}
