//! Answers to questions: read from the engine, changing nothing.

use super::payload::Source;
use super::peer::PeerId;
use crate::api::{Answer, Question, Refused};
use std::sync::Arc;
use vorrang_engine::browse::Peek;
use vorrang_engine::entity::{Entity, EntityPath, Kind};
use vorrang_engine::{State, Timestamp};

/// Entities listed in one answer; more are cut.
const ENTITIES_MAX: usize = 1_000;

/// Answers a question that was permitted to `peer`.
pub(super) fn answer(
    state: &State,
    source: &Source<'_>,
    (now, peer): (Timestamp, PeerId),
    question: Question,
) -> Result<Answer, Refused> {
    let catalogue = state.catalogue();
    let list = |kind: fn(&Kind) -> bool, skip: usize, top: usize| {
        let entities = catalogue.entities().filter(|entity| kind(&entity.kind));
        Answer::Entities(page(entities, skip, top))
    };
    match question {
        Question::Entity { path } | Question::Rules { subscription: path } => {
            find(state, &path).map(|entity| Answer::Entities(vec![entity]))
        }
        Question::Queues { skip, top } => Ok(list(|kind| matches!(kind, Kind::Queue(_)), skip, top)),
        Question::Topics { skip, top } => Ok(list(|kind| matches!(kind, Kind::Topic(_)), skip, top)),
        Question::Subscriptions { topic, skip, top } => {
            let topic = find(state, &topic)?;
            Ok(Answer::Entities(page(catalogue.subscriptions(topic.id), skip, top)))
        }
        Question::Peek { mailbox, from, max, session } => {
            let peek = Peek { from, session: session.as_ref(), ..Peek::new(mailbox, max) };
            Ok(Answer::Peeked(state.peek(&peek, source)?))
        }
        Question::SessionState { mailbox, session, link } => {
            Ok(Answer::SessionState(state.session_state(now, mailbox, &session, peer.receiver(link))?))
        }
        Question::Sessions { mailbox, updated_after, after, skip, top } => {
            Ok(Answer::Sessions(state.list_sessions(mailbox, updated_after, after.as_ref(), skip, top)?))
        }
    }
}

fn find(state: &State, path: &EntityPath) -> Result<Arc<Entity>, Refused> {
    let found = state.catalogue().find(path).map(|entity| Arc::new(entity.clone()));
    found.ok_or_else(|| Refused::NotFound { path: path.to_string().into() })
}

fn page<'a>(entities: impl Iterator<Item = &'a Entity>, skip: usize, top: usize) -> Vec<Arc<Entity>> {
    entities.skip(skip).take(top.min(ENTITIES_MAX)).map(|entity| Arc::new(entity.clone())).collect()
}
