//! Writes the small data directory that `tests/fixtures.rs` keeps opening for ever.
//!
//! ```text
//! cargo run -p vorrang-log --example write_fixture -- crates/log/fixtures/v1
//! ```
//!
//! Run once for each format version, before its release; never over an existing directory.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use vorrang_log::disk::RealDisk;
use vorrang_log::{Log, Opening, Options, Pace};

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args().nth(1).ok_or("name the directory to write")?);
    if path.exists() {
        return Err(format!("{} exists", path.display()).into());
    }
    let options = Options { spare_segments: 0, ..Options::tiny() };
    let opening = Opening::begin(Arc::new(RealDisk::open(&path)?), options)?;
    let mut log = opening.replay(|_| Ok::<_, String>(()))?.start_manual(Arc::new(|_| ()), 1_000)?;

    append(&mut log, 0..10)?;
    snapshot(&mut log, "state after ten")?;
    append(&mut log, 10..20)?;
    let mut extent = log.extent()?;
    for number in 0..5_u32 {
        extent.append(2, &number.to_le_bytes(), &[format!("moved {number}").as_bytes()])?;
    }
    extent.finish(b"an index of five", b"a summary")?;
    snapshot(&mut log, "state after twenty")?;
    append(&mut log, 20..26)?;
    log.close(9_000)?;
    std::fs::remove_file(path.join("lock"))?;
    Ok(())
}

fn append(log: &mut Log, numbers: std::ops::Range<u32>) -> Result<(), Box<dyn Error>> {
    for number in numbers {
        let mut batch = log.batch().ok_or("no batch although everything is flushed")?;
        let head = format!("message {number} ");
        batch.record(1, &number.to_le_bytes(), &[head.as_bytes(), &[b'.'; 40]])?;
        log.submit(batch, 2_000 + u64::from(number))?;
        log.flush()?;
    }
    Ok(())
}

fn snapshot(log: &mut Log, content: &str) -> Result<(), Box<dyn Error>> {
    let mut snapshot = log.snapshot(Pace::UNLIMITED)?;
    snapshot.write(content.as_bytes())?;
    snapshot.finish()?;
    Ok(())
}
