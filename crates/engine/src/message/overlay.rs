//! Changes to a stored message: laid over the payload at delivery, never written into it.
//!
//! An overlay holds at most one change for each property, later ones replacing earlier ones, so it
//! cannot grow by repetition; how large it may become is checked where changes come in.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use vorrang_filter::{SystemProperty, Value};

/// What has been changed about a message since it was stored.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overlay {
    /// Application properties by name.
    pub properties: BTreeMap<Arc<str>, PropertyChange>,
    /// System properties that a rule's action set (some) or removed (none).
    pub system: BTreeMap<SystemProperty, Option<Value>>,
}

/// What happened to one application property.
#[derive(Debug, Clone, PartialEq)]
pub enum PropertyChange {
    /// It has this value now.
    Set(PropertyValue),
    /// It is gone.
    Removed,
}

/// The new value of a property.
#[derive(Debug, Clone, PartialEq)]
pub enum PropertyValue {
    /// A value the broker made itself.
    Typed(Value),
    /// A value as a client encoded it, with a type that must survive.
    Encoded(Bytes),
}

impl Overlay {
    /// The application property a dead-lettered message tells its reason in.
    pub const REASON: &'static str = "DeadLetterReason";
    /// The application property a dead-lettered message tells the details in.
    pub const DESCRIPTION: &'static str = "DeadLetterErrorDescription";

    /// The reason a dead-lettered message tells, if it is text that the broker wrote.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self.properties.get(Overlay::REASON)? {
            PropertyChange::Set(PropertyValue::Typed(vorrang_filter::Value::String(text))) => Some(text),
            _ => None,
        }
    }

    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.properties.is_empty() && self.system.is_empty()
    }

    /// Sets an application property to text.
    pub fn set_text(&mut self, name: &str, text: &str) {
        let value = PropertyValue::Typed(Value::String(text.into()));
        self.properties.insert(name.into(), PropertyChange::Set(value));
    }

    /// An overlay that gives a dead-letter reason and, perhaps, a description.
    #[must_use]
    pub fn dead_letter(reason: Option<&str>, description: Option<&str>) -> Overlay {
        let mut overlay = Overlay::default();
        for (name, text) in [(Overlay::REASON, reason), (Overlay::DESCRIPTION, description)] {
            if let Some(text) = text {
                overlay.set_text(name, text);
            }
        }
        overlay
    }

    /// Both changes, `later` winning where they touch the same property.
    #[must_use]
    pub fn merged(earlier: Option<&Arc<Overlay>>, later: Option<&Arc<Overlay>>) -> Option<Arc<Overlay>> {
        match (earlier, later) {
            (None, None) => None,
            (Some(only), None) | (None, Some(only)) => Some(Arc::clone(only)),
            (Some(earlier), Some(later)) => {
                let mut merged = Overlay::clone(earlier);
                merged
                    .properties
                    .extend(later.properties.iter().map(|(name, change)| (Arc::clone(name), change.clone())));
                merged.system.extend(later.system.iter().map(|(property, value)| (*property, value.clone())));
                Some(Arc::new(merged))
            }
        }
    }

    /// Roughly how many bytes the changes take, for limits and quotas.
    #[must_use]
    pub fn size(&self) -> usize {
        let value = |value: &Value| match value {
            Value::String(text) => text.len(),
            Value::Binary(bytes) => bytes.len(),
            _ => 16,
        };
        let properties = self.properties.iter().map(|(name, change)| {
            name.len()
                + match change {
                    PropertyChange::Set(PropertyValue::Typed(typed)) => value(typed),
                    PropertyChange::Set(PropertyValue::Encoded(bytes)) => bytes.len(),
                    PropertyChange::Removed => 0,
                }
        });
        let system = self.system.values().map(|set| 16 + set.as_ref().map_or(0, value));
        properties.chain(system).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_change_of_a_property_wins_and_others_stay() {
        let earlier = Arc::new(Overlay::dead_letter(Some("old"), Some("kept")));
        let later = Arc::new(Overlay::dead_letter(Some("new"), None));
        let merged = Overlay::merged(Some(&earlier), Some(&later)).unwrap();
        assert_eq!(*merged, Overlay::dead_letter(Some("new"), Some("kept")));
        assert_eq!(Overlay::merged(Some(&earlier), None), Some(earlier));
        assert_eq!(Overlay::merged(None, None), None);
    }
}
