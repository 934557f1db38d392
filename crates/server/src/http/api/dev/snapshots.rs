//! Whole namespaces kept by name, and put back.

use axum::http::StatusCode;
use axum::response::Response;
use vorrang_broker::api::{Answer, Develop};

use super::{developer, send_everybody_away, tell_everybody, workshop};
use crate::date;
use crate::http::api::call::{Call, answer, done, ok};
use crate::http::api::failure::Failure;
use crate::http::api::model::{EventKind, Page, Snapshot};
use crate::http::fault::Fault;
use crate::workshop::images::{Error, Images, Kept, Name};

/// Those there are.
pub(in crate::http::api) async fn list(call: Call) -> Result<Response, Failure> {
    workshop(&call)?;
    developer(&call).await?;
    let kept = on_disk(&call, Images::list).await?;
    ok(&Page { items: kept.iter().map(shown).collect(), next: None })
}

/// Keeps the namespace as it is now under a name, in place of what bore it before.
pub(in crate::http::api) async fn save(call: Call) -> Result<Response, Failure> {
    let name = named(&call)?;
    let asker = developer(&call).await?;
    let captured = match asker.develop(Develop::Capture).await? {
        Some(Answer::Captured(captured)) => captured,
        other => return Err(Fault::unexpected(&other).into()),
    };
    let kept = on_disk(&call, move |images| images.save(&name, &captured.image)).await?;
    answer(StatusCode::CREATED, &shown(&kept))
}

/// Puts a namespace that was kept in the place of what is there: all of it, or nothing.
pub(in crate::http::api) async fn restore(call: Call) -> Result<Response, Failure> {
    let name = named(&call)?;
    let asker = developer(&call).await?;
    let subject = name.to_string();
    let image = on_disk(&call, move |images| images.load(&name)).await?;
    asker.develop(Develop::Restore { image }).await?;
    let detail = "entities and messages are those of the snapshot";
    tell_everybody(&call, &asker, EventKind::NamespaceRestored, Some(subject), detail).await;
    send_everybody_away(&call);
    Ok(done())
}

/// Forgets one.
pub(in crate::http::api) async fn delete(call: Call) -> Result<Response, Failure> {
    let name = named(&call)?;
    developer(&call).await?;
    on_disk(&call, move |images| images.delete(&name)).await?;
    Ok(done())
}

fn named(call: &Call) -> Result<Name, Failure> {
    workshop(call)?;
    call.parsed("name", Name::parse)
}

/// Works with files where waiting for the disk holds nobody up.
async fn on_disk<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(&Images) -> Result<T, Error> + Send + 'static,
) -> Result<T, Failure> {
    let images = workshop(call)?.images.clone();
    let done = tokio::task::spawn_blocking(move || work(&images)).await;
    let failed = |error: Error| match error {
        Error::Missing { .. } => Failure::not_found(error.to_string()),
        Error::TooMany | Error::Image(_) | Error::Disk { .. } => {
            Failure::new(StatusCode::CONFLICT, "snapshot", "The snapshot cannot be used", error.to_string())
        }
    };
    done.map_err(|_| Failure::from(Fault::unexpected(&"the work was cut off")))?.map_err(failed)
}

fn shown(kept: &Kept) -> Snapshot {
    Snapshot {
        name: kept.name.to_string(),
        taken_at: date::rfc3339(kept.summary.taken),
        messages: kept.summary.messages,
        bytes: kept.bytes,
    }
}
