//! Targets: whether each class is served within the time it was promised.

use axum::response::Response;
use vorrang_engine::Span;

use super::call::{Call, ok};
use super::events::may_observe;
use super::failure::Failure;
use super::model::{Page, Target, TargetState, TargetWindow};
use super::translation::live::seconds;
use crate::duration;
use crate::targets::{Health, Standing, burn_rate};

/// Targets on one page, unless the query says otherwise.
const PAGE: usize = 100;

/// A page of targets, in the order in which their entities were created.
pub(super) async fn list(call: Call) -> Result<Response, Failure> {
    may_observe(&call.asker()?).await?;
    let skip: usize = call.query.number("skip").unwrap_or(0);
    let top: usize = call.query.number("top").unwrap_or(PAGE);
    let all = call.site.watch.targets.all();
    let next = skip.saturating_add(top);
    ok(&Page {
        items: all.values().skip(skip).take(top).map(|standing| shown(standing)).collect(),
        next: (next < all.len())
            .then(|| format!("{}?{}", call.path, call.query.with("skip", &next.to_string()))),
    })
}

fn shown(standing: &Standing) -> Target {
    let window = |over: Span, attainment: Option<f64>| TargetWindow {
        over: duration::to_iso(over),
        attainment,
        burn_rate: attainment.map(burn_rate),
    };
    Target {
        entity: standing.entity.to_string(),
        class: standing.class.to_string(),
        level: standing.level.0,
        target_wait: duration::to_iso(standing.target_wait),
        state: state(standing.health),
        windows: vec![
            window(Span::minutes(5), standing.attainment_5m),
            window(Span::minutes(60), standing.attainment_1h),
            window(Span::days(1), standing.attainment_24h),
        ],
        breach_in_seconds: standing.breach_in.map(|left| seconds(left.0)),
    }
}

fn state(health: Health) -> TargetState {
    match health {
        Health::Ok => TargetState::Ok,
        Health::AtRisk => TargetState::AtRisk,
        Health::Breached => TargetState::Breached,
    }
}
