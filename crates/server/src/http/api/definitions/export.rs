//! Everything as one file, without messages and keys.

use axum::response::Response;
use vorrang_engine::entity::Entity;

use super::namespace::Namespace;
use crate::http::api::call::{Call, ok};
use crate::http::api::failure::Failure;
use crate::http::api::model::{Definitions, Properties, TopicDefinition};
use crate::http::api::translation::properties;

/// Tells of every definition.
pub(crate) async fn export(call: Call) -> Result<Response, Failure> {
    let namespace = Namespace::read(&call.asker()?).await?;
    let queues = namespace.queues.iter().map(|(name, queue)| (name.to_string(), properties::shown(queue)));
    let topics = namespace.topics.iter().map(|(name, topic)| {
        let subscriptions = topic.subscriptions.iter();
        let definition = TopicDefinition {
            properties: properties::shown(&topic.entity),
            subscriptions: subscriptions.map(|(name, found)| (name.to_string(), with_rules(found))).collect(),
        };
        (name.to_string(), definition)
    });
    ok(&Definitions { queues: queues.collect(), topics: topics.collect() })
}

fn with_rules(entity: &Entity) -> Properties {
    let rules = entity.subscription().map(properties::rules_shown);
    Properties { rules, ..properties::shown(entity) }
}
