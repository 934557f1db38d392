//! What facts about entities are made of: whole descriptions, names and rules.

use super::field::{
    Error, Field, Reader, choices, read_text, structures, variants, wrappers, write_length, write_text,
};
use vorrang_engine::entity::authorization::{AuthorizationRule, Rights, Secret};
use vorrang_engine::entity::catalogue::{Subscription, Topic};
use vorrang_engine::entity::description::{Intake, Outlet, Shared};
use vorrang_engine::entity::priority::{
    Class, ClassName, Policy, PriorityRule, PrioritySettings, Rescue, Share,
};
use vorrang_engine::entity::{
    Change, Entity, EntityName, EntityPath, Kind, QueueDescription, Rule, RuleDescription, RuleId, RuleName,
    Status, SubscriptionDescription, SubscriptionName, TopicDescription,
};

wrappers!(RuleId);

choices! {
    Status { Active = 0, Disabled = 1, SendDisabled = 2, ReceiveDisabled = 3 }
}

structures! {
    AuthorizationRule { key_name, primary_key, secondary_key, rights }
    Class { name, level, target_wait }
    Entity { id, path, created, updated, kind }
    Intake {
        max_size_megabytes, max_message_kilobytes, requires_duplicate_detection, duplicate_window,
        support_ordering, authorization_rules,
    }
    Outlet {
        lock_duration, requires_session, dead_letter_on_expiry, max_delivery_count, forward_to,
        forward_dead_lettered_to, priority,
    }
    PriorityRule { filter, class }
    PrioritySettings { classes, policy, rescue, rules, default_level, lift, prefetch_share, paused }
    QueueDescription { shared, intake, outlet }
    Rescue { after, share }
    Rights { send, listen, manage }
    Rule { id, created, description }
    RuleDescription { name, filter, action }
    Shared { default_time_to_live, auto_delete_on_idle, status, enable_batched_operations, user_metadata }
    SubscriptionDescription { shared, outlet, dead_letter_on_filter_errors }
    TopicDescription { shared, intake, filtering_before_publishing }
}

variants! {
    Change {
        0 => QueueCreated { entity, name, description },
        1 => TopicCreated { entity, name, description },
        2 => SubscriptionCreated { entity, topic, name, description, rule, first_rule },
        3 => QueueUpdated { entity, description },
        4 => TopicUpdated { entity, description },
        5 => SubscriptionUpdated { entity, description },
        6 => RuleCreated { subscription, rule, description },
        7 => RuleUpdated { subscription, rule, description },
        8 => RuleDeleted { subscription, rule },
        9 => Deleted { entity },
    }
    Policy {
        0 => Strict {},
        1 => Aged { step },
        2 => Deadline {},
        3 => Fifo {},
    }
}

/// Names are checked again on the way in, as when they were given.
macro_rules! names {
    ($($type:ident),*) => {$(
        impl Field for $type {
            fn write(&self, out: &mut Vec<u8>) {
                write_text(self.as_str(), out);
            }
            fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
                $type::parse(read_text(from)?).map_err(|error| Error::invalid("name", &error))
            }
        }
    )*};
}
names!(EntityName, RuleName, SubscriptionName);

impl Field for EntityPath {
    fn write(&self, out: &mut Vec<u8>) {
        write_text(&self.to_string(), out);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        EntityPath::parse(read_text(from)?).map_err(|error| Error::invalid("path", &error))
    }
}

impl Field for Kind {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Kind::Queue(description) => {
                out.push(0);
                description.write(out);
            }
            Kind::Topic(topic) => {
                out.push(1);
                topic.write(out);
            }
            Kind::Subscription(subscription) => {
                out.push(2);
                subscription.write(out);
            }
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        match u8::read(from)? {
            0 => Field::read(from).map(Kind::Queue),
            1 => Field::read(from).map(Kind::Topic),
            2 => Field::read(from).map(Kind::Subscription),
            value => Err(Error::Choice { what: "kind of entity", value }),
        }
    }
}

impl Field for Topic {
    /// Who has subscribed is said by the subscriptions.
    fn write(&self, out: &mut Vec<u8>) {
        self.description.write(out);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        Field::read(from).map(Topic::new)
    }
}

impl Field for Subscription {
    fn write(&self, out: &mut Vec<u8>) {
        self.description.write(out);
        self.topic.write(out);
        write_length(self.rules.len(), out);
        for rule in self.rules.values() {
            rule.write(out);
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        let (description, topic) = (Field::read(from)?, Field::read(from)?);
        let rules: Vec<Rule> = Field::read(from)?;
        Ok(Subscription::new(description, topic, rules))
    }
}

impl Field for ClassName {
    fn write(&self, out: &mut Vec<u8>) {
        write_text(self.as_str(), out);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        let text = read_text(from)?;
        ClassName::parse(text).ok_or_else(|| Error::invalid("class name", &text))
    }
}

impl Field for Share {
    fn write(&self, out: &mut Vec<u8>) {
        self.thousandths().write(out);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        let thousandths = u16::read(from)?;
        Share::per_mille(thousandths).ok_or_else(|| Error::invalid("share", &thousandths))
    }
}

impl Field for Secret {
    fn write(&self, out: &mut Vec<u8>) {
        write_text(self.expose(), out);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        read_text(from).map(Secret::new)
    }
}
