//! The families about entities, classes and targets.

use std::collections::BTreeSet;

use vorrang_engine::fact::DeadLetterCause;
use vorrang_engine::observe::Histogram;

use super::rows::{ClassRow, EntityRow, Rows, Seen};
use super::text::{Family, Kind, Text, float, seconds};
use crate::targets::{Health, Standing, Standings};

/// In milliseconds: from at once to an hour.
const BOUNDS: [u64; 17] = [
    1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000,
];

/// Everything about entities and their classes.
pub(super) fn write(text: &mut Text, rows: &Rows) {
    let mut family = text.family("vorrang_entities", Kind::Gauge, "Entities, by kind.");
    for (kind, count) in ["queue", "topic", "subscription"].into_iter().zip(rows.kinds) {
        family.count(&[("kind", kind)], count);
    }
    per_entity(text, rows);
    messages(text, rows);
    let help = "How long the oldest waiting message has waited; 0 if none waits.";
    let mut family = text.family("vorrang_oldest_age_seconds", Kind::Gauge, help);
    for (entity, class) in classes(rows) {
        family.sample(&labels(entity, class), seconds(class.oldest.unwrap_or_default().0));
    }
    counters(text, rows);
    dead_letters(text, rows);
    histograms(text, rows);
}

fn per_entity(text: &mut Text, rows: &Rows) {
    type Read = fn(&EntityRow) -> u64;
    let families: [(&'static str, Kind, &str, Read); 5] = [
        (
            "vorrang_entity_bytes",
            Kind::Gauge,
            "Bytes that count against the quota; a subscription's count against its topic's.",
            |row| row.bytes,
        ),
        ("vorrang_receivers", Kind::Gauge, "Receivers attached.", |row| row.receivers),
        ("vorrang_sessions", Kind::Gauge, "Sessions with messages, state or a lock.", |row| row.sessions),
        (
            "vorrang_desired_workers",
            Kind::Gauge,
            "Workers that what waits calls for, from its number, age, service time and targets.",
            |row| row.desired_workers,
        ),
        (
            "vorrang_unknown_classes_total",
            Kind::Counter,
            "Messages that named a class their entity does not have.",
            |row| row.unknown_classes,
        ),
    ];
    for (name, kind, help, read) in families {
        let mut family = text.family(name, kind, help);
        for row in rows.entities.iter().filter(|row| row.keeps || name == "vorrang_entity_bytes") {
            family.count(&[("entity", &row.entity)], read(row));
        }
    }
}

fn messages(text: &mut Text, rows: &Rows) {
    let mut family = text.family("vorrang_messages", Kind::Gauge, "Messages, by state.");
    for (entity, class) in classes(rows) {
        let states = [
            ("active", class.counts.ready),
            ("locked", class.counts.locked),
            ("deferred", class.counts.deferred),
            ("scheduled", class.counts.scheduled),
            ("delayed", class.counts.delayed),
            ("dead_letter", class.dead_letter),
            ("transfer_dead_letter", class.transfer_dead_letter),
        ];
        for (state, count) in states {
            let labels = [("entity", entity.entity.as_str()), ("class", &class.class), ("state", state)];
            family.count(&labels, count);
        }
    }
}

fn counters(text: &mut Text, rows: &Rows) {
    type Read = fn(&Seen) -> u64;
    let families: [(&'static str, &str, Read); 7] = [
        ("vorrang_enqueued_total", "Messages that came in.", |seen| seen.arrivals),
        ("vorrang_delivered_total", "Deliveries, repeated ones too.", |seen| seen.deliveries),
        ("vorrang_completed_total", "Messages completed.", |seen| seen.completions),
        ("vorrang_returned_total", "Deliveries that ended with the message going back.", |seen| seen.returns),
        ("vorrang_expired_total", "Messages that outlived their time.", |seen| seen.expired),
        ("vorrang_in_target_total", "First deliveries within the target of the class.", |seen| {
            seen.in_target
        }),
        ("vorrang_past_target_total", "First deliveries later than that.", |seen| seen.past_target),
    ];
    for (name, help, read) in families {
        let mut family = text.family(name, Kind::Counter, help);
        for (entity, class, seen) in seen(rows) {
            family.count(&labels(entity, class), read(seen));
        }
    }
}

fn dead_letters(text: &mut Text, rows: &Rows) {
    let help = "Messages dead-lettered, by why.";
    let mut family = text.family("vorrang_deadlettered_total", Kind::Counter, help);
    for (entity, class, seen) in seen(rows) {
        for (cause, count) in &seen.dead_lettered {
            let reason = ("reason", reason(*cause));
            family.count(&[("entity", &entity.entity), ("class", &class.class), reason], *count);
        }
    }
}

fn histograms(text: &mut Text, rows: &Rows) {
    type Read = fn(&Seen) -> &Histogram;
    let families: [(&'static str, &str, Read); 4] = [
        ("vorrang_wait_seconds", "From being visible to the first delivery.", |seen| &seen.wait),
        ("vorrang_process_seconds", "From a delivery to its settlement.", |seen| &seen.processing),
        ("vorrang_end_to_end_seconds", "From being visible to being completed.", |seen| &seen.end_to_end),
        (
            "vorrang_inversion_seconds",
            "How long messages waited for their first delivery while lower ones were held by receivers.",
            |seen| &seen.inversion,
        ),
    ];
    for (name, help, read) in families {
        let mut family = text.family(name, Kind::Histogram, help);
        for (entity, class, seen) in seen(rows) {
            histogram(&mut family, &labels(entity, class), read(seen));
        }
    }
}

fn histogram(family: &mut Family<'_>, labels: &[(&'static str, &str)], histogram: &Histogram) {
    let buckets = BOUNDS.map(|bound| (seconds(bound), histogram.at_most(bound)));
    family.histogram(labels, buckets, histogram.count(), seconds(histogram.sum()));
}

/// How the classes stand against their targets. Those of entities without a row are left out: parts of
/// different targets cannot be added up.
pub(super) fn targets(text: &mut Text, standings: &Standings, rows: &Rows) {
    let known: BTreeSet<&str> = rows.entities.iter().map(|row| row.entity.as_str()).collect();
    let shown = standings.values().filter(|standing| known.contains(&*standing.entity));
    let shown: Vec<&Standing> = shown.map(|standing| &**standing).collect();
    let labels = |standing: &'_ Standing| -> [(&'static str, String); 2] {
        [("entity", standing.entity.to_string()), ("class", standing.class.to_string())]
    };
    let mut family =
        text.family("vorrang_target_wait_seconds", Kind::Gauge, "How long messages of the class may wait.");
    for standing in &shown {
        let [entity, class] = &labels(standing);
        family.sample(&[(entity.0, &entity.1), (class.0, &class.1)], seconds(standing.target_wait.0));
    }
    let help = "The part of first deliveries that was within the target.";
    let mut family = text.family("vorrang_target_attainment_ratio", Kind::Gauge, help);
    for standing in &shown {
        let [entity, class] = &labels(standing);
        let windows = [
            ("5m", standing.attainment_5m),
            ("1h", standing.attainment_1h),
            ("24h", standing.attainment_24h),
        ];
        for (window, ratio) in windows {
            let Some(ratio) = ratio else { continue };
            family.sample(&[(entity.0, &entity.1), (class.0, &class.1), ("window", window)], ratio);
        }
    }
    let help = "How fast the last hour uses up what may be late; 1 is just as fast as allowed.";
    let mut family = text.family("vorrang_target_burn_rate", Kind::Gauge, help);
    for standing in &shown {
        let [entity, class] = &labels(standing);
        if let Some(rate) = standing.burn_rate {
            family.sample(&[(entity.0, &entity.1), (class.0, &class.1)], rate);
        }
    }
    let help = "Time until messages begin to be late if nothing changes; absent if they will not.";
    let mut family = text.family("vorrang_target_breach_seconds", Kind::Gauge, help);
    for standing in &shown {
        let [entity, class] = &labels(standing);
        if let Some(left) = standing.breach_in {
            family.sample(&[(entity.0, &entity.1), (class.0, &class.1)], seconds(left.0));
        }
    }
    let help = "1 for the state the target is in, 0 for the others.";
    let mut family = text.family("vorrang_target_state", Kind::Gauge, help);
    for standing in &shown {
        let [entity, class] = &labels(standing);
        for health in Health::ALL {
            let state = ("state", health.as_label());
            let value = float(u64::from(health == standing.health));
            family.sample(&[(entity.0, &entity.1), (class.0, &class.1), state], value);
        }
    }
}

fn classes(rows: &Rows) -> impl Iterator<Item = (&EntityRow, &ClassRow)> {
    rows.entities.iter().flat_map(|entity| entity.classes.iter().map(move |class| (entity, class)))
}

fn seen(rows: &Rows) -> impl Iterator<Item = (&EntityRow, &ClassRow, &Seen)> {
    classes(rows).filter_map(|(entity, class)| Some((entity, class, class.seen.as_deref()?)))
}

fn labels<'a>(entity: &'a EntityRow, class: &'a ClassRow) -> [(&'static str, &'a str); 2] {
    [("entity", &entity.entity), ("class", &class.class)]
}

fn reason(cause: DeadLetterCause) -> &'static str {
    match cause {
        DeadLetterCause::Application => "application",
        DeadLetterCause::MaxDeliveries => "max_deliveries",
        DeadLetterCause::Expired => "expired",
        DeadLetterCause::MaxHops => "max_hops",
        DeadLetterCause::Undeliverable => "undeliverable",
        DeadLetterCause::FilterError => "filter_error",
        DeadLetterCause::NoSession => "no_session",
    }
}
