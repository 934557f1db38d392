//! The names and settings of a story in the words of the engine.

use crate::script::{Step, span};
use std::sync::Arc;
use vorrang_engine::Level;
use vorrang_engine::entity::priority::{Class, ClassName, Policy, PriorityRule, Rescue, Share};
use vorrang_engine::entity::{
    EntityName, EntityPath, RuleDescription, RuleName, Setting, Status, SubscriptionName,
};
use vorrang_filter::{Action, Filter, Parameters, Sql};

pub(crate) fn entity(text: &str) -> Result<EntityName, String> {
    EntityName::parse(text).map_err(|error| error.to_string())
}

/// `orders`, `news/sports` for a subscription, `orders/dead` for dead letters, `orders/stuck` for those
/// that could not be handed on.
pub(crate) fn path(text: &str) -> Result<EntityPath, String> {
    let (text, suffix) = match text.rsplit_once('/') {
        Some((text, "dead")) => (text, "/$deadletterqueue"),
        Some((text, "stuck")) => (text, "/$transfer/$deadletterqueue"),
        _ => (text, ""),
    };
    let text = text.replacen('/', "/subscriptions/", 1);
    EntityPath::parse(&format!("{text}{suffix}")).map_err(|error| error.to_string())
}

pub(crate) fn subscription(text: &str) -> Result<(EntityName, SubscriptionName), String> {
    let (topic, name) = text.split_once('/').ok_or_else(|| "topic/subscription?".to_owned())?;
    Ok((entity(topic)?, SubscriptionName::parse(name).map_err(|error| error.to_string())?))
}

pub(crate) fn sql(text: &str) -> Result<Filter, String> {
    Sql::parse(text, Parameters::new()).map(Filter::from).map_err(|error| error.to_string())
}

pub(crate) fn rule(name: &str, step: &Step) -> Result<RuleDescription, String> {
    let filter = step.setting("where").map_or(Ok(Filter::True), sql)?;
    let action = step.setting("do").map(|text| Action::parse(text, Parameters::new())).transpose();
    let action = action.map_err(|error| error.to_string())?.map(Arc::new);
    let name = RuleName::parse(name).map_err(|error| error.to_string())?;
    Ok(RuleDescription { name, filter, action })
}

/// What stands behind a queue, topic or subscription: `lock=30s`, `max-delivery=2` and so on.
pub(crate) fn settings(step: &Step) -> Result<Vec<Setting>, String> {
    let mut settings = Vec::new();
    let mut classes = Vec::new();
    for (key, value) in &step.settings {
        let unknown = || format!("what is {key}={value}?");
        let number = || value.parse::<u32>().map_err(|_| unknown());
        let yes = || Ok::<bool, String>(value == "yes");
        let target = || if value == "none" { Ok(None) } else { entity(value).map(Some) };
        let setting = match key.as_str() {
            "where" | "do" => continue,
            "lock" => Setting::LockDuration(span(value)?),
            "max-delivery" => Setting::MaxDeliveryCount(number()?),
            "lives" => Setting::DefaultMessageTimeToLive(span(value)?),
            "dead-letter-expired" => Setting::DeadLetteringOnMessageExpiration(yes()?),
            "sessions" => Setting::RequiresSession(yes()?),
            "lift" => Setting::Lift(yes()?),
            "once-within" => {
                settings.push(Setting::RequiresDuplicateDetection(true));
                Setting::DuplicateDetectionHistoryTimeWindow(span(value)?)
            }
            "forward" => Setting::ForwardTo(target()?),
            "forward-dead" => Setting::ForwardDeadLetteredMessagesTo(target()?),
            "idle" => Setting::AutoDeleteOnIdle(span(value)?),
            "paused" => Setting::Paused(yes()?),
            "status" => Setting::Status(Status::parse(value).ok_or_else(unknown)?),
            "level" => Setting::DefaultLevel(Level(value.parse().map_err(|_| unknown())?)),
            "policy" => Setting::Policy(match value.split_once(':') {
                None if value == "strict" => Policy::Strict,
                None if value == "deadline" => Policy::Deadline,
                None if value == "fifo" => Policy::Fifo,
                Some(("aged", step)) => Policy::Aged { step: span(step)? },
                _ => return Err(unknown()),
            }),
            "rescue" => {
                let (after, share) = value.split_once(':').ok_or_else(unknown)?;
                let one_in: u16 = share.parse().map_err(|_| unknown())?;
                let share = Share::per_mille(1_000 / one_in.max(1)).ok_or_else(unknown)?;
                Setting::Rescue(Rescue { after: span(after)?, share })
            }
            "class" => {
                let mut parts = value.split(':');
                let name = parts.next().and_then(ClassName::parse).ok_or_else(unknown)?;
                let level = Level(parts.next().and_then(|level| level.parse().ok()).ok_or_else(unknown)?);
                let target_wait = parts.next().map(span).transpose()?;
                classes.push(Class { name, level, target_wait });
                continue;
            }
            "rule" => {
                let (class, text) = value.split_once(':').ok_or_else(unknown)?;
                let class = ClassName::parse(class).ok_or_else(unknown)?;
                Setting::PriorityRules(vec![PriorityRule { filter: sql(text)?, class }])
            }
            _ => return Err(unknown()),
        };
        settings.push(setting);
    }
    if !classes.is_empty() {
        settings.push(Setting::Classes(classes));
    }
    Ok(settings)
}
