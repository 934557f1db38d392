//! Priority settings in an element of their own namespace, beside those that Service Bus knows.
//!
//! It is written only where something differs from the defaults, so that clients see what the service
//! would show them. Reading changes what it mentions and nothing else; `docs/wire.md` describes it.

use vorrang_engine::Level;
use vorrang_engine::entity::Setting;
use vorrang_engine::entity::priority::{
    Class, ClassName, Policy, PriorityRule, PrioritySettings, Rescue, Share,
};

use super::rule;
use super::writer::Writer;
use super::xml::{self, Element, Space};
use crate::duration;

/// Writes the element, if there is something to say.
pub(crate) fn write(writer: &mut Writer, settings: &PrioritySettings) {
    if *settings == PrioritySettings::default() {
        return;
    }
    writer.element("Priority", &[("xmlns", xml::PRIORITY)], |writer| {
        writer.leaf("Policy", settings.policy.as_str());
        if let Policy::Aged { step } = settings.policy {
            writer.leaf("AgedStep", duration::to_iso(step));
        }
        writer.leaf("RescueAfter", duration::to_iso(settings.rescue.after));
        writer.leaf("RescueShare", settings.rescue.share.thousandths());
        writer.leaf("DefaultLevel", settings.default_level);
        writer.leaf("Lift", settings.lift);
        writer.leaf("PrefetchShare", settings.prefetch_share.thousandths());
        writer.leaf("Paused", settings.paused);
        writer.element("Classes", &[], |writer| {
            for class in &settings.classes {
                writer.element("Class", &[], |writer| {
                    writer.leaf("Name", &class.name);
                    writer.leaf("Level", class.level);
                    writer.leaf_if("TargetWait", class.target_wait.map(duration::to_iso));
                });
            }
        });
        writer.element("Rules", &[], |writer| {
            for priority_rule in &settings.rules {
                writer.element("Rule", &[], |writer| {
                    writer.leaf("Class", &priority_rule.class);
                    rule::write_filter(writer, &priority_rule.filter);
                });
            }
        });
    });
}

/// Reads the settings the element mentions.
pub(crate) fn read(element: &Element, problems: &mut Vec<String>) -> Vec<Setting> {
    let mut settings = Vec::new();
    if let Some(policy) = field(element, "Policy", "strict, aged, deadline or fifo", problems, |text| {
        let step = element.child(Space::Priority, "AgedStep").and_then(Element::value);
        Some(match text.to_ascii_lowercase().as_str() {
            "strict" => Policy::Strict,
            "aged" => Policy::Aged { step: duration::parse(step?).ok()? },
            "deadline" => Policy::Deadline,
            "fifo" => Policy::Fifo,
            _ => return None,
        })
    }) {
        settings.push(Setting::Policy(policy));
    }
    rescue(element, &mut settings, problems);
    let share = "thousandths from 0 to 1000";
    settings.extend(
        field(element, "DefaultLevel", "a level from 0 to 255", problems, |text| xml::read(text).map(Level))
            .map(Setting::DefaultLevel),
    );
    settings.extend(field(element, "Lift", "true or false", problems, xml::read).map(Setting::Lift));
    settings
        .extend(field(element, "PrefetchShare", share, problems, thousandths).map(Setting::PrefetchShare));
    settings.extend(field(element, "Paused", "true or false", problems, xml::read).map(Setting::Paused));
    if let Some(classes) = element.child(Space::Priority, "Classes") {
        let classes = classes.children.iter().filter_map(|class| read_class(class, problems));
        settings.push(Setting::Classes(classes.collect()));
    }
    if let Some(rules) = element.child(Space::Priority, "Rules") {
        let rules = rules.children.iter().filter_map(|rule| read_rule(rule, problems));
        settings.push(Setting::PriorityRules(rules.collect()));
    }
    settings
}

/// Both halves of a rescue belong together; the one that is missing has its default.
fn rescue(element: &Element, settings: &mut Vec<Setting>, problems: &mut Vec<String>) {
    let after = field(element, "RescueAfter", "a duration", problems, |text| duration::parse(text).ok());
    let share = field(element, "RescueShare", "thousandths from 0 to 1000", problems, thousandths);
    if after.is_some() || share.is_some() {
        let default = Rescue::default();
        let (after, share) = (after.unwrap_or(default.after), share.unwrap_or(default.share));
        settings.push(Setting::Rescue(Rescue { after, share }));
    }
}

fn read_class(element: &Element, problems: &mut Vec<String>) -> Option<Class> {
    let name = field(element, "Name", "a word", problems, ClassName::parse);
    let level = field(element, "Level", "a level from 0 to 255", problems, xml::read);
    let target_wait = field(element, "TargetWait", "a duration", problems, |text| duration::parse(text).ok());
    let (Some(name), Some(level)) = (name, level) else {
        problems.push("Priority has a class without Name or Level".to_owned());
        return None;
    };
    Some(Class { name, level: Level(level), target_wait })
}

fn read_rule(element: &Element, problems: &mut Vec<String>) -> Option<PriorityRule> {
    let class = field(element, "Class", "a word", problems, ClassName::parse);
    let filter = element.children.iter().find(|child| child.name == "Filter");
    let (Some(class), Some(filter)) = (class, filter) else {
        problems.push("Priority has a rule without Class or Filter".to_owned());
        return None;
    };
    Some(PriorityRule { filter: rule::read_filter(filter, problems)?, class })
}

fn thousandths(text: &str) -> Option<Share> {
    xml::read(text).and_then(Share::per_mille)
}

fn field<T>(
    element: &Element,
    name: &str,
    allowed: &str,
    problems: &mut Vec<String>,
    read: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let text = element.child(Space::Priority, name).and_then(Element::value)?;
    let value = read(text);
    if value.is_none() {
        let shown: String = text.chars().take(64).collect();
        problems.push(format!("Priority/{name} cannot be '{shown}': allowed is {allowed}"));
    }
    value
}
