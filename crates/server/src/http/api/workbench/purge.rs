//! Deletes waiting messages without delivering them.

use std::sync::Arc;

use axum::response::Response;
use tokio::time::sleep;
use vorrang_broker::api::{Operation, Purpose};
use vorrang_engine::command::Selection;
use vorrang_engine::entity::EntityPath;
use vorrang_engine::{MailboxId, Reply, Sequence, Timestamp};

use super::progress::{self, DISK_PAUSE, DISK_TRIES_MAX, Work, note_failure};
use super::replay::look;
use super::selection::{self, Chosen};
use crate::front::connection::wall_time;
use crate::http::api::asker::Asker;
use crate::http::api::call::{BODY_BYTES_MAX, Call};
use crate::http::api::complaint::Complaints;
use crate::http::api::failure::Failure;
use crate::http::api::model::{PurgeRequest, WorkReport};
use crate::http::fault::Fault;

/// Messages deleted or counted in one step.
const STEP: u32 = 1_000;

/// Deletes messages of a mailbox.
pub(crate) async fn purge(mut call: Call) -> Result<Response, Failure> {
    let path = call.mailbox()?;
    let given: PurgeRequest = call.json(BODY_BYTES_MAX).await?;
    let mut complaints = Complaints::default();
    let chosen = selection::read(&given.select, &mut complaints);
    complaints.finish(())?;
    let Some(chosen) = chosen else { return Err(Failure::malformed("the request cannot be read")) };
    let asker = call.asker()?;
    let mailbox = asker.find(&path, Purpose::Receive).await?.mailbox;
    let work = Purge {
        asker,
        path,
        mailbox,
        chosen,
        left: given.max.unwrap_or(u64::MAX),
        dry_run: given.dry_run,
        cursor: Sequence(0),
        tries: 0,
        began: call.site.broker.time(wall_time()),
        report: WorkReport::default(),
    };
    Ok(progress::answer(work, call.site.stop.clone()))
}

/// A purge under way.
struct Purge {
    asker: Asker,
    path: EntityPath,
    mailbox: MailboxId,
    chosen: Chosen,
    left: u64,
    dry_run: bool,
    cursor: Sequence,
    /// How often nothing was found because it lies on disk.
    tries: u32,
    /// What comes later stays.
    began: Timestamp,
    report: WorkReport,
}

impl Work for Purge {
    async fn step(&mut self) -> Result<bool, Failure> {
        if self.left == 0 {
            return Ok(true);
        }
        if self.dry_run {
            return self.count().await;
        }
        let max = u32::try_from(self.left).unwrap_or(STEP).min(STEP);
        let selection = match &self.chosen {
            Chosen::Matching(filter) => Selection::Filter { filter: Arc::clone(filter), from: self.cursor },
            Chosen::Numbers(numbers) => Selection::Sequences(numbers.iter().copied().collect()),
        };
        let operation =
            Operation::DeleteMessages { mailbox: self.mailbox, selection, before: self.began, max };
        let (count, next) = match self.asker.perform(operation, &self.path.to_string()).await? {
            Reply::Deleted { count, next } => (count, next),
            other => return Err(Fault::unexpected(&other).into()),
        };
        self.report.count = self.report.count.saturating_add(u64::from(count));
        self.report.looked_at = self.report.looked_at.max(self.report.count);
        self.left = self.left.saturating_sub(u64::from(count));
        if let Chosen::Numbers(numbers) = &self.chosen {
            let missing = u64::try_from(numbers.len()).unwrap_or(u64::MAX).saturating_sub(u64::from(count));
            if missing > 0 {
                let first = numbers.front().map_or(0, |number| number.0);
                note_failure(&mut self.report, first, "some are locked by a receiver, or not here");
                self.report.failed = missing;
            }
            return Ok(true);
        }
        self.go_on(count, next).await
    }

    fn report(&mut self) -> &mut WorkReport {
        &mut self.report
    }
}

impl Purge {
    /// Moves on to `next`. If nothing was found there because it lies on disk, the disk gets a moment.
    async fn go_on(&mut self, count: u32, next: Option<Sequence>) -> Result<bool, Failure> {
        let Some(next) = next else { return Ok(true) };
        if count == 0 && next <= self.cursor {
            self.tries = self.tries.saturating_add(1);
            if self.tries > DISK_TRIES_MAX {
                return Err(Failure::malformed("messages on disk did not come in time; ask again"));
            }
            sleep(DISK_PAUSE).await;
        } else {
            self.tries = 0;
        }
        self.cursor = next;
        Ok(false)
    }

    /// Counts what would be deleted.
    async fn count(&mut self) -> Result<bool, Failure> {
        let max = usize::try_from(STEP).unwrap_or(usize::MAX);
        let filter = match &self.chosen {
            Chosen::Matching(filter) => Arc::clone(filter),
            Chosen::Numbers(numbers) => {
                let mut found = 0_u64;
                for number in numbers {
                    let peeked = look(&self.asker, &self.path, self.mailbox, *number, 1, None).await?;
                    if peeked.messages.iter().any(|delivery| delivery.sequence == *number) {
                        found = found.saturating_add(1);
                    }
                }
                (self.report.count, self.report.looked_at) = (found.min(self.left), found);
                return Ok(true);
            }
        };
        let peeked = look(&self.asker, &self.path, self.mailbox, self.cursor, max, Some(filter)).await?;
        let old = peeked.messages.iter().filter(|delivery| delivery.enqueued < self.began).count();
        let count = u64::try_from(old).unwrap_or(u64::MAX).min(self.left);
        self.report.count = self.report.count.saturating_add(count);
        self.report.looked_at = self.report.count;
        self.left = self.left.saturating_sub(count);
        self.cursor = peeked.next.unwrap_or(self.cursor);
        Ok(peeked.next.is_none())
    }
}
