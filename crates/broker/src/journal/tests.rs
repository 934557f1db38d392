use super::facts::{KINDS, decode, encode};
use super::record::{self, Assembler, Content, GATHERED, Scratch, Sink, each, stored};
use super::samples::{FACTS, Source};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use vorrang_engine::fact::{Arrival, Fact, Payload};
use vorrang_engine::{Level, LevelOrigin, Location, MailboxId, Sequence, Timestamp};
use vorrang_log::RecordView;

/// A log in memory, with records as small as asked for.
struct Records {
    bytes_max: usize,
    kept: Vec<(Location, u8, Vec<u8>, Vec<u8>)>,
}

impl Sink for Records {
    type Failure = Infallible;
    fn append(&mut self, kind: u8, fixed: &[u8], payload: &[u8]) -> Result<Location, Infallible> {
        assert!(fixed.len() + payload.len() <= self.bytes_max, "{} bytes", fixed.len() + payload.len());
        let location = Location(u64::try_from(self.kept.len()).unwrap() * 8 + (1 << 32));
        self.kept.push((location, kind, fixed.to_vec(), payload.to_vec()));
        Ok(location)
    }
    fn gather(&mut self, item: &[&[u8]]) -> Result<Location, Infallible> {
        let item = item.concat();
        match self.kept.last_mut() {
            Some((location, GATHERED, _, payload)) if payload.len() + item.len() <= self.bytes_max => {
                payload.extend(item);
                Ok(*location)
            }
            _ => self.append(GATHERED, &[], &item),
        }
    }
    fn record_bytes_max(&self) -> usize {
        self.bytes_max
    }
}

impl Records {
    fn new(bytes_max: usize) -> Records {
        Records { bytes_max, kept: Vec::new() }
    }

    /// Every unit the records hold, each fact as text.
    fn units(&self) -> Vec<Vec<String>> {
        let mut assembler = Assembler::default();
        let mut units = Vec::new();
        for (location, kind, fixed, payload) in &self.kept {
            let location = vorrang_log::Location::from_raw(location.0);
            let view = RecordView { location, kind: *kind, fixed, payload };
            for record in each(&view) {
                if let Some(unit) = assembler.take(&record.unwrap()).unwrap() {
                    units.push(unit.iter().map(|read| format!("{:?}", read.fact)).collect());
                }
            }
        }
        units
    }

    fn payload_at(&self, location: Location) -> Vec<u8> {
        let by_place: BTreeMap<_, _> = self.kept.iter().map(|record| (record.0, record)).collect();
        let (_, _, fixed, payload) = by_place[&location];
        match stored(fixed, Bytes::from(payload.clone())).unwrap().content {
            Content::Whole(bytes) => bytes.to_vec(),
            Content::Apart(parts) => {
                parts.iter().flat_map(|part| by_place[&Location(part.location.raw())].3.clone()).collect()
            }
        }
    }
}

fn message(bytes: usize) -> Fact {
    Fact::Enqueued {
        payload: Payload {
            bytes: (0..bytes).map(|n| u8::try_from(n % 251).unwrap()).collect(),
            size: u32::try_from(bytes).unwrap(),
            location: Location::NOWHERE,
            assigned_id: Some(7),
        },
        arrival: Arrival {
            mailbox: MailboxId(4),
            sequence: Sequence(1),
            eligible: Timestamp(5),
            level: Level(4),
            origin: LevelOrigin::Header,
            details: None,
        },
    }
}

#[test]
fn every_kind_is_among_the_samples() {
    let mut seen: Vec<u8> =
        (1..=FACTS).map(|which| encode(&Source(&[]).fact(which), &mut Vec::new()).unwrap()).collect();
    seen.sort_unstable();
    let mut kinds = KINDS.to_vec();
    kinds.sort_unstable();
    assert_eq!(seen, kinds);
}

/// The bytes of one fact of each kind, written down: a change here is a change of the format.
#[test]
fn the_bytes_of_every_kind_stay_what_they_are() {
    let entropy: Vec<u8> = (1..=250).map(|n: u8| n.wrapping_mul(37)).collect();
    let mut found = String::new();
    for which in 1..=FACTS {
        let mut bytes = Vec::new();
        let kind = encode(&Source(&entropy).fact(which), &mut bytes).unwrap();
        write!(found, "{kind} ").unwrap();
        for byte in bytes {
            write!(found, "{byte:02x}").unwrap();
        }
        found.push('\n');
    }
    assert_eq!(found, include_str!("format.txt"), "the new text would be:\n{found}");
}

#[test]
fn payloads_of_every_size_around_the_limit_come_back() {
    for bytes in [0, 1, 208, 209, 210, 211, 255, 256, 257, 511, 512, 513, 3_000] {
        let mut fact = message(bytes);
        let mut records = Records::new(256);
        let written =
            record::write(&mut fact, false, &mut records, &mut Scratch::default()).unwrap().unwrap();
        let payload = fact.payload().unwrap();
        assert_eq!(payload.location, written.location, "{bytes}");
        assert_eq!(records.payload_at(written.location), payload.bytes, "{bytes}");
        assert_eq!(written.first_part.is_some(), records.kept.len() > 1, "{bytes}");
        assert_eq!(records.units(), [[format!("{fact:?}")]], "{bytes}");
    }
}

#[test]
fn a_unit_is_handed_out_whole_or_not_at_all() {
    let mut records = Records::new(1_000);
    let scratch = &mut Scratch::default();
    let mut put = |mut fact: Fact, more| record::write(&mut fact, more, &mut records, scratch).unwrap();
    put(message(1), true);
    put(message(2), true);
    put(message(3), false);
    put(message(4), true);
    // A crash here; the next start announces itself.
    put(Fact::Recovered { generation: 1, at: Timestamp(9) }, false);
    put(message(5), false);
    put(message(6), true);
    let lengths: Vec<usize> = records.units().iter().map(Vec::len).collect();
    assert_eq!(lengths, [3, 1, 1]);
}

#[test]
fn facts_without_a_payload_share_a_record_and_come_back_in_order() {
    let renewed = |sequence| {
        let (mailbox, at, until) = (MailboxId(1), Timestamp(1), Timestamp(2));
        Fact::Renewed { mailbox, sequence: Sequence(sequence), at, until }
    };
    let mut records = Records::new(1_000);
    let scratch = &mut Scratch::default();
    let mut written = Vec::new();
    for (mut fact, more) in [
        (renewed(1), false),
        (renewed(2), true),
        (renewed(3), false),
        (message(4), false),
        (renewed(5), true),
        (message(6), false),
        (renewed(7), false),
    ] {
        record::write(&mut fact, more, &mut records, scratch).unwrap();
        written.push(format!("{fact:?}"));
    }
    let kinds: Vec<u8> = records.kept.iter().map(|(_, kind, ..)| *kind).collect();
    assert_eq!(kinds, [GATHERED, 4, GATHERED, 4, GATHERED]);
    let units = records.units();
    assert_eq!(units.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 1, 2, 1]);
    assert_eq!(units.concat(), written);
}

#[test]
fn a_record_that_gathers_is_read_to_its_end_or_refused() {
    let whole = [10, 1, 0, 7, 11, 2, 0, 8, 9];
    let read = |payload: &[u8]| {
        let location = vorrang_log::Location::from_raw(1 << 32);
        each(&RecordView { location, kind: GATHERED, fixed: &[], payload })
            .map(|record| record.map(|record| (record.kind, record.fixed.to_vec())).ok())
            .collect::<Vec<_>>()
    };
    assert_eq!(read(&whole), [Some((10, vec![7])), Some((11, vec![8, 9]))]);
    assert_eq!(read(&[]), []);
    for end in [1, 2, 3, 5, 7, 8] {
        let items = read(&whole[..end]);
        assert_eq!(items.last(), Some(&None), "after {end} bytes");
        assert_eq!(items.len(), if end > 4 { 2 } else { 1 }, "after {end} bytes");
    }
}

#[test]
fn a_fact_nobody_keeps_writes_nothing() {
    let mut records = Records::new(1_000);
    let mut fact = Fact::Pumped;
    assert_eq!(record::write(&mut fact, false, &mut records, &mut Scratch::default()).unwrap(), None);
    assert!(records.kept.is_empty());
}

proptest! {
    #[test]
    fn every_fact_comes_back_as_it_was_written(
        which in 1..=FACTS,
        entropy in proptest::collection::vec(any::<u8>(), 0..400),
        bytes_max in prop_oneof![Just(120_usize), Just(400), Just(100_000)],
    ) {
        let mut fact = Source(&entropy).fact(which);
        let mut records = Records::new(bytes_max);
        let written = record::write(&mut fact, false, &mut records, &mut Scratch::default()).unwrap().unwrap();
        prop_assert_eq!(records.units(), vec![vec![format!("{:?}", fact)]]);
        if let Some(payload) = fact.payload() {
            prop_assert_eq!(records.payload_at(written.location), payload.bytes.to_vec());
        }
    }

    #[test]
    fn any_bytes_are_a_fact_or_an_error(kind: u8, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        super::fuzzing::check_record(kind, &bytes, &[]);
        super::fuzzing::check_record(4, &bytes, &bytes);
        super::fuzzing::check_record(GATHERED, &[], &bytes);
    }

    #[test]
    fn damaged_bytes_are_a_fact_or_an_error(
        which in 1..=FACTS,
        entropy in proptest::collection::vec(any::<u8>(), 0..200),
        damage: (prop::sample::Index, u8),
    ) {
        let mut bytes = Vec::new();
        let kind = encode(&Source(&entropy).fact(which), &mut bytes).unwrap();
        if !bytes.is_empty() {
            let place = damage.0.index(bytes.len());
            bytes[place] ^= damage.1;
            let _ = decode(kind, &bytes, None);
            let _ = decode(kind, &bytes[..place], None);
        }
    }
}
