//! One message's way through its handler to its settlement.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;
use tokio::time::Instant;
use vorrang_client::{Error, Settler};

use super::gauge::Backlog;
use crate::context::Context;
use crate::gate::Gated;
use crate::handler::Handler;
use crate::outcome::Outcome;
use crate::plan::settlement::{Settlement, Verdict};
use crate::plan::slots::TaskId;

/// What the pump is told.
#[derive(Debug)]
pub(super) enum Event {
    /// A handler has ended. Its settlement is on its way, or, if it is `complete`, left to the pump, which completes
    /// many at once.
    Ended { id: TaskId, verdict: Verdict, panicked: bool, took: Duration, complete: bool },
    /// A settlement was answered: nothing is held any more.
    Settled { id: TaskId, settled: Settled },
    /// A request that completed many messages of one link was answered.
    Completed { link: usize, outcomes: Vec<(TaskId, Result<(), Error>)> },
    /// A renewal was answered.
    Renewed { id: TaskId, result: Result<SystemTime, Error> },
    /// The backlog was looked at.
    Measured { backlog: Option<Backlog> },
}

/// What became of a message.
#[derive(Debug)]
pub(crate) enum Settled {
    Completed,
    Retried,
    DeadLettered,
    Suspended,
    GivenBack,
    /// Deferred, or settled by the handler.
    Otherwise,
    /// The broker did not do it: the message will come again when its lock ends.
    Refused(Error),
}

/// A message to be handled or given back.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) id: TaskId,
    pub(super) context: Context,
    pub(super) events: mpsc::UnboundedSender<Event>,
}

impl Job {
    /// Runs the handler, and settles the message unless that is left to the pump.
    pub(super) async fn run<H: Handler>(self, handler: Arc<H>) {
        let started = Instant::now();
        let Job { id, context, events } = self;
        // A handler that panics before it returns its future has panicked, too.
        let work = pin!(async { handler.handle(context.clone(), context.message().clone()).await });
        let (outcome, panicked) = match Gated::new(context.gate(), work).await {
            Ok(outcome) => (outcome, false),
            Err(panic) => (Outcome::Failed(format!("the handler panicked: {}", panic.0)), true),
        };
        let (settlement, verdict) = context.settlement(outcome);
        // The pump may have ended; then nobody counts.
        let complete = settlement == Settlement::Complete && context.claim_settlement();
        let _ = events.send(Event::Ended { id, verdict, panicked, took: started.elapsed(), complete });
        if !complete {
            let settled = settle(&context, settlement).await;
            let _ = events.send(Event::Settled { id, settled });
        }
    }

    /// Completes many messages of one link with one request.
    pub(super) fn complete_all(
        link: usize,
        settler: Settler,
        completing: Vec<(TaskId, Context)>,
        events: mpsc::UnboundedSender<Event>,
    ) {
        tokio::spawn(async move {
            let messages = completing.iter().map(|(_, context)| context.message());
            let outcomes = settler.complete_all(messages).await;
            let outcomes = completing.into_iter().map(|(id, _)| id).zip(outcomes).collect();
            // As above.
            let _ = events.send(Event::Completed { link, outcomes });
        });
    }

    /// Gives the message back without having tried.
    pub(super) fn give_back(self) {
        tokio::spawn(async move {
            let settled = match settle(&self.context, Settlement::Suspend(None)).await {
                Settled::Suspended => Settled::GivenBack,
                other => other,
            };
            // As above.
            let _ = self.events.send(Event::Settled { id: self.id, settled });
        });
    }
}

/// Tells the broker what becomes of a message, unless that has been done.
pub(super) async fn settle(context: &Context, settlement: Settlement) -> Settled {
    if settlement == Settlement::None || !context.claim_settlement() {
        return Settled::Otherwise;
    }
    let settled = match &settlement {
        Settlement::Complete => Settled::Completed,
        Settlement::Abandon { .. } => Settled::Retried,
        Settlement::DeadLetter { .. } => Settled::DeadLettered,
        Settlement::Suspend(_) => Settled::Suspended,
        Settlement::Defer | Settlement::None => Settled::Otherwise,
    };
    match context.settle_as(settlement).await {
        Ok(()) => settled,
        Err(error) => Settled::Refused(error),
    }
}
