//! Queues, topics and subscriptions as XML: every element in the order clients expect it.
//!
//! Reading is the reverse with patience: any order, any subset, what is unknown is passed over, and
//! everything that is wrong is said at once. Properties that Service Bus does not know, the priority
//! settings, are in an element of their own namespace ([`super::priority`]); an update that does not bring
//! it leaves them as they are.

use std::sync::Arc;

use vorrang_broker::api::Listed;
use vorrang_engine::entity::authorization::{AuthorizationRule, Rights, Secret};
use vorrang_engine::entity::description::{Intake, Outlet, Shared};
use vorrang_engine::entity::{Entity, EntityName, Kind, Setting, Status};
use vorrang_engine::{Counts, Span};

use super::priority;
use super::writer::Writer;
use super::xml::{Element, Space, read};
use crate::{date, duration, root_key};

/// The namespace of the counts, bound to the one prefix that JavaScript looks for.
const COUNTS: &str = "http://schemas.microsoft.com/netservices/2011/06/servicebus";

/// The kinds of descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    Queue,
    Topic,
    Subscription,
    Rule,
}

impl Root {
    const ALL: [Root; 4] = [Root::Queue, Root::Topic, Root::Subscription, Root::Rule];

    /// The name of the element.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Root::Queue => "QueueDescription",
            Root::Topic => "TopicDescription",
            Root::Subscription => "SubscriptionDescription",
            Root::Rule => "RuleDescription",
        }
    }

    /// The kind an entity is described as.
    pub(crate) fn of(entity: &Entity) -> Root {
        match entity.kind {
            Kind::Queue(_) => Root::Queue,
            Kind::Topic(_) => Root::Topic,
            Kind::Subscription(_) => Root::Subscription,
        }
    }
}

/// Finds the description in a document: the content of an entry, or the document itself.
pub(crate) fn find(document: &Element) -> Option<(Root, &Element)> {
    let known = |element: &Element| {
        let ours = element.space == Space::ServiceBus;
        Root::ALL.into_iter().find(|root| ours && root.name() == element.name)
    };
    let content = document.children.iter().find(|child| child.name == "content");
    let inside = content.into_iter().flat_map(|content| &content.children);
    inside.chain([document]).find_map(|element| known(element).map(|root| (root, element)))
}

/// Whether a description brings a new entity or changes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// What is absent has its default.
    Create,
    /// What is absent stays, but for the texts that only absence can clear.
    Update,
}

/// Reads the settings of a description, noting everything that is wrong.
pub(crate) fn read_settings(
    root: Root,
    description: &Element,
    intent: Intent,
    problems: &mut Vec<String>,
) -> Vec<Setting> {
    let mut reader = Reader { description, problems, settings: Vec::new() };
    reader.span("DefaultMessageTimeToLive", Setting::DefaultMessageTimeToLive);
    reader.span("AutoDeleteOnIdle", Setting::AutoDeleteOnIdle);
    reader.parsed("EnableBatchedOperations", "true or false", Setting::EnableBatchedOperations);
    reader.status();
    let clears = |name: &str| intent == Intent::Update || description.field(name).is_some();
    if clears("UserMetadata") {
        let field = description.field("UserMetadata").filter(|field| field.value().is_some());
        let text = field.map(|field| Arc::from(field.text.as_str()));
        reader.settings.push(Setting::UserMetadata(text));
    }
    if root != Root::Subscription {
        reader.parsed("MaxSizeInMegabytes", "a whole number", Setting::MaxSizeInMegabytes);
        reader.parsed("MaxMessageSizeInKilobytes", "a whole number", Setting::MaxMessageSizeInKilobytes);
        reader.parsed("RequiresDuplicateDetection", "true or false", Setting::RequiresDuplicateDetection);
        let window = "DuplicateDetectionHistoryTimeWindow";
        reader.span(window, Setting::DuplicateDetectionHistoryTimeWindow);
        reader.parsed("SupportOrdering", "true or false", Setting::SupportOrdering);
        reader.authorization_rules();
    }
    if root == Root::Topic {
        let name = "FilteringMessagesBeforePublishing";
        reader.parsed(name, "true or false", Setting::FilteringMessagesBeforePublishing);
        return reader.settings;
    }
    reader.span("LockDuration", Setting::LockDuration);
    reader.parsed("RequiresSession", "true or false", Setting::RequiresSession);
    let name = "DeadLetteringOnMessageExpiration";
    reader.parsed(name, "true or false", Setting::DeadLetteringOnMessageExpiration);
    reader.parsed("MaxDeliveryCount", "a whole number", Setting::MaxDeliveryCount);
    if clears("ForwardTo") {
        reader.target("ForwardTo", Setting::ForwardTo);
    }
    if clears("ForwardDeadLetteredMessagesTo") {
        reader.target("ForwardDeadLetteredMessagesTo", Setting::ForwardDeadLetteredMessagesTo);
    }
    if root == Root::Subscription {
        let name = "DeadLetteringOnFilterEvaluationExceptions";
        reader.parsed(name, "true or false", Setting::DeadLetteringOnFilterEvaluationExceptions);
    }
    let mut settings = reader.settings;
    if let Some(element) = description.child(Space::Priority, "Priority") {
        settings.extend(priority::read(element, problems));
    }
    settings
}

struct Reader<'a> {
    description: &'a Element,
    problems: &'a mut Vec<String>,
    settings: Vec<Setting>,
}

impl Reader<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        self.description.field(name).and_then(Element::value)
    }

    fn take(&mut self, name: &str, allowed: &str, read: impl Fn(&str) -> Option<Setting>) {
        let Some(text) = self.value(name) else { return };
        if let Some(setting) = read(text) {
            self.settings.push(setting);
            return;
        }
        let shown: String = text.chars().take(64).collect();
        self.problems.push(format!("{name} cannot be '{shown}': allowed is {allowed}"));
    }

    fn span(&mut self, name: &str, setting: fn(Span) -> Setting) {
        let allowed = "a duration in ISO 8601 like PT30S or P1DT2H";
        self.take(name, allowed, |text| duration::parse(text).ok().map(setting));
    }

    fn parsed<T: std::str::FromStr>(&mut self, name: &str, allowed: &str, setting: fn(T) -> Setting) {
        self.take(name, allowed, |text| read(&text.to_ascii_lowercase()).map(setting));
    }

    fn status(&mut self) {
        let allowed = "Active, Disabled, SendDisabled or ReceiveDisabled";
        self.take("Status", allowed, |text| Status::parse(text).map(Setting::Status));
    }

    /// A forward target: a name, or a URL whose path is one. An empty one is none.
    fn target(&mut self, name: &str, setting: fn(Option<EntityName>) -> Setting) {
        let Some(text) = self.value(name) else {
            self.settings.push(setting(None));
            return;
        };
        let path = match text.split_once("://") {
            Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
            None => text,
        };
        let target = EntityName::parse(path.trim_matches('/')).map(Some).map(setting);
        match target {
            Ok(setting) => self.settings.push(setting),
            Err(error) => self.problems.push(format!("{name} is not valid: {error}")),
        }
    }

    /// An empty list takes all rules away; an absent one leaves them.
    fn authorization_rules(&mut self) {
        let Some(list) = self.description.field("AuthorizationRules").filter(|list| !list.nil) else {
            return;
        };
        let rules = list.children.iter().filter(|child| child.name == "AuthorizationRule");
        let rules: Option<Vec<AuthorizationRule>> = rules.map(authorization_rule).collect();
        match rules {
            Some(rules) => self.settings.push(Setting::AuthorizationRules(rules)),
            None => self.problems.push(
                "AuthorizationRules has a rule without KeyName or with Rights beside Manage, Send and Listen"
                    .to_owned(),
            ),
        }
    }
}

/// Reads one rule. A key that is missing is made.
fn authorization_rule(element: &Element) -> Option<AuthorizationRule> {
    let text = |name: &str| element.field(name).and_then(Element::value);
    let mut rights = Rights::default();
    for right in element.field("Rights").into_iter().flat_map(|rights| &rights.children) {
        match right.text.trim() {
            "Manage" => rights.manage = true,
            "Send" => rights.send = true,
            "Listen" => rights.listen = true,
            _ => return None,
        }
    }
    let key = |name: &str| match text(name) {
        Some(key) => Some(Secret::new(key)),
        None => root_key::generate().ok().map(|key| Secret::new(&key)),
    };
    Some(AuthorizationRule {
        key_name: Arc::from(text("KeyName")?),
        primary_key: key("PrimaryKey")?,
        secondary_key: key("SecondaryKey")?,
        rights,
    })
}

/// Writes the description of an entity with its counts; `host` is where forward targets are said to be.
pub(crate) fn write(writer: &mut Writer, listed: &Listed, host: &str) {
    let entity = &*listed.entity;
    let shared = entity.shared();
    let shape = Shape { writer, listed, shared, host };
    match &entity.kind {
        Kind::Queue(queue) => shape.queue(&queue.intake, &queue.outlet),
        Kind::Topic(topic) => shape.topic(topic),
        Kind::Subscription(subscription) => {
            let description = &subscription.description;
            shape.subscription(&description.outlet, description.dead_letter_on_filter_errors);
        }
    }
}

struct Shape<'a> {
    writer: &'a mut Writer,
    listed: &'a Listed,
    shared: &'a Shared,
    host: &'a str,
}

impl Shape<'_> {
    fn queue(mut self, intake: &Intake, outlet: &Outlet) {
        self.span("LockDuration", outlet.lock_duration);
        self.leaf("MaxSizeInMegabytes", intake.max_size_megabytes);
        self.leaf("RequiresDuplicateDetection", intake.requires_duplicate_detection);
        self.leaf("RequiresSession", outlet.requires_session);
        self.span("DefaultMessageTimeToLive", self.shared.default_time_to_live);
        self.leaf("DeadLetteringOnMessageExpiration", outlet.dead_letter_on_expiry);
        self.span("DuplicateDetectionHistoryTimeWindow", intake.duplicate_window);
        self.leaf("MaxDeliveryCount", outlet.max_delivery_count);
        self.leaf("EnableBatchedOperations", self.shared.enable_batched_operations);
        self.leaf("SizeInBytes", self.listed.size);
        self.leaf("MessageCount", self.message_count());
        self.leaf("IsAnonymousAccessible", false);
        self.authorization_rules(&intake.authorization_rules);
        self.leaf("Status", self.shared.status);
        self.target("ForwardTo", outlet.forward_to.as_ref());
        self.writer.leaf_if("UserMetadata", self.shared.user_metadata.as_ref());
        self.times();
        self.leaf("SupportOrdering", intake.support_ordering);
        self.count_details();
        self.span("AutoDeleteOnIdle", self.shared.auto_delete_on_idle);
        self.leaf("EnablePartitioning", false);
        self.target("ForwardDeadLetteredMessagesTo", outlet.forward_dead_lettered_to.as_ref());
        self.leaf("EntityAvailabilityStatus", "Available");
        self.leaf("EnableExpress", false);
        self.leaf("MaxMessageSizeInKilobytes", intake.max_message_kilobytes);
        priority::write(self.writer, &outlet.priority);
    }

    fn topic(mut self, topic: &vorrang_engine::entity::catalogue::Topic) {
        let intake = &topic.description.intake;
        self.span("DefaultMessageTimeToLive", self.shared.default_time_to_live);
        self.leaf("MaxSizeInMegabytes", intake.max_size_megabytes);
        self.leaf("RequiresDuplicateDetection", intake.requires_duplicate_detection);
        self.span("DuplicateDetectionHistoryTimeWindow", intake.duplicate_window);
        self.leaf("EnableBatchedOperations", self.shared.enable_batched_operations);
        self.leaf("SizeInBytes", self.listed.size);
        self.leaf("FilteringMessagesBeforePublishing", topic.description.filtering_before_publishing);
        self.leaf("IsAnonymousAccessible", false);
        self.authorization_rules(&intake.authorization_rules);
        self.leaf("Status", self.shared.status);
        self.writer.leaf_if("UserMetadata", self.shared.user_metadata.as_ref());
        self.times();
        self.leaf("SupportOrdering", intake.support_ordering);
        self.count_details();
        self.leaf("SubscriptionCount", topic.subscriptions.len());
        self.leaf("SqlFilterCount", topic.filters.sql);
        self.leaf("CorrelationFilterCount", topic.filters.correlation);
        self.span("AutoDeleteOnIdle", self.shared.auto_delete_on_idle);
        self.leaf("EnablePartitioning", false);
        self.leaf("EntityAvailabilityStatus", "Available");
        self.leaf("EnableSubscriptionPartitioning", false);
        self.leaf("EnableExpress", false);
        self.leaf("MaxMessageSizeInKilobytes", intake.max_message_kilobytes);
    }

    fn subscription(mut self, outlet: &Outlet, dead_letter_on_filter_errors: bool) {
        self.span("LockDuration", outlet.lock_duration);
        self.leaf("RequiresSession", outlet.requires_session);
        self.span("DefaultMessageTimeToLive", self.shared.default_time_to_live);
        self.leaf("DeadLetteringOnMessageExpiration", outlet.dead_letter_on_expiry);
        self.leaf("DeadLetteringOnFilterEvaluationExceptions", dead_letter_on_filter_errors);
        self.leaf("MessageCount", self.message_count());
        self.leaf("MaxDeliveryCount", outlet.max_delivery_count);
        self.leaf("EnableBatchedOperations", self.shared.enable_batched_operations);
        self.leaf("Status", self.shared.status);
        self.target("ForwardTo", outlet.forward_to.as_ref());
        self.times();
        self.writer.leaf_if("UserMetadata", self.shared.user_metadata.as_ref());
        self.count_details();
        self.span("AutoDeleteOnIdle", self.shared.auto_delete_on_idle);
        self.target("ForwardDeadLetteredMessagesTo", outlet.forward_dead_lettered_to.as_ref());
        self.leaf("EntityAvailabilityStatus", "Available");
        priority::write(self.writer, &outlet.priority);
    }

    fn leaf(&mut self, name: &str, value: impl std::fmt::Display) {
        self.writer.leaf(name, value);
    }

    fn span(&mut self, name: &str, span: Span) {
        self.leaf(name, duration::to_iso(span));
    }

    fn target(&mut self, name: &str, target: Option<&EntityName>) {
        let url = target.map(|target| format!("sb://{}/{target}", self.host));
        self.writer.leaf_if(name, url);
    }

    fn times(&mut self) {
        self.leaf("CreatedAt", date::rfc3339(self.listed.entity.created));
        self.leaf("UpdatedAt", date::rfc3339(self.listed.entity.updated));
        self.leaf("AccessedAt", date::rfc3339(self.listed.accessed));
    }

    fn message_count(&self) -> u64 {
        let Listed { main, dead_letter, transfer_dead_letter, .. } = self.listed;
        [main, dead_letter, transfer_dead_letter].into_iter().map(Counts::total).sum()
    }

    /// One attribute and no more: JavaScript takes the prefix from it.
    fn count_details(&mut self) {
        let Listed { main, dead_letter, transfer_dead_letter, .. } = self.listed;
        let counts = [
            ("Active", main.active()),
            ("DeadLetter", dead_letter.total()),
            ("Scheduled", main.scheduled),
            // What is being forwarded counts where it waits.
            ("Transfer", 0),
            ("TransferDeadLetter", transfer_dead_letter.total()),
        ];
        self.writer.element("CountDetails", &[("xmlns:d2p1", COUNTS)], |writer| {
            for (name, count) in counts {
                writer.leaf(&format!("d2p1:{name}MessageCount"), count);
            }
        });
    }

    fn authorization_rules(&mut self, rules: &[AuthorizationRule]) {
        let entity = &self.listed.entity;
        let (created, modified) = (date::rfc3339(entity.created), date::rfc3339(entity.updated));
        self.writer.element("AuthorizationRules", &[], |writer| {
            for rule in rules {
                let kind = [("i:type", "SharedAccessAuthorizationRule")];
                writer.element("AuthorizationRule", &kind, |writer| {
                    writer.leaf("ClaimType", "SharedAccessKey");
                    writer.leaf("ClaimValue", "None");
                    writer.element("Rights", &[], |writer| {
                        let Rights { send, listen, manage } = rule.rights;
                        let rights = [("Manage", manage), ("Send", send), ("Listen", listen)];
                        for (right, _) in rights.into_iter().filter(|(_, held)| *held) {
                            writer.leaf("AccessRights", right);
                        }
                    });
                    writer.leaf("CreatedTime", &created);
                    writer.leaf("ModifiedTime", &modified);
                    writer.leaf("KeyName", &rule.key_name);
                    writer.leaf("PrimaryKey", rule.primary_key.expose());
                    writer.leaf("SecondaryKey", rule.secondary_key.expose());
                });
            }
        });
    }
}
