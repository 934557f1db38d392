//! Everything there is, read page by page.

use std::collections::BTreeMap;
use std::sync::Arc;

use vorrang_broker::api::{Listed, Question};
use vorrang_engine::entity::{Entity, EntityName, EntityPath, SubscriptionName};

use crate::http::api::asker::Asker;
use crate::http::api::failure::Failure;

/// Entities asked for at once.
const PAGE: usize = 1_000;

/// The queues and topics there are, with their subscriptions. A page may have changed when the next is
/// read; what is created or deleted meanwhile may be there or not.
#[derive(Debug, Default)]
pub(super) struct Namespace {
    pub(super) queues: BTreeMap<EntityName, Arc<Entity>>,
    pub(super) topics: BTreeMap<EntityName, Topic>,
}

/// A topic with its subscriptions.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) entity: Arc<Entity>,
    pub(super) subscriptions: BTreeMap<SubscriptionName, Arc<Entity>>,
}

impl Namespace {
    pub(super) async fn read(asker: &Asker) -> Result<Namespace, Failure> {
        let mut namespace = Namespace::default();
        for listed in all(asker, |skip, top| Question::Queues { skip, top }).await? {
            namespace.queues.insert(listed.entity.path.name.clone(), listed.entity);
        }
        for listed in all(asker, |skip, top| Question::Topics { skip, top }).await? {
            let name = listed.entity.path.name.clone();
            let topic = EntityPath::of(name.clone());
            let question = |skip, top| Question::Subscriptions { topic: topic.clone(), skip, top };
            let subscriptions = all(asker, question)
                .await?
                .into_iter()
                .filter_map(|listed| Some((listed.entity.path.subscription.clone()?, listed.entity)));
            let subscriptions = subscriptions.collect();
            namespace.topics.insert(name, Topic { entity: listed.entity, subscriptions });
        }
        Ok(namespace)
    }
}

async fn all(asker: &Asker, question: impl Fn(usize, usize) -> Question) -> Result<Vec<Listed>, Failure> {
    let mut found = Vec::new();
    loop {
        let page = asker.listed(question(found.len(), PAGE), "$Resources").await?;
        let last = page.len() < PAGE;
        found.extend(page);
        if last {
            return Ok(found);
        }
    }
}
