//! What facts about messages are made of.

use super::field::{
    Error, Field, Reader, choices, read_bytes, read_text, structures, variants, wrappers, write_bytes,
    write_length, write_text,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use vorrang_engine::command::Relocation;
use vorrang_engine::fact::{
    Arrival, DeadLetterCause, Details, Payload, ReceiveMode, RelayCause, RemovalCause, RestoredGaps,
    RestoredMailbox, RestoredMessage, RestoredRun, RestoredSession, ReturnCause, Standing,
};
use vorrang_engine::id::{EntityId, MailboxId, ReceiverId, Region, RunId, SessionId};
use vorrang_engine::level::LevelOrigin;
use vorrang_engine::message::{Overlay, PropertyChange, PropertyValue};
use vorrang_engine::payloads::ColdRecord;
use vorrang_engine::{Level, Location, LockToken, Sequence, Span, Timestamp};
use vorrang_filter::{Action, Correlation, Decimal, Filter, Sql, SystemProperty, Value};

wrappers!(
    EntityId, Level, Location, LockToken, MailboxId, ReceiverId, Region, RunId, Sequence, SessionId, Span,
    Timestamp
);

choices! {
    DeadLetterCause {
        Application = 0, MaxDeliveries = 1, Expired = 2, MaxHops = 3, Undeliverable = 4, FilterError = 5,
        NoSession = 6,
    }
    LevelOrigin { Rule = 0, Property = 1, Header = 2, Default = 3, Operator = 4 }
    ReceiveMode { PeekLock = 0, ReceiveAndDelete = 1 }
    RelayCause { Activated = 0, Forwarded = 1, DeadLetterForwarded = 2 }
    RemovalCause { Completed = 0, Expired = 1, Cancelled = 2, Deleted = 3 }
    ReturnCause {
        Abandoned = 0, Released = 1, Suspended = 2, LockExpired = 3, SessionExpired = 4, SessionClosed = 5,
        DelayOver = 6,
    }
}

structures! {
    Arrival { mailbox, sequence, eligible, level, origin, details }
    ColdRecord { sequence, eligible, expires, location, size }
    Details {
        enqueued, time_to_live, expires, session, first_sequence, deadline, overlay, dead_letter_source, hops,
    }
    Overlay { properties, system }
    Relocation { mailbox, sequence, from, to }
    RestoredGaps { run, soonest, gaps }
    RestoredMailbox { mailbox, next_sequence, rescue, ids_seen }
    RestoredMessage { arrival, location, size, deliveries, standing }
    RestoredRun { mailbox, level, run, count, consumed, from, last, bytes, regions }
    RestoredSession { mailbox, session, state, updated, locked_until }
}

variants! {
    Standing {
        0 => Ready {},
        1 => Deferred {},
        2 => Scheduled { due },
        3 => Delayed { until },
        4 => Locked { token, since, until, deferred },
    }
}

impl Field for Payload {
    /// Nothing here: a payload lies beside the fields, see [`super::record`].
    fn write(&self, _: &mut Vec<u8>) {}
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        from.payload()
    }
}

impl<K: Field + Ord, V: Field> Field for BTreeMap<K, V> {
    fn write(&self, out: &mut Vec<u8>) {
        write_length(self.len(), out);
        for (key, value) in self {
            key.write(out);
            value.write(out);
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        let count = u32::read(from)?;
        (0..count).map(|_| Ok((K::read(from)?, V::read(from)?))).collect()
    }
}

impl Field for PropertyChange {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            PropertyChange::Removed => 0_u8.write(out),
            PropertyChange::Set(PropertyValue::Typed(value)) => {
                1_u8.write(out);
                value.write(out);
            }
            PropertyChange::Set(PropertyValue::Encoded(bytes)) => {
                2_u8.write(out);
                bytes.write(out);
            }
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        match u8::read(from)? {
            0 => Ok(PropertyChange::Removed),
            1 => Ok(PropertyChange::Set(PropertyValue::Typed(Field::read(from)?))),
            2 => Ok(PropertyChange::Set(PropertyValue::Encoded(Field::read(from)?))),
            value => Err(Error::Choice { what: "property change", value }),
        }
    }
}

impl Field for SystemProperty {
    fn write(&self, out: &mut Vec<u8>) {
        write_text(self.name(), out);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        let name = read_text(from)?;
        SystemProperty::parse(name).ok_or_else(|| Error::invalid("system property", &name))
    }
}

impl Field for Value {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Value::String(text) => {
                out.push(0);
                write_text(text, out);
            }
            Value::Bool(flag) => {
                out.push(1);
                flag.write(out);
            }
            Value::Int(number) => {
                out.push(2);
                number.write(out);
            }
            Value::Double(number) => {
                out.push(3);
                number.write(out);
            }
            Value::Decimal(number) => {
                out.push(4);
                number.unscaled().write(out);
                number.scale().write(out);
            }
            Value::Guid(guid) => {
                out.push(5);
                guid.write(out);
            }
            Value::Timestamp(at_ms) => {
                out.push(6);
                at_ms.write(out);
            }
            Value::Timespan(ticks) => {
                out.push(7);
                ticks.write(out);
            }
            Value::Char(character) => {
                out.push(8);
                u32::from(*character).write(out);
            }
            Value::Binary(bytes) => {
                out.push(9);
                write_bytes(bytes, out);
            }
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(match u8::read(from)? {
            0 => Value::String(read_text(from)?.into()),
            1 => Value::Bool(Field::read(from)?),
            2 => Value::Int(Field::read(from)?),
            3 => Value::Double(Field::read(from)?),
            4 => {
                let (unscaled, scale) = (Field::read(from)?, Field::read(from)?);
                let number = Decimal::new(unscaled, scale);
                Value::Decimal(number.ok_or_else(|| Error::invalid("decimal", &unscaled))?)
            }
            5 => Value::Guid(Field::read(from)?),
            6 => Value::Timestamp(Field::read(from)?),
            7 => Value::Timespan(Field::read(from)?),
            8 => {
                let number = u32::read(from)?;
                Value::Char(char::from_u32(number).ok_or_else(|| Error::invalid("character", &number))?)
            }
            9 => Value::Binary(read_bytes(from)?.into()),
            value => return Err(Error::Choice { what: "value", value }),
        })
    }
}

impl Field for Filter {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Filter::True => out.push(0),
            Filter::False => out.push(1),
            Filter::Correlation(correlation) => {
                out.push(2);
                let system: Vec<_> =
                    correlation.system().map(|(property, text)| (property, Arc::<str>::from(text))).collect();
                let user: Vec<_> =
                    correlation.user().map(|(name, value)| (Arc::<str>::from(name), value.clone())).collect();
                system.write(out);
                user.write(out);
            }
            Filter::Sql(sql) => {
                out.push(3);
                write_text(sql.text(), out);
                sql.parameters().write(out);
            }
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        match u8::read(from)? {
            0 => Ok(Filter::True),
            1 => Ok(Filter::False),
            2 => {
                let system: Vec<(SystemProperty, Arc<str>)> = Field::read(from)?;
                let user: Vec<(Arc<str>, Value)> = Field::read(from)?;
                let system = system.into_iter().map(|(property, text)| (property, text.to_string()));
                let user = user.into_iter().map(|(name, value)| (name.to_string(), value));
                let correlation = Correlation::new(system, user);
                Ok(Filter::Correlation(Arc::new(correlation.map_err(|e| Error::invalid("filter", &e))?)))
            }
            3 => {
                let text = read_text(from)?;
                let sql = Sql::parse(text, Field::read(from)?);
                Ok(Filter::Sql(Arc::new(sql.map_err(|error| Error::invalid("filter", &error))?)))
            }
            value => Err(Error::Choice { what: "filter", value }),
        }
    }
}

impl Field for Action {
    fn write(&self, out: &mut Vec<u8>) {
        write_text(self.text(), out);
        self.parameters().write(out);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        let text = read_text(from)?;
        Action::parse(text, Field::read(from)?).map_err(|error| Error::invalid("action", &error))
    }
}
