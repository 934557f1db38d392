//! Questions to the broker with the answers they have, as whoever sent the request.

use std::sync::Arc;

use vorrang_broker::api::{Answer, Develop, Found, Listed, Operation, Purpose, Question, Refused};
use vorrang_broker::shard::Body;
use vorrang_engine::entity::{self, Entity, EntityPath};
use vorrang_engine::{Delivery, EntityId, Reply};

use super::failure::Failure;
use crate::caller::{Answered, Caller};
use crate::http::Site;
use crate::http::fault::Fault;

/// Asks the broker for one request.
#[derive(Debug)]
pub(super) struct Asker {
    caller: Caller,
    site: Arc<Site>,
}

impl Asker {
    pub(super) fn new(caller: Caller, site: Arc<Site>) -> Asker {
        Asker { caller, site }
    }

    /// Asks; `path` is what the request is about, as its sender knows it.
    async fn ask(&self, operation: Operation, path: &str) -> Result<Answered, Failure> {
        self.caller.ask(operation).await?.map_err(|refused: Refused| Failure::refused(&refused, path))
    }

    /// Asks for something to be done.
    pub(super) async fn perform(&self, operation: Operation, path: &str) -> Result<Reply, Failure> {
        match self.ask(operation, path).await? {
            Answered::Reply(reply) => Ok(reply),
            Answered::Answer(other) => Err(Fault::unexpected(&other).into()),
        }
    }

    /// Does what only developers do; none if there is no more to say than that it is done.
    pub(super) async fn develop(&self, develop: Develop) -> Result<Option<Answer>, Failure> {
        match self.ask(Operation::Develop(develop), "").await? {
            Answered::Answer(answer) => Ok(Some(answer)),
            Answered::Reply(_) => Ok(None),
        }
    }

    /// Asks something that changes nothing.
    pub(super) async fn question(&self, question: Question, path: &str) -> Result<Answer, Failure> {
        match self.ask(Operation::Ask(question), path).await? {
            Answered::Answer(answer) => Ok(answer),
            Answered::Reply(other) => Err(Fault::unexpected(&other).into()),
        }
    }

    /// Entities of a list.
    pub(super) async fn listed(&self, question: Question, path: &str) -> Result<Vec<Listed>, Failure> {
        match self.question(question, path).await? {
            Answer::Listed(entities) => Ok(entities),
            other => Err(Fault::unexpected(&other).into()),
        }
    }

    /// One entity as administrators see it.
    pub(super) async fn entity(&self, path: &EntityPath) -> Result<Listed, Failure> {
        let shown = path.to_string();
        let found = self.listed(Question::Entity { path: path.clone() }, &shown).await?;
        found.into_iter().next().ok_or_else(|| Fault::not_found(&shown).into())
    }

    /// A subscription for those who may receive from it.
    pub(super) async fn subscription(&self, path: &EntityPath) -> Result<Arc<Entity>, Failure> {
        let shown = path.to_string();
        match self.question(Question::Rules { subscription: path.clone() }, &shown).await? {
            Answer::Subscription(entity) => Ok(entity),
            other => Err(Fault::unexpected(&other).into()),
        }
    }

    /// Creates, changes or deletes something.
    pub(super) async fn administer(&self, request: entity::Request, path: &str) -> Result<EntityId, Failure> {
        match self.perform(Operation::Administer(Box::new(request)), path).await? {
            Reply::Administered { entity } => Ok(entity),
            other => Err(Fault::unexpected(&other).into()),
        }
    }

    /// Looks an entity or mailbox up by its path.
    pub(super) async fn find(&self, path: &EntityPath, purpose: Purpose) -> Result<Found, Failure> {
        let shown = path.to_string();
        let find = Operation::Find { path: path.clone(), purpose };
        match self.ask(find, &shown).await? {
            Answered::Answer(Answer::Found(found)) => Ok(found),
            other => Err(Fault::unexpected(&other).into()),
        }
    }

    /// The stored bytes of messages, read where waiting for the disk holds nobody up. One that cannot be
    /// read, because it was removed meanwhile, has none.
    pub(super) async fn payloads(&self, messages: Vec<Delivery>) -> Vec<(Delivery, Option<Body>)> {
        let reader = self.site.broker.payloads().clone();
        let read = move || {
            let body = |delivery: &Delivery| reader.read(delivery.location, delivery.size).ok();
            messages
                .into_iter()
                .map(|delivery| (body(&delivery), delivery))
                .map(|(body, delivery)| (delivery, body))
                .collect()
        };
        tokio::task::spawn_blocking(read).await.unwrap_or_default()
    }
}
