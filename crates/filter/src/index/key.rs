//! The fields a rule constrains, and the hash under which it is found.
//!
//! What must hold: if a rule matches a message, both give the same hash over the rule's fields. So
//! values that any of our equalities takes for equal hash alike: numbers of all types by their
//! double, and a string that spells a GUID or a point in time as what it spells.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

use crate::filter::Filter;
use crate::message::Message;
use crate::number::Number;
use crate::sql::Property;
use crate::system::SystemProperty;
use crate::value::ValueRef;
use crate::{guid, time};

/// The same in every run, so that a run can be repeated exactly. Rules and messages made to collide
/// cost what evaluating the colliding rules one by one costs, and no more.
const HASH: FixedState = FixedState::with_seed(0x0076_6f72_7261_6e67);

/// A field of a message, spelled as the rule spells it: spelling decides which of two properties
/// that differ in case is meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    /// A system property by its text form, as correlation filters compare it.
    Text(SystemProperty),
    /// A system property by its value, as SQL compares it.
    System(SystemProperty),
    User(Box<str>),
}

/// The fields a rule needs and their values, in the order of fields, each field once.
#[derive(Debug)]
pub(super) struct Constraints<'f>(Vec<(Field, ValueRef<'f>)>);

impl<'f> Constraints<'f> {
    /// Empty if the rule can match whatever the fields are.
    pub(super) fn of(filter: &'f Filter) -> Self {
        let mut constraints: Vec<(Field, ValueRef<'f>)> = match filter {
            Filter::True | Filter::False => Vec::new(),
            Filter::Correlation(filter) => {
                let system =
                    filter.system().map(|(property, text)| (Field::Text(property), ValueRef::String(text)));
                system
                    .chain(filter.user().map(|(name, value)| (Field::User(name.into()), value.as_ref())))
                    .collect()
            }
            Filter::Sql(filter) => {
                let field = |property: &Property| match property {
                    Property::User(name) => Field::User(name.clone()),
                    Property::System(property) => Field::System(*property),
                };
                let equalities = filter.equalities();
                equalities.into_iter().map(|(property, value)| (field(property), value.as_ref())).collect()
            }
        };
        constraints.sort_by(|(left, _), (right, _)| left.cmp(right));
        constraints.dedup_by(|(left, _), (right, _)| left == right);
        Self(constraints)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.0.iter().map(|(field, _)| field)
    }

    /// Whether all of `fields` are constrained.
    pub(super) fn cover(&self, fields: &[Field]) -> bool {
        fields.iter().all(|field| self.value(field).is_some())
    }

    /// The hash over `fields`, all of which must be constrained.
    pub(super) fn hash(&self, fields: &[Field]) -> u64 {
        let mut hasher = HASH.build_hasher();
        for field in fields {
            if let Some(value) = self.value(field) {
                hash_field(field, value, &mut hasher);
            }
        }
        hasher.finish()
    }

    fn value(&self, field: &Field) -> Option<ValueRef<'f>> {
        let place = self.0.binary_search_by(|(own, _)| own.cmp(field)).ok()?;
        self.0.get(place).map(|(_, value)| *value)
    }
}

/// The hash of a message over `fields`; none if it lacks one, and then no rule of them matches.
pub(super) fn hash_message(fields: &[Field], message: &dyn Message) -> Option<u64> {
    let mut hasher = HASH.build_hasher();
    for field in fields {
        let value = match field {
            Field::Text(property) | Field::System(property) => message.system(*property),
            Field::User(name) => message.user(name).value(),
        };
        hash_field(field, value?, &mut hasher);
    }
    Some(hasher.finish())
}

fn hash_field(field: &Field, value: ValueRef<'_>, hasher: &mut impl Hasher) {
    match field {
        Field::Text(_) => hash_text(&value.text(), hasher),
        Field::System(_) | Field::User(_) => hash_value(value, hasher),
    }
}

fn hash_value(value: ValueRef<'_>, hasher: &mut impl Hasher) {
    if let Some(number) = Number::from_value(value) {
        // Adding zero turns −0 into 0, which it equals.
        hasher.write_u64((number.to_f64() + 0.0).to_bits());
        return;
    }
    match value {
        ValueRef::String(text) => match (guid::parse(text), time::parse_timestamp(text)) {
            (Some(guid), _) => hasher.write_u128(guid),
            (None, Some(at_ms)) => hasher.write_i64(at_ms),
            (None, None) => hash_text(text, hasher),
        },
        ValueRef::Guid(guid) => hasher.write_u128(guid),
        ValueRef::Timestamp(at_ms) => hasher.write_i64(at_ms),
        ValueRef::Timespan(ticks) => hasher.write_i64(ticks),
        ValueRef::Bool(flag) => hasher.write_u8(flag.into()),
        ValueRef::Char(character) => hasher.write_u32(character.into()),
        ValueRef::Binary(bytes) => hasher.write(bytes),
        ValueRef::Int(_) | ValueRef::Double(_) | ValueRef::Decimal(_) => {}
    }
}

fn hash_text(text: &str, hasher: &mut impl Hasher) {
    hasher.write_usize(text.len());
    hasher.write(text.as_bytes());
}
