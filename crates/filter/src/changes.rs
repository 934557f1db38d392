//! What an action does to a message, written down instead of done.

use crate::message::{Lookup, Message};
use crate::name;
use crate::system::SystemProperty;
use crate::value::{Value, ValueRef};

/// One change. Names of application properties are as the action writes them.
///
/// Names that differ in case only are one property here, as they are for a filter.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Replaces the property that [`name::position`] finds, under its own spelling, and drops others
    /// that are the same name; appends it if there is none.
    SetUser {
        /// The property's name.
        name: Box<str>,
        /// Its new value.
        value: Value,
    },
    /// Drops every property of that name, in any case.
    RemoveUser {
        /// The property's name.
        name: Box<str>,
    },
    /// Sets a settable system property: `TimeToLive` to a timespan, `Priority` to 0 to 255, any other
    /// to a string.
    SetSystem {
        /// The property.
        property: SystemProperty,
        /// Its new value.
        value: Value,
    },
    /// Takes a system property's value away.
    RemoveSystem {
        /// The property.
        property: SystemProperty,
    },
}

/// Changes in the order they take effect.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes(Vec<Change>);

impl Changes {
    /// The changes in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Change> {
        self.0.iter()
    }

    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, change: Change) {
        self.0.push(change);
    }
}

impl<'c> IntoIterator for &'c Changes {
    type Item = &'c Change;
    type IntoIter = std::slice::Iter<'c, Change>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A message seen as if changes were made to it.
#[derive(Clone, Copy)]
pub struct Changed<'c> {
    message: &'c dyn Message,
    changes: &'c Changes,
}

impl<'c> Changed<'c> {
    /// The view of `message` after `changes`.
    pub fn new(message: &'c dyn Message, changes: &'c Changes) -> Self {
        Self { message, changes }
    }
}

impl std::fmt::Debug for Changed<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Changed").field("changes", &self.changes).finish_non_exhaustive()
    }
}

impl Message for Changed<'_> {
    fn system(&self, property: SystemProperty) -> Option<ValueRef<'_>> {
        for change in self.changes.iter().rev() {
            match change {
                Change::SetSystem { property: changed, value } if *changed == property => {
                    return Some(value.as_ref());
                }
                Change::RemoveSystem { property: changed } if *changed == property => return None,
                _ => {}
            }
        }
        self.message.system(property)
    }

    fn user(&self, name: &str) -> Lookup<'_> {
        for change in self.changes.iter().rev() {
            match change {
                Change::SetUser { name: changed, value } if name::same(changed, name) => {
                    return Lookup::Found(value.as_ref());
                }
                Change::RemoveUser { name: changed } if name::same(changed, name) => return Lookup::Missing,
                _ => {}
            }
        }
        self.message.user(name)
    }
}
