//! Snapshots: the state frozen on the shard's thread, written down on another.
//!
//! Freezing takes as long as copying page pointers. Writing goes at its own pace, so that commits keep
//! the disk. A snapshot counts from the moment it is finished, which it can be only when the log is
//! durable up to its position: a state that the log never reached must not be recovered.

use crate::journal::stream;
use std::time::Duration;
use vorrang_engine::{FrozenState, Location, Span};
use vorrang_log::snapshot::Error;
use vorrang_log::{Pace, SnapshotWriter};

/// Bytes gathered before they are handed to the log.
const CHUNK_BYTES: usize = 256 * 1024;
/// How long to wait before asking again whether the log has caught up.
const RETRY: Duration = Duration::from_millis(2);

/// When snapshots are written, and how fast.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// After so many bytes of log.
    pub bytes: u64,
    /// After so long, if anything was written.
    pub time: Span,
    /// After so little, if the log waits for one to use its segments again.
    pub time_wanted: Span,
    /// At a stop in good order, after so many bytes of log; a start reads fewer again in no time.
    pub bytes_at_stop: u64,
    /// How fast they are written.
    pub pace: Pace,
}

impl Default for Schedule {
    /// A quarter of the default ring: replay takes a second or two, and segments come back in time.
    fn default() -> Self {
        Schedule {
            bytes: 512 << 20,
            time: Span::minutes(1),
            time_wanted: Span(500),
            bytes_at_stop: 1 << 20,
            pace: Pace::bytes_per_second(200 << 20),
        }
    }
}

impl Schedule {
    pub(super) fn is_due(&self, bytes: u64, waited: Span, wanted: bool) -> bool {
        bytes >= self.bytes || (bytes > 0 && waited >= self.time) || (wanted && waited >= self.time_wanted)
    }
}

/// A snapshot to be written.
#[derive(Debug)]
pub struct Snapshot {
    writer: SnapshotWriter,
    frozen: FrozenState,
    spans: Vec<(Location, Location)>,
}

/// A snapshot that is written but does not count yet.
#[derive(Debug)]
pub struct Unfinished(SnapshotWriter);

impl Snapshot {
    pub(super) fn new(
        writer: SnapshotWriter,
        frozen: FrozenState,
        spans: Vec<(Location, Location)>,
    ) -> Snapshot {
        Snapshot { writer, frozen, spans }
    }

    /// Writes all of it.
    pub fn write(self) -> Result<Unfinished, Error> {
        let Snapshot { mut writer, frozen, spans } = self;
        let mut chunk = Vec::with_capacity(CHUNK_BYTES * 2);
        stream::begin(&mut chunk);
        for (last, first) in spans {
            stream::span(last, first, &mut chunk);
        }
        // The iterator is many in one: handed a closure, it goes through each of them without asking which is next.
        frozen.facts().try_for_each(|fact| {
            stream::fact(&fact, &mut chunk);
            if chunk.len() >= CHUNK_BYTES {
                writer.write(&chunk)?;
                chunk.clear();
            }
            Ok::<_, Error>(())
        })?;
        stream::end(&mut chunk);
        writer.write(&chunk)?;
        Ok(Unfinished(writer))
    }
}

impl Unfinished {
    /// Makes it count, if the log is durable far enough; gives it back if not.
    pub fn finish(mut self) -> Result<Option<Unfinished>, Error> {
        match self.0.finish() {
            Ok(_) => Ok(None),
            Err(Error::NotDurable { .. }) => Ok(Some(self)),
            Err(error) => Err(error),
        }
    }

    /// Makes it count as soon as the log is durable far enough, unless `is_over` says not to wait.
    pub(super) fn finish_when_durable(self, is_over: impl Fn() -> bool) -> Result<(), Error> {
        let mut unfinished = self;
        while let Some(again) = unfinished.finish()? {
            if is_over() {
                return Ok(());
            }
            std::thread::sleep(RETRY);
            unfinished = again;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_due_by_volume_by_time_with_traffic_or_when_the_log_asks() {
        let schedule = Schedule { bytes: 100, time: Span(60), time_wanted: Span(2), ..Schedule::default() };
        let cases = [
            (99, 59, false, false),
            (100, 0, false, true),
            (1, 60, false, true),
            (0, 1_000, false, false),
            (0, 1, true, false),
            (0, 2, true, true),
        ];
        for (bytes, waited, wanted, due) in cases {
            assert_eq!(schedule.is_due(bytes, Span(waited), wanted), due, "{bytes} {waited} {wanted}");
        }
    }
}
