//! Which copies of a published message go where.
//!
//! The rules of all of a topic's subscriptions are looked up at once; a rule that the message cannot
//! match is not even asked. For each subscription, in the order of their numbers, the matching rules
//! without an action share one copy, and each matching rule with an action makes one of its own, in the
//! order of the rules' creation. A rule or action that fails on the message makes one copy in the
//! subscription's dead-letter queue, or simply does not match, as the subscription is told to; either
//! way the other rules stand.
//!
//! A copy is the message with changes laid over it. Level, session and time to live are decided here,
//! by the subscription's own settings, for the message as its rule changed it.

use super::catalogue::{Catalogue, RuleKey, Subscription};
use super::level::{self, Determined};
use super::rule::Rule;
use crate::fact::DeadLetterCause;
use crate::id::{EntityId, MailboxId, SessionId};
use crate::level::{Level, LevelOrigin};
use crate::message::{Overlay, PropertyChange, PropertyValue};
use crate::time::Span;
use std::sync::Arc;
use vorrang_filter::{
    Change, Changed, Changes, Environment, FilterError, Match, Message, SystemProperty, Value, name,
};

/// The application property that says which rule a changed copy comes from.
pub const RULE_NAME: &str = "RuleName";

/// Ticks of 100 ns in a millisecond: Service Bus counts time to live in them.
const TICKS_PER_MILLISECOND: u64 = 10_000;

/// A message as it was published.
#[derive(Clone, Copy)]
pub struct Publication<'a> {
    /// The topic.
    pub topic: EntityId,
    /// What filters and actions see.
    pub content: &'a dyn Message,
    /// AMQP's `header.priority`.
    pub priority: Option<u8>,
    /// The level it has already, if it was forwarded here; kept unless a rule says otherwise.
    pub brought: Option<(Level, LevelOrigin)>,
    /// Its session.
    pub session: Option<&'a str>,
    /// How long it lives, capped by the topic's default.
    pub time_to_live: Span,
}

/// One copy, ready to be numbered.
#[derive(Debug, Clone, PartialEq)]
pub struct Copy {
    /// A subscription's main mailbox, or its dead-letter queue.
    pub mailbox: MailboxId,
    /// Its level there, and who decided it.
    pub level: Determined,
    /// Its session, if the subscription has sessions.
    pub session: Option<SessionId>,
    /// How long it lives, capped by the subscription's default.
    pub time_to_live: Span,
    /// What its rule changed, or why it was dead-lettered.
    pub overlay: Option<Arc<Overlay>>,
    /// Why it goes to the dead-letter queue, if it does.
    pub dead_letter: Option<DeadLetterCause>,
}

/// Appends the copies of a published message to `copies`. Nothing is appended if nobody wants it, or
/// if there is no such topic.
pub fn fan_out(
    catalogue: &Catalogue,
    publication: &Publication<'_>,
    environment: &mut Environment<'_>,
    copies: &mut Vec<Copy>,
) {
    let Some(topic) = catalogue.entity(publication.topic).and_then(|entity| entity.topic()) else { return };
    let mut matches: Vec<Match<RuleKey>> = Vec::new();
    topic.index.matches(publication.content, environment, &mut matches);
    let topic_default = topic.description.shared.default_time_to_live;
    for found in matches.chunk_by(|left, right| left.key.0 == right.key.0) {
        let Some((id, _)) = found.first().map(|first| first.key) else { continue };
        let Some(subscription) = catalogue.entity(id).and_then(|entity| entity.subscription()) else {
            continue;
        };
        let mut press =
            Press { id, subscription, publication, topic_default, environment: &mut *environment };
        press.print(found, copies);
    }
}

/// Makes the copies of one subscription.
struct Press<'a, 'e, 'f> {
    id: EntityId,
    subscription: &'a Subscription,
    publication: &'a Publication<'a>,
    topic_default: Span,
    environment: &'e mut Environment<'f>,
}

/// The reason Service Bus gives when a filter failed.
const FILTER_FAILED: &str = "FilterException";
/// The reason Service Bus gives when an action failed.
const ACTION_FAILED: &str = "RuleActionException";
/// The reason a message is dead-lettered for that lacks the session its subscription needs.
const NO_SESSION: &str = "Session id is null.";

impl Press<'_, '_, '_> {
    fn print(&mut self, found: &[Match<RuleKey>], copies: &mut Vec<Copy>) {
        let mut plain = false;
        let mut failure = None;
        let mut with_action = Vec::new();
        for Match { key: (_, rule), outcome } in found {
            let Some(rule) = self.subscription.rules.get(rule) else { continue };
            match (outcome, &rule.description.action) {
                (Err(error), _) => keep_first(&mut failure, FILTER_FAILED, error),
                (Ok(()), None) => plain = true,
                (Ok(()), Some(action)) => match action.apply(self.publication.content, self.environment) {
                    Ok(changes) => with_action.push((rule, changes)),
                    Err(error) => keep_first(&mut failure, ACTION_FAILED, &error),
                },
            }
        }
        if plain {
            copies.push(self.plain_copy());
        }
        for (rule, changes) in &with_action {
            copies.push(self.changed_copy(rule, changes));
        }
        if let Some((reason, description)) = failure
            && self.subscription.description.dead_letter_on_filter_errors
        {
            let overlay = Overlay::dead_letter(Some(reason), Some(&description));
            let copy = self.plain_copy();
            copies.push(self.dead_lettered(&copy, overlay, DeadLetterCause::FilterError));
        }
    }

    fn plain_copy(&mut self) -> Copy {
        let publication = *self.publication;
        self.copy(
            publication.content,
            publication.priority,
            publication.session,
            publication.time_to_live,
            None,
        )
    }

    fn changed_copy(&mut self, rule: &Rule, changes: &Changes) -> Copy {
        let publication = *self.publication;
        let mut overlay = overlay_of(changes);
        put(
            &mut overlay,
            RULE_NAME,
            PropertyChange::Set(PropertyValue::Typed(text(rule.description.name.as_str()))),
        );
        let system = &overlay.system;
        let session = match system.get(&SystemProperty::SessionId) {
            None => publication.session,
            Some(Some(Value::String(session))) => Some(&**session),
            Some(_) => None,
        };
        let time_to_live = match system.get(&SystemProperty::TimeToLive) {
            None => publication.time_to_live,
            Some(Some(Value::Timespan(ticks))) => span_of(*ticks).min(self.topic_default),
            Some(_) => self.topic_default,
        };
        let priority = match system.get(&SystemProperty::Priority) {
            None => publication.priority,
            Some(Some(Value::Int(level))) => u8::try_from(*level).ok(),
            Some(_) => None,
        };
        let set_by_action = matches!(system.get(&SystemProperty::Priority), Some(Some(_)));
        let session = session.map(str::to_owned);
        let changed = Changed::new(publication.content, changes);
        let mut copy = self.copy(&changed, priority, session.as_deref(), time_to_live, Some(overlay));
        // What the subscription's own rule says outright stands before what the message says.
        if let (true, Some(level)) = (set_by_action, priority) {
            copy.level = Determined { level: Level(level), origin: LevelOrigin::Rule, unknown_class: false };
        }
        copy
    }

    /// A copy in the main mailbox, unless it lacks the session it needs there.
    fn copy(
        &mut self,
        content: &dyn Message,
        priority: Option<u8>,
        session: Option<&str>,
        time_to_live: Span,
        overlay: Option<Overlay>,
    ) -> Copy {
        let outlet = &self.subscription.description.outlet;
        let needs_session = outlet.requires_session;
        let copy = Copy {
            mailbox: MailboxId::main(self.id),
            level: match self.publication.brought {
                None => level::determine(&outlet.priority, priority, content, self.environment),
                Some(brought) => level::keep(&outlet.priority, brought, content, self.environment),
            },
            session: session.filter(|_| needs_session).map(SessionId::from),
            time_to_live: time_to_live.min(self.subscription.description.shared.default_time_to_live),
            overlay: overlay.clone().map(Arc::new),
            dead_letter: None,
        };
        if !needs_session || session.is_some() {
            return copy;
        }
        let mut overlay = overlay.unwrap_or_default();
        let reason = Overlay::dead_letter(
            Some(NO_SESSION),
            Some("Session enabled entity doesn't allow a message whose session identifier is null."),
        );
        overlay.properties.extend(reason.properties);
        self.dead_lettered(&copy, overlay, DeadLetterCause::NoSession)
    }

    fn dead_lettered(&self, copy: &Copy, overlay: Overlay, cause: DeadLetterCause) -> Copy {
        Copy {
            mailbox: MailboxId::dead_letter(self.id),
            session: None,
            overlay: Some(Arc::new(overlay)),
            dead_letter: Some(cause),
            ..copy.clone()
        }
    }
}

/// Why a copy that fan-out dead-lettered is where it is: its fact tells in words alone.
pub(crate) fn cause(reason: Option<&str>) -> DeadLetterCause {
    if reason == Some(NO_SESSION) { DeadLetterCause::NoSession } else { DeadLetterCause::FilterError }
}

/// A subscription gets one dead-lettered copy however many rules fail; it tells of the first.
fn keep_first(failure: &mut Option<(&'static str, String)>, reason: &'static str, error: &FilterError) {
    failure.get_or_insert_with(|| (reason, error.to_string()));
}

/// The changes an action made, with one entry for each property: the last.
fn overlay_of(changes: &Changes) -> Overlay {
    let mut overlay = Overlay::default();
    for change in changes {
        match change {
            Change::SetUser { name, value } => {
                put(&mut overlay, name, PropertyChange::Set(PropertyValue::Typed(value.clone())));
            }
            Change::RemoveUser { name } => put(&mut overlay, name, PropertyChange::Removed),
            Change::SetSystem { property, value } => {
                overlay.system.insert(*property, Some(value.clone()));
            }
            Change::RemoveSystem { property } => {
                overlay.system.insert(*property, None);
            }
        }
    }
    overlay
}

/// Names that differ in case only are one property, under the spelling that came first.
fn put(overlay: &mut Overlay, property: &str, change: PropertyChange) {
    let known = overlay.properties.iter_mut().find(|(known, _)| name::same(known, property));
    match known {
        Some((_, known)) => *known = change,
        None => {
            overlay.properties.insert(Arc::from(property), change);
        }
    }
}

fn text(text: &str) -> Value {
    Value::String(text.into())
}

/// A time to live as a rule writes it; one that is over before it begins lives no time at all.
fn span_of(ticks: i64) -> Span {
    match u64::try_from(ticks) {
        Ok(ticks) if ticks >= i64::MAX.unsigned_abs() => Span::FOREVER,
        Ok(ticks) => Span(ticks / TICKS_PER_MILLISECOND),
        Err(_) => Span(0),
    }
}

impl std::fmt::Debug for Publication<'_> {
    /// Everything but the content: properties do not belong in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publication")
            .field("topic", &self.topic)
            .field("priority", &self.priority)
            .field("brought", &self.brought)
            .field("session", &self.session)
            .field("time_to_live", &self.time_to_live)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
