//! Stored payloads: for the doors that send them out, and for the engine where it must look inside.

use super::cold;
use super::recent::{Body, Recent};
use crate::journal::{self, record::Content};
use bytes::BytesMut;
use std::fmt;
use std::sync::Arc;
use vorrang_engine::{ColdRecord, Location, Payloads, RunId};
use vorrang_filter::Lookup;
use vorrang_log::extent::Footer;
use vorrang_log::{ReadError, Reader, Record, Region, Sweep};

/// Makes a stored message readable for filters. The doors know the encoding; the shard does not.
pub trait Decode: Send + Sync {
    /// The message in these bytes as filters see it; none if it cannot be read.
    fn view(&self, body: &Body) -> Option<Box<dyn vorrang_filter::Message>>;

    /// The value of a property in these bytes as filters see it.
    fn property<'v>(&self, _encoded: &'v [u8]) -> Lookup<'v> {
        Lookup::Null
    }
}

/// Why a payload could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The log cannot read the record.
    #[error(transparent)]
    Log(#[from] ReadError),
    /// The record is not that of a message.
    #[error("the record at {location} holds no message: {error}")]
    Record {
        /// Where.
        location: vorrang_log::Location,
        /// What is wrong with it.
        error: journal::Error,
    },
    /// The parts do not add up.
    #[error("the message at {location} has {found} of {expected} bytes")]
    Size {
        /// Where.
        location: vorrang_log::Location,
        /// How many there should be.
        expected: u32,
        /// How many there are.
        found: usize,
    },
}

/// Reads stored payloads, from any thread. Every read is verified by its checksum.
#[derive(Debug, Clone)]
pub struct PayloadReader {
    log: Reader,
}

impl PayloadReader {
    pub(super) fn new(log: Reader) -> PayloadReader {
        PayloadReader { log }
    }

    /// The message at a delivery's location. May wait for the disk.
    pub fn read(&self, location: Location, size: u32) -> Result<Body, Unreadable> {
        let location = vorrang_log::Location::from_raw(location.0);
        let record = self.log.read(location, usize::try_from(size).unwrap_or_default())?;
        self.body(location, record)
    }

    /// The same on a way through many messages, in the order they lie. What is read may share memory with its neighbours.
    pub fn sweep(&self, sweep: &mut Sweep, location: Location, size: u32) -> Result<Body, Unreadable> {
        let location = vorrang_log::Location::from_raw(location.0);
        let record = sweep.read(&self.log, location, usize::try_from(size).unwrap_or_default())?;
        self.body(location, record)
    }

    fn body(&self, location: vorrang_log::Location, record: Record) -> Result<Body, Unreadable> {
        let stored = journal::record::stored(&record.fixed, record.payload)
            .map_err(|error| Unreadable::Record { location, error })?;
        let bytes = match stored.content {
            Content::Whole(bytes) => bytes,
            Content::Apart(parts) => {
                let mut whole = BytesMut::with_capacity(usize::try_from(stored.size).unwrap_or_default());
                for part in self.log.read_parts(&parts)? {
                    whole.extend_from_slice(&part);
                }
                whole.freeze()
            }
        };
        if u32::try_from(bytes.len()) != Ok(stored.size) {
            return Err(Unreadable::Size { location, expected: stored.size, found: bytes.len() });
        }
        Ok(Body { bytes, assigned_id: stored.assigned_id })
    }
}

impl PayloadReader {
    /// What an extent says about itself, if it can be read.
    pub(super) fn footer(&self, extent: Region) -> Option<Footer> {
        self.log.footer(extent).ok()
    }

    /// Records of a run that has left memory.
    pub(super) fn cold_records(&self, run: RunId, from: u32, max: u32) -> Result<Vec<ColdRecord>, ReadError> {
        cold::read(&self.log, run, from, max)
    }
}

/// What the engine is given to look into stored messages.
pub(super) struct Source<'a> {
    pub(super) recent: &'a Recent,
    pub(super) reader: &'a PayloadReader,
    pub(super) decode: &'a Arc<dyn Decode>,
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

impl Payloads for Source<'_> {
    fn message(&self, location: Location, size: u32) -> Option<Box<dyn vorrang_filter::Message + '_>> {
        let body = match self.recent.find(location) {
            Some(body) => body.clone(),
            None => self.reader.read(location, size).ok()?,
        };
        let view: Box<dyn vorrang_filter::Message> = self.decode.view(&body)?;
        Some(view)
    }

    fn property<'v>(&self, encoded: &'v [u8]) -> Lookup<'v> {
        self.decode.property(encoded)
    }

    fn cold_records(&self, run: RunId, from: u32, max: u32) -> Vec<ColdRecord> {
        self.reader.cold_records(run, from, max).unwrap_or_default()
    }
}

/// Understands no message: for namespaces whose filters never look into stored ones, and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct Opaque;

impl Decode for Opaque {
    fn view(&self, _: &Body) -> Option<Box<dyn vorrang_filter::Message>> {
        None
    }
}
