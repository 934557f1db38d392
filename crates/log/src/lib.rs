//! The durable log: what is acknowledged survives anything short of losing the disk.
//!
//! This crate knows bytes, not what a message means. Its owner encodes *records* into a
//! [`Batch`]; a batch is committed as one [`Entry`] to a ring of recycled [segments](segment) and
//! is durable when the [`Log`] says so. Records are read back by [`Location`] with a [`Reader`],
//! verified each time. Live records of old segments move to [extents](extent), or
//! [stay](Log::rest) where they are; the owner's state is kept in [snapshots](snapshot);
//! [recovery](Opening) is the newest snapshot and replay.
//!
//! ```text
//! let mut opening = Opening::begin(disk, options)?;
//! while let Some(block) = opening.snapshot()…next_block()? { load }
//! let recovered = opening.replay(|entry| apply(entry))?;
//! let mut log = recovered.start(notify, now_ms)?;
//! ```
//!
//! Everything that touches files goes through [`disk::Disk`], so the whole log runs, crashes and
//! recovers inside a simulation as well.

pub mod batch;
mod blocks;
mod chain;
mod checksum;
mod closing;
pub mod conformance;
pub mod crash;
pub mod dice;
pub mod disk;
pub mod entry;
pub mod extent;
mod frame;
pub mod location;
mod log;
mod memory;
mod options;
mod pace;
mod reader;
pub mod record;
mod recovery;
mod ring;
mod room;
pub mod segment;
mod shared;
pub mod snapshot;
mod store;
mod supply;
mod sweep;
mod units;
mod verify;

pub use batch::{Batch, BatchError, Limits, Part, ReadBack};
pub use chain::{Chain, Meaning};
pub use entry::{ChainHash, Entry, EntryError};
pub use extent::ExtentWriter;
pub use location::{Epoch, Location, Position, Region};
pub use log::{Commit, Log};
pub use memory::{MemoryLog, MemoryMedium};
pub use options::{Options, OptionsError};
pub use pace::Pace;
pub use reader::{ReadError, Reader};
pub use record::{Record, RecordError, RecordView};
pub use recovery::{Damage, Findings, OpenError, Opening, Recovered};
pub use ring::Failure;
pub use room::{Appending, NoRoom};
pub use shared::{Notice, Notify};
pub use snapshot::{SnapshotReader, SnapshotWriter};
pub use store::{AppendFault, LogStore, Medium, StoreError, Visit};
pub use supply::{Pressure, Upkeep};
pub use sweep::Sweep;
pub use verify::{Report, verify, verify_disk};
