//! How much there is of everything, copied out so that it can be read elsewhere.
//!
//! A survey is made on the thread that decides, so it is bounded: [`State::survey`] takes entities until
//! one of the bounds of [`Page`] is reached and says where to go on. What it is by level, and what was
//! seen of it, is in [`observe`](crate::observe).

use std::sync::Arc;

use crate::entity::promise::Promise;
use crate::entity::{Entity, EntityPath, SubQueue};
use crate::id::{EntityId, MailboxId};
use crate::level::Level;
use crate::mailbox::Counts;
use crate::observe::{LevelCounts, LevelReport, Series};
use crate::state::State;
use crate::time::{Span, Timestamp};

/// Series copied for one survey; what would be beyond waits for the next. Copying one takes about two
/// microseconds, so a survey holds the shard up for half a millisecond at most.
const SERIES_MAX: usize = 256;
/// Entities looked at for one survey, told of or not.
const LOOKS_MAX: usize = 1_000;

/// How much is told of each entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// How many messages there are in which state.
    Counts,
    /// The same level by level, with everything counted and measured since the process began.
    Levels,
    /// The same, of entities that have a class with a target; others are passed over.
    Targets,
}

/// Which entities to tell of, in the order of [`Catalogue::walk`](crate::entity::Catalogue::walk).
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// Those after this one.
    pub after: Option<&'a EntityPath>,
    /// At most so many.
    pub top: usize,
    /// How much of each.
    pub detail: Detail,
}

/// What there is in a part of the namespace.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// The entities, in order.
    pub entities: Vec<EntitySurvey>,
    /// Where to go on, if there are more.
    pub next: Option<EntityPath>,
}

/// What there is in one entity.
#[derive(Debug, Clone)]
pub struct EntitySurvey {
    /// The entity as it was then.
    pub description: Arc<Entity>,
    /// When it was last used, to the second.
    pub accessed: Option<Timestamp>,
    /// The bytes that count against its quota; a subscription's count against its topic's.
    pub bytes: u64,
    /// Its own messages.
    pub main: MailboxSurvey,
    /// Those that could not be processed.
    pub dead_letter: MailboxSurvey,
    /// Those that could not be forwarded.
    pub transfer_dead_letter: MailboxSurvey,
}

/// What there is in one mailbox.
#[derive(Debug, Clone, Default)]
pub struct MailboxSurvey {
    /// How many messages in which state.
    pub counts: Counts,
    /// How many receivers are attached.
    pub receivers: usize,
    /// How many sessions have messages, state or a lock.
    pub sessions: usize,
    /// How many messages named a class that does not exist there.
    pub unknown_classes: u64,
    /// Level by level, lowest first; empty if that was not asked for.
    pub levels: Vec<LevelSurvey>,
}

/// One level of a mailbox: a [`LevelReport`] to be kept.
#[derive(Debug, Clone)]
pub struct LevelSurvey {
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
    /// Since when the longest waiting message could have been delivered.
    pub oldest: Option<Timestamp>,
    /// What was counted and measured since the process began, if there was anything.
    pub series: Option<Box<Series>>,
}

impl LevelSurvey {
    fn new(report: LevelReport<'_>) -> LevelSurvey {
        let LevelReport { level, class, target_wait, promise, counts, oldest, series } = report;
        let series = series.map(|series| Box::new(series.clone()));
        LevelSurvey { level, class, target_wait, promise, counts, oldest, series }
    }
}

impl MailboxSurvey {
    fn series_count(&self) -> usize {
        self.levels.iter().filter(|level| level.series.is_some()).count()
    }
}

impl State {
    /// Tells of a page of entities.
    #[must_use]
    pub fn survey(&self, page: Page<'_>) -> Survey {
        let mut survey = Survey::default();
        let (mut looks, mut series) = (0_usize, 0_usize);
        let mut last = None;
        for entity in self.catalogue.walk(page.after) {
            if survey.entities.len() >= page.top || series >= SERIES_MAX || looks >= LOOKS_MAX {
                survey.next = last.map(|entity: &Arc<Entity>| entity.path.clone());
                break;
            }
            looks = looks.saturating_add(1);
            last = Some(entity);
            if page.detail == Detail::Targets && !has_target(entity) {
                continue;
            }
            let found = self.survey_entity(entity, page.detail);
            series = [&found.main, &found.dead_letter, &found.transfer_dead_letter]
                .into_iter()
                .fold(series, |sum, mailbox| sum.saturating_add(mailbox.series_count()));
            survey.entities.push(found);
        }
        survey
    }

    /// Tells of one entity.
    #[must_use]
    pub fn survey_entity(&self, entity: &Arc<Entity>, detail: Detail) -> EntitySurvey {
        let part = |part| self.survey_mailbox(MailboxId::new(entity.id, part), detail);
        EntitySurvey {
            accessed: self.catalogue.idle().accessed(entity.id),
            bytes: self.size(entity.id),
            main: part(SubQueue::Main),
            dead_letter: part(SubQueue::DeadLetter),
            transfer_dead_letter: part(SubQueue::TransferDeadLetter),
            description: Arc::clone(entity),
        }
    }

    fn survey_mailbox(&self, id: MailboxId, detail: Detail) -> MailboxSurvey {
        let mailbox = self.mailboxes.get(&id);
        // A sub-queue that was never used has nothing to tell of; the classes of a main mailbox have.
        let wanted = detail != Detail::Counts && (id.is_main() || mailbox.is_some());
        let levels = if wanted { self.levels(id) } else { Vec::new() };
        MailboxSurvey {
            counts: self.counts(id),
            receivers: self.receiver_count(id),
            sessions: mailbox.and_then(|mailbox| Some(mailbox.sessions.as_ref()?.names.len())).unwrap_or(0),
            unknown_classes: self.unknown_classes(id),
            levels: levels.into_iter().map(LevelSurvey::new).collect(),
        }
    }

    /// How many messages a mailbox holds in which state. One that was never used holds none.
    #[must_use]
    pub fn counts(&self, mailbox: MailboxId) -> Counts {
        self.mailboxes.get(&mailbox).map(|mailbox| mailbox.counts).unwrap_or_default()
    }

    /// The bytes that count against an entity's quota; a subscription's count against its topic's.
    #[must_use]
    pub fn size(&self, entity: EntityId) -> u64 {
        self.sizes.get(&entity).copied().unwrap_or(0)
    }

    /// How many messages named a class that does not exist there, since the process began.
    #[must_use]
    pub fn unknown_classes(&self, mailbox: MailboxId) -> u64 {
        self.mailboxes.get(&mailbox).map_or(0, |mailbox| mailbox.observations.unknown_classes())
    }

    /// How many receivers are attached to a mailbox.
    #[must_use]
    pub fn receiver_count(&self, mailbox: MailboxId) -> usize {
        self.mailboxes.get(&mailbox).map_or(0, |mailbox| mailbox.ring.attached.len())
    }

    /// How many message locks are held.
    #[must_use]
    pub fn lock_count(&self) -> u32 {
        self.locks.len()
    }
}

/// Whether any class of an entity has a target.
fn has_target(entity: &Entity) -> bool {
    let outlet = entity.outlet();
    outlet.is_some_and(|outlet| outlet.priority.all_classes().any(|(.., target)| target.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Settlement;
    use crate::entity::Setting;
    use crate::entity::priority::{Class, ClassName};
    use crate::fact::DeadLetterCause;
    use crate::message::Incoming;
    use crate::trial::{Trial, message, path};

    fn names(survey: &Survey) -> Vec<String> {
        survey.entities.iter().map(|entity| entity.description.path.to_string()).collect()
    }

    fn page(after: Option<&EntityPath>, top: usize) -> Page<'_> {
        Page { after, top, detail: Detail::Levels }
    }

    #[test]
    fn pages_cover_every_entity_once_topics_before_their_subscriptions() {
        let mut trial = Trial::new();
        for queue in ["b", "zz", "a"] {
            trial.queue(queue, vec![]);
        }
        for topic in ["m", "n"] {
            trial.topic(topic);
            for subscription in ["two", "one"] {
                trial.subscribe(topic, subscription, vec![], None);
            }
        }
        let all = names(&trial.state.survey(page(None, 100)));
        assert_eq!(
            all,
            [
                "a",
                "b",
                "m",
                "m/Subscriptions/one",
                "m/Subscriptions/two",
                "n",
                "n/Subscriptions/one",
                "n/Subscriptions/two",
                "zz"
            ]
        );
        for top in 1..=all.len() {
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let survey = trial.state.survey(page(after.as_ref(), top));
                assert!(survey.entities.len() <= top);
                seen.extend(names(&survey));
                after = survey.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(seen, all, "{top} at a time");
        }
        // One that is gone, or never was, is a place to go on from all the same.
        let gone = path("m/subscriptions/oz");
        assert_eq!(names(&trial.state.survey(page(Some(&gone), 2))), ["m/Subscriptions/two", "n"]);
        assert_eq!(names(&trial.state.survey(page(Some(&path("y")), 2))), ["zz"]);
    }

    #[test]
    fn an_entity_is_told_of_with_all_its_mailboxes_and_what_was_measured() {
        let mut trial = Trial::new();
        trial.queue("q", vec![]);
        trial.send_all("q", vec![Incoming { priority: Some(9), ..message("1") }, message("2")]).unwrap();
        trial.attach("q", 1, 1);
        let delivery = trial.receive().remove(0);
        let reason = Settlement::DeadLetter { reason: None, description: None, changes: None };
        trial.settle(&delivery, reason).unwrap();
        let entity = Arc::clone(trial.state.catalogue.shared(trial.id("q")).unwrap());
        let counts = trial.state.survey_entity(&entity, Detail::Counts);
        assert!(counts.main.levels.is_empty());
        assert_eq!((counts.main.counts.ready, counts.dead_letter.counts.ready), (1, 1));
        assert_eq!((counts.main.receivers, counts.transfer_dead_letter.counts.total()), (1, 0));
        let told = trial.state.survey_entity(&entity, Detail::Levels);
        let urgent = told.main.levels.iter().find(|level| level.level == Level(9)).unwrap();
        let series = urgent.series.as_ref().unwrap();
        assert_eq!((series.arrivals, series.deliveries, series.dead_lettered.total()), (1, 1, 1));
        assert_eq!(urgent.class.as_deref(), Some("urgent"));
        assert_eq!(told.dead_letter.levels.iter().map(|level| level.counts.ready).sum::<u64>(), 1);
        assert!(told.transfer_dead_letter.levels.is_empty());
    }

    #[test]
    fn what_a_topic_dead_letters_itself_is_counted_by_its_cause() {
        let mut trial = Trial::new();
        trial.topic("t");
        trial.subscribe("t", "sessions", vec![Setting::RequiresSession(true)], None);
        trial.send("t", &["without a session"]).unwrap();
        let subscription = trial.id("t/Subscriptions/sessions");
        let entity = Arc::clone(trial.state.catalogue.shared(subscription).unwrap());
        let told = trial.state.survey_entity(&entity, Detail::Levels);
        assert_eq!(told.dead_letter.counts.ready, 1);
        let causes = |told: &EntitySurvey| -> Vec<(DeadLetterCause, u64)> {
            let series = told.main.levels.iter().filter_map(|level| level.series.as_ref());
            series.flat_map(|series| series.dead_lettered.iter()).filter(|(_, count)| *count > 0).collect()
        };
        assert_eq!(causes(&told), [(DeadLetterCause::NoSession, 1)]);
    }

    #[test]
    fn only_entities_with_a_target_can_be_asked_for_and_looking_is_bounded() {
        let mut trial = Trial::new();
        let gold = Class {
            name: ClassName::parse("gold").unwrap(),
            level: Level(100),
            target_wait: Some(Span::seconds(10)),
        };
        for queue in 0..=LOOKS_MAX {
            let settings = if queue == 3 { vec![Setting::Classes(vec![gold.clone()])] } else { vec![] };
            trial.queue(&format!("q{queue:05}"), settings);
        }
        let detail = Detail::Targets;
        let survey = trial.state.survey(Page { after: None, top: 10, detail });
        assert_eq!(names(&survey), ["q00003"]);
        let next = survey.next.expect("one was not looked at");
        assert_eq!(next, path("q00999"));
        let rest = trial.state.survey(Page { after: Some(&next), top: 10, detail });
        assert!(rest.entities.is_empty() && rest.next.is_none());
    }

    #[test]
    fn a_page_ends_when_many_series_have_been_copied() {
        let mut trial = Trial::new();
        for queue in 0..4 {
            let name = format!("q{queue}");
            trial.queue(&name, vec![]);
            for level in 0..=255 {
                let incoming = Incoming { priority: Some(level), ..message(&format!("{queue}-{level}")) };
                trial.send_all(&name, vec![incoming]).unwrap();
            }
        }
        let survey = trial.state.survey(page(None, 100));
        assert_eq!((survey.entities.len(), survey.next), (1, Some(path("q0"))));
        let counts = Page { after: None, top: 100, detail: Detail::Counts };
        assert_eq!(trial.state.survey(counts).entities.len(), 4);
    }
}
