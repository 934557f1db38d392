//! What a filter sees of a message.

use std::collections::BTreeMap;

use crate::changes::{Change, Changes};
use crate::name;
use crate::system::SystemProperty;
use crate::value::{Value, ValueRef};

/// A message as filters and actions read it.
///
/// Both methods must answer without allocating: they are called for every rule of every message.
pub trait Message {
    /// A property under `sys.`; none if it has no value.
    fn system(&self, property: SystemProperty) -> Option<ValueRef<'_>>;

    /// An application property, found as [`name::position`] finds it: exact spelling first, then
    /// ignoring case.
    fn user(&self, name: &str) -> Lookup<'_>;
}

/// The answer to looking up a property.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lookup<'v> {
    /// There is no such property.
    Missing,
    /// There is one, and it holds null.
    Null,
    /// There is one.
    Found(ValueRef<'v>),
}

impl<'v> Lookup<'v> {
    /// The value, where missing and null are the same nothing.
    pub fn value(self) -> Option<ValueRef<'v>> {
        match self {
            Self::Found(value) => Some(value),
            Self::Missing | Self::Null => None,
        }
    }
}

/// A message made of its properties alone, for tests and simulation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MapMessage {
    system: BTreeMap<SystemProperty, Value>,
    user: Vec<(Box<str>, Option<Value>)>,
}

impl MapMessage {
    /// A message without properties.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an application property, or replaces the one of exactly that name.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.put(name, Some(value.into()));
        self
    }

    /// Adds an application property that holds null.
    #[must_use]
    pub fn with_null(mut self, name: &str) -> Self {
        self.put(name, None);
        self
    }

    /// Sets a system property.
    #[must_use]
    pub fn with_system(mut self, property: SystemProperty, value: impl Into<Value>) -> Self {
        self.system.insert(property, value.into());
        self
    }

    /// The application properties in order.
    pub fn user_properties(&self) -> impl Iterator<Item = (&str, Option<&Value>)> {
        self.user.iter().map(|(name, value)| (&**name, value.as_ref()))
    }

    /// Changes the message as an action decided.
    pub fn apply(&mut self, changes: &Changes) {
        for change in changes {
            match change {
                Change::SetUser { name, value } => self.replace(name, value.clone()),
                Change::RemoveUser { name } => self.user.retain(|(existing, _)| !name::same(existing, name)),
                Change::SetSystem { property, value } => {
                    self.system.insert(*property, value.clone());
                }
                Change::RemoveSystem { property } => {
                    self.system.remove(property);
                }
            }
        }
    }

    fn replace(&mut self, name: &str, value: Value) {
        let place = name::position(self.user.iter().map(|(name, _)| &**name), name);
        let kept = place
            .and_then(|place| self.user.get(place))
            .map_or_else(|| name.into(), |(name, _)| name.clone());
        let mut value = Some(Some(value));
        self.user.retain_mut(|(existing, current)| {
            if *existing == kept {
                *current = value.take().flatten();
                return true;
            }
            !name::same(existing, name)
        });
        if let Some(value) = value {
            self.user.push((kept, value));
        }
    }

    fn put(&mut self, name: &str, value: Option<Value>) {
        match self.user.iter_mut().find(|(existing, _)| **existing == *name) {
            Some((_, existing)) => *existing = value,
            None => self.user.push((name.into(), value)),
        }
    }
}

impl Message for MapMessage {
    fn system(&self, property: SystemProperty) -> Option<ValueRef<'_>> {
        self.system.get(&property).map(Value::as_ref)
    }

    fn user(&self, name: &str) -> Lookup<'_> {
        let place = name::position(self.user.iter().map(|(name, _)| &**name), name);
        match place.and_then(|place| self.user.get(place)) {
            None => Lookup::Missing,
            Some((_, None)) => Lookup::Null,
            Some((_, Some(value))) => Lookup::Found(value.as_ref()),
        }
    }
}
