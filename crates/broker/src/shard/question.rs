//! Answers to questions: read from the engine, changing nothing.

use super::payload::Source;
use super::peer::PeerId;
use crate::api::{Answer, Condition, Listed, Only, Question, Refused};
use std::sync::Arc;
use vorrang_engine::browse::Peek;
use vorrang_engine::entity::{Entity, EntityPath, Kind, SubQueue};
use vorrang_engine::survey::{Page, Survey};
use vorrang_engine::{MailboxId, State, Timestamp};

/// Entities listed in one answer; more are cut.
const ENTITIES_MAX: usize = 1_000;

/// Answers a question that was permitted to `peer`.
pub(super) fn answer(
    state: &State,
    source: &Source<'_>,
    (now, peer): (Timestamp, PeerId),
    condition: impl FnOnce() -> Condition,
    question: Question,
) -> Result<Answer, Refused> {
    let catalogue = state.catalogue();
    let list = |kind: fn(&Kind) -> bool, skip: usize, top: usize| {
        let entities = catalogue.entities().filter(|entity| kind(&entity.kind));
        Answer::Listed(page(state, entities, skip, top))
    };
    match question {
        Question::Namespace => Ok(Answer::Namespace { entities: catalogue.len() }),
        Question::Entity { path } => Ok(Answer::Listed(vec![listed(state, find(state, &path)?)])),
        Question::Rules { subscription } | Question::RuleDescriptions { subscription, .. } => {
            Ok(Answer::Subscription(Arc::new(find(state, &subscription)?.clone())))
        }
        Question::Queues { skip, top } => Ok(list(|kind| matches!(kind, Kind::Queue(_)), skip, top)),
        Question::Topics { skip, top } => Ok(list(|kind| matches!(kind, Kind::Topic(_)), skip, top)),
        Question::Subscriptions { topic, skip, top } => {
            let topic = find(state, &topic)?;
            Ok(Answer::Listed(page(state, catalogue.subscriptions(topic.id), skip, top)))
        }
        Question::Peek { mailbox, from, max, session, only } => {
            let Only { state: wanted, level, filter } = only;
            let (session, filter) = (session.as_ref(), filter.as_deref());
            let peek = Peek { mailbox, from, max, session, state: wanted, level, filter };
            Ok(Answer::Peeked(state.peek(&peek, source)?))
        }
        Question::Explain { mailbox, sequence } => {
            Ok(Answer::Explained(Box::new(state.explain(now, mailbox, sequence, source)?)))
        }
        Question::SurveyEntity { path, detail } => {
            let entity = catalogue.find(&path).and_then(|entity| catalogue.shared(entity.id));
            let entity = entity.ok_or_else(|| Refused::NotFound { path: path.to_string().into() })?;
            let entities = vec![state.survey_entity(entity, detail)];
            Ok(Answer::Surveyed(Survey { entities, next: None }))
        }
        Question::Survey { after, top, detail } => {
            let page = Page { after: after.as_ref(), top: top.min(ENTITIES_MAX), detail };
            Ok(Answer::Surveyed(state.survey(page)))
        }
        Question::Condition => Ok(Answer::Condition(Box::new(condition()))),
        Question::SessionState { mailbox, session, link } => {
            Ok(Answer::SessionState(state.session_state(now, mailbox, &session, peer.receiver(link))?))
        }
        Question::Sessions { mailbox, updated_after, after, skip, top } => {
            Ok(Answer::Sessions(state.list_sessions(mailbox, updated_after, after.as_ref(), skip, top)?))
        }
    }
}

fn find<'a>(state: &'a State, path: &EntityPath) -> Result<&'a Entity, Refused> {
    let found = state.catalogue().find(path);
    found.ok_or_else(|| Refused::NotFound { path: path.to_string().into() })
}

fn page<'a>(
    state: &State,
    entities: impl Iterator<Item = &'a Entity>,
    skip: usize,
    top: usize,
) -> Vec<Listed> {
    entities.skip(skip).take(top.min(ENTITIES_MAX)).map(|entity| listed(state, entity)).collect()
}

fn listed(state: &State, entity: &Entity) -> Listed {
    let counts = |part| state.counts(MailboxId::new(entity.id, part));
    Listed {
        entity: Arc::new(entity.clone()),
        accessed: state.catalogue().idle().accessed(entity.id).unwrap_or(entity.created),
        size: state.size(entity.id),
        main: counts(SubQueue::Main),
        dead_letter: counts(SubQueue::DeadLetter),
        transfer_dead_letter: counts(SubQueue::TransferDeadLetter),
        receivers: state.receiver_count(MailboxId::main(entity.id)),
    }
}
