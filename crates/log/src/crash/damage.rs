//! Damage: flipped bits, ruined sectors, cut and missing files. Always detected and named, or
//! without effect; nothing is ever silently missing.

use super::Violation;
use super::model::{self, History, Store};
use crate::dice::Dice;
use crate::disk::{Disk, FileName, SimDisk};
use crate::location::Position;
use crate::options::Options;
use crate::recovery::OpenError;
use crate::units::in_memory;
use crate::verify::verify_disk;
use std::sync::Arc;

const SECTOR_BYTES: usize = 512;

/// How much was tried, and how it showed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DamageCounts {
    /// Damaged stores opened.
    pub tried: u64,
    /// Refused at start, with the file named.
    pub refused: u64,
    /// Opened from an older snapshot or with a named reading error.
    pub reported: u64,
    /// Without effect on what the store holds, and still named by verifying offline.
    pub offline: u64,
    /// Hit bytes nothing depends on: padding, unused space.
    pub harmless: u64,
}

/// Damages a closed store in `flips` bits and `sectors` sectors, chosen by seed, and each of its
/// files as a whole.
pub fn damage(options: &Options, seed: u64, flips: u32, sectors: u32) -> Result<DamageCounts, Violation> {
    let fail = |place: String, what: String| Violation { seed, place, what };
    let setup = |what: String| fail("before the damage".to_owned(), what);
    let disk = SimDisk::new(seed);
    let mut store = Store::open(&disk, options, seed).map_err(|error| setup(error.to_string()))?;
    for _ in 0..220 {
        store.step().map_err(setup)?;
    }
    let newest = store.newest();
    let history = store.close().map_err(|error| setup(error.to_string()))?;
    let targets = Store::targets(&disk);
    let mut dice = Dice::new(!seed);
    let mut counts = DamageCounts::default();
    let mut examine = |file: FileName, change: &dyn Fn(&mut Vec<u8>), place: String| {
        let image = disk.fork();
        image.damage(file, change);
        judge(&image, options, file, &history, newest, &mut counts).map_err(|what| fail(place, what))
    };
    for _ in 0..flips {
        let Some((file, offset)) = aim(&targets, &mut dice) else { continue };
        let bit = dice.below(8);
        let flip = |bytes: &mut Vec<u8>| {
            if let Some(byte) = bytes.get_mut(offset) {
                *byte ^= 1 << bit;
            }
        };
        examine(file, &flip, format!("bit {bit} of byte {offset} of {file} flipped"))?;
    }
    for _ in 0..sectors {
        let Some((file, offset)) = aim(&targets, &mut dice) else { continue };
        let start = offset / SECTOR_BYTES * SECTOR_BYTES;
        let (kind, noise) = (dice.below(3), dice.roll());
        let ruin = |bytes: &mut Vec<u8>| ruin_sector(bytes, start, kind, noise);
        examine(file, &ruin, format!("sector at {start} of {file} ruined in way {kind}"))?;
    }
    for (file, _) in targets.iter().copied() {
        examine(file, &|bytes| bytes.clear(), format!("{file} emptied"))?;
        examine(file, &|bytes| bytes.truncate(bytes.len() / 2), format!("{file} cut in half"))?;
    }
    for (file, _) in targets {
        let image = disk.fork();
        image.remove(file).map_err(|error| setup(error.to_string()))?;
        judge(&image, options, file, &history, newest, &mut counts)
            .map_err(|what| fail(format!("{file} removed"), what))?;
    }
    Ok(counts)
}

/// A byte somewhere in the files.
fn aim(targets: &[(FileName, u64)], dice: &mut Dice) -> Option<(FileName, usize)> {
    let mut place = dice.below(targets.iter().map(|(_, bytes)| bytes).sum());
    for (file, bytes) in targets {
        if place < *bytes {
            return Some((*file, in_memory(place)));
        }
        place -= bytes;
    }
    None
}

/// Zeros, noise, or the bytes of another sector.
fn ruin_sector(bytes: &mut [u8], start: usize, kind: u64, noise: u64) {
    let sectors = bytes.len() / SECTOR_BYTES;
    let other = Dice::new(noise).index(sectors) * SECTOR_BYTES;
    let mut content = vec![0; SECTOR_BYTES];
    match kind {
        0 => {}
        1 => Dice::new(noise).fill(&mut content),
        _ => content.copy_from_slice(bytes.get(other..other + SECTOR_BYTES).unwrap_or(&[0; SECTOR_BYTES])),
    }
    if let Some(sector) = bytes.get_mut(start..start + SECTOR_BYTES) {
        sector.copy_from_slice(&content);
    }
}

fn judge(
    image: &SimDisk,
    options: &Options,
    file: FileName,
    history: &History,
    newest: Position,
    counts: &mut DamageCounts,
) -> Result<(), String> {
    counts.tried += 1;
    let disk: Arc<dyn Disk> = Arc::new(image.clone());
    let verified = verify_disk(&disk, options).map_err(|error| error.to_string())?;
    let named_offline = names(&verified.to_string(), file);
    let before = *counts;
    open_and_read(image, options, file, history, newest, counts)?;
    // Only the owner of the log knows that a file which is gone still held something it needs.
    let present = image.contents(file).is_some();
    if counts.harmless == before.harmless && present && !named_offline {
        return Err(format!("{file} is damaged, and verifying offline says {verified}"));
    }
    if counts.harmless > before.harmless && named_offline {
        counts.harmless -= 1;
        counts.offline += 1;
    }
    Ok(())
}

fn open_and_read(
    image: &SimDisk,
    options: &Options,
    file: FileName,
    history: &History,
    newest: Position,
    counts: &mut DamageCounts,
) -> Result<(), String> {
    let found = match model::recover(image, options) {
        Ok(found) => found,
        Err(OpenError::Damaged(damage)) if names(&damage.to_string(), file) => {
            counts.refused += 1;
            return Ok(());
        }
        Err(error) => return Err(format!("refused without naming {file}: {error}")),
    };
    match model::check(&found, image, history, newest) {
        Ok(()) if found.findings.bad_snapshots.iter().any(|damage| damage.file == file) => {
            counts.reported += 1;
        }
        Ok(()) => counts.harmless += 1,
        Err(what) if names(&what, file) && !what.contains("acknowledged") => counts.reported += 1,
        Err(what) => return Err(what),
    }
    Ok(())
}

/// Whether a message names the damaged file.
fn names(text: &str, file: FileName) -> bool {
    text.contains(&file.to_string())
}
