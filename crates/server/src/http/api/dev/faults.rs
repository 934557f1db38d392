//! Things that go wrong on purpose: at once, for a while, or so many times.

use axum::response::Response;
use vorrang_broker::api::{Answer, Develop, Fault as Known, FaultKind as Kind, NewFault as Asked};
use vorrang_engine::entity::EntityPath;

use super::{developer, workshop};
use crate::date;
use crate::duration;
use crate::http::api::asker::Asker;
use crate::http::api::call::{BODY_BYTES_MAX, Call, done, ok};
use crate::http::api::complaint::Complaints;
use crate::http::api::failure::Failure;
use crate::http::api::model::{DropRequest, Dropped, Fault, FaultKind, NewFault, Page, StallRequest};
use crate::http::fault;
use crate::registry::Wish;

/// What goes wrong now.
pub(in crate::http::api) async fn list(call: Call) -> Result<Response, Failure> {
    workshop(&call)?;
    let faults = asked(&call.asker()?, Develop::Faults).await?;
    ok(&Page { items: faults.iter().map(shown).collect(), next: None })
}

/// Makes something go wrong.
pub(in crate::http::api) async fn inject(mut call: Call) -> Result<Response, Failure> {
    workshop(&call)?;
    let asker = developer(&call).await?;
    let new: NewFault = call.json(BODY_BYTES_MAX).await?;
    let faults = asked(&asker, Develop::Inject(read(&new)?)).await?;
    let fault = faults.first().ok_or_else(|| fault::Fault::unexpected(&"no fault"))?;
    crate::http::api::call::answer(axum::http::StatusCode::CREATED, &shown(fault))
}

/// Ends all of them.
pub(in crate::http::api) async fn clear(call: Call) -> Result<Response, Failure> {
    workshop(&call)?;
    asked(&call.asker()?, Develop::Mend(None)).await?;
    Ok(done())
}

/// Ends one of them.
pub(in crate::http::api) async fn end(call: Call) -> Result<Response, Failure> {
    workshop(&call)?;
    let id = call.number("id")?;
    if asked(&call.asker()?, Develop::Mend(Some(id))).await?.is_empty() {
        return Err(Failure::not_found(format!(
            "there is no fault {id}; GET /dev/faults lists those there are"
        )));
    }
    Ok(done())
}

/// Holds the whole broker up for a while.
pub(in crate::http::api) async fn stall(mut call: Call) -> Result<Response, Failure> {
    workshop(&call)?;
    let asker = developer(&call).await?;
    let StallRequest { lasts } = call.json(BODY_BYTES_MAX).await?;
    let mut complaints = Complaints::default();
    let lasts = complaints.check("for", duration::parse(&lasts));
    complaints.finish(())?;
    let lasts = lasts.ok_or_else(|| Failure::malformed("say for how long"))?;
    asker.develop(Develop::Stall { lasts }).await?;
    Ok(done())
}

/// Ends links or connections at once.
pub(in crate::http::api) async fn drop_links(mut call: Call) -> Result<Response, Failure> {
    workshop(&call)?;
    developer(&call).await?;
    let DropRequest { entity, link, connection } = call.json(BODY_BYTES_MAX).await?;
    if entity.is_none() && link.is_none() {
        return Err(Failure::malformed("say which links: by entity, by link, or by both"));
    }
    let mut dropped = Dropped { links: 0, connections: 0 };
    for client in call.site.watch.registry.list(None, usize::MAX) {
        let mut links = client.links();
        links.retain(|known| {
            link.as_deref().is_none_or(|name| known.name() == name)
                && entity.as_deref().is_none_or(|name| is_at(known.entity(), name))
        });
        dropped.links = dropped.links.saturating_add(u64::try_from(links.len()).unwrap_or(u64::MAX));
        if connection && !links.is_empty() {
            dropped.connections = dropped.connections.saturating_add(1);
            client.ask(Wish::Cut);
            continue;
        }
        for known in links {
            client.ask(Wish::Detach(known.id(), "a developer wants it so"));
        }
    }
    ok(&dropped)
}

/// Whether a link that is shown as attached here is attached to this entity; one over several is shown as all.
fn is_at(shown: &str, entity: &str) -> bool {
    shown.split('|').any(|one| one.eq_ignore_ascii_case(entity))
}

async fn asked(asker: &Asker, develop: Develop) -> Result<Vec<Known>, Failure> {
    match asker.develop(develop).await? {
        Some(Answer::Faults(faults)) => Ok(faults),
        other => Err(fault::Fault::unexpected(&other).into()),
    }
}

fn read(new: &NewFault) -> Result<Asked, Failure> {
    let mut complaints = Complaints::default();
    let entity = complaints.check("entity", EntityPath::parse(&new.entity));
    let span = |complaints: &mut Complaints, name, text: &Option<String>| {
        text.as_ref().and_then(|text| complaints.check(name, duration::parse(text)))
    };
    let delay = span(&mut complaints, "delay", &new.delay);
    let lasts = span(&mut complaints, "for", &new.lasts);
    let kind = match (new.kind, delay) {
        (FaultKind::ServerBusy, None) => Some(Kind::Busy),
        (FaultKind::DelaySettles, Some(delay)) => Some(Kind::DelaySettles(delay)),
        (FaultKind::ServerBusy, Some(_)) => {
            complaints.add("delay", "is for delaySettles alone".to_owned());
            None
        }
        (FaultKind::DelaySettles, None) => {
            complaints.add("delay", "must say how late settlements are, such as 5s".to_owned());
            None
        }
    };
    complaints.finish(())?;
    let both = entity.zip(kind).ok_or_else(|| Failure::malformed("the fault cannot be read"))?;
    Ok(Asked { entity: both.0, kind: both.1, count: new.count, lasts })
}

fn shown(fault: &Known) -> Fault {
    let (kind, delay) = match fault.kind {
        Kind::Busy => (FaultKind::ServerBusy, None),
        Kind::DelaySettles(delay) => (FaultKind::DelaySettles, Some(duration::to_iso(delay))),
    };
    Fault {
        id: fault.id,
        kind,
        entity: fault.entity.to_string(),
        delay,
        left: fault.left,
        until: fault.until.map(date::rfc3339),
    }
}
