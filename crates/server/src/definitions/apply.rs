//! Makes the namespace have what a file defines. Applying a file twice changes nothing.
//!
//! What exists is brought to the settings the file names; what the file does not mention stays, and
//! nothing is ever deleted. Forwarding is set when all entities exist, so that files may refer ahead.

use vorrang_broker::api::{Operation, Refused};
use vorrang_engine::Refusal;
use vorrang_engine::entity::{self, EntityPath, Request, Setting};

use super::{Definitions, SubscriptionDefinition};
use crate::caller::{Caller, Unanswered};

/// Why a definition cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The broker refuses it.
    #[error("{path}: {refused}")]
    Refused {
        /// The entity or rule.
        path: String,
        /// Why.
        refused: Refused,
    },
    /// The broker stopped.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

impl Error {
    /// Whether this is a refusal about entities, and `is` this one.
    fn says(&self, is: impl Fn(&entity::Refusal) -> bool) -> bool {
        match self {
            Error::Refused { refused: Refused::Impossible(Refusal::Entity(refusal)), .. } => is(refusal),
            _ => false,
        }
    }
}

/// Applies everything, or stops at the first thing that is refused.
pub async fn apply(definitions: &Definitions, operator: &Caller) -> Result<(), Error> {
    let mut forwards = Vec::new();
    for queue in &definitions.queues {
        let path = EntityPath::of(queue.name.clone());
        let settings = without_forwards(&path, &queue.settings, &mut forwards);
        let create = Request::CreateQueue { name: queue.name.clone(), settings: settings.clone() };
        ensure(operator, path, create, settings).await?;
    }
    for topic in &definitions.topics {
        let path = EntityPath::of(topic.name.clone());
        let create = Request::CreateTopic { name: topic.name.clone(), settings: topic.settings.clone() };
        ensure(operator, path, create, topic.settings.clone()).await?;
        for subscription in &topic.subscriptions {
            let path = EntityPath::of_subscription(topic.name.clone(), subscription.name.clone());
            let settings = without_forwards(&path, &subscription.settings, &mut forwards);
            let create = Request::CreateSubscription {
                topic: topic.name.clone(),
                name: subscription.name.clone(),
                settings: settings.clone(),
                first_rule: subscription.rules.first().cloned(),
            };
            ensure(operator, path, create, settings).await?;
            ensure_rules(operator, &topic.name, subscription).await?;
        }
    }
    for (path, settings) in forwards {
        administer(operator, &path.to_string(), Request::Update { path, settings }).await?;
    }
    Ok(())
}

/// Creates the entity, or updates it if it exists.
async fn ensure(
    operator: &Caller,
    path: EntityPath,
    create: Request,
    settings: Vec<Setting>,
) -> Result<(), Error> {
    let shown = path.to_string();
    match administer(operator, &shown, create).await {
        Err(error) if error.says(|refusal| matches!(refusal, entity::Refusal::AlreadyExists { .. })) => {
            administer(operator, &shown, Request::Update { path, settings }).await
        }
        other => other,
    }
}

async fn ensure_rules(
    operator: &Caller,
    topic: &entity::EntityName,
    subscription: &SubscriptionDefinition,
) -> Result<(), Error> {
    for rule in &subscription.rules {
        let shown = format!("{topic}/Subscriptions/{}/Rules/{}", subscription.name, rule.name);
        let (topic, subscription) = (topic.clone(), subscription.name.clone());
        let create = Request::CreateRule {
            topic: topic.clone(),
            subscription: subscription.clone(),
            rule: rule.clone(),
        };
        match administer(operator, &shown, create).await {
            Err(error)
                if error.says(|refusal| matches!(refusal, entity::Refusal::RuleAlreadyExists { .. })) =>
            {
                let update = Request::UpdateRule { topic, subscription, rule: rule.clone() };
                administer(operator, &shown, update).await?;
            }
            other => other?,
        }
    }
    Ok(())
}

async fn administer(operator: &Caller, path: &str, request: Request) -> Result<(), Error> {
    match operator.ask(Operation::Administer(Box::new(request))).await? {
        Ok(_) => Ok(()),
        Err(refused) => Err(Error::Refused { path: path.to_owned(), refused }),
    }
}

/// Takes the forward targets out of the settings, to be set when all entities exist.
fn without_forwards(
    path: &EntityPath,
    settings: &[Setting],
    forwards: &mut Vec<(EntityPath, Vec<Setting>)>,
) -> Vec<Setting> {
    let is_forward = |setting: &&Setting| {
        matches!(setting, Setting::ForwardTo(_) | Setting::ForwardDeadLetteredMessagesTo(_))
    };
    let (later, now): (Vec<&Setting>, Vec<&Setting>) = settings.iter().partition(is_forward);
    if !later.is_empty() {
        forwards.push((path.clone(), later.into_iter().cloned().collect()));
    }
    now.into_iter().cloned().collect()
}
