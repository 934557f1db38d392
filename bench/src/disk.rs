//! What the disk does by itself: the yardstick for everything durable.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use tempfile::NamedTempFile;

use crate::histogram::Histogram;

/// What can be told on the command line.
#[derive(Debug, Args)]
pub struct Options {
    /// Where to write
    #[arg(long, default_value = ".")]
    folder: PathBuf,
    /// Bytes per write
    #[arg(long, default_value_t = 4_096)]
    bytes: usize,
    /// How long
    #[arg(long, default_value_t = 3)]
    seconds: u64,
}

/// Measures and prints.
pub fn run(options: &Options) -> Result<()> {
    let histogram = measure(&options.folder, options.bytes, Duration::from_secs(options.seconds))?;
    println!(
        "bare fdatasync of {} bytes on written blocks: p50 {:.3} ms, p99 {:.3} ms, p99.9 {:.3} ms, max {:.3} ms",
        options.bytes,
        histogram.quantile_ms(500),
        histogram.quantile_ms(990),
        histogram.quantile_ms(999),
        histogram.max_ms()
    );
    Ok(())
}

/// One synced write after another.
pub(crate) fn measure(folder: &Path, bytes: usize, time: Duration) -> Result<Histogram> {
    look(&mut Blocks::new(folder, bytes)?, Duration::ZERO, time)
}

/// One synced write after another, each after a rest.
pub(crate) fn look(blocks: &mut Blocks, rest: Duration, time: Duration) -> Result<Histogram> {
    let mut histogram = Histogram::new();
    let began = Instant::now();
    while began.elapsed() < time {
        thread::sleep(rest);
        let one = Instant::now();
        blocks.write()?;
        histogram.record(one.elapsed());
    }
    Ok(histogram)
}

/// A synced write at every tick until `stop`, each counted from the moment it was due: while the disk stands still, those that
/// would have come wait, too, as messages would.
pub(crate) fn watch(blocks: &mut Blocks, tick: Duration, stop: &AtomicBool) -> Result<Histogram> {
    let mut histogram = Histogram::new();
    let mut due = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        blocks.write()?;
        histogram.record(due.elapsed());
        due += tick;
    }
    Ok(histogram)
}

/// A file of blocks that were written before, so that writing over them is all that a sync has to wait for.
pub(crate) struct Blocks {
    file: NamedTempFile,
    data: Vec<u8>,
    offset: u64,
}

const FILE_BYTES: u64 = 16 << 20;

impl Blocks {
    pub(crate) fn new(folder: &Path, bytes: usize) -> Result<Blocks> {
        let file = NamedTempFile::new_in(folder)?;
        let chunk = vec![0_u8; 1 << 20];
        for number in 0..FILE_BYTES >> 20 {
            file.as_file().write_all_at(&chunk, number << 20)?;
        }
        file.as_file().sync_all()?;
        Ok(Blocks { file, data: vec![7_u8; bytes], offset: 0 })
    }

    /// Writes over the next blocks and syncs them.
    fn write(&mut self) -> Result<()> {
        let file = self.file.as_file();
        file.write_all_at(&self.data, self.offset)?;
        file.sync_data()?;
        let length = u64::try_from(self.data.len())?;
        self.offset = (self.offset + length) % (FILE_BYTES - length);
        Ok(())
    }
}
