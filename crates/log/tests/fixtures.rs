//! A data directory written by each released version of the format opens, reads and goes on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use vorrang_log::disk::RealDisk;
use vorrang_log::{Epoch, Location, Opening, Options, Region, verify};

fn copy_of(version: &str) -> tempfile::TempDir {
    let source: PathBuf = [env!("CARGO_MANIFEST_DIR"), "fixtures", version].iter().collect();
    let copy = tempfile::tempdir().expect("a temporary directory");
    for file in std::fs::read_dir(source).expect("the fixture is kept with the code") {
        let file = file.expect("its files can be listed");
        std::fs::copy(file.path(), copy.path().join(file.file_name())).expect("and copied");
    }
    copy
}

fn options() -> Options {
    Options { spare_segments: 0, ..Options::tiny() }
}

fn opening(path: &Path) -> Opening {
    let disk = RealDisk::open(path).expect("nobody else uses the copy");
    Opening::begin(Arc::new(disk), options()).expect("a released format opens")
}

#[test]
fn version_1_opens_reads_and_goes_on() {
    let directory = copy_of("v1");
    let report = verify(directory.path(), &options()).unwrap();
    assert!(report.is_sound(), "{report}");
    assert_eq!((report.entries, report.records), (28, 26), "{report}");
    assert_eq!((report.extents, report.extent_records, report.snapshots), (1, 5, 2), "{report}");

    let mut opening = opening(directory.path());
    let snapshot = opening.snapshot().unwrap();
    assert_eq!(snapshot.next_block().unwrap().unwrap(), b"state after twenty");
    let mut replayed = Vec::new();
    let recovered = opening
        .replay(|entry| {
            for record in entry.records() {
                let record = record.unwrap();
                replayed.push((record.kind, record.fixed.to_vec(), record.payload.to_vec(), record.location));
            }
            Ok::<_, String>(())
        })
        .unwrap();
    assert!(recovered.findings().closed);
    let numbers: Vec<_> = replayed.iter().map(|(_, fixed, ..)| fixed.clone()).collect();
    assert_eq!(numbers, (20..26_u32).map(|number| number.to_le_bytes().to_vec()).collect::<Vec<_>>());
    assert_eq!(replayed[0].2, [&b"message 20 "[..], &[b'.'; 40]].concat());

    let mut log = recovered.start_manual(Arc::new(|_| ()), 10_000).unwrap();
    assert_eq!(log.epoch(), Epoch(2));
    let reader = log.reader();
    for (kind, fixed, payload, location) in &replayed {
        let record = reader.read(*location, payload.len()).unwrap();
        assert_eq!((&record.kind, &record.fixed[..], &record.payload[..]), (kind, &fixed[..], &payload[..]));
    }
    let footer = reader.footer(Region::extent(1)).unwrap();
    assert_eq!((footer.records, &footer.summary[..]), (5, &b"a summary"[..]));
    assert_eq!(reader.index_piece(&footer, 0).unwrap().unwrap(), &b"an index of five"[..]);
    let first = reader.read(Location::new(Region::extent(1), 4096), 7).unwrap();
    assert_eq!((first.kind, &first.payload[..]), (2, &b"moved 0"[..]));

    let mut batch = log.batch().unwrap();
    batch.record(1, b"", &[b"written by this version"]).unwrap();
    log.submit(batch, 11_000).unwrap();
    log.close(12_000).unwrap();
    drop(reader);
    assert!(verify(directory.path(), &options()).unwrap().is_sound());
}
