//! The clock that can be set ahead, and starting anew.

use axum::response::Response;
use vorrang_broker::api::{Answer, Develop};

use super::{developer, send_everybody_away, tell_everybody, workshop};
use crate::caller::Caller;
use crate::date;
use crate::duration;
use crate::http::api::asker::Asker;
use crate::http::api::call::{BODY_BYTES_MAX, Call, done, ok};
use crate::http::api::complaint::Complaints;
use crate::http::api::failure::Failure;
use crate::http::api::model::{AdvanceRequest, Clock, EventKind, ResetRequest};
use crate::http::fault::Fault;

/// The time, and how far it runs ahead.
pub(in crate::http::api) async fn show(call: Call) -> Result<Response, Failure> {
    workshop(&call)?;
    told(&call.asker()?).await
}

/// Sets the clock ahead. What is due by then has happened when this is answered.
pub(in crate::http::api) async fn advance(mut call: Call) -> Result<Response, Failure> {
    workshop(&call)?;
    let asker = call.asker()?;
    let AdvanceRequest { by } = call.json(BODY_BYTES_MAX).await?;
    let mut complaints = Complaints::default();
    let by = complaints.check("by", duration::parse(&by));
    complaints.finish(())?;
    let by = by.ok_or_else(|| Failure::malformed("say by how much"))?;
    asker.develop(Develop::Advance { by }).await?;
    told(&asker).await
}

/// Takes every message away, and on request every entity, for those of the configuration to be made anew.
pub(in crate::http::api) async fn reset(mut call: Call) -> Result<Response, Failure> {
    workshop(&call)?;
    let asker = developer(&call).await?;
    let ResetRequest { entities } = call.json(BODY_BYTES_MAX).await?;
    asker.develop(Develop::Clear { entities }).await?;
    let detail = if entities {
        "every message and every entity is gone; those of the configuration are made anew"
    } else {
        "every message is gone; entities are as they were"
    };
    tell_everybody(&call, &asker, EventKind::NamespaceReset, None, detail).await;
    send_everybody_away(&call);
    if entities {
        let operator = Caller::operator(&call.site.broker).map_err(crate::caller::Unanswered::from)?;
        // A kill before this leaves none of them, and the next start makes them.
        workshop(&call)?
            .apply_definitions(&operator)
            .await
            .map_err(|error| Failure::malformed(error.to_string()))?;
    }
    Ok(done())
}

async fn told(asker: &Asker) -> Result<Response, Failure> {
    match asker.develop(Develop::Clock).await? {
        Some(Answer::Clock { now, ahead }) => {
            ok(&Clock { now: date::rfc3339(now), ahead: duration::to_iso(ahead) })
        }
        other => Err(Fault::unexpected(&other).into()),
    }
}
