//! Where forwarding leads, and that it never leads back.
//!
//! A circle of `ForwardTo` would spin messages until their hops are used up, so it is refused when it
//! would be closed. The way of dead letters is left out: each round of it takes a failed delivery, and
//! sending dead letters through a retry queue back to their origin is a pattern people use.

use super::{Catalogue, Entity, Kind, Refusal};
use crate::entity::description::Outlet;
use crate::entity::name::EntityName;
use crate::entity::path::EntityPath;
use crate::entity::setting::Property;
use std::collections::BTreeSet;

impl Catalogue {
    /// Checks both forward targets of an outlet that is to belong to `path`.
    pub(super) fn check_targets(&self, path: &EntityPath, outlet: &Outlet) -> Result<(), Refusal> {
        let targets = [
            (Property::ForwardTo, &outlet.forward_to),
            (Property::ForwardDeadLetteredMessagesTo, &outlet.forward_dead_lettered_to),
        ];
        for (property, target) in targets {
            let Some(target) = target else { continue };
            if *target == path.name {
                return Err(Refusal::TargetIsSource { path: path.clone(), property, target: target.clone() });
            }
            if self.find_name(target).is_none() {
                return Err(Refusal::TargetMissing { path: path.clone(), property, target: target.clone() });
            }
        }
        match &outlet.forward_to {
            Some(target) if self.leads_to(target, &path.name) => {
                Err(Refusal::ForwardLoop { path: path.clone(), target: target.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Whether a message that arrives at `from` can be forwarded to `to`, directly or through others.
    fn leads_to(&self, from: &EntityName, to: &EntityName) -> bool {
        let mut seen = BTreeSet::new();
        let mut ahead = vec![from];
        while let Some(name) = ahead.pop() {
            if name == to {
                return true;
            }
            let Some(entity) = self.find_name(name) else { continue };
            if seen.insert(entity.id) {
                self.push_targets(entity, &mut ahead);
            }
        }
        false
    }

    fn push_targets<'a>(&'a self, entity: &'a Entity, ahead: &mut Vec<&'a EntityName>) {
        if let Kind::Topic(_) = entity.kind {
            let outlets = self.subscriptions(entity.id).filter_map(Entity::outlet);
            ahead.extend(outlets.filter_map(|outlet| outlet.forward_to.as_ref()));
        } else {
            ahead.extend(entity.outlet().and_then(|outlet| outlet.forward_to.as_ref()));
        }
    }
}
