//! What an entity is told to be, between JSON and the engine.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use vorrang_engine::Span;
use vorrang_engine::entity::authorization::{AuthorizationRule, Rights, Secret};
use vorrang_engine::entity::catalogue::Subscription;
use vorrang_engine::entity::description::{Intake, Outlet, Shared};
use vorrang_engine::entity::priority::{Class, ClassName, Policy, PriorityRule, Rescue, Share};
use vorrang_engine::entity::{Entity, EntityName, RuleDescription, RuleName, Setting, Status};
use vorrang_engine::level::Level;

use super::filter;
use crate::duration;
use crate::http::api::complaint::Complaints;
use crate::http::api::model::{self, Properties};

/// What an entity was told to be, without its rules.
pub(crate) fn shown(entity: &Entity) -> Properties {
    let mut properties = Properties::default();
    shared_shown(entity.shared(), &mut properties);
    if let Some(intake) = entity.intake() {
        intake_shown(intake, &mut properties);
    }
    if let Some(outlet) = entity.outlet() {
        outlet_shown(outlet, &mut properties);
    }
    if let Some(topic) = entity.topic() {
        properties.filtering_messages_before_publishing = Some(topic.description.filtering_before_publishing);
    }
    if let Some(subscription) = entity.subscription() {
        properties.dead_lettering_on_filter_evaluation_exceptions =
            Some(subscription.description.dead_letter_on_filter_errors);
    }
    properties
}

/// The rules of a subscription by name.
pub(crate) fn rules_shown(
    subscription: &Subscription,
) -> std::collections::BTreeMap<String, model::RuleDefinition> {
    let rules = subscription.rules.values();
    rules
        .map(|rule| (rule.description.name.to_string(), filter::definition_shown(&rule.description)))
        .collect()
}

fn shared_shown(shared: &Shared, properties: &mut Properties) {
    properties.default_message_time_to_live = Some(duration::to_iso(shared.default_time_to_live));
    properties.auto_delete_on_idle = Some(duration::to_iso(shared.auto_delete_on_idle));
    properties.status = Some(match shared.status {
        Status::Active => model::Status::Active,
        Status::Disabled => model::Status::Disabled,
        Status::SendDisabled => model::Status::SendDisabled,
        Status::ReceiveDisabled => model::Status::ReceiveDisabled,
    });
    properties.enable_batched_operations = Some(shared.enable_batched_operations);
    properties.user_metadata = shared.user_metadata.as_ref().map(ToString::to_string);
}

fn intake_shown(intake: &Intake, properties: &mut Properties) {
    properties.max_size_in_megabytes = Some(intake.max_size_megabytes);
    properties.max_message_size_in_kilobytes = Some(intake.max_message_kilobytes);
    properties.requires_duplicate_detection = Some(intake.requires_duplicate_detection);
    properties.duplicate_detection_history_time_window = Some(duration::to_iso(intake.duplicate_window));
    properties.support_ordering = Some(intake.support_ordering);
    let rules = intake.authorization_rules.iter().map(|rule| model::AuthorizationRule {
        key_name: rule.key_name.to_string(),
        rights: rights_shown(rule.rights),
        primary_key: None,
        secondary_key: None,
    });
    properties.authorization_rules = (!intake.authorization_rules.is_empty()).then(|| rules.collect());
}

fn rights_shown(rights: Rights) -> Vec<model::Right> {
    let all = [
        (rights.send, model::Right::Send),
        (rights.listen, model::Right::Listen),
        (rights.manage, model::Right::Manage),
    ];
    all.into_iter().filter(|(held, _)| *held).map(|(_, right)| right).collect()
}

fn outlet_shown(outlet: &Outlet, properties: &mut Properties) {
    properties.lock_duration = Some(duration::to_iso(outlet.lock_duration));
    properties.requires_session = Some(outlet.requires_session);
    properties.dead_lettering_on_message_expiration = Some(outlet.dead_letter_on_expiry);
    properties.max_delivery_count = Some(outlet.max_delivery_count);
    properties.forward_to = outlet.forward_to.as_ref().map(ToString::to_string);
    properties.forward_dead_lettered_messages_to =
        outlet.forward_dead_lettered_to.as_ref().map(ToString::to_string);
    let priority = &outlet.priority;
    let class = |class: &Class| model::Class {
        name: class.name.to_string(),
        level: class.level.0,
        target_wait: class.target_wait.map(duration::to_iso),
    };
    properties.classes = Some(priority.classes.iter().map(class).collect());
    properties.policy = Some(match priority.policy {
        Policy::Strict => model::Policy::Strict,
        Policy::Aged { .. } => model::Policy::Aged,
        Policy::Deadline => model::Policy::Deadline,
        Policy::Fifo => model::Policy::Fifo,
    });
    if let Policy::Aged { step } = priority.policy {
        properties.aged_step = Some(duration::to_iso(step));
    }
    properties.rescue = Some(model::Rescue {
        after: duration::to_iso(priority.rescue.after),
        share: share_shown(priority.rescue.share),
    });
    let rule = |rule: &PriorityRule| model::PriorityRule {
        filter: filter::filter_shown(&rule.filter),
        class: rule.class.to_string(),
    };
    properties.priority_rules = Some(priority.rules.iter().map(rule).collect());
    properties.default_level = Some(priority.default_level.0);
    properties.lift = Some(priority.lift);
    properties.prefetch_share = Some(share_shown(priority.prefetch_share));
    properties.paused = Some(priority.paused);
}

fn share_shown(share: Share) -> f64 {
    f64::from(share.thousandths()) / 1_000.0
}

/// Reads what an entity shall be. `before` is the entity as it is, whose keys are kept where none are given.
pub(crate) fn read(
    properties: &Properties,
    before: Option<&Entity>,
    field: &str,
    complaints: &mut Complaints,
) -> Vec<Setting> {
    let mut reader = Reader { settings: Vec::new(), field, complaints };
    reader.plain(properties);
    reader.spans(properties);
    reader.targets(properties);
    reader.priority(properties);
    reader.keys(properties, before);
    reader.settings
}

/// Reads the rules a subscription shall have, in the order of their names.
pub(crate) fn read_rules(
    rules: &std::collections::BTreeMap<String, model::RuleDefinition>,
    field: &str,
    complaints: &mut Complaints,
) -> Vec<RuleDescription> {
    let mut read = Vec::new();
    for (name, definition) in rules {
        let place = format!("{}.{name}", filter::join(field, "rules"));
        let Some(name) = complaints.check(&place, RuleName::parse(name)) else { continue };
        read.extend(filter::read_rule(name, definition, &place, complaints));
    }
    read
}

struct Reader<'a> {
    settings: Vec<Setting>,
    field: &'a str,
    complaints: &'a mut Complaints,
}

impl Reader<'_> {
    fn plain(&mut self, given: &Properties) {
        let status = given.status.map(|status| {
            Setting::Status(match status {
                model::Status::Active => Status::Active,
                model::Status::Disabled => Status::Disabled,
                model::Status::SendDisabled => Status::SendDisabled,
                model::Status::ReceiveDisabled => Status::ReceiveDisabled,
            })
        });
        let note = given.user_metadata.as_deref();
        let note = note.map(|text| Setting::UserMetadata((!text.is_empty()).then(|| Arc::from(text))));
        let plain = [
            given.max_size_in_megabytes.map(Setting::MaxSizeInMegabytes),
            given.max_message_size_in_kilobytes.map(Setting::MaxMessageSizeInKilobytes),
            given.requires_duplicate_detection.map(Setting::RequiresDuplicateDetection),
            given.requires_session.map(Setting::RequiresSession),
            given.dead_lettering_on_message_expiration.map(Setting::DeadLetteringOnMessageExpiration),
            given
                .dead_lettering_on_filter_evaluation_exceptions
                .map(Setting::DeadLetteringOnFilterEvaluationExceptions),
            given.max_delivery_count.map(Setting::MaxDeliveryCount),
            given.enable_batched_operations.map(Setting::EnableBatchedOperations),
            given.support_ordering.map(Setting::SupportOrdering),
            given.filtering_messages_before_publishing.map(Setting::FilteringMessagesBeforePublishing),
            given.default_level.map(|level| Setting::DefaultLevel(Level(level))),
            given.lift.map(Setting::Lift),
            given.paused.map(Setting::Paused),
            status,
            note,
        ];
        self.settings.extend(plain.into_iter().flatten());
    }

    fn spans(&mut self, given: &Properties) {
        type Make = fn(Span) -> Setting;
        let spans: [(&str, &Option<String>, Make); 4] = [
            ("lockDuration", &given.lock_duration, Setting::LockDuration),
            (
                "duplicateDetectionHistoryTimeWindow",
                &given.duplicate_detection_history_time_window,
                Setting::DuplicateDetectionHistoryTimeWindow,
            ),
            (
                "defaultMessageTimeToLive",
                &given.default_message_time_to_live,
                Setting::DefaultMessageTimeToLive,
            ),
            ("autoDeleteOnIdle", &given.auto_delete_on_idle, Setting::AutoDeleteOnIdle),
        ];
        for (name, text, make) in spans {
            let Some(text) = text else { continue };
            let span = self.span(name, text);
            self.settings.extend(span.map(make));
        }
    }

    fn targets(&mut self, given: &Properties) {
        type Make = fn(Option<EntityName>) -> Setting;
        let targets: [(&str, &Option<String>, Make); 2] = [
            ("forwardTo", &given.forward_to, Setting::ForwardTo),
            (
                "forwardDeadLetteredMessagesTo",
                &given.forward_dead_lettered_messages_to,
                Setting::ForwardDeadLetteredMessagesTo,
            ),
        ];
        for (name, text, make) in targets {
            let Some(text) = text else { continue };
            if text.is_empty() {
                self.settings.push(make(None));
                continue;
            }
            let place = self.place(name);
            let target = self.complaints.check(&place, EntityName::parse(text));
            self.settings.extend(target.map(|target| make(Some(target))));
        }
    }

    fn priority(&mut self, given: &Properties) {
        if let Some(classes) = &given.classes {
            let classes = classes.iter().enumerate().filter_map(|(index, class)| self.class(index, class));
            let classes = classes.collect();
            self.settings.push(Setting::Classes(classes));
        }
        let step = given.aged_step.as_ref().map(|text| (text, self.span("agedStep", text)));
        match (given.policy, step) {
            (None, None) => {}
            (Some(model::Policy::Aged), Some((_, step))) => {
                self.settings.extend(step.map(|step| Setting::Policy(Policy::Aged { step })));
            }
            (Some(model::Policy::Aged), None) => {
                self.complain("agedStep", "is missing: the policy aged needs it, such as PT10S");
            }
            (None | Some(_), Some(_)) => {
                self.complain("agedStep", "goes with the policy aged alone");
            }
            (Some(model::Policy::Strict), None) => self.settings.push(Setting::Policy(Policy::Strict)),
            (Some(model::Policy::Deadline), None) => self.settings.push(Setting::Policy(Policy::Deadline)),
            (Some(model::Policy::Fifo), None) => self.settings.push(Setting::Policy(Policy::Fifo)),
        }
        if let Some(rescue) = &given.rescue {
            let after = self.span("rescue.after", &rescue.after);
            let share = self.share("rescue.share", rescue.share);
            if let (Some(after), Some(share)) = (after, share) {
                self.settings.push(Setting::Rescue(Rescue { after, share }));
            }
        }
        if let Some(rules) = &given.priority_rules {
            let rules = rules
                .iter()
                .enumerate()
                .filter_map(|(index, rule)| self.priority_rule(index, rule))
                .collect();
            self.settings.push(Setting::PriorityRules(rules));
        }
        if let Some(share) = given.prefetch_share {
            let share = self.share("prefetchShare", share);
            self.settings.extend(share.map(Setting::PrefetchShare));
        }
    }

    fn class(&mut self, index: usize, class: &model::Class) -> Option<Class> {
        let name = self.class_name(&format!("classes[{index}].name"), &class.name);
        let target_wait = match &class.target_wait {
            None => Some(None),
            Some(text) => self.span(&format!("classes[{index}].targetWait"), text).map(Some),
        };
        Some(Class { name: name?, level: Level(class.level), target_wait: target_wait? })
    }

    fn priority_rule(&mut self, index: usize, rule: &model::PriorityRule) -> Option<PriorityRule> {
        let class = self.class_name(&format!("priorityRules[{index}].class"), &rule.class);
        let place = self.place(&format!("priorityRules[{index}].filter"));
        let filter = filter::read_filter(&rule.filter, &place, self.complaints);
        Some(PriorityRule { filter: filter?, class: class? })
    }

    fn keys(&mut self, given: &Properties, before: Option<&Entity>) {
        let Some(rules) = &given.authorization_rules else { return };
        let known = before.and_then(Entity::intake).map_or(&[][..], |intake| &intake.authorization_rules);
        let read = |rule: &model::AuthorizationRule| {
            let old = known.iter().find(|old| *old.key_name == *rule.key_name);
            let has = |right| rule.rights.contains(&right);
            let key = |given: &Option<String>, old: Option<&Secret>| {
                let given = given.as_deref().map(Secret::new);
                given.or_else(|| old.cloned()).unwrap_or_else(random_key)
            };
            AuthorizationRule {
                key_name: Arc::from(rule.key_name.as_str()),
                primary_key: key(&rule.primary_key, old.map(|old| &old.primary_key)),
                secondary_key: key(&rule.secondary_key, old.map(|old| &old.secondary_key)),
                rights: Rights {
                    send: has(model::Right::Send),
                    listen: has(model::Right::Listen),
                    manage: has(model::Right::Manage),
                },
            }
        };
        self.settings.push(Setting::AuthorizationRules(rules.iter().map(read).collect()));
    }

    fn class_name(&mut self, name: &str, text: &str) -> Option<ClassName> {
        let parsed = ClassName::parse(text);
        if parsed.is_none() {
            let allowed = "must be a letter, then at most 49 letters, digits, '-', '_' and '.'";
            self.complain(name, allowed);
        }
        parsed
    }

    fn span(&mut self, name: &str, text: &str) -> Option<Span> {
        let place = self.place(name);
        self.complaints.check(&place, duration::parse(text))
    }

    /// A share in thousandths, by way of its text because there is no other exact one.
    fn share(&mut self, name: &str, share: f64) -> Option<Share> {
        let thousandths = (0.0..=1.0).contains(&share).then(|| format!("{:.0}", share * 1_000.0));
        let share = thousandths.and_then(|text| text.parse().ok()).and_then(Share::per_mille);
        if share.is_none() {
            self.complain(name, "must be from 0 to 1");
        }
        share
    }

    fn complain(&mut self, name: &str, detail: &str) {
        let place = self.place(name);
        self.complaints.add(place, detail);
    }

    fn place(&self, name: &str) -> String {
        filter::join(self.field, name)
    }
}

/// A key nobody can guess; if the system gives no random numbers, an empty one, which is refused.
fn random_key() -> Secret {
    let mut bytes = [0_u8; 32];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Secret::new(&BASE64.encode(bytes)),
        Err(_) => Secret::new(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vorrang_engine::entity::{
        Description, EntityLimits, QueueDescription, SubscriptionDescription, TopicDescription,
    };
    use vorrang_engine::entity::{EntityPath, Kind};
    use vorrang_engine::{EntityId, Timestamp};

    const EVERYTHING: &str = r#"{
        "lockDuration": "30s", "maxSizeInMegabytes": 2048, "maxMessageSizeInKilobytes": 512,
        "requiresDuplicateDetection": true, "duplicateDetectionHistoryTimeWindow": "PT5M",
        "requiresSession": true, "defaultMessageTimeToLive": "2h", "deadLetteringOnMessageExpiration": true,
        "maxDeliveryCount": 3, "enableBatchedOperations": false, "autoDeleteOnIdle": "P1D",
        "status": "ReceiveDisabled", "forwardDeadLetteredMessagesTo": "graves", "supportOrdering": false,
        "userMetadata": "a note",
        "authorizationRules": [{"keyName": "k", "rights": ["Send", "Listen"], "primaryKey": "secret-one"}],
        "classes": [{"name": "gold", "level": 100, "targetWait": "10s"}, {"name": "low", "level": 2}],
        "policy": "aged", "agedStep": "PT10S", "rescue": {"after": "1m", "share": 0.25},
        "priorityRules": [{"filter": {"type": "sql", "expression": "tier = 'paid'"}, "class": "gold"}],
        "defaultLevel": 5, "lift": true, "prefetchShare": 0.5, "paused": true
    }"#;

    fn entity(kind: Kind) -> Entity {
        let path = EntityPath::parse("e").unwrap();
        Entity { id: EntityId(1), path, created: Timestamp(0), updated: Timestamp(0), kind }
    }

    fn queue(json: &str) -> Entity {
        let given: Properties = serde_json::from_str(json).unwrap();
        let mut complaints = Complaints::default();
        let settings = read(&given, None, "", &mut complaints);
        complaints.finish(()).unwrap();
        entity(Kind::Queue(QueueDescription::create(&settings, &EntityLimits::default()).unwrap()))
    }

    #[test]
    fn every_property_is_told_as_it_was_given() {
        let before = queue(EVERYTHING);
        let told = shown(&before);
        let json = serde_json::to_string(&told).unwrap();
        assert!(!json.contains("secret-one") && !json.contains("Key\":"), "{json}");
        // Told back, it is the same queue: durations in the other form, keys kept.
        let mut complaints = Complaints::default();
        let settings = read(&told, Some(&before), "", &mut complaints);
        let Kind::Queue(description) = &before.kind else { panic!("{before:?}") };
        assert_eq!(description.update(&settings, &EntityLimits::default()).unwrap(), *description);
        assert_eq!(description.intake.authorization_rules[0].primary_key, Secret::new("secret-one"));
        assert_eq!(description.intake.authorization_rules[0].secondary_key.expose().len(), 44);
    }

    #[test]
    fn each_kind_tells_only_what_it_takes_back() {
        let limits = EntityLimits::default();
        let topic = TopicDescription::default();
        let told = shown(&entity(Kind::Topic(vorrang_engine::entity::catalogue::Topic::new(topic.clone()))));
        let settings = read(&told, None, "", &mut Complaints::default());
        assert_eq!(TopicDescription::create(&settings, &limits).unwrap(), topic);
        let description = SubscriptionDescription::default();
        let subscription = Subscription::new(description.clone(), EntityId(1), []);
        let told = shown(&entity(Kind::Subscription(subscription)));
        let settings = read(&told, None, "", &mut Complaints::default());
        assert_eq!(SubscriptionDescription::create(&settings, &limits).unwrap(), description);
    }

    #[test]
    fn every_mistake_is_found_in_one_go() {
        let given: Properties = serde_json::from_str(
            r#"{"lockDuration": "soon", "forwardTo": "a b", "policy": "aged", "rescue": {"after": "x", "share": 2},
                "classes": [{"name": "1", "level": 1, "targetWait": "y"}], "prefetchShare": -0.1,
                "priorityRules": [{"filter": {"type": "sql", "expression": "("}, "class": "?"}]}"#,
        )
        .unwrap();
        let mut complaints = Complaints::default();
        read(&given, None, "queues.q", &mut complaints);
        let problem = complaints.finish(()).unwrap_err().into_problem();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "queues.q.lockDuration",
                "queues.q.forwardTo",
                "queues.q.classes[0].name",
                "queues.q.classes[0].targetWait",
                "queues.q.agedStep",
                "queues.q.rescue.after",
                "queues.q.rescue.share",
                "queues.q.priorityRules[0].class",
                "queues.q.priorityRules[0].filter.expression",
                "queues.q.prefetchShare",
            ]
        );
    }

    #[test]
    fn null_and_the_empty_text_end_a_forward() {
        for text in [r#"{"forwardTo": null}"#, r#"{"forwardTo": ""}"#] {
            let given: Properties = serde_json::from_str(text).unwrap();
            let settings = read(&given, None, "", &mut Complaints::default());
            assert_eq!(settings, [Setting::ForwardTo(None)], "{text}");
        }
        let given: Properties = serde_json::from_str("{}").unwrap();
        assert_eq!(read(&given, None, "", &mut Complaints::default()), []);
    }
}
