//! Sends dead letters again: to the queue or subscription they came from, or elsewhere.

use std::sync::Arc;

use axum::response::Response;
use tokio::time::{Duration, Instant, sleep, sleep_until};
use vorrang_broker::api::{Only, Operation, Purpose, Question};
use vorrang_broker::shard::Body;
use vorrang_engine::entity::{EntityName, EntityPath};
use vorrang_engine::{Delivery, EntityId, MailboxId, Reply, Sequence, Timestamp};
use vorrang_filter::Filter;

use super::progress::{self, DISK_PAUSE, DISK_TRIES_MAX, Work, note_failure};
use super::selection::{self, Chosen};
use crate::front::connection::wall_time;
use crate::http::api::asker::Asker;
use crate::http::api::call::{BODY_BYTES_MAX, Call};
use crate::http::api::complaint::Complaints;
use crate::http::api::failure::Failure;
use crate::http::api::messages;
use crate::http::api::model::{ReplayRequest, WorkReport};
use crate::http::api::translation::message;
use crate::http::api::translation::outgoing::Amendment;
use crate::http::fault::Fault;

/// Messages handled in one step, after which the client hears of it.
const STEP: usize = 50;
/// Bytes of stored messages read in one step.
const STEP_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Sends messages of a mailbox again.
pub(crate) async fn replay(mut call: Call) -> Result<Response, Failure> {
    let path = call.mailbox()?;
    let given: ReplayRequest = call.json(BODY_BYTES_MAX.saturating_mul(8)).await?;
    let mut complaints = Complaints::default();
    let chosen = selection::read(&given.select, &mut complaints);
    let amendment = Amendment::read(given.edit.as_ref(), &mut complaints);
    let to = match given.to.as_deref() {
        None => Some(EntityPath { sub_queue: vorrang_engine::entity::SubQueue::Main, ..path.clone() }),
        Some(name) => complaints.check("to", EntityName::parse(name)).map(EntityPath::of),
    };
    if given.rate_per_second == Some(0) {
        complaints.add("ratePerSecond", "must be 1 or more; leave it out for no limit");
    }
    complaints.finish(())?;
    let (Some(chosen), Some(to)) = (chosen, to) else {
        return Err(Failure::malformed("the request cannot be read"));
    };
    let asker = call.asker()?;
    let mailbox = asker.find(&path, Purpose::Receive).await?.mailbox;
    let target = asker.find(&to, Purpose::Send).await?.entity;
    let work = Replay {
        asker,
        path,
        mailbox,
        to,
        target,
        chosen,
        amendment,
        left: given.max.unwrap_or(u64::MAX),
        pace: given.rate_per_second.map(Pace::new),
        dry_run: given.dry_run,
        cursor: Sequence(0),
        began: call.site.broker.time(wall_time()),
        report: WorkReport::default(),
    };
    Ok(progress::answer(work, call.site.stop.clone()))
}

/// A replay under way.
struct Replay {
    asker: Asker,
    path: EntityPath,
    mailbox: MailboxId,
    to: EntityPath,
    target: EntityId,
    chosen: Chosen,
    amendment: Amendment,
    left: u64,
    pace: Option<Pace>,
    dry_run: bool,
    cursor: Sequence,
    /// What was enqueued later was replayed before and failed again: once is enough.
    began: Timestamp,
    report: WorkReport,
}

impl Work for Replay {
    async fn step(&mut self) -> Result<bool, Failure> {
        if self.left == 0 {
            return Ok(true);
        }
        let (mut messages, mut done) = self.next_messages().await?;
        messages.retain(|delivery| delivery.enqueued < self.began);
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX);
        if messages.len() >= wanted {
            messages.truncate(wanted);
            done = true;
        }
        if self.dry_run {
            let count = u64::try_from(messages.len()).unwrap_or(u64::MAX);
            self.report.count = self.report.count.saturating_add(count);
            self.left = self.left.saturating_sub(count);
            return Ok(done);
        }
        let asker = &self.asker;
        for (delivery, body) in asker.payloads(messages).await {
            if let Some(pace) = &mut self.pace {
                pace.wait().await;
            }
            let sequence = delivery.sequence;
            match send_again(&self.asker, &self.amendment, &delivery, body.as_ref(), (&self.to, self.target))
                .await
            {
                Ok(()) => {
                    self.report.count = self.report.count.saturating_add(1);
                    self.left = self.left.saturating_sub(1);
                }
                Err(failure) if failure.is_unavailable() => return Err(failure),
                Err(failure) => note_failure(&mut self.report, sequence.0, failure.detail()),
            }
        }
        Ok(done)
    }

    fn report(&mut self) -> &mut WorkReport {
        &mut self.report
    }
}

impl Replay {
    /// The next messages that are meant, and whether they are the last.
    async fn next_messages(&mut self) -> Result<(Vec<Delivery>, bool), Failure> {
        match &mut self.chosen {
            Chosen::Matching(filter) => {
                let filter = Arc::clone(filter);
                let peeked =
                    look(&self.asker, &self.path, self.mailbox, self.cursor, STEP, Some(filter)).await?;
                self.report.looked_at =
                    self.report.looked_at.saturating_add(u64::try_from(peeked.messages.len()).unwrap_or(0));
                let mut bytes = 0_u64;
                let mut messages = peeked.messages;
                let mut next = peeked.next;
                let too_many = messages.iter().position(|delivery| {
                    bytes = bytes.saturating_add(u64::from(delivery.size));
                    bytes > STEP_BYTES_MAX
                });
                if let Some(place) =
                    too_many.map(|place| place.max(1)).filter(|place| *place < messages.len())
                {
                    next = messages.get(place).map(|delivery| delivery.sequence);
                    messages.truncate(place);
                }
                self.cursor = next.unwrap_or(self.cursor);
                Ok((messages, next.is_none()))
            }
            Chosen::Numbers(numbers) => {
                let Some(number) = numbers.pop_front() else { return Ok((Vec::new(), true)) };
                let last = numbers.is_empty();
                let peeked = look(&self.asker, &self.path, self.mailbox, number, 1, None).await?;
                self.report.looked_at = self.report.looked_at.saturating_add(1);
                let found: Vec<Delivery> =
                    peeked.messages.into_iter().filter(|delivery| delivery.sequence == number).collect();
                if found.is_empty() {
                    note_failure(&mut self.report, number.0, format!("there is no message {number} here"));
                }
                Ok((found, last))
            }
        }
    }
}

/// Looks at messages of a mailbox.
pub(super) async fn look(
    asker: &Asker,
    path: &EntityPath,
    mailbox: MailboxId,
    from: Sequence,
    max: usize,
    filter: Option<Arc<Filter>>,
) -> Result<vorrang_engine::browse::Peeked, Failure> {
    let filter = filter.filter(|filter| **filter != Filter::True);
    let only = Only { filter, ..Only::default() };
    messages::peek(asker, Question::Peek { mailbox, from, max, session: None, only }, path).await
}

/// Moves one message, in one decision of the broker.
async fn send_again(
    asker: &Asker,
    amendment: &Amendment,
    delivery: &Delivery,
    body: Option<&Body>,
    (to, target): (&EntityPath, EntityId),
) -> Result<(), Failure> {
    let gone = || Failure::not_found("the message is gone, or cannot be read");
    let whole = message::whole(delivery, body.ok_or_else(gone)?).ok_or_else(gone)?;
    let shown = to.to_string();
    for _ in 0..DISK_TRIES_MAX {
        let message = amendment.apply(&whole).map_err(Failure::malformed)?;
        let operation = Operation::Replay {
            mailbox: delivery.mailbox,
            sequence: delivery.sequence,
            to: target,
            message: Box::new(message),
            level: amendment.level(),
        };
        match asker.perform(operation, &shown).await? {
            Reply::Sent { sequences } if !sequences.is_empty() => return Ok(()),
            // It lies on disk, and is being read.
            Reply::Sent { .. } => sleep(DISK_PAUSE).await,
            other => return Err(Fault::unexpected(&other).into()),
        }
    }
    Err(Failure::malformed("the message lies on disk and did not come in time; ask again"))
}

/// At most so many in a second, evenly.
#[derive(Debug)]
struct Pace {
    gap: Duration,
    next: Instant,
}

impl Pace {
    fn new(rate: u32) -> Pace {
        let gap = Duration::from_secs(1).checked_div(rate).unwrap_or_default();
        Pace { gap, next: Instant::now() }
    }

    async fn wait(&mut self) {
        sleep_until(self.next).await;
        self.next = self.next.max(Instant::now()).checked_add(self.gap).unwrap_or(self.next);
    }
}
