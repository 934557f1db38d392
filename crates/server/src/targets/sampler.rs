//! The task that reads the engine for the [`Board`], every few seconds.
//!
//! It asks for entities with targets alone, page by page, so that a namespace without any costs next to
//! nothing. Its memory is bounded: the classes it follows, and for each two rings of fixed length.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use vorrang_broker::api::{Answer, Detail, Operation, Question};
use vorrang_broker::shard::Broker;
use vorrang_engine::entity::EntityPath;
use vorrang_engine::entity::priority::Policy;
use vorrang_engine::observe::Series;
use vorrang_engine::survey::{EntitySurvey, LevelSurvey};
use vorrang_engine::{EntityId, Level, Span, Timestamp};

use super::forecast::{Traffic, breach_in};
use super::window::{Tally, Window};
use super::{Board, Standing};
use crate::caller::{Answered, Caller, Unanswered};
use crate::front::connection::wall_time;
use crate::stop::Stop;

/// How often the engine is read.
const EVERY: Duration = Duration::from_secs(5);
/// Entities asked for at once.
const PAGE: usize = 100;
/// Classes that are followed; those of later entities are not, and the log says so once.
const CLASSES_MAX: usize = 20_000;
/// The span over which rates are taken for the forecast.
const RATE_OVER: Span = Span::minutes(1);

/// What is remembered of a class.
#[derive(Debug)]
struct Followed {
    target: Span,
    hour: Window<60>,
    day: Window<96>,
}

impl Followed {
    fn new(target: Span) -> Followed {
        Followed { target, hour: Window::new(Span::minutes(1)), day: Window::new(Span::minutes(15)) }
    }
}

/// Works out standings from surveys.
#[derive(Debug, Default)]
pub struct Sampler {
    followed: BTreeMap<(EntityId, Level), Followed>,
    warned: bool,
}

/// Reads the engine until told to stop or the broker is over.
pub async fn run(broker: Broker, caller: Caller, board: Arc<Board>, mut stop: Stop) {
    let mut sampler = Sampler::default();
    loop {
        if sampler.look(&caller, broker.time(wall_time()), &board).await.is_err() {
            return;
        }
        tokio::select! {
            () = stop.requested() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

async fn read(caller: &Caller) -> Result<Vec<EntitySurvey>, Unanswered> {
    let mut entities = Vec::new();
    let mut after: Option<EntityPath> = None;
    loop {
        let question = Question::Survey { after, top: PAGE, detail: Detail::Targets };
        match caller.ask(Operation::Ask(question)).await? {
            Ok(Answered::Answer(Answer::Surveyed(survey))) => {
                entities.extend(survey.entities);
                after = survey.next;
            }
            other => {
                tracing::error!(?other, "the broker gave another answer than asked for");
                return Ok(entities);
            }
        }
        if after.is_none() || entities.len() >= CLASSES_MAX {
            return Ok(entities);
        }
    }
}

impl Sampler {
    /// Reads the engine and puts up how every class stands now.
    pub async fn look(&mut self, caller: &Caller, now: Timestamp, board: &Board) -> Result<(), Unanswered> {
        let entities = read(caller).await?;
        self.sample(now, &entities, board);
        Ok(())
    }

    /// Works out how every class of these entities stands now, and puts it up.
    fn sample(&mut self, now: Timestamp, entities: &[EntitySurvey], board: &Board) {
        let mut standings = BTreeMap::new();
        for entity in entities {
            for level in &entity.main.levels {
                let (Some(target), Some(class)) = (level.target_wait, &level.class) else { continue };
                let key = (entity.description.id, level.level);
                if standings.len() >= CLASSES_MAX {
                    self.warn();
                    break;
                }
                let path = entity.description.path.to_string().into();
                let known = Standing::unknown(path, class.as_str().into(), level.level, target);
                let followed = self.followed.entry(key).or_insert_with(|| Followed::new(target));
                if followed.target != target {
                    // What met another target says nothing about this one.
                    *followed = Followed::new(target);
                }
                let standing = followed.stand(now, entity, level, known);
                standings.insert(key, Arc::new(standing));
            }
        }
        self.followed.retain(|key, _| standings.contains_key(key));
        board.put_up(standings);
    }

    fn warn(&mut self) {
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(
                classes = CLASSES_MAX,
                "too many classes have a target: the last are not followed"
            );
        }
    }
}

impl Followed {
    fn stand(
        &mut self,
        now: Timestamp,
        entity: &EntitySurvey,
        level: &LevelSurvey,
        known: Standing,
    ) -> Standing {
        let series = level.series.as_deref();
        let tally = series
            .map(|series| Tally { met: series.in_target, missed: series.past_target })
            .unwrap_or_default();
        let lately = series.map(|series| {
            let (met, _) = series.in_target_rate.within(now, Span::minutes(5));
            let (missed, _) = series.past_target_rate.within(now, Span::minutes(5));
            Tally { met, missed }
        });
        Standing {
            attainment_5m: lately.and_then(Tally::ratio),
            attainment_1h: self.hour.look(now, tally).ratio(),
            attainment_24h: self.day.look(now, tally).ratio(),
            breach_in: breach_in(self.target, &traffic(now, entity, level)),
            ..known
        }
        .judged()
    }
}

/// What decides about the wait of a level: under the strict policy higher levels go first and lower ones
/// do not matter; under the others everybody counts.
fn traffic(now: Timestamp, entity: &EntitySurvey, own: &LevelSurvey) -> Traffic {
    let strict = entity.description.outlet().is_some_and(|outlet| outlet.priority.policy == Policy::Strict);
    let rate = |of: fn(&Series) -> &vorrang_engine::observe::Rate, level: &LevelSurvey| {
        level.series.as_deref().map_or(0, |series| of(series).per_kilosecond(now, RATE_OVER))
    };
    let mut traffic = Traffic { oldest: own.oldest.map(|since| now.since(since)), ..Traffic::default() };
    for level in &entity.main.levels {
        let deliveries = rate(|series| &series.delivery_rate, level);
        traffic.deliveries_per_kilosecond = traffic.deliveries_per_kilosecond.saturating_add(deliveries);
        if !strict || level.level >= own.level {
            let arrivals = rate(|series| &series.arrival_rate, level);
            traffic.ahead = traffic.ahead.saturating_add(level.counts.ready);
            traffic.arrivals_per_kilosecond = traffic.arrivals_per_kilosecond.saturating_add(arrivals);
        }
    }
    traffic
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::Health;
    use crate::trial::{Trial, class};
    use vorrang_engine::entity::Setting;

    async fn look(trial: &Trial, sampler: &mut Sampler, board: &Board) -> Arc<Standing> {
        sampler.look(&trial.operator, trial.now(), board).await.unwrap();
        Arc::clone(board.all().values().next().expect("one class has a target"))
    }

    #[tokio::test]
    async fn a_class_is_followed_from_calm_through_late_deliveries_and_back() {
        let trial = Trial::new();
        let settings = vec![Setting::Classes(vec![class("gold", 100, Span::seconds(10))])];
        let (orders, mailbox) = trial.queue("orders", settings).await;
        trial.queue("plain", vec![]).await;
        let (mut sampler, board) = (Sampler::default(), Board::default());

        let calm = look(&trial, &mut sampler, &board).await;
        assert_eq!((&*calm.entity, &*calm.class, calm.health), ("orders", "gold", Health::Ok));
        assert_eq!((calm.attainment_5m, calm.burn_rate, calm.breach_in), (None, None, None));

        trial.send(orders, 100).await;
        trial.advance(Span::seconds(4));
        let waiting = look(&trial, &mut sampler, &board).await;
        assert_eq!((waiting.breach_in, waiting.health), (Some(Span::seconds(6)), Health::AtRisk));
        trial.complete_one(mailbox).await;
        let met = look(&trial, &mut sampler, &board).await;
        assert_eq!((met.attainment_5m, met.attainment_1h, met.health), (Some(1.0), Some(1.0), Health::Ok));

        trial.send(orders, 100).await;
        trial.advance(Span::seconds(11));
        assert_eq!(look(&trial, &mut sampler, &board).await.health, Health::Breached, "it is late already");
        trial.complete_one(mailbox).await;
        let missed = look(&trial, &mut sampler, &board).await;
        assert_eq!((missed.attainment_5m, missed.health), (Some(0.5), Health::Breached));
        assert!((missed.burn_rate.unwrap() - 50.0).abs() < 1e-6);

        trial.advance(Span::minutes(6));
        let after = look(&trial, &mut sampler, &board).await;
        assert_eq!(
            (after.attainment_5m, after.attainment_1h, after.health),
            (None, Some(0.5), Health::AtRisk)
        );
        trial.advance(Span::minutes(61));
        let later = look(&trial, &mut sampler, &board).await;
        assert_eq!((later.attainment_1h, later.attainment_24h, later.health), (None, Some(0.5), Health::Ok));
        trial.advance(Span::minutes(25 * 60));
        assert_eq!(look(&trial, &mut sampler, &board).await.attainment_24h, None, "yesterday is forgotten");
    }

    #[tokio::test]
    async fn another_target_begins_anew_and_a_deleted_entity_is_forgotten() {
        let trial = Trial::new();
        let target = |seconds| Setting::Classes(vec![class("gold", 100, Span::seconds(seconds))]);
        let (orders, mailbox) = trial.queue("orders", vec![target(10)]).await;
        let (mut sampler, board) = (Sampler::default(), Board::default());
        look(&trial, &mut sampler, &board).await;
        trial.send(orders, 100).await;
        trial.complete_one(mailbox).await;
        assert_eq!(look(&trial, &mut sampler, &board).await.attainment_1h, Some(1.0));
        let path = EntityPath::parse("orders").unwrap();
        let settings = vec![target(20)];
        let update = vorrang_engine::entity::Request::Update { path: path.clone(), settings };
        trial.ask(Operation::Administer(Box::new(update))).await;
        assert_eq!(look(&trial, &mut sampler, &board).await.attainment_1h, None);
        let delete = vorrang_engine::entity::Request::Delete { path };
        trial.ask(Operation::Administer(Box::new(delete))).await;
        sampler.look(&trial.operator, trial.now(), &board).await.unwrap();
        assert!(board.all().is_empty() && sampler.followed.is_empty());
    }
}
