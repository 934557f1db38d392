//! A stored message as filters see it: its payload, with what has happened to it since.
//!
//! What the broker knows itself (number, times, level, deliveries) it tells itself; after that come the
//! changes laid over the message, and only then its payload.

use vorrang_filter::{Lookup, Message, SystemProperty, ValueRef, name};

use crate::message::{Delivery, MessageState, PropertyChange, PropertyValue};
use crate::payloads::Payloads;
use crate::time::{Span, Timestamp};

/// A payload with its broker's view of it.
pub(crate) struct Stored<'a> {
    payload: &'a dyn Message,
    known: &'a Delivery,
    payloads: &'a dyn Payloads,
}

impl<'a> Stored<'a> {
    pub(crate) fn new(
        payload: &'a dyn Message,
        known: &'a Delivery,
        payloads: &'a dyn Payloads,
    ) -> Stored<'a> {
        Stored { payload, known, payloads }
    }
}

impl Message for Stored<'_> {
    fn system(&self, property: SystemProperty) -> Option<ValueRef<'_>> {
        let known = self.known;
        match property {
            SystemProperty::SequenceNumber => return number(known.sequence.0),
            SystemProperty::EnqueuedSequenceNumber => {
                return number(known.first_sequence.unwrap_or(known.sequence).0);
            }
            SystemProperty::EnqueuedTimeUtc => return instant(known.enqueued),
            SystemProperty::ExpiresAtUtc => return instant(known.expires),
            SystemProperty::ScheduledEnqueueTimeUtc if known.scheduled_for.is_some() => {
                return known.scheduled_for.and_then(instant);
            }
            SystemProperty::TimeToLive => return Some(span(known.time_to_live)),
            SystemProperty::DeliveryCount => return Some(ValueRef::Int(i64::from(known.deliveries))),
            SystemProperty::Priority => return Some(ValueRef::Int(i64::from(known.level.0))),
            SystemProperty::Size => return Some(ValueRef::Int(i64::from(known.size))),
            SystemProperty::State => {
                // The numbers of `x-opt-message-state`.
                return Some(ValueRef::Int(match known.state {
                    MessageState::Active => 0,
                    MessageState::Deferred => 1,
                    MessageState::Scheduled => 2,
                }));
            }
            SystemProperty::DeadLetterSource => {
                return known.dead_letter_source.as_deref().map(ValueRef::String);
            }
            _ => {}
        }
        match known.overlay.as_ref().and_then(|overlay| overlay.system.get(&property)) {
            Some(changed) => changed.as_ref().map(vorrang_filter::Value::as_ref),
            None => self.payload.system(property),
        }
    }

    fn user(&self, property: &str) -> Lookup<'_> {
        let changes = self.known.overlay.as_ref().map(|overlay| &overlay.properties);
        let changed = changes.into_iter().flatten().find(|(known, _)| name::same(known, property));
        match changed {
            None => self.payload.user(property),
            Some((_, PropertyChange::Removed)) => Lookup::Missing,
            Some((_, PropertyChange::Set(PropertyValue::Typed(value)))) => Lookup::Found(value.as_ref()),
            Some((_, PropertyChange::Set(PropertyValue::Encoded(encoded)))) => {
                self.payloads.property(encoded)
            }
        }
    }
}

fn number<'a>(number: u64) -> Option<ValueRef<'a>> {
    i64::try_from(number).ok().map(ValueRef::Int)
}

fn instant<'a>(at: Timestamp) -> Option<ValueRef<'a>> {
    (at != Timestamp::NEVER).then_some(())?;
    i64::try_from(at.0).ok().map(ValueRef::Timestamp)
}

fn span<'a>(span: Span) -> ValueRef<'a> {
    let ticks = span.0.checked_mul(10_000).and_then(|ticks| i64::try_from(ticks).ok());
    ValueRef::Timespan(ticks.unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Location, MailboxId, Sequence};
    use crate::level::Level;
    use crate::message::Overlay;
    use crate::payloads::NoPayloads;
    use std::sync::Arc;
    use vorrang_filter::{Environment, MapMessage, Parameters, Sql, Value};

    fn delivery(overlay: Overlay) -> Delivery {
        Delivery {
            mailbox: MailboxId(1),
            sequence: Sequence(7),
            first_sequence: Some(Sequence(3)),
            location: Location(0),
            size: 100,
            level: Level(9),
            state: MessageState::Deferred,
            deliveries: 2,
            enqueued: Timestamp(1_000),
            time_to_live: Span::seconds(5),
            expires: Timestamp(6_000),
            scheduled_for: None,
            token: None,
            locked_until: None,
            session: None,
            dead_letter_source: Some(Arc::from("orders")),
            overlay: Some(Arc::new(overlay)),
        }
    }

    #[test]
    fn filters_see_what_has_happened_to_a_message() {
        let mut overlay = Overlay::dead_letter(Some("Poison"), None);
        overlay.properties.insert(Arc::from("GONE"), PropertyChange::Removed);
        overlay.properties.insert(
            Arc::from("opaque"),
            PropertyChange::Set(PropertyValue::Encoded(bytes::Bytes::from_static(b"?"))),
        );
        overlay.system.insert(SystemProperty::Label, Some(Value::String("new".into())));
        overlay.system.insert(SystemProperty::To, None);
        let payload = MapMessage::new()
            .with("gone", 1_i64)
            .with("kept", 2_i64)
            .with_system(SystemProperty::Label, Value::String("old".into()))
            .with_system(SystemProperty::To, Value::String("there".into()));
        let known = delivery(overlay);
        let cases = [
            ("DeadLetterReason = 'Poison'", true),
            ("EXISTS(gone)", false),
            ("EXISTS(opaque)", true),
            ("opaque IS NULL", true),
            ("kept = 2", true),
            ("sys.Label = 'new'", true),
            ("sys.To IS NULL", true),
            ("sys.SequenceNumber = 7 AND sys.EnqueuedSequenceNumber = 3", true),
            ("sys.DeliveryCount = 2 AND sys.Priority = 9 AND sys.State = 1", true),
            ("sys.DeadLetterSource = 'orders' AND sys.Size = 100", true),
            ("sys.EnqueuedTimeUtc = '1970-01-01T00:00:01Z'", true),
            ("sys.MessageId IS NULL", true),
        ];
        for (text, expected) in cases {
            let mut new_id = || 0;
            let filter = Sql::parse(text, Parameters::new()).unwrap();
            let found = filter
                .matches(&Stored::new(&payload, &known, &NoPayloads), &mut Environment::new(&mut new_id));
            assert_eq!(found, Ok(expected), "{text}");
        }
    }

    /// Knows how one client encodes numbers.
    struct Digits;

    impl Payloads for Digits {
        fn message(&self, _: Location, _: u32) -> Option<Box<dyn Message + '_>> {
            None
        }
        fn property<'v>(&self, encoded: &'v [u8]) -> Lookup<'v> {
            let digits = std::str::from_utf8(encoded).ok().and_then(|text| text.parse().ok());
            digits.map_or(Lookup::Null, |number| Lookup::Found(ValueRef::Int(number)))
        }
        fn cold_records(&self, _: crate::id::RunId, _: u32, _: u32) -> Vec<crate::payloads::ColdRecord> {
            Vec::new()
        }
    }

    #[test]
    fn filters_see_what_a_client_changed_as_it_encoded_it() {
        let mut overlay = Overlay::default();
        let value = PropertyValue::Encoded(bytes::Bytes::from_static(b"42"));
        overlay.properties.insert(Arc::from("attempt"), PropertyChange::Set(value));
        let (known, payload) = (delivery(overlay), MapMessage::new().with("attempt", 1_i64));
        for (text, expected) in [("attempt = 42", true), ("attempt = 1", false)] {
            let mut new_id = || 0;
            let filter = Sql::parse(text, Parameters::new()).unwrap();
            let stored = Stored::new(&payload, &known, &Digits);
            assert_eq!(filter.matches(&stored, &mut Environment::new(&mut new_id)), Ok(expected), "{text}");
        }
    }
}
