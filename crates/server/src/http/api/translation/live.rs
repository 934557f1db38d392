//! Counts, rates and histograms as JSON.

use vorrang_broker::api::Listed;
use vorrang_engine::entity::{Entity, Kind};
use vorrang_engine::observe::{Histogram, LevelCounts, Rate};
use vorrang_engine::survey::{EntitySurvey, LevelSurvey, MailboxSurvey};
use vorrang_engine::{Counts, Span, Timestamp};

use super::properties;
use crate::http::api::model;
use crate::targets::workers;
use crate::{date, duration};

/// The stretch over which rates are told.
const RATE_OVER: Span = Span::minutes(1);

/// An entity with what is known of it.
pub(crate) fn entity_shown(listed: &Listed) -> model::Entity {
    let entity = &listed.entity;
    let subscription = entity.path.subscription.as_ref();
    model::Entity {
        name: subscription.map_or_else(|| entity.path.name.to_string(), ToString::to_string),
        kind: kind(entity),
        topic: subscription.map(|_| entity.path.name.to_string()),
        path: entity.path.to_string(),
        properties: properties::shown(entity),
        runtime: runtime(listed),
    }
}

fn kind(entity: &Entity) -> model::EntityKind {
    match entity.kind {
        Kind::Queue(_) => model::EntityKind::Queue,
        Kind::Topic(_) => model::EntityKind::Topic,
        Kind::Subscription(_) => model::EntityKind::Subscription,
    }
}

fn runtime(listed: &Listed) -> model::Runtime {
    let (entity, main) = (&listed.entity, &listed.main);
    let subscriptions = entity.topic().map(|topic| topic.subscriptions.len());
    model::Runtime {
        created_at: date::rfc3339(entity.created),
        updated_at: date::rfc3339(entity.updated),
        accessed_at: date::rfc3339(listed.accessed),
        size_in_bytes: listed.size,
        active_message_count: main.ready,
        locked_message_count: main.locked,
        deferred_message_count: main.deferred,
        scheduled_message_count: main.scheduled.saturating_add(main.delayed),
        dead_letter_message_count: listed.dead_letter.total(),
        transfer_dead_letter_message_count: listed.transfer_dead_letter.total(),
        receiver_count: wide(listed.receivers),
        subscription_count: subscriptions.map(wide),
    }
}

/// An entity's mailboxes, class by class.
pub(crate) fn shown(survey: &EntitySurvey, now: Timestamp) -> model::Live {
    let mailboxes = [
        (model::Mailbox::Main, &survey.main),
        (model::Mailbox::DeadLetter, &survey.dead_letter),
        (model::Mailbox::TransferDeadLetter, &survey.transfer_dead_letter),
    ];
    let used = mailboxes
        .into_iter()
        .filter(|(which, found)| *which == model::Mailbox::Main || found.counts.total() > 0);
    model::Live {
        at: date::rfc3339(now),
        desired_workers: workers::desired_for(now, &survey.main),
        mailboxes: used.map(|(which, found)| mailbox(which, found, now)).collect(),
    }
}

fn mailbox(which: model::Mailbox, survey: &MailboxSurvey, now: Timestamp) -> model::MailboxReport {
    model::MailboxReport {
        mailbox: which,
        counts: all_counts(&survey.counts),
        receiver_count: wide(survey.receivers),
        classes: survey.levels.iter().rev().map(|level| class(level, now)).collect(),
    }
}

fn all_counts(counts: &Counts) -> model::Counts {
    let Counts { ready: active, locked, deferred, scheduled, delayed, .. } = *counts;
    model::Counts { active, locked, deferred, scheduled, delayed }
}

fn level_counts(counts: &LevelCounts) -> model::Counts {
    let LevelCounts { ready: active, locked, deferred, scheduled, delayed } = *counts;
    model::Counts { active, locked, deferred, scheduled, delayed }
}

fn class(survey: &LevelSurvey, now: Timestamp) -> model::ClassReport {
    let series = survey.series.as_deref();
    let rate = |rate: &Rate| float(rate.per_kilosecond(now, RATE_OVER)) / 1_000.0;
    let none = Histogram::default();
    model::ClassReport {
        level: survey.level.0,
        class: survey.class.clone(),
        target_wait: survey.target_wait.map(duration::to_iso),
        promise: survey.promise.to_string(),
        counts: level_counts(&survey.counts),
        oldest_age_seconds: survey.oldest.map(|oldest| seconds(now.since(oldest).0)),
        totals: series.map(|series| model::Totals {
            enqueued: series.arrivals,
            delivered: series.deliveries,
            completed: series.completions,
            returned: series.returns,
            dead_lettered: series.dead_lettered.total(),
            expired: series.expired,
            in_target: series.in_target,
            past_target: series.past_target,
        }),
        rates: series.map_or_else(model::Rates::default, |series| model::Rates {
            enqueued: rate(&series.arrival_rate),
            delivered: rate(&series.delivery_rate),
            completed: rate(&series.completion_rate),
        }),
        wait: distribution(series.map_or(&none, |series| &series.wait)),
        processing: distribution(series.map_or(&none, |series| &series.processing)),
        end_to_end: distribution(series.map_or(&none, |series| &series.end_to_end)),
    }
}

fn distribution(histogram: &Histogram) -> model::Distribution {
    let quantile = |per_mille| histogram.quantile(per_mille).map(seconds);
    let bucket = |bucket: vorrang_engine::observe::histogram::Bucket| model::Bucket {
        to_seconds: seconds(bucket.high),
        count: bucket.count,
    };
    model::Distribution {
        count: histogram.count(),
        sum_seconds: seconds(histogram.sum()),
        p50_seconds: quantile(500),
        p95_seconds: quantile(950),
        p99_seconds: quantile(990),
        max_seconds: seconds(histogram.max()),
        buckets: histogram.buckets().map(bucket).collect(),
    }
}

/// Milliseconds in seconds.
pub(crate) fn seconds(milliseconds: u64) -> f64 {
    float(milliseconds) / 1_000.0
}

/// Numbers this large lose their last digits, which nobody reads.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "there is no other way to a float")]
fn float(number: u64) -> f64 {
    number as f64
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
