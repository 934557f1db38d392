//! Damage: flipped bits, ruined sectors, entries that the disk wrote to the wrong place, cut and missing
//! files. Always detected and named, or without effect; nothing is ever silently missing.

use super::Violation;
use super::model::{self, History, Store};
use crate::dice::Dice;
use crate::disk::{Disk, FileName, SimDisk};
use crate::entry::{self, BLOCK_BYTES};
use crate::location::Position;
use crate::options::Options;
use crate::recovery::OpenError;
use crate::segment::{FIRST_ENTRY, Segment};
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

/// Damages a closed store in `flips` bits and `sectors` sectors, chosen by seed, with each of its entries
/// written over another, and each of its files as a whole.
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
        let Some(content) = disk.contents(file).filter(|_| matches!(file, FileName::Segment(_))) else {
            continue;
        };
        for (from, to, length) in misdirections(&content) {
            let overwrite = |bytes: &mut Vec<u8>| bytes.copy_within(from..from + length, to);
            examine(file, &overwrite, format!("the entry at {from} of {file} written over that at {to}"))?;
        }
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

/// Where an entry of a segment could have been written over a later one of the same length: whole and valid,
/// only in the wrong place. Records know their place, so it is entries without any that matter.
fn misdirections(segment: &[u8]) -> Vec<(usize, usize, usize)> {
    let header = segment.get(..BLOCK_BYTES).unwrap_or_default();
    let Ok(Segment { salt, .. }) = Segment::decode(header) else { return Vec::new() };
    let mut entries = Vec::new();
    let mut offset = in_memory(FIRST_ENTRY);
    while let Some(rest) = segment.get(offset..)
        && let Ok(claimed) = entry::claimed_bytes(rest, salt)
    {
        let length = claimed.next_multiple_of(BLOCK_BYTES);
        entries.push((offset, length, entry::peek(rest).is_some_and(|header| header.count == 0)));
        offset += length;
    }
    let empty = entries.iter().filter(|(_, _, empty)| *empty);
    let pairs = empty.flat_map(|(from, length, _)| {
        let later = entries.iter().filter(move |(to, other, _)| to > from && other == length);
        later.map(move |(to, ..)| (*from, *to, *length))
    });
    pairs.collect()
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
