//! What the disk does by itself: the yardstick for everything durable.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;

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

/// Writes over blocks that were written before, one synced write after another.
pub(crate) fn measure(folder: &Path, bytes: usize, time: Duration) -> Result<Histogram> {
    let place = tempfile::NamedTempFile::new_in(folder)?;
    let file = OpenOptions::new().write(true).open(place.path())?;
    let size: u64 = 16 << 20;
    let chunk = vec![0_u8; 1 << 20];
    for number in 0..size >> 20 {
        file.write_all_at(&chunk, number << 20)?;
    }
    file.sync_all()?;
    let data = vec![7_u8; bytes];
    let length = u64::try_from(bytes)?;
    let mut histogram = Histogram::new();
    let mut offset = 0;
    let began = Instant::now();
    while began.elapsed() < time {
        let one = Instant::now();
        file.write_all_at(&data, offset)?;
        file.sync_data()?;
        histogram.record(one.elapsed());
        offset = (offset + length) % (size - length);
    }
    Ok(histogram)
}
