//! Dead letters by why they are there.

use std::collections::BTreeMap;

use axum::response::Response;
use vorrang_broker::api::Purpose;
use vorrang_engine::message::{PropertyChange, PropertyValue};
use vorrang_engine::{Delivery, Overlay, Sequence, Timestamp};
use vorrang_filter::Value;

use super::replay::look;
use crate::date;
use crate::http::api::call::{Call, ok};
use crate::http::api::failure::Failure;
use crate::http::api::model::{Group, Groups};

/// Messages looked at in one go.
const STEP: usize = 5_000;
/// Messages looked at for one answer, which says so if there are more.
const LOOK_MAX: u64 = 200_000;
/// Reasons told; messages with others are counted as looked at, and the answer says so.
const GROUPS_MAX: usize = 200;
/// Numbers told of each group.
const EXAMPLES_MAX: usize = 5;

/// Groups the messages of a mailbox by the reason they were dead-lettered for.
pub(crate) async fn groups(call: Call) -> Result<Response, Failure> {
    let path = call.mailbox()?;
    let asker = call.asker()?;
    let mailbox = asker.find(&path, Purpose::Receive).await?.mailbox;
    let mut grouping = Grouping::default();
    let mut cursor = Sequence(0);
    loop {
        let peeked = look(&asker, &path, mailbox, cursor, STEP, None).await?;
        for delivery in &peeked.messages {
            grouping.add(delivery);
        }
        let Some(next) = peeked.next else { break };
        if grouping.looked_at >= LOOK_MAX {
            grouping.incomplete = true;
            break;
        }
        cursor = next;
    }
    ok(&grouping.finish())
}

#[derive(Debug, Default)]
struct Grouping {
    found: BTreeMap<Option<String>, Found>,
    looked_at: u64,
    incomplete: bool,
}

#[derive(Debug)]
struct Found {
    description: Option<String>,
    count: u64,
    oldest: Timestamp,
    newest: Timestamp,
    examples: Vec<u64>,
}

impl Grouping {
    fn add(&mut self, delivery: &Delivery) {
        self.looked_at = self.looked_at.saturating_add(1);
        let reason = told(delivery, Overlay::REASON);
        if self.found.len() >= GROUPS_MAX && !self.found.contains_key(&reason) {
            self.incomplete = true;
            return;
        }
        let found = self.found.entry(reason).or_insert_with(|| Found {
            description: told(delivery, Overlay::DESCRIPTION),
            count: 0,
            oldest: delivery.enqueued,
            newest: delivery.enqueued,
            examples: Vec::new(),
        });
        found.count = found.count.saturating_add(1);
        found.oldest = found.oldest.min(delivery.enqueued);
        found.newest = found.newest.max(delivery.enqueued);
        if found.examples.len() < EXAMPLES_MAX {
            found.examples.push(delivery.sequence.0);
        }
    }

    fn finish(self) -> Groups {
        let group = |(reason, found): (Option<String>, Found)| Group {
            reason,
            description: found.description,
            count: found.count,
            oldest_enqueued_at: date::rfc3339(found.oldest),
            newest_enqueued_at: date::rfc3339(found.newest),
            examples: found.examples,
        };
        let mut groups: Vec<Group> = self.found.into_iter().map(group).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        Groups { groups, looked_at: self.looked_at, incomplete: self.incomplete }
    }
}

/// What was written on a message when it was dead-lettered.
fn told(delivery: &Delivery, name: &str) -> Option<String> {
    match delivery.overlay.as_ref()?.properties.get(name)? {
        PropertyChange::Set(PropertyValue::Typed(Value::String(text))) => Some(text.to_string()),
        _ => None,
    }
}
