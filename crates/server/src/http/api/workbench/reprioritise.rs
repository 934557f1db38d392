//! Gives waiting messages another level.

use std::sync::Arc;

use axum::response::Response;
use tokio::time::sleep;
use vorrang_broker::api::{Operation, Purpose};
use vorrang_engine::command::Selection;
use vorrang_engine::entity::Entity;
use vorrang_engine::entity::priority::PrioritySettings;
use vorrang_engine::{Level, Reply, Sequence};

use super::progress::DISK_PAUSE;
use super::selection::{self, Chosen};
use crate::http::api::call::{BODY_BYTES_MAX, Call, ok};
use crate::http::api::complaint::Complaints;
use crate::http::api::failure::Failure;
use crate::http::api::model::{ReprioritiseReport, ReprioritiseRequest};
use crate::http::fault::Fault;

/// Messages changed by one decision.
const STEP: u32 = 1_000;
/// Decisions for one request; then the answer says that there is more.
const STEPS_MAX: u32 = 200;

/// Changes the level of messages.
pub(crate) async fn reprioritise(mut call: Call) -> Result<Response, Failure> {
    let path = call.mailbox()?;
    let given: ReprioritiseRequest = call.json(BODY_BYTES_MAX).await?;
    let asker = call.asker()?;
    let found = asker.find(&path, Purpose::Receive).await?;
    let mut complaints = Complaints::default();
    let chosen = selection::read(&given.select, &mut complaints);
    let level = level(&given, &found.description, &mut complaints);
    complaints.finish(())?;
    let (Some(chosen), Some(level)) = (chosen, level) else {
        return Err(Failure::malformed("the request cannot be read"));
    };
    let mut left = given.max.unwrap_or(u64::MAX);
    let mut report = ReprioritiseReport { count: 0, level: level.0, incomplete: false };
    let mut cursor = Sequence(0);
    for step in 1..=STEPS_MAX {
        let selection = match &chosen {
            Chosen::Matching(filter) => Selection::Filter { filter: Arc::clone(filter), from: cursor },
            Chosen::Numbers(numbers) => Selection::Sequences(numbers.iter().copied().collect()),
        };
        let max = u32::try_from(left).unwrap_or(STEP).min(STEP);
        let operation =
            Operation::Reprioritise { mailbox: found.mailbox, selection, level, max, dry_run: given.dry_run };
        let (count, next) = match asker.perform(operation, &path.to_string()).await? {
            Reply::Reprioritised { count, next } => (count, next),
            other => return Err(Fault::unexpected(&other).into()),
        };
        report.count = report.count.saturating_add(u64::from(count));
        left = left.saturating_sub(u64::from(count));
        let Some(next) = next.filter(|_| left > 0) else { break };
        let stuck = count == 0 && next <= cursor;
        if step == STEPS_MAX || (stuck && given.dry_run) {
            // What lies on disk is not read for a look.
            report.incomplete = true;
            break;
        }
        if stuck {
            sleep(DISK_PAUSE).await;
        }
        cursor = next;
    }
    ok(&report)
}

/// The level that is meant, by number or by the entity's name for it.
fn level(given: &ReprioritiseRequest, entity: &Entity, complaints: &mut Complaints) -> Option<Level> {
    match (given.level, &given.class) {
        (Some(level), None) => Some(Level(level)),
        (None, Some(class)) => {
            let settings = entity.outlet().map(|outlet| &outlet.priority);
            let level = settings.and_then(|settings| settings.level_of(class));
            if level.is_none() {
                let names: Vec<&str> = settings
                    .into_iter()
                    .flat_map(PrioritySettings::all_classes)
                    .map(|(name, ..)| name)
                    .collect();
                let shown: String = class.chars().take(64).collect();
                complaints.add("class", format!("'{shown}' is unknown here; known are {}", names.join(", ")));
            }
            level
        }
        _ => {
            complaints.add("level", "either level or class is needed");
            None
        }
    }
}
