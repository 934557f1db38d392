use super::*;
use crate::batch::ReadBack;
use crate::disk::{Fault, FileName, RealDisk, SimDisk};
use crate::entry::Entry;
use crate::recovery::{Findings, Opening};
use crate::shared::Notice;
use crate::units::in_memory;
use std::sync::mpsc;

fn quiet() -> Notify {
    Arc::new(|_| ())
}

/// Opens a log without threads; returns the payloads it replayed, one list per batch.
fn open(disk: &SimDisk) -> (Log, Vec<Vec<Vec<u8>>>, Findings) {
    let opening = Opening::begin(Arc::new(disk.clone()), Options::tiny()).unwrap();
    let mut replayed = Vec::new();
    let recovered = opening.replay(|entry| keep(entry, &mut replayed)).unwrap();
    let findings = recovered.findings().clone();
    (recovered.start_manual(quiet(), 1).unwrap(), replayed, findings)
}

fn keep(entry: &Entry<'_>, replayed: &mut Vec<Vec<Vec<u8>>>) -> Result<(), crate::EntryError> {
    let payloads: Result<Vec<_>, _> =
        entry.records().map(|view| view.map(|view| view.payload.to_vec())).collect();
    let payloads = payloads?;
    if !payloads.is_empty() {
        replayed.push(payloads);
    }
    Ok(())
}

fn put(log: &mut Log, payloads: &[&[u8]]) -> Vec<Location> {
    let mut batch = log.batch().unwrap();
    let places = payloads.iter().map(|payload| batch.record(1, b"", &[payload]).unwrap()).collect();
    log.submit(batch, 5).unwrap();
    places
}

#[test]
fn what_was_flushed_is_replayed_in_order() {
    let disk = SimDisk::new(1);
    let (mut log, replayed, _) = open(&disk);
    assert!(replayed.is_empty());
    for number in 0..100_u32 {
        put(&mut log, &[&number.to_le_bytes(), b"more"]);
        log.flush().unwrap();
    }
    drop(log);
    let (_, replayed, findings) = open(&disk.crash(&[]));
    let numbers: Vec<_> = replayed.iter().map(|batch| batch[0].clone()).collect();
    assert_eq!(numbers, (0..100_u32).map(|number| number.to_le_bytes().to_vec()).collect::<Vec<_>>());
    assert!(!findings.closed);
    assert_eq!(findings.torn, None);
}

#[test]
fn what_goes_past_the_cache_is_whole_blocks_and_reads_back() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    let mut places = Vec::new();
    for number in 0..100_u8 {
        let payload = vec![number; 37 * usize::from(number % 50)];
        let mut batch = log.batch().unwrap();
        while !batch.is_full() && batch.count() <= u32::from(number % 5) {
            places.push((batch.record(1, b"fixed", &[&payload]).unwrap(), payload.clone()));
        }
        batch.set_read_back(match number % 3 {
            0 => ReadBack::Scattered,
            1 => ReadBack::Stretches,
            _ => ReadBack::Never,
        });
        log.submit(batch, 5).unwrap();
        log.flush().unwrap();
        log.upkeep();
    }
    assert!(disk.written_past() > 30, "most of the larger ones");
    let reader = log.reader();
    for (place, payload) in &places {
        assert_eq!(reader.read(*place, payload.len()).unwrap().payload, payload);
    }
    drop(log);
    let (_, replayed, findings) = open(&disk.crash(&[]));
    assert_eq!(replayed.concat().len(), places.len());
    assert_eq!(findings.torn, None);
}

#[test]
fn nothing_is_made_ready_before_the_first_commit_has_made_the_first_segment() {
    let disk = SimDisk::new(1);
    let opening = Opening::begin(Arc::new(disk.clone()), Options::tiny()).unwrap();
    let mut log = opening.replay(|_| Ok::<(), crate::EntryError>(())).unwrap().take_over(quiet(), 1).unwrap();
    let before = disk.list().unwrap();
    log.upkeep();
    assert_eq!(disk.list().unwrap(), before, "there is nothing yet that it could be ready for");
    log.flush().unwrap();
    let born = disk.list().unwrap();
    log.upkeep();
    assert!(disk.list().unwrap().len() > born.len(), "a spare is made ready for when the first is full");
}

#[test]
fn batches_gather_records_while_the_disk_is_busy() {
    let (mut log, _, _) = open(&SimDisk::new(1));
    let before = log.durable();
    for _ in 0..10 {
        put(&mut log, &[b"small"]);
    }
    assert_eq!(log.submitted(), before.next(), "ten submits joined one waiting batch");
    assert_eq!(log.durable(), before);
    assert_eq!(log.flush().unwrap(), before.next());
}

#[test]
fn a_full_batch_waiting_means_no_further_batch_until_the_disk_catches_up() {
    let (mut log, _, _) = open(&SimDisk::new(1));
    let mut batch = log.batch().unwrap();
    while batch.record(1, b"", &[&[0; 1000]]).is_ok() {}
    log.submit(batch, 5).unwrap();
    assert!(log.batch().is_none());
    log.flush().unwrap();
    assert!(log.batch().is_some());
}

#[test]
fn an_empty_batch_is_no_commit() {
    let (mut log, _, _) = open(&SimDisk::new(1));
    let before = log.submitted();
    let batch = log.batch().unwrap();
    assert_eq!(log.submit(batch, 5).unwrap(), before);
    assert_eq!(log.flush().unwrap(), before);
    put(&mut log, &[b"x"]);
    assert_eq!(log.flush().unwrap(), before.next());
}

#[test]
fn records_are_readable_while_queued_and_after() {
    let (mut log, _, _) = open(&SimDisk::new(1));
    let reader = log.reader();
    let places = put(&mut log, &[b"first", b"second"]);
    let read = |place, hint| reader.read(place, hint).unwrap().payload;
    assert_eq!(read(places[1], 6), &b"second"[..]);
    log.flush().unwrap();
    for hint in [0, 5, 6, 5000] {
        assert_eq!(read(places[0], hint), &b"first"[..]);
        assert_eq!(read(places[1], hint), &b"second"[..]);
    }
}

#[test]
fn a_flipped_bit_is_found_by_the_read_that_meets_it_and_named() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    let place = put(&mut log, &[b"payload"])[0];
    log.flush().unwrap();
    disk.damage(FileName::Segment(1), |bytes| bytes[usize::try_from(place.offset()).unwrap() + 14] ^= 4);
    let error = log.reader().read(place, 7).unwrap_err().to_string();
    assert!(error.contains("segment-00000001") && error.contains(&place.offset().to_string()), "{error}");
}

#[test]
fn a_failed_sync_stops_the_log_for_good_and_is_said_once() {
    let disk = SimDisk::new(1);
    let (sender, notices) = mpsc::channel();
    let opening = Opening::begin(Arc::new(disk.clone()), Options::tiny()).unwrap();
    let recovered = opening.replay(|_| Ok::<_, String>(())).unwrap();
    let notify: Notify = Arc::new(move |notice| sender.send(notice).unwrap());
    let mut log = recovered.start_manual(notify, 1).unwrap();
    put(&mut log, &[b"doomed"]);
    let before = log.durable();
    disk.fail_at(disk.calls() + 1, Fault::Fail);
    let failure = log.flush().unwrap_err();
    assert!(failure.to_string().contains("sync segment-00000001: input/output error"), "{failure}");
    let batch = log.batch().unwrap();
    assert_eq!(log.submit(batch, 6), Err(failure.clone()));
    assert_eq!(log.flush(), Err(failure.clone()));
    assert_eq!(log.durable(), before);
    assert_eq!(notices.try_iter().collect::<Vec<_>>(), [Notice::Durable(before), Notice::Failed(failure)]);
}

#[test]
fn a_closed_log_says_so_and_each_start_raises_the_epoch() {
    let disk = SimDisk::new(1);
    for round in 1..4 {
        let (mut log, _, findings) = open(&disk);
        assert_eq!(log.epoch(), Epoch(round));
        assert_eq!(findings.closed, round > 1);
        put(&mut log, &[b"x"]);
        log.close(9).unwrap();
    }
}

#[test]
fn the_note_of_a_closed_log_saves_reading_and_is_gone_before_anything_is_written() {
    let note = FileName::Closed(1);
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    put(&mut log, &[b"x"]);
    log.close(9).unwrap();
    assert!(disk.list().unwrap().contains(&note));
    let calls_to_open = |disk: SimDisk| {
        let before = disk.calls();
        Opening::begin(Arc::new(disk.clone()), Options::tiny())
            .unwrap()
            .replay(|_| Ok::<_, crate::EntryError>(()))
            .unwrap();
        disk.calls() - before
    };
    let without = disk.fork();
    without.remove(note).unwrap();
    assert!(calls_to_open(disk.fork()) < calls_to_open(without));

    // The log goes on, and its first entry is damaged later: what follows must not be taken for nothing.
    let closed = disk.contents(FileName::Segment(1)).unwrap();
    let (mut log, _, _) = open(&disk);
    assert!(!disk.list().unwrap().contains(&note));
    put(&mut log, &[b"y"]);
    log.flush().unwrap();
    let image = disk.crash(&[]);
    assert!(!image.list().unwrap().contains(&note));
    let after = image.contents(FileName::Segment(1)).unwrap();
    let first = closed.iter().zip(&after).position(|(before, after)| before != after).unwrap();
    image.damage(FileName::Segment(1), |bytes| bytes[first] ^= 1);
    let opening = Opening::begin(Arc::new(image), Options::tiny()).unwrap();
    let refused = opening.replay(|_| Ok::<_, crate::EntryError>(())).unwrap_err();
    assert!(refused.to_string().contains("does not verify"), "{refused}");
}

#[test]
fn segments_are_used_again_once_released_and_covered_by_both_snapshots() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    let mut peak = 0;
    for round in 0..60_u32 {
        for _ in 0..4 {
            put(&mut log, &[&[7; 1500], &round.to_le_bytes()]);
            log.flush().unwrap();
        }
        for region in log.regions() {
            log.release(region);
        }
        let mut snapshot = log.snapshot(Pace::UNLIMITED).unwrap();
        snapshot.write(&round.to_le_bytes()).unwrap();
        snapshot.finish().unwrap();
        log.upkeep();
        peak = peak.max(disk.list().unwrap().len());
    }
    assert!(peak < 12, "{peak} files at once");
    assert!(log.regions().iter().all(|region| region.number() > 20), "{:?}", log.regions());
    drop(log);
    let mut opening = Opening::begin(Arc::new(disk), Options::tiny()).unwrap();
    let content = opening.snapshot().unwrap().next_block().unwrap().unwrap();
    assert_eq!(content, 59_u32.to_le_bytes());
    opening.replay(|_| Ok::<_, String>(())).unwrap();
}

#[test]
fn a_snapshot_waits_for_its_position_and_a_damaged_one_gives_way_to_the_one_before() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    let mut numbers = Vec::new();
    for content in [b"older", b"newer"] {
        put(&mut log, &[content]);
        let mut snapshot = log.snapshot(Pace::UNLIMITED).unwrap();
        snapshot.write(content).unwrap();
        assert!(matches!(snapshot.finish(), Err(snapshot::Error::NotDurable { .. })));
        log.flush().unwrap();
        numbers.push(snapshot.finish().unwrap().number);
    }
    put(&mut log, &[b"after"]);
    log.flush().unwrap();
    drop(log);
    for (damage, expected, entries) in [(false, b"newer", 1), (true, b"older", 2)] {
        let image = disk.fork();
        if damage {
            image.damage(FileName::Snapshot(numbers[1]), |bytes| bytes[4096 + 9] ^= 1);
        }
        let mut opening = Opening::begin(Arc::new(image), Options::tiny()).unwrap();
        assert_eq!(opening.snapshot().unwrap().next_block().unwrap().unwrap(), expected);
        let mut replayed = Vec::new();
        let recovered = opening.replay(|entry| keep(entry, &mut replayed)).unwrap();
        assert_eq!(replayed.len(), entries);
        assert_eq!(recovered.findings().bad_snapshots.len(), usize::from(damage));
    }
}

#[test]
fn extents_keep_records_index_and_summary_and_go_when_freed() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    let mut writer = log.extent().unwrap();
    let places: Vec<_> = (0..200_u32)
        .map(|number| writer.append(3, &number.to_le_bytes(), &[b"body", &[7; 900]]).unwrap())
        .collect();
    let index: Vec<u8> = (0..=250).cycle().take(extent::INDEX_PIECE_BYTES * 2 + 5).collect();
    let region = writer.region();
    writer.finish(&index, b"levels 0 to 3").unwrap();
    drop(log);
    let image = disk.crash(&[]);
    let (log_again, _, _) = open(&image);
    log = log_again;
    assert!(log.regions().contains(&region));
    let reader = log.reader();
    for (number, place) in (0_u32..).zip(&places) {
        let record = reader.read(*place, 904).unwrap();
        assert_eq!(
            (record.kind, &record.fixed[..], record.payload.len()),
            (3, &number.to_le_bytes()[..], 904)
        );
    }
    let footer = reader.footer(region).unwrap();
    assert_eq!((footer.records, &footer.summary[..]), (200, &b"levels 0 to 3"[..]));
    let pieces: Vec<_> = (0..footer.index_pieces())
        .map(|piece| reader.index_piece(&footer, piece).unwrap().unwrap())
        .collect();
    assert_eq!(pieces.concat(), index);
    assert_eq!(reader.index_piece(&footer, 3).unwrap(), None);
    log.release(region);
    for _ in 0..2 {
        log.upkeep();
        assert!(log.regions().contains(&region), "a kept snapshot may lead back to it");
        put(&mut log, &[b"x"]);
        log.flush().unwrap();
        log.snapshot(Pace::UNLIMITED).unwrap().finish().unwrap();
    }
    log.upkeep();
    assert!(!log.regions().contains(&region));
    assert!(image.contents(FileName::Extent(region.number())).is_none());
}

#[test]
fn a_large_payload_spans_batches_and_comes_back_whole() {
    let (mut log, _, _) = open(&SimDisk::new(1));
    let payload: Vec<u8> = (0..=252).cycle().take(50_000).collect();
    let mut parts = Vec::new();
    for chunk in crate::batch::chunks(&payload, 2000) {
        let mut batch = log.batch().unwrap();
        let location = batch.record(2, b"", &[chunk]).unwrap();
        parts.push(crate::Part { location, bytes: u32::try_from(chunk.len()).unwrap() });
        log.submit(batch, 5).unwrap();
        if log.batch().map(|batch| log.submit(batch, 5)).is_none() {
            log.flush().unwrap();
        }
    }
    assert_eq!(log.reader().read_parts(&parts).unwrap().concat(), payload);
}

#[test]
fn a_full_disk_refuses_growth_lets_settlements_go_on_and_resumes() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    log.upkeep();
    let mut now = 0;
    assert_eq!(log.permit(Appending::Growing, now), Ok(()));
    disk.set_free_bytes(1000);
    let mut sent = 0;
    while log
        .permit(Appending::Growing, {
            now += 1000;
            now
        })
        .is_ok()
    {
        put(&mut log, &[&[1; 2000]]);
        log.flush().unwrap();
        log.upkeep();
        sent += 1;
        assert!(sent < 1000);
    }
    for _ in 0..3 {
        log.permit(Appending::Settling, {
            now += 1000;
            now
        })
        .unwrap();
        put(&mut log, &[b"settled"]);
        log.flush().unwrap();
    }
    disk.set_free_bytes(1 << 30);
    log.upkeep();
    assert_eq!(log.permit(Appending::Growing, now + 1000), Ok(()));
}

#[test]
fn under_pressure_the_oldest_segment_is_named() {
    let (mut log, _, _) = open(&SimDisk::new(1));
    assert_eq!(log.pressure().evacuate, None);
    while log.pressure().evacuate.is_none() {
        put(&mut log, &[&[1; 2000]]);
        log.flush().unwrap();
        log.upkeep();
    }
    let pressure = log.pressure();
    assert_eq!(pressure.evacuate, Some(Region::segment(1)));
    assert!(pressure.used_segments <= pressure.ring_segments);
    assert_eq!(pressure.live_segments, pressure.used_segments);
    log.release(Region::segment(1));
    assert_eq!(log.pressure().used_segments, pressure.used_segments);
    assert_eq!(log.pressure().live_segments, pressure.used_segments - 1);
    assert_eq!(log.pressure().evacuate, Some(Region::segment(2)));
    assert!(log.pressure().snapshot_wanted);
}

#[test]
fn a_segment_that_rests_leaves_its_place_in_the_ring_and_is_read_and_released_like_any_other() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    let kept = put(&mut log, &[b"kept"])[0];
    let fill = |log: &mut Log| {
        while log.pressure().evacuate.is_none() {
            put(log, &[&[1; 2000]]);
            log.flush().unwrap();
            log.upkeep();
        }
    };
    fill(&mut log);
    let full = log.pressure();
    for number in 1..=5 {
        log.rest(Region::segment(number));
    }
    let rested = log.pressure();
    assert_eq!((rested.used_segments, rested.resting_segments), (full.used_segments - 5, 5));
    assert_eq!(rested.evacuate, None, "there is room again");
    fill(&mut log);
    assert_eq!(log.pressure().evacuate, Some(Region::segment(6)));
    assert_eq!(log.regions().len(), full.used_segments + 5);
    assert_eq!(log.reader().read(kept, 4).unwrap().payload.as_ref(), b"kept");

    // One that is released waits for a snapshot to cover it, as others do.
    log.release(Region::segment(1));
    log.flush().unwrap();
    log.upkeep();
    assert!(log.regions().contains(&Region::segment(1)));
    for _ in 0..2 {
        put(&mut log, &[b"later"]);
        log.flush().unwrap();
        let mut snapshot = log.snapshot(Pace::UNLIMITED).unwrap();
        snapshot.write(b"state").unwrap();
        snapshot.finish().unwrap();
    }
    log.upkeep();
    assert!(!log.regions().contains(&Region::segment(1)));
    assert_eq!(log.pressure().resting_segments, 4);

    // One that is written to does not rest, nor one that is not there, nor an extent.
    let active = log.regions().into_iter().max().unwrap();
    for region in [active, Region::segment(1), Region::extent(2)] {
        log.rest(region);
    }
    assert_eq!(log.pressure().resting_segments, 4);
}

#[test]
fn threads_commit_notify_and_end_with_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let (sender, notices) = mpsc::channel();
    let options = Options::tiny();
    for round in 0..2 {
        let disk = Arc::new(RealDisk::open(directory.path()).unwrap());
        let mut replayed = Vec::new();
        let recovered = Opening::begin(disk, options.clone())
            .unwrap()
            .replay(|entry| keep(entry, &mut replayed))
            .unwrap();
        assert_eq!(replayed.concat().len(), round * 200);
        let sender = sender.clone();
        let notify: Notify = Arc::new(move |notice| sender.send(notice).unwrap());
        let mut log = recovered.start(notify, 1).unwrap();
        for number in 0..200_u32 {
            let mut batch = loop {
                match log.batch() {
                    Some(batch) => break batch,
                    None => drop(notices.recv().unwrap()),
                }
            };
            batch.record(1, b"", &[&number.to_le_bytes()]).unwrap();
            log.submit(batch, 5).unwrap();
        }
        let last = log.submitted();
        assert_eq!(log.flush().unwrap(), last);
        assert_eq!(log.close(9).unwrap(), last.next());
    }
    let positions: Vec<_> = notices.try_iter().collect();
    assert!(positions.iter().all(|notice| matches!(notice, Notice::Durable(_))));
}

#[test]
fn a_small_batch_that_finds_the_disk_idle_is_committed_by_its_owner_and_a_large_one_never() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(RealDisk::open(directory.path()).unwrap());
    let opening = Opening::begin(disk, Options::tiny()).unwrap();
    let recovered = opening.replay(|_| Ok::<_, crate::EntryError>(())).unwrap();
    let (sender, notices) = mpsc::channel();
    let told = move |_| sender.send(std::thread::current().id()).unwrap();
    let mut log = recovered.start(Arc::new(told), 1).unwrap();
    let mut here = |payload: &[u8]| {
        put(&mut log, &[payload]);
        log.flush().unwrap();
        notices.try_iter().any(|thread| thread == std::thread::current().id())
    };
    // The commit thread is not idle before it has begun to wait.
    while !here(b"small") {}
    assert!((0..20).all(|_| !here(&[1; 1000])));
    while !here(b"small") {}
}

#[test]
fn a_log_goes_on_with_larger_and_smaller_entries_than_its_segments_were_made_for() {
    let disk = SimDisk::new(1);
    let large = Options {
        segment_bytes: 128 << 10,
        first_segment_bytes: 128 << 10,
        ring_bytes: 2 << 20,
        limits: crate::Limits { batch_bytes: 40 << 10, record_bytes: 8 << 10 },
        ..Options::tiny()
    };
    let mut expected = Vec::new();
    for (round, options) in [Options::tiny(), large.clone(), Options::tiny(), large].into_iter().enumerate() {
        let mut replayed = Vec::new();
        let opening = Opening::begin(Arc::new(disk.clone()), options.clone()).unwrap();
        let recovered = opening.replay(|entry| keep(entry, &mut replayed)).unwrap();
        assert_eq!(replayed.concat(), expected, "round {round}");
        let mut log = recovered.start_manual(quiet(), 1).unwrap();
        for number in 0..9_u8 {
            let payload = vec![number; options.limits.record_bytes];
            let mut batch = log.batch().unwrap();
            while batch.record(1, b"", &[&payload]).is_ok() {
                expected.push(payload.clone());
            }
            log.submit(batch, 5).unwrap();
            log.flush().unwrap();
        }
        log.upkeep();
    }
}

/// What a caller may do between two looks at the log.
#[derive(Debug, Clone)]
enum Act {
    Put(Vec<usize>),
    Flush,
    Upkeep,
    Snapshot,
    Reopen,
}

fn acts() -> impl proptest::strategy::Strategy<Value = Vec<Act>> {
    use proptest::prelude::*;
    let act = prop_oneof![
        6 => prop::collection::vec(0_usize..2048, 1..5).prop_map(Act::Put),
        3 => Just(Act::Flush),
        1 => Just(Act::Upkeep),
        1 => Just(Act::Snapshot),
        1 => Just(Act::Reopen),
    ];
    prop::collection::vec(act, 1..80)
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 48, ..Default::default() })]

    #[test]
    fn whatever_is_done_every_record_is_replayed_once_and_readable(acts in acts()) {
        let disk = SimDisk::new(7);
        let (mut log, _, _) = open(&disk);
        let mut expected: Vec<Vec<u8>> = Vec::new();
        let mut places = Vec::new();
        let mut in_snapshot = 0;
        for act in acts {
            match act {
                Act::Put(sizes) => {
                    for size in sizes {
                        let Some(mut batch) = log.batch() else { break };
                        let payload = vec![u8::try_from(expected.len() % 251).unwrap(); size];
                        if let Ok(place) = batch.record(1, b"", &[&payload]) {
                            places.push(place);
                            expected.push(payload);
                        }
                        log.submit(batch, 5).unwrap();
                    }
                }
                Act::Flush => drop(log.flush().unwrap()),
                Act::Upkeep => log.upkeep(),
                Act::Snapshot => {
                    let mut snapshot = log.snapshot(Pace::UNLIMITED).unwrap();
                    log.flush().unwrap();
                    snapshot.finish().unwrap();
                    in_snapshot = expected.len();
                }
                Act::Reopen => {
                    log.flush().unwrap();
                    drop(log);
                    let (reopened, replayed, _) = open(&disk);
                    log = reopened;
                    proptest::prop_assert_eq!(&replayed.concat(), &expected[in_snapshot..]);
                }
            }
            for (place, payload) in places.iter().zip(&expected).rev().take(8) {
                proptest::prop_assert_eq!(&log.reader().read(*place, payload.len()).unwrap().payload[..], &payload[..]);
            }
        }
    }
}

/// Commits as many records of a kilobyte as asked for, each payload different from the others.
fn commit(log: &mut Log, records: u32, expected: &mut Vec<Vec<u8>>) {
    let mut batch = log.batch().unwrap();
    for _ in 0..records {
        let payload = vec![u8::try_from(expected.len() % 251).unwrap(); 1 << 10];
        batch.record(1, b"", &[&payload]).unwrap();
        expected.push(payload);
    }
    log.submit(batch, 5).unwrap();
    log.flush().unwrap();
    log.upkeep();
}

#[test]
fn large_commits_get_files_without_zeros_and_small_ones_find_theirs_filled_ahead() {
    let disk = SimDisk::new(1);
    let options = Options {
        segment_bytes: 512 << 10,
        first_segment_bytes: 256 << 10,
        ring_bytes: 8 << 20,
        limits: crate::Limits { batch_bytes: 32 << 10, record_bytes: 2 << 10 },
        ..Options::tiny()
    };
    let open = |replayed: &mut Vec<Vec<Vec<u8>>>| {
        let opening = Opening::begin(Arc::new(disk.clone()), options.clone()).unwrap();
        opening.replay(|entry| keep(entry, replayed)).unwrap().start_manual(quiet(), 1).unwrap()
    };
    let mut log = open(&mut Vec::new());
    let mut expected = Vec::new();
    let active = |log: &Log| log.newest.1.segment;
    assert!(log.supply.fresh(1).is_some(), "of the first segment, the beginning alone is filled");
    log.upkeep();
    assert_eq!(log.supply.fresh(1), None, "it is filled ahead of what comes");
    assert_eq!(log.supply.set_aside_bytes(), 3 * options.segment_bytes, "and so are those behind it");

    while active(&log) < 5 {
        commit(&mut log, 24, &mut expected);
    }
    let zeros = disk.zeroed_bytes();
    while active(&log) < 7 {
        commit(&mut log, 24, &mut expected);
    }
    assert_eq!(disk.zeroed_bytes(), zeros, "large commits want none");
    assert_eq!(log.supply.set_aside_bytes(), options.segment_bytes, "but the next file is there");

    commit(&mut log, 1, &mut expected);
    assert_eq!(disk.zeroed_bytes(), zeros, "one that is small is none of many");
    while disk.zeroed_bytes() == zeros {
        assert_eq!(active(&log), 7, "small ones have theirs soon");
        commit(&mut log, 1, &mut expected);
    }
    assert!(disk.zeroed_bytes() > zeros + 2 * in_memory(options.segment_bytes), "files behind this one, too");
    assert_eq!(log.supply.fresh(active(&log)), None);
    let zeros = disk.zeroed_bytes();
    for _ in 0..10 {
        commit(&mut log, 1, &mut expected);
    }
    assert_eq!(disk.zeroed_bytes(), zeros, "once");

    drop(log);
    let mut replayed = Vec::new();
    drop(open(&mut replayed));
    assert!(replayed.concat() == expected, "zeros went where nothing was");
}
