//! What the entity families are written from: a row for each entity, and one for each of its classes.
//!
//! Bounded: the first [`ENTITIES_MAX`] entities, in the order of their names, and the first [`CLASSES_MAX`]
//! classes of each have rows of their own; the rest is added up in rows named [`OTHER`], which no entity and
//! no class can be called. So sums stay right however many there are.

use vorrang_engine::fact::DeadLetterCause;
use vorrang_engine::observe::{Histogram, LevelCounts, Series};
use vorrang_engine::survey::{EntitySurvey, LevelSurvey, MailboxSurvey};
use vorrang_engine::{Level, Span, Timestamp};

use crate::targets::workers;

/// Entities with rows of their own.
pub(super) const ENTITIES_MAX: usize = 1_000;
/// Classes of one entity with rows of their own.
pub(super) const CLASSES_MAX: usize = 16;
/// Where the rest is added up.
pub(super) const OTHER: &str = "$other";
/// All rows.
#[derive(Debug)]
pub(super) struct Rows {
    now: Timestamp,
    pub(super) entities: Vec<EntityRow>,
    /// Entities by kind: queues, topics, subscriptions.
    pub(super) kinds: [u64; 3],
}

/// One entity, or all beyond the bound.
#[derive(Debug, Default)]
pub(super) struct EntityRow {
    pub(super) entity: String,
    pub(super) bytes: u64,
    pub(super) receivers: u64,
    pub(super) sessions: u64,
    pub(super) unknown_classes: u64,
    pub(super) desired_workers: u64,
    /// Whether it keeps messages, as queues and subscriptions do.
    pub(super) keeps: bool,
    pub(super) classes: Vec<ClassRow>,
}

/// One class of an entity, or all beyond the bound.
#[derive(Debug, Default)]
pub(super) struct ClassRow {
    pub(super) class: String,
    pub(super) counts: LevelCounts,
    pub(super) dead_letter: u64,
    pub(super) transfer_dead_letter: u64,
    pub(super) oldest: Option<Span>,
    /// What was measured, if anything was.
    pub(super) seen: Option<Box<Seen>>,
}

/// What was counted and measured of a class since the process began.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) arrivals: u64,
    pub(super) deliveries: u64,
    pub(super) completions: u64,
    pub(super) returns: u64,
    pub(super) expired: u64,
    pub(super) in_target: u64,
    pub(super) past_target: u64,
    pub(super) dead_lettered: Vec<(DeadLetterCause, u64)>,
    pub(super) wait: Histogram,
    pub(super) processing: Histogram,
    pub(super) end_to_end: Histogram,
    pub(super) inversion: Histogram,
}

impl Rows {
    pub(super) fn new(now: Timestamp) -> Rows {
        Rows { now, entities: Vec::new(), kinds: [0; 3] }
    }

    /// Adds an entity.
    pub(super) fn add(&mut self, survey: &EntitySurvey) {
        use vorrang_engine::entity::Kind;
        let kind = match survey.description.kind {
            Kind::Queue(_) => 0,
            Kind::Topic(_) => 1,
            Kind::Subscription(_) => 2,
        };
        if let Some(count) = self.kinds.get_mut(kind) {
            *count = count.saturating_add(1);
        }
        let now = self.now;
        if self.entities.len() <= ENTITIES_MAX {
            let full = self.entities.len() == ENTITIES_MAX;
            let entity = if full { OTHER.to_owned() } else { survey.description.path.to_string() };
            self.entities.push(EntityRow { entity, ..EntityRow::default() });
        }
        if let Some(row) = self.entities.last_mut() {
            row.add(now, survey);
        }
    }
}

impl EntityRow {
    fn add(&mut self, now: Timestamp, survey: &EntitySurvey) {
        let main = &survey.main;
        let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.keeps |= survey.description.outlet().is_some();
        self.bytes = self.bytes.saturating_add(survey.bytes);
        self.receivers = self.receivers.saturating_add(wide(main.receivers));
        self.sessions = self.sessions.saturating_add(wide(main.sessions));
        self.unknown_classes = self.unknown_classes.saturating_add(main.unknown_classes);
        self.desired_workers =
            self.desired_workers.saturating_add(u64::from(workers::desired_for(now, main)));
        for level in &main.levels {
            let row = self.class(name(level));
            row.add(now, level);
        }
        self.add_dead(&survey.dead_letter, |row| &mut row.dead_letter);
        self.add_dead(&survey.transfer_dead_letter, |row| &mut row.transfer_dead_letter);
    }

    fn add_dead(&mut self, mailbox: &MailboxSurvey, count: fn(&mut ClassRow) -> &mut u64) {
        for level in mailbox.levels.iter().filter(|level| level.counts.total() > 0) {
            let count = count(self.class(name(level)));
            *count = count.saturating_add(level.counts.total());
        }
    }

    /// The row of a class, begun if need be.
    fn class(&mut self, class: String) -> &mut ClassRow {
        let known = self.classes.iter().position(|row| row.class == class);
        let other = || self.classes.iter().position(|row| row.class == OTHER);
        let place = match known {
            Some(place) => place,
            None if self.classes.len() < CLASSES_MAX => self.begin(class),
            None => match other() {
                Some(place) => place,
                None => self.begin(OTHER.to_owned()),
            },
        };
        self.classes.get_mut(place).expect("the place was just found or filled")
    }

    fn begin(&mut self, class: String) -> usize {
        self.classes.push(ClassRow { class, ..ClassRow::default() });
        self.classes.len().saturating_sub(1)
    }
}

impl ClassRow {
    fn add(&mut self, now: Timestamp, level: &LevelSurvey) {
        let (all, more) = (&mut self.counts, level.counts);
        all.ready = all.ready.saturating_add(more.ready);
        all.locked = all.locked.saturating_add(more.locked);
        all.deferred = all.deferred.saturating_add(more.deferred);
        all.scheduled = all.scheduled.saturating_add(more.scheduled);
        all.delayed = all.delayed.saturating_add(more.delayed);
        self.oldest = self.oldest.max(level.oldest.map(|since| now.since(since)));
        if let Some(series) = &level.series {
            self.seen.get_or_insert_default().add(series);
        }
    }
}

impl Seen {
    fn add(&mut self, series: &Series) {
        let sums = [
            (&mut self.arrivals, series.arrivals),
            (&mut self.deliveries, series.deliveries),
            (&mut self.completions, series.completions),
            (&mut self.returns, series.returns),
            (&mut self.expired, series.expired),
            (&mut self.in_target, series.in_target),
            (&mut self.past_target, series.past_target),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
        for (cause, more) in series.dead_lettered.iter().filter(|(_, more)| *more > 0) {
            match self.dead_lettered.iter_mut().find(|(known, _)| *known == cause) {
                Some((_, sum)) => *sum = sum.saturating_add(more),
                None => self.dead_lettered.push((cause, more)),
            }
        }
        self.wait.merge(&series.wait);
        self.processing.merge(&series.processing);
        self.end_to_end.merge(&series.end_to_end);
        self.inversion.merge(&series.inversion);
    }
}

/// What a level is called: by its class, or by its number.
pub(super) fn name(level: &LevelSurvey) -> String {
    let Level(number) = level.level;
    level.class.clone().unwrap_or_else(|| number.to_string())
}
