//! Why a message waits, in words that say what to do.

use vorrang_engine::explain::{Activity, Blocker, Explanation};
use vorrang_engine::{LevelOrigin, Sequence, Timestamp};

use super::live::seconds;
use crate::date;
use crate::http::api::model;

/// An explanation as it is told.
pub(crate) fn shown(sequence: Sequence, explanation: &Explanation) -> model::Explanation {
    let (activity, until) = activity(&explanation.activity);
    model::Explanation {
        sequence_number: sequence.0,
        summary: summary(explanation),
        activity,
        until: until.map(date::rfc3339),
        level: explanation.level.0,
        level_origin: origin(explanation.origin).to_owned(),
        class: explanation.class.clone(),
        eligible_since: date::rfc3339(explanation.eligible),
        waited_seconds: seconds(explanation.waited.0),
        next: explanation.next,
        starving: explanation.starving,
        ahead: explanation
            .ahead
            .iter()
            .map(|ahead| model::Ahead { level: ahead.level.0, count: ahead.count, at_least: ahead.at_least })
            .collect(),
        blockers: explanation.blockers.iter().map(blocker).collect(),
        estimate_seconds: explanation.estimate.map(|estimate| seconds(estimate.0)),
        promise: explanation.promise.to_string(),
    }
}

fn activity(activity: &Activity) -> (model::Activity, Option<Timestamp>) {
    match *activity {
        Activity::Waiting => (model::Activity::Waiting, None),
        Activity::Locked { until } => (model::Activity::Locked, Some(until)),
        Activity::Deferred => (model::Activity::Deferred, None),
        Activity::Scheduled { due } => (model::Activity::Scheduled, Some(due)),
        Activity::Delayed { until } => (model::Activity::Delayed, Some(until)),
    }
}

fn origin(origin: LevelOrigin) -> &'static str {
    match origin {
        LevelOrigin::Rule => "rule",
        LevelOrigin::Property => "property",
        LevelOrigin::Header => "header",
        LevelOrigin::Default => "default",
        LevelOrigin::Operator => "operator",
    }
}

fn blocker(blocker: &Blocker) -> model::Blocker {
    let (kind, detail) = match blocker {
        Blocker::Paused => ("paused", "deliveries are paused; resume the entity".to_owned()),
        Blocker::ReceiveDisabled => {
            ("receiveDisabled", "receiving is disabled; set the status to Active".to_owned())
        }
        Blocker::Forwards => ("forwards", "the entity hands its messages on; look at its target".to_owned()),
        Blocker::NoReceiver => ("noReceiver", "nobody receives from the entity; start a worker".to_owned()),
        Blocker::NoCredit => {
            ("noCredit", "every receiver is busy; add workers, or raise their concurrency".to_owned())
        }
        Blocker::SessionLocked { session, until } => (
            "sessionLocked",
            format!("another receiver has session '{session}' until {}", date::rfc3339(*until)),
        ),
        Blocker::BehindInSession { session, count } => {
            ("behindInSession", format!("{count} earlier messages of session '{session}' come first"))
        }
        Blocker::OnDisk => ("onDisk", "what comes before it lies on disk and is being read".to_owned()),
    };
    model::Blocker { kind: kind.to_owned(), detail }
}

fn summary(explanation: &Explanation) -> String {
    let level = match &explanation.class {
        Some(class) => format!("level {} ({class})", explanation.level),
        None => format!("level {}", explanation.level),
    };
    let waited = format!("{level}, eligible for {} s", seconds(explanation.waited.0));
    let until = |until: &Timestamp| date::rfc3339(*until);
    match &explanation.activity {
        Activity::Locked { until: end } => format!("{waited}: being worked on, locked until {}", until(end)),
        Activity::Deferred => format!("{waited}: put aside; it is received by its number alone"),
        Activity::Scheduled { due } => format!("{level}: becomes visible at {}", until(due)),
        Activity::Delayed { until: end } => format!("{waited}: waits for its next attempt at {}", until(end)),
        Activity::Waiting => {
            let ahead = explanation.ahead.iter().fold(0_u64, |sum, ahead| sum.saturating_add(ahead.count));
            let more = if explanation.ahead.iter().any(|ahead| ahead.at_least) { " or more" } else { "" };
            let place = match ahead {
                _ if explanation.next => "next to be delivered".to_owned(),
                1 => format!("1{more} message is ahead"),
                ahead => format!("{ahead}{more} messages are ahead"),
            };
            let held: Vec<String> = explanation.blockers.iter().map(|found| blocker(found).detail).collect();
            if held.is_empty() {
                format!("{waited}: {place}")
            } else {
                format!("{waited}: {place}; {}", held.join("; "))
            }
        }
    }
}
