//! Targets: how long messages of a class should wait, and whether they do.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One class of one entity that has a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The entity's path.
    pub entity: String,
    /// The class.
    pub class: String,
    /// Its level.
    pub level: u8,
    /// The wait that is promised.
    pub target_wait: String,
    /// How it stands.
    pub state: TargetState,
    /// Over the last 5 minutes, hour and day.
    pub windows: Vec<TargetWindow>,
    /// When the target will be missed at the present rates, if it will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breach_in_seconds: Option<f64>,
}

/// How a target stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum TargetState {
    /// It is kept.
    Ok,
    /// It is kept, but will not be for long.
    AtRisk,
    /// It is not kept.
    Breached,
}

/// A target over a stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetWindow {
    /// How long the stretch is.
    pub over: String,
    /// First deliveries in time, of all: 0 to 1; absent if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attainment: Option<f64>,
    /// How fast the allowed misses are used up: 1 is just as fast as allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burn_rate: Option<f64>,
}
