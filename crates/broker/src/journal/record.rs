//! Facts in the log: records, units, and what is too large for one record.
//!
//! ```text
//! fixed part:  shape u8 | size u32, if it has a payload | assigned id u128, if it has one | fields
//! payload:     the message's bytes, or a list of the records that hold them
//! ```
//!
//! The facts of one decision are a *unit*: all of them happened or none did. Every record of a unit but
//! its last says that more follows, and reading hands out whole units only. A unit cut off by a crash
//! is dropped when the next start announces itself ([`Fact::Recovered`]), or at the end of the log.
//!
//! Facts without a payload are small and come in runs, such as the locks and settlements of many messages. A run of them
//! shares one record of the log ([`GATHERED`]), whose payload is
//!
//! ```text
//! kind u8 | length u16 | fixed part     for each of them
//! ```
//!
//! A message too large for one record lies in records of its own before its fact; fields that are too
//! large for the fixed part do too.

use super::facts;
use super::field::Error;
use bytes::Bytes;
use vorrang_engine::Location;
use vorrang_engine::fact::{Fact, Payload};
use vorrang_log::{Part, RecordView};

/// Several facts without a payload.
pub const GATHERED: u8 = 252;
/// A payload that was moved out of the log.
pub const PAYLOAD_ALONE: u8 = 253;
/// A stretch of fields that did not fit into their fact's record.
pub const FIELDS_PART: u8 = 254;
/// A stretch of a payload that did not fit into its fact's record.
pub const PAYLOAD_PART: u8 = 255;

/// More facts of the same unit follow.
const MORE: u8 = 1;
/// A payload lies beside the fields.
const PAYLOAD: u8 = 1 << 1;
/// The payload is a list of the records that hold it.
const PAYLOAD_APART: u8 = 1 << 2;
/// The message came without an id and was given this one.
const ASSIGNED: u8 = 1 << 3;
/// The fields are those of the [`FIELDS_PART`] records before.
const FIELDS_APART: u8 = 1 << 4;
const SHAPES: u8 = MORE | PAYLOAD | PAYLOAD_APART | ASSIGNED | FIELDS_APART;

/// Shape, size and assigned id.
const PREFIX_BYTES_MAX: usize = 1 + 4 + 16;
/// Fields beyond this lie apart, and beyond a quarter of a record: the rest is for the payload, or for
/// the list of the records that hold it.
const FIELDS_BYTES_MAX: usize = 32 * 1024;

/// Facts of up to so many bytes share a record with others.
const GATHERED_BYTES_MAX: usize = 512;

/// Where records go.
pub trait Sink {
    /// Why a record could not be taken.
    type Failure;
    /// Takes a record and says where it will lie.
    fn append(&mut self, kind: u8, fixed: &[u8], payload: &[u8]) -> Result<Location, Self::Failure>;
    /// Adds a small item, which comes in parts, to a record that gathers them, and says where that will lie.
    fn gather(&mut self, item: &[&[u8]]) -> Result<Location, Self::Failure> {
        self.append(GATHERED, &[], &item.concat())
    }
    /// The most bytes, fixed part and payload together, of one record.
    fn record_bytes_max(&self) -> usize;
    /// The list of the records that hold this payload, and the first of them, if it was written before.
    fn written_before(&self, _payload: &Bytes) -> Option<(&[u8], Location)> {
        None
    }
}

/// Buffers used again for every fact.
#[derive(Debug, Default)]
pub struct Scratch {
    fields: Vec<u8>,
    fixed: Vec<u8>,
    parts: Vec<u8>,
}

/// Where a fact went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The fact's own record.
    pub location: Location,
    /// The first record of its payload, if that lies apart.
    pub first_part: Option<Location>,
}

/// Writes a fact, and tells its payload where it lies. Facts that are not kept write nothing.
pub fn write<S: Sink>(
    fact: &mut Fact,
    more: bool,
    sink: &mut S,
    scratch: &mut Scratch,
) -> Result<Option<Written>, S::Failure> {
    let Scratch { fields, fixed, parts } = scratch;
    fields.clear();
    let Some(kind) = facts::encode(fact, fields) else { return Ok(None) };
    let payload = fact.payload();
    if payload.is_none() && fields.len() < GATHERED_BYTES_MAX.min(sink.record_bytes_max() / 4) {
        let shape = if more { MORE } else { 0 };
        let length = u16::try_from(fields.len() + 1).expect("it is small");
        let [low, high] = length.to_le_bytes();
        let location = sink.gather(&[&[kind, low, high, shape], fields])?;
        return Ok(Some(Written { location, first_part: None }));
    }
    let bytes = payload.map_or(&[][..], |payload| &payload.bytes);
    let assigned_id = payload.and_then(|payload| payload.assigned_id);
    let mut shape = if more { MORE } else { 0 };
    let mut first_part = None;

    let chunk_bytes = sink.record_bytes_max();
    if fields.len() > FIELDS_BYTES_MAX.min(chunk_bytes / 4) {
        shape |= FIELDS_APART;
        for chunk in fields.chunks(chunk_bytes) {
            sink.append(FIELDS_PART, &[], chunk)?;
        }
        fields.clear();
    }
    if let Some(payload) = payload {
        shape |= PAYLOAD;
        let room = chunk_bytes.saturating_sub(PREFIX_BYTES_MAX.saturating_add(fields.len()));
        if bytes.len() > room {
            shape |= PAYLOAD_APART;
            first_part = if let Some((list, first)) = sink.written_before(&payload.bytes) {
                parts.clear();
                parts.extend_from_slice(list);
                Some(first)
            } else {
                write_apart(bytes, parts, sink)?
            };
        }
    }
    if assigned_id.is_some() {
        shape |= ASSIGNED;
    }
    fixed.clear();
    fixed.push(shape);
    if let Some(payload) = payload {
        fixed.extend_from_slice(&payload.size.to_le_bytes());
    }
    if let Some(id) = assigned_id {
        fixed.extend_from_slice(&id.to_le_bytes());
    }
    fixed.extend_from_slice(fields);
    let beside = if first_part.is_some() { &**parts } else { bytes };
    let location = sink.append(kind, fixed, beside)?;
    if let Some(payload) = fact.payload_mut() {
        payload.location = location;
    }
    Ok(Some(Written { location, first_part }))
}

/// Writes a payload alone, without a fact: as an extent keeps it, or for a fact that names its place.
pub fn write_payload<S: Sink>(
    bytes: &[u8],
    assigned_id: Option<u128>,
    sink: &mut S,
) -> Result<Written, S::Failure> {
    let size = u32::try_from(bytes.len()).expect("a message is far smaller than 4 GiB");
    let mut shape = PAYLOAD | if assigned_id.is_some() { ASSIGNED } else { 0 };
    let (mut parts, mut first_part) = (Vec::new(), None);
    if bytes.len() > sink.record_bytes_max().saturating_sub(PREFIX_BYTES_MAX) {
        shape |= PAYLOAD_APART;
        first_part = write_apart(bytes, &mut parts, sink)?;
    }
    let mut fixed = Vec::with_capacity(PREFIX_BYTES_MAX);
    fixed.push(shape);
    fixed.extend_from_slice(&size.to_le_bytes());
    fixed.extend(assigned_id.into_iter().flat_map(u128::to_le_bytes));
    let beside = if shape & PAYLOAD_APART == 0 { bytes } else { &parts };
    let location = sink.append(PAYLOAD_ALONE, &fixed, beside)?;
    Ok(Written { location, first_part })
}

/// Where a record lies that is a payload alone, and the first record of it if it lies apart; none for any other.
pub fn alone(record: &RecordView<'_>) -> Result<Option<Written>, Error> {
    if record.kind != PAYLOAD_ALONE {
        return Ok(None);
    }
    let (prefix, _) = Prefix::read(record.fixed)?;
    let first_part = if prefix.has(PAYLOAD_APART) { first_of(record.payload)? } else { None };
    Ok(Some(Written { location: Location(record.location.raw()), first_part }))
}

/// The first of the records in a list.
fn first_of(list: &[u8]) -> Result<Option<Location>, Error> {
    let parts = Part::decode_list(list).ok_or_else(|| Error::invalid("list of parts", &list.len()))?;
    Ok(parts.first().map(|part| Location(part.location.raw())))
}

/// Writes a payload in records of its own, lists them, and says where the first lies.
fn write_apart<S: Sink>(
    bytes: &[u8],
    parts: &mut Vec<u8>,
    sink: &mut S,
) -> Result<Option<Location>, S::Failure> {
    let mut first = None;
    parts.clear();
    for chunk in bytes.chunks(sink.record_bytes_max()) {
        let location = sink.append(PAYLOAD_PART, &[], chunk)?;
        first = first.or(Some(location));
        let bytes = u32::try_from(chunk.len()).expect("a record is far smaller than 4 GiB");
        Part { location: vorrang_log::Location::from_raw(location.0), bytes }.encode(parts);
    }
    Ok(first)
}

/// What stands before a record's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Prefix {
    shape: u8,
    size: u32,
    assigned_id: Option<u128>,
}

impl Prefix {
    fn read(fixed: &[u8]) -> Result<(Prefix, &[u8]), Error> {
        let short = |wanted| Error::Short { wanted, left: fixed.len() };
        let (&shape, mut rest) = fixed.split_first().ok_or(short(1))?;
        if shape & !SHAPES != 0 {
            return Err(Error::Choice { what: "shape of a record", value: shape });
        }
        let mut prefix = Prefix { shape, size: 0, assigned_id: None };
        if shape & PAYLOAD != 0 {
            let (size, after) = rest.split_first_chunk().ok_or(short(5))?;
            (prefix.size, rest) = (u32::from_le_bytes(*size), after);
        }
        if shape & ASSIGNED != 0 {
            let (id, after) = rest.split_first_chunk().ok_or(short(PREFIX_BYTES_MAX))?;
            (prefix.assigned_id, rest) = (Some(u128::from_le_bytes(*id)), after);
        }
        Ok((prefix, rest))
    }

    fn has(self, flag: u8) -> bool {
        self.shape & flag != 0
    }
}

/// A payload as its record tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// How many bytes it has.
    pub size: u32,
    /// The message id it was given, if it came without.
    pub assigned_id: Option<u128>,
    /// The bytes, or where they are.
    pub content: Content,
}

/// A payload's bytes, or where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// All of it.
    Whole(Bytes),
    /// In these records, in order.
    Apart(Vec<Part>),
}

/// What a record says about the payload that lies with it.
pub fn stored(fixed: &[u8], payload: Bytes) -> Result<Stored, Error> {
    let (prefix, _) = Prefix::read(fixed)?;
    if !prefix.has(PAYLOAD) {
        return Err(Error::invalid("payload", &"this record has none"));
    }
    let content = if prefix.has(PAYLOAD_APART) {
        Content::Apart(
            Part::decode_list(&payload).ok_or_else(|| Error::invalid("list of parts", &payload.len()))?,
        )
    } else {
        Content::Whole(payload)
    };
    Ok(Stored { size: prefix.size, assigned_id: prefix.assigned_id, content })
}

/// A fact read back, and the first record of its payload if that lies apart.
#[derive(Debug, Clone)]
pub struct Read {
    /// What happened.
    pub fact: Fact,
    /// See [`Written::first_part`].
    pub first_part: Option<Location>,
}

/// The records of facts that a record of the log holds: itself, or those it gathers.
pub fn each<'a>(record: &RecordView<'a>) -> impl Iterator<Item = Result<RecordView<'a>, Error>> + use<'a> {
    let record = *record;
    let (mut itself, mut items) =
        if record.kind == GATHERED { (None, record.payload) } else { (Some(record), &[][..]) };
    std::iter::from_fn(move || {
        if items.is_empty() {
            return itself.take().map(Ok);
        }
        let first = first_item(items);
        // What cannot be read has no end that another could begin at.
        items = first.as_ref().map_or(&[][..], |(.., behind)| *behind);
        Some(first.map(|(kind, fixed, _)| RecordView { kind, fixed, payload: &[], ..record }))
    })
}

/// The first of several gathered facts: its kind, its fixed part, and what is behind it.
fn first_item(items: &[u8]) -> Result<(u8, &[u8], &[u8]), Error> {
    let short = |wanted, left: &[u8]| Error::Short { wanted, left: left.len() };
    let (&[kind, low, high], behind) = items.split_first_chunk().ok_or(short(3, items))?;
    let length = usize::from(u16::from_le_bytes([low, high]));
    let (fixed, behind) = behind.split_at_checked(length).ok_or(short(length, behind))?;
    Ok((kind, fixed, behind))
}

/// Puts records together to facts, and facts to units.
#[derive(Debug, Default)]
pub struct Assembler {
    fields: Vec<u8>,
    unit: Vec<Read>,
    whole: bool,
}

impl Assembler {
    /// Takes the next record, [each] on its own. If it ends a unit, the unit's facts are returned.
    pub fn take(&mut self, record: &RecordView<'_>) -> Result<Option<&[Read]>, Error> {
        if std::mem::take(&mut self.whole) {
            self.unit.clear();
        }
        match record.kind {
            PAYLOAD_PART | PAYLOAD_ALONE => return Ok(None),
            GATHERED => return Err(Error::invalid("record", &"one that gathers others within another")),
            FIELDS_PART => {
                self.fields.extend_from_slice(record.payload);
                return Ok(None);
            }
            _ => {}
        }
        let (prefix, fields) = Prefix::read(record.fixed)?;
        let apart = std::mem::take(&mut self.fields);
        let fields = if prefix.has(FIELDS_APART) { &*apart } else { fields };
        let location = Location(record.location.raw());
        let payload = prefix.has(PAYLOAD).then_some(Payload {
            bytes: Bytes::new(),
            size: prefix.size,
            location,
            assigned_id: prefix.assigned_id,
        });
        let first_part = if prefix.has(PAYLOAD_APART) { first_of(record.payload)? } else { None };
        let fact = facts::decode(record.kind, fields, payload)?;
        if matches!(fact, Fact::Recovered { .. }) {
            self.unit.clear();
        }
        self.unit.push(Read { fact, first_part });
        self.whole = !prefix.has(MORE);
        Ok(self.whole.then_some(&*self.unit))
    }
}
