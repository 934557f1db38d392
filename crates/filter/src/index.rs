//! Many rules of one topic, matched without asking each.
//!
//! A correlation filter, and a SQL filter that cannot be true without certain equalities, is found
//! by a hash of the values it needs. Rules that constrain the same set of fields share a *shape*;
//! for each shape the message's values are hashed once and looked up. What the look-up finds is
//! still evaluated in full, so the hash may be coarse: it only must never miss a rule that matches.
//! Every other filter is evaluated on every message.
//!
//! Outcomes come in the order of the rules' keys, never in the order of a hash table.

mod key;

use std::collections::BTreeMap;

use hashbrown::HashTable;

use crate::environment::Environment;
use crate::error::FilterError;
use crate::filter::Filter;
use crate::message::Message;
use key::{Constraints, Field};

/// Most shapes an index keeps; each costs a look-up per message.
///
/// At the limit a rule of a new shape joins the largest shape whose fields are among its own, which
/// is still a look-up; if there is none, it is evaluated on every message. It stays where it is
/// when shapes become free later.
pub const SHAPES_MAX: usize = 64;

/// Rules by key, and which of them match a message.
#[derive(Debug, Clone)]
pub struct RuleIndex<K> {
    places: BTreeMap<K, Place>,
    /// Filters evaluated on every message, among them those that always match.
    scanned: BTreeMap<K, Filter>,
    shapes: BTreeMap<ShapeId, Shape<K>>,
    next_shape: ShapeId,
}

/// A rule that matches a message, or could not be evaluated on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match<K> {
    /// The rule.
    pub key: K,
    /// Whether it matches, or why that is not known.
    pub outcome: Result<(), FilterError>,
}

type ShapeId = u64;

#[derive(Debug, Clone, Copy)]
enum Place {
    /// The filter matches nothing.
    Nowhere,
    Scanned,
    Keyed {
        shape: ShapeId,
        hash: u64,
    },
}

#[derive(Debug, Clone)]
struct Shape<K> {
    fields: Box<[Field]>,
    buckets: HashTable<Bucket<K>>,
}

/// Rules whose values have the same hash, in the order of their keys.
#[derive(Debug, Clone)]
struct Bucket<K> {
    hash: u64,
    rules: Vec<(K, Filter)>,
}

impl<K> Default for RuleIndex<K> {
    fn default() -> Self {
        Self { places: BTreeMap::new(), scanned: BTreeMap::new(), shapes: BTreeMap::new(), next_shape: 0 }
    }
}

impl<K: Ord + Clone> RuleIndex<K> {
    /// An index without rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many rules are evaluated on every message.
    pub fn scanned(&self) -> usize {
        self.scanned.len()
    }

    /// Adds a rule, in place of any with the same key.
    pub fn insert(&mut self, key: K, filter: &Filter) {
        self.remove(&key);
        let place = self.place(&key, filter);
        self.places.insert(key, place);
    }

    /// Takes a rule away; whether it was there.
    pub fn remove(&mut self, key: &K) -> bool {
        match self.places.remove(key) {
            None => return false,
            Some(Place::Nowhere) => {}
            Some(Place::Scanned) => {
                self.scanned.remove(key);
            }
            Some(Place::Keyed { shape: id, hash }) => {
                if let Some(shape) = self.shapes.get_mut(&id) {
                    shape.remove(key, hash);
                    if shape.buckets.is_empty() {
                        self.shapes.remove(&id);
                    }
                }
            }
        }
        true
    }

    /// Appends to `out` every rule that matches or fails, in the order of keys.
    pub fn matches(&self, message: &dyn Message, environment: &mut Environment<'_>, out: &mut Vec<Match<K>>) {
        let start = out.len();
        for (key, filter) in &self.scanned {
            evaluate(key, filter, message, environment, out);
        }
        for shape in self.shapes.values() {
            let Some(hash) = key::hash_message(&shape.fields, message) else { continue };
            let Some(bucket) = shape.buckets.find(hash, |bucket| bucket.hash == hash) else { continue };
            for (key, filter) in &bucket.rules {
                evaluate(key, filter, message, environment, out);
            }
        }
        if let Some(found) = out.get_mut(start..) {
            found.sort_unstable_by(|left, right| left.key.cmp(&right.key));
        }
    }

    fn place(&mut self, key: &K, filter: &Filter) -> Place {
        if *filter == Filter::False {
            return Place::Nowhere;
        }
        let constraints = Constraints::of(filter);
        let Some(id) = self.shape_for(&constraints) else {
            self.scanned.insert(key.clone(), filter.clone());
            return Place::Scanned;
        };
        let shape = self.shapes.entry(id).or_insert_with(|| Shape {
            fields: constraints.fields().cloned().collect(),
            buckets: HashTable::new(),
        });
        let hash = constraints.hash(&shape.fields);
        shape.insert(key.clone(), filter.clone(), hash);
        Place::Keyed { shape: id, hash }
    }

    /// The shape a rule belongs to, perhaps one that is yet to be made; none if it must be scanned.
    fn shape_for(&mut self, constraints: &Constraints<'_>) -> Option<ShapeId> {
        if constraints.is_empty() {
            return None;
        }
        let same = self.shapes.iter().find(|(_, shape)| shape.fields.iter().eq(constraints.fields()));
        if let Some((id, _)) = same {
            return Some(*id);
        }
        if self.shapes.len() < SHAPES_MAX {
            self.next_shape += 1;
            return Some(self.next_shape);
        }
        let contained = self.shapes.iter().filter(|(_, shape)| constraints.cover(&shape.fields));
        contained.max_by_key(|(_, shape)| shape.fields.len()).map(|(id, _)| *id)
    }
}

impl<K: Ord> Shape<K> {
    fn insert(&mut self, key: K, filter: Filter, hash: u64) {
        let bucket = self
            .buckets
            .entry(hash, |bucket| bucket.hash == hash, |bucket| bucket.hash)
            .or_insert_with(|| Bucket { hash, rules: Vec::new() })
            .into_mut();
        let place = bucket.rules.partition_point(|(existing, _)| *existing < key);
        bucket.rules.insert(place, (key, filter));
    }

    fn remove(&mut self, key: &K, hash: u64) {
        let Ok(mut bucket) = self.buckets.find_entry(hash, |bucket| bucket.hash == hash) else { return };
        let rules = &mut bucket.get_mut().rules;
        if let Ok(place) = rules.binary_search_by(|(existing, _)| existing.cmp(key)) {
            rules.remove(place);
        }
        if rules.is_empty() {
            bucket.remove();
        }
    }
}

fn evaluate<K: Clone>(
    key: &K,
    filter: &Filter,
    message: &dyn Message,
    environment: &mut Environment<'_>,
    out: &mut Vec<Match<K>>,
) {
    let outcome = match filter.matches(message, environment) {
        Ok(true) => Ok(()),
        Ok(false) => return,
        Err(error) => Err(error),
    };
    out.push(Match { key: key.clone(), outcome });
}

#[cfg(test)]
mod tests;
