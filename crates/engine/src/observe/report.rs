//! What operators and metrics read: counts by state, ages, and what was measured, by level.

use std::collections::{BTreeMap, BTreeSet};

use super::{LevelCounts, Series};
use crate::entity::promise::{Promise, promise};
use crate::id::MailboxId;
use crate::lane::lanes::NOBODY;
use crate::level::Level;
use crate::mailbox::Mailbox;
use crate::state::State;
use crate::time::{Span, Timestamp};

/// Messages that are in no lane and are looked at one by one for the oldest.
const LOOK_MAX: usize = 256;

/// One level of a mailbox.
#[derive(Debug, Clone)]
pub struct LevelReport<'a> {
    /// The level.
    pub level: Level,
    /// The name of its class, if it has one.
    pub class: Option<String>,
    /// How long its messages should wait at most.
    pub target_wait: Option<Span>,
    /// What the entity's settings promise its messages.
    pub promise: Promise,
    /// How many messages are in which state.
    pub counts: LevelCounts,
    /// Since when the longest waiting message could have been delivered. Of sessions and of messages with
    /// a deadline of their own the first few hundred are looked at.
    pub oldest: Option<Timestamp>,
    /// What was counted and measured since the process began, if there was anything.
    pub series: Option<&'a Series>,
}

impl State {
    /// A mailbox level by level, lowest first: those with a class, with messages, or with a past.
    #[must_use]
    pub fn levels(&self, mailbox: MailboxId) -> Vec<LevelReport<'_>> {
        let outlet = self.catalogue.entity(mailbox.entity()).and_then(|entity| entity.outlet());
        let Some(settings) = outlet.map(|outlet| &outlet.priority) else { return Vec::new() };
        let place = self.mailboxes.get(&mailbox);
        let oldest = place.map(|place| self.oldest(place)).unwrap_or_default();
        let mut known: BTreeSet<Level> = settings.all_classes().map(|(_, level, _)| level).collect();
        known.extend(place.iter().flat_map(|place| place.tally.iter()).map(|(level, _)| level));
        known.extend(place.iter().flat_map(|place| place.observations.all()).map(|(level, _)| level));
        let report = |level: Level| LevelReport {
            level,
            class: settings.class_of(level).map(str::to_owned),
            target_wait: settings.target_wait(level),
            promise: promise(settings, level),
            counts: place.and_then(|place| place.tally.get(level)).unwrap_or_default(),
            oldest: oldest.get(&level).copied(),
            series: place.and_then(|place| place.observations.get(level)),
        };
        known.into_iter().map(report).collect()
    }

    /// Since when the longest waiting message of each level could have been delivered.
    fn oldest(&self, mailbox: &Mailbox) -> BTreeMap<Level, Timestamp> {
        let heads = mailbox.lanes.heads(Level(0)).filter(|(_, head)| *head != NOBODY);
        let mut oldest: BTreeMap<Level, Timestamp> =
            heads.map(|(level, (eligible, _))| (level, eligible)).collect();
        let sessions = mailbox.sessions.iter().flat_map(|table| &table.aged).take(LOOK_MAX);
        let firsts = sessions.filter_map(|(_, session)| self.sessions.get(*session)?.head(&self.records));
        let dated = mailbox.dated.values().take(LOOK_MAX).map(|(handle, _)| *handle);
        for record in firsts.chain(dated).filter_map(|handle| self.records.get(handle)) {
            let known = oldest.entry(record.level).or_insert(record.eligible);
            *known = record.eligible.min(*known);
        }
        oldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Command, Selection, Settlement};
    use crate::entity::Setting;
    use crate::entity::priority::{Class, ClassName};
    use crate::message::Incoming;
    use crate::trial::{Trial, message};

    fn levels(trial: &Trial, text: &str) -> Vec<(u8, [u64; 5])> {
        let reports = trial.state.levels(trial.mailbox(text)).into_iter();
        let counts = |counts: LevelCounts| {
            [counts.ready, counts.locked, counts.deferred, counts.scheduled, counts.delayed]
        };
        let used = reports.filter(|report| report.counts.total() > 0);
        used.map(|report| (report.level.0, counts(report.counts))).collect()
    }

    #[test]
    fn every_state_is_counted_by_level_and_again_after_a_replay() {
        let mut trial = Trial::new();
        trial.queue("q", vec![]);
        let at = |id: &str, level| Incoming { priority: Some(level), ..message(id) };
        trial.send_all("q", vec![at("1", 9), at("2", 9), at("3", 4), at("4", 4), at("5", 1)]).unwrap();
        let later = Some(trial.now.after(Span::minutes(1)));
        trial.send_all("q", vec![Incoming { scheduled_for: later, ..at("6", 9) }]).unwrap();
        trial.attach("q", 1, 4);
        let deliveries = trial.receive();
        trial.settle(&deliveries[1], Settlement::Defer { changes: None }).unwrap();
        let delay = Some(Span::seconds(30));
        trial.settle(&deliveries[2], Settlement::Abandon { changes: None, delay }).unwrap();
        trial.settle(&deliveries[3], Settlement::Complete).unwrap();
        let expected = vec![(1, [1, 0, 0, 0, 0]), (4, [0, 0, 0, 0, 1]), (9, [0, 1, 1, 1, 0])];
        let counted = levels(&trial, "q");
        assert!(
            counted.iter().map(|(_, counts)| counts.iter().sum::<u64>()).sum::<u64>()
                == trial.state.counts(trial.mailbox("q")).total()
        );
        assert_eq!(levels(&trial.replayed(), "q"), counted);
        // Credit was given back by the settlements' end of the test alone, so one of level 1 waits.
        assert_eq!(counted, expected);
        // A new level moves the counts along, whatever the state.
        let mailbox = trial.mailbox("q");
        let selection = Selection::Sequences((1..10).map(crate::id::Sequence).collect());
        let (level, max, dry_run) = (Level(7), 100, false);
        trial
            .ask(|request| Command::Reprioritise { request, mailbox, selection, level, max, dry_run })
            .unwrap();
        assert_eq!(levels(&trial, "q"), [(7, [1, 0, 1, 1, 1]), (9, [0, 1, 0, 0, 0])]);
    }

    #[test]
    fn dead_letters_count_where_they_are() {
        let mut trial = Trial::new();
        trial.queue("q", vec![Setting::MaxDeliveryCount(1)]);
        trial.send("q", &["1", "2"]).unwrap();
        trial.attach("q", 1, 1);
        let delivery = trial.receive().remove(0);
        trial.settle(&delivery, Settlement::Abandon { changes: None, delay: None }).unwrap();
        assert_eq!(levels(&trial, "q"), [(4, [1, 0, 0, 0, 0])]);
        assert_eq!(levels(&trial, "q/$deadletterqueue"), [(4, [1, 0, 0, 0, 0])]);
        trial.chill("q", 4, 1);
        assert_eq!(levels(&trial, "q"), [(4, [1, 0, 0, 0, 0])], "on disk counts too");
    }

    #[test]
    fn a_class_is_reported_before_its_first_message() {
        let mut trial = Trial::new();
        let gold = Class {
            name: ClassName::parse("gold").unwrap(),
            level: Level(100),
            target_wait: Some(Span::seconds(10)),
        };
        trial.queue("q", vec![Setting::Classes(vec![gold])]);
        let find = |trial: &Trial| {
            let reports = trial.state.levels(trial.mailbox("q"));
            let gold = reports.iter().find(|report| report.class.as_deref() == Some("gold")).unwrap();
            (gold.counts.total(), gold.oldest, gold.series.map(|series| (series.arrivals, series.in_target)))
        };
        assert_eq!(find(&trial), (0, None, None));
        trial.send_all("q", vec![Incoming { priority: Some(100), ..message("1") }]).unwrap();
        assert_eq!(find(&trial), (1, Some(trial.now), Some((1, 0))));
        trial.advance(Span::seconds(10));
        trial.attach("q", 1, 1);
        trial.receive();
        assert_eq!(find(&trial), (1, None, Some((1, 1))));
        assert!(trial.state.levels(MailboxId(999)).is_empty());
    }
}
