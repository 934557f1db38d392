//! What a queue, topic or subscription is told to be.
//!
//! The three kinds share their properties in parts: every entity has the [`Shared`] ones, what takes
//! messages in has an [`Intake`], what gives them out has an [`Outlet`]. Code that only cares how
//! messages leave takes an `&Outlet` and works for queues and subscriptions alike.
//!
//! A description is built from its defaults by [`Setting`]s and checked as a whole: all problems are
//! reported at once. Some properties of Service Bus have no field because they have one value here:
//! `EnablePartitioning`, `EnableSubscriptionPartitioning`, `EnableExpress` and `IsAnonymousAccessible`
//! are accepted and always reported as false.

use super::authorization::{self, AuthorizationRule};
use super::limits::EntityLimits;
use super::name::EntityName;
use super::priority::PrioritySettings;
use super::setting::{Problem, Property, Setting};
use super::status::Status;
use crate::time::Span;
use std::sync::Arc;

/// What every entity has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// How long messages live that do not say; also the longest they may say.
    pub default_time_to_live: Span,
    /// How long an unused entity is kept.
    pub auto_delete_on_idle: Span,
    /// Whether messages go in and out.
    pub status: Status,
    /// Kept and reported; operations are always batched.
    pub enable_batched_operations: bool,
    /// A note of its creator.
    pub user_metadata: Option<Arc<str>>,
}

/// How a queue or topic takes messages in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intake {
    /// The quota; at it, sends are refused.
    pub max_size_megabytes: u64,
    /// The largest message.
    pub max_message_kilobytes: u64,
    /// Whether a message id is accepted once only within the window.
    pub requires_duplicate_detection: bool,
    /// How long a message id is remembered.
    pub duplicate_window: Span,
    /// Kept and reported.
    pub support_ordering: bool,
    /// Keys that open this entity alone.
    pub authorization_rules: Vec<AuthorizationRule>,
}

/// How a queue or subscription gives messages out.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlet {
    /// How long a lock lasts without renewal.
    pub lock_duration: Span,
    /// Whether messages belong to sessions, each received by one receiver in order.
    pub requires_session: bool,
    /// Whether expired messages are dead-lettered instead of deleted.
    pub dead_letter_on_expiry: bool,
    /// The attempt after which a message is dead-lettered.
    pub max_delivery_count: u32,
    /// Where messages go instead of waiting here.
    pub forward_to: Option<EntityName>,
    /// Where dead-lettered messages go instead of waiting here.
    pub forward_dead_lettered_to: Option<EntityName>,
    /// In which order messages leave.
    pub priority: PrioritySettings,
}

/// A queue: an intake and an outlet with messages between.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueDescription {
    /// What every entity has.
    pub shared: Shared,
    /// How messages come in.
    pub intake: Intake,
    /// How messages leave.
    pub outlet: Outlet,
}

/// A topic: an intake whose messages are copied to subscriptions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicDescription {
    /// What every entity has.
    pub shared: Shared,
    /// How messages come in.
    pub intake: Intake,
    /// Whether a message that no subscription wants is refused instead of dropped.
    pub filtering_before_publishing: bool,
}

/// A subscription: an outlet fed by its topic, through rules.
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionDescription {
    /// What every entity has.
    pub shared: Shared,
    /// How messages leave.
    pub outlet: Outlet,
    /// Whether a message whose filter or action fails is dead-lettered instead of not matching.
    pub dead_letter_on_filter_errors: bool,
}

impl Default for Shared {
    fn default() -> Self {
        Shared {
            default_time_to_live: Span::FOREVER,
            auto_delete_on_idle: Span::FOREVER,
            status: Status::Active,
            enable_batched_operations: true,
            user_metadata: None,
        }
    }
}

impl Default for Intake {
    fn default() -> Self {
        Intake {
            max_size_megabytes: 1_024,
            max_message_kilobytes: 256,
            requires_duplicate_detection: false,
            duplicate_window: Span::minutes(10),
            support_ordering: true,
            authorization_rules: Vec::new(),
        }
    }
}

impl Default for Outlet {
    fn default() -> Self {
        Outlet {
            lock_duration: Span::minutes(1),
            requires_session: false,
            dead_letter_on_expiry: false,
            max_delivery_count: 10,
            forward_to: None,
            forward_dead_lettered_to: None,
            priority: PrioritySettings::default(),
        }
    }
}

impl Default for SubscriptionDescription {
    fn default() -> Self {
        SubscriptionDescription {
            shared: Shared::default(),
            outlet: Outlet::default(),
            dead_letter_on_filter_errors: true,
        }
    }
}

impl Intake {
    /// The quota in bytes.
    #[must_use]
    pub fn size_bytes_max(&self) -> u64 {
        self.max_size_megabytes.saturating_mul(1024 * 1024)
    }

    /// The largest message in bytes.
    #[must_use]
    pub fn message_bytes_max(&self) -> u64 {
        self.max_message_kilobytes.saturating_mul(1024)
    }
}

/// A setting that none of an entity's parts took.
type Untaken<'a> = Option<&'a Setting>;

/// What the three kinds of description have in common as *descriptions*.
pub trait Description: Clone + Default {
    /// Takes a setting, or gives it back if this kind of entity has no such property.
    #[doc(hidden)]
    fn take<'a>(&mut self, setting: &'a Setting) -> Untaken<'a>;

    /// Everything wrong with the description by itself; whether forward targets exist is the
    /// catalogue's to say.
    fn validate(&self, limits: &EntityLimits) -> Vec<Problem>;

    /// Whether the unchangeable properties are the same in both.
    #[doc(hidden)]
    fn unchanged_where_it_must_be(&self, old: &Self) -> Vec<Property>;

    /// A new description: the defaults, changed by `settings`.
    fn create(settings: &[Setting], limits: &EntityLimits) -> Result<Self, Vec<Problem>> {
        Self::default().with(settings, limits)
    }

    /// This description changed by `settings`; properties not mentioned stay as they are.
    ///
    /// An unchangeable property may be mentioned with the value it has, because clients write back
    /// what they have read.
    fn update(&self, settings: &[Setting], limits: &EntityLimits) -> Result<Self, Vec<Problem>> {
        let new = self.with(settings, limits)?;
        let changed = new.unchanged_where_it_must_be(self);
        if changed.is_empty() {
            return Ok(new);
        }
        let refuse = |property| Problem::new(property, "changed", "the value it was created with");
        Err(changed.into_iter().map(refuse).collect())
    }

    /// This description with `settings` taken over and checked.
    #[doc(hidden)]
    fn with(&self, settings: &[Setting], limits: &EntityLimits) -> Result<Self, Vec<Problem>> {
        let mut new = self.clone();
        let mut problems = Vec::new();
        for setting in settings {
            if let Some(untaken) = new.take(setting) {
                problems.push(Problem::new(
                    untaken.property(),
                    "set",
                    "only on kinds of entities that have it",
                ));
            }
        }
        problems.extend(new.validate(limits));
        if problems.is_empty() { Ok(new) } else { Err(problems) }
    }
}

impl Description for QueueDescription {
    fn take<'a>(&mut self, setting: &'a Setting) -> Untaken<'a> {
        let untaken = self.shared.take(setting)?;
        let untaken = self.intake.take(untaken)?;
        self.outlet.take(untaken)
    }

    fn validate(&self, limits: &EntityLimits) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.shared.check(limits, &Status::ALL, &mut problems);
        self.intake.check(limits, &mut problems);
        self.outlet.check(limits, &mut problems);
        problems
    }

    fn unchanged_where_it_must_be(&self, old: &Self) -> Vec<Property> {
        let mut changed = self.intake.fixed_but_changed(&old.intake);
        changed.extend(self.outlet.fixed_but_changed(&old.outlet));
        changed
    }
}

impl Description for TopicDescription {
    fn take<'a>(&mut self, setting: &'a Setting) -> Untaken<'a> {
        let untaken = self.shared.take(setting)?;
        let untaken = self.intake.take(untaken)?;
        match untaken {
            Setting::FilteringMessagesBeforePublishing(value) => self.filtering_before_publishing = *value,
            untaken => return Some(untaken),
        }
        None
    }

    fn validate(&self, limits: &EntityLimits) -> Vec<Problem> {
        let mut problems = Vec::new();
        let statuses = [Status::Active, Status::Disabled, Status::SendDisabled];
        self.shared.check(limits, &statuses, &mut problems);
        self.intake.check(limits, &mut problems);
        problems
    }

    fn unchanged_where_it_must_be(&self, old: &Self) -> Vec<Property> {
        self.intake.fixed_but_changed(&old.intake)
    }
}

impl Description for SubscriptionDescription {
    fn take<'a>(&mut self, setting: &'a Setting) -> Untaken<'a> {
        let untaken = self.shared.take(setting)?;
        let untaken = self.outlet.take(untaken)?;
        match untaken {
            Setting::DeadLetteringOnFilterEvaluationExceptions(value) => {
                self.dead_letter_on_filter_errors = *value;
            }
            untaken => return Some(untaken),
        }
        None
    }

    fn validate(&self, limits: &EntityLimits) -> Vec<Problem> {
        let mut problems = Vec::new();
        let statuses = [Status::Active, Status::Disabled, Status::ReceiveDisabled];
        self.shared.check(limits, &statuses, &mut problems);
        self.outlet.check(limits, &mut problems);
        problems
    }

    fn unchanged_where_it_must_be(&self, old: &Self) -> Vec<Property> {
        self.outlet.fixed_but_changed(&old.outlet)
    }
}

impl Shared {
    fn take<'a>(&mut self, setting: &'a Setting) -> Untaken<'a> {
        match setting {
            Setting::DefaultMessageTimeToLive(value) => self.default_time_to_live = *value,
            Setting::AutoDeleteOnIdle(value) => self.auto_delete_on_idle = *value,
            Setting::Status(value) => self.status = *value,
            Setting::EnableBatchedOperations(value) => self.enable_batched_operations = *value,
            Setting::UserMetadata(value) => self.user_metadata.clone_from(value),
            untaken => return Some(untaken),
        }
        None
    }

    fn check(&self, limits: &EntityLimits, statuses: &[Status], problems: &mut Vec<Problem>) {
        if self.default_time_to_live < limits.time_to_live_min {
            problems.push(Problem::new(
                Property::DefaultMessageTimeToLive,
                self.default_time_to_live,
                format!("{} or more", limits.time_to_live_min),
            ));
        }
        if self.auto_delete_on_idle < limits.auto_delete_min {
            problems.push(Problem::new(
                Property::AutoDeleteOnIdle,
                self.auto_delete_on_idle,
                format!("{} or more", limits.auto_delete_min),
            ));
        }
        if !statuses.contains(&self.status) {
            let words: Vec<_> = statuses.iter().map(|status| status.as_str()).collect();
            problems.push(Problem::new(Property::Status, self.status, words.join(", ")));
        }
        let chars = self.user_metadata.as_ref().map_or(0, |text| text.chars().count());
        if chars > limits.user_metadata_chars_max {
            problems.push(Problem::new(
                Property::UserMetadata,
                format!("{chars} characters long"),
                format!("at most {}", limits.user_metadata_chars_max),
            ));
        }
    }
}

impl Intake {
    fn take<'a>(&mut self, setting: &'a Setting) -> Untaken<'a> {
        match setting {
            Setting::MaxSizeInMegabytes(value) => self.max_size_megabytes = *value,
            Setting::MaxMessageSizeInKilobytes(value) => self.max_message_kilobytes = *value,
            Setting::RequiresDuplicateDetection(value) => self.requires_duplicate_detection = *value,
            Setting::DuplicateDetectionHistoryTimeWindow(value) => self.duplicate_window = *value,
            Setting::SupportOrdering(value) => self.support_ordering = *value,
            Setting::AuthorizationRules(value) => self.authorization_rules.clone_from(value),
            untaken => return Some(untaken),
        }
        None
    }

    fn check(&self, limits: &EntityLimits, problems: &mut Vec<Problem>) {
        if self.max_size_megabytes < 1 || self.max_size_megabytes > limits.size_megabytes_max {
            problems.push(Problem::new(
                Property::MaxSizeInMegabytes,
                self.max_size_megabytes,
                format!("1 to {}", limits.size_megabytes_max),
            ));
        }
        if self.max_message_kilobytes < 1 || self.max_message_kilobytes > limits.message_kilobytes_max {
            problems.push(Problem::new(
                Property::MaxMessageSizeInKilobytes,
                self.max_message_kilobytes,
                format!("1 to {}", limits.message_kilobytes_max),
            ));
        }
        let window = limits.duplicate_window_min..=limits.duplicate_window_max;
        if !window.contains(&self.duplicate_window) {
            problems.push(Problem::new(
                Property::DuplicateDetectionHistoryTimeWindow,
                self.duplicate_window,
                format!("{} to {}", window.start(), window.end()),
            ));
        }
        authorization::check(&self.authorization_rules, limits.authorization_rules_max, problems);
    }

    fn fixed_but_changed(&self, old: &Intake) -> Vec<Property> {
        let mut changed = Vec::new();
        if self.requires_duplicate_detection != old.requires_duplicate_detection {
            changed.push(Property::RequiresDuplicateDetection);
        }
        if self.support_ordering != old.support_ordering {
            changed.push(Property::SupportOrdering);
        }
        changed
    }
}

impl Outlet {
    fn take<'a>(&mut self, setting: &'a Setting) -> Untaken<'a> {
        let priority = &mut self.priority;
        match setting {
            Setting::LockDuration(value) => self.lock_duration = *value,
            Setting::RequiresSession(value) => self.requires_session = *value,
            Setting::DeadLetteringOnMessageExpiration(value) => self.dead_letter_on_expiry = *value,
            Setting::MaxDeliveryCount(value) => self.max_delivery_count = *value,
            Setting::ForwardTo(value) => self.forward_to.clone_from(value),
            Setting::ForwardDeadLetteredMessagesTo(value) => self.forward_dead_lettered_to.clone_from(value),
            Setting::Classes(value) => priority.classes.clone_from(value),
            Setting::Policy(value) => priority.policy = *value,
            Setting::Rescue(value) => priority.rescue = *value,
            Setting::PriorityRules(value) => priority.rules.clone_from(value),
            Setting::DefaultLevel(value) => priority.default_level = *value,
            Setting::Lift(value) => priority.lift = *value,
            Setting::PrefetchShare(value) => priority.prefetch_share = *value,
            Setting::Paused(value) => priority.paused = *value,
            untaken => return Some(untaken),
        }
        None
    }

    fn check(&self, limits: &EntityLimits, problems: &mut Vec<Problem>) {
        if self.lock_duration == Span(0) || self.lock_duration > limits.lock_duration_max {
            problems.push(Problem::new(
                Property::LockDuration,
                self.lock_duration,
                format!("more than nothing, at most {}", limits.lock_duration_max),
            ));
        }
        if self.max_delivery_count < 1 || self.max_delivery_count > limits.delivery_count_max {
            problems.push(Problem::new(
                Property::MaxDeliveryCount,
                self.max_delivery_count,
                format!("1 to {}", limits.delivery_count_max),
            ));
        }
        if self.requires_session
            && let Some(target) = &self.forward_to
        {
            problems.push(Problem::new(
                Property::ForwardTo,
                format!("{target} while RequiresSession is true"),
                "none on an entity with sessions",
            ));
        }
        self.priority.check(limits, problems);
    }

    fn fixed_but_changed(&self, old: &Outlet) -> Vec<Property> {
        if self.requires_session == old.requires_session {
            Vec::new()
        } else {
            vec![Property::RequiresSession]
        }
    }
}

#[cfg(test)]
mod tests;
