//! How much memory hostile input can cause: never more than eight times its size and 4 KiB.
//!
//! One test in a file of its own, because the meter counts the whole process.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise; its helpers are tests too"
)]

use std::fs;
use std::path::Path;

use bytes::Bytes;
use peak_alloc::PeakAlloc;
use vorrang_amqp::decode::Reader;
use vorrang_amqp::{Frame, Message, SaslFrame, Value};

#[global_allocator]
static METER: PeakAlloc = PeakAlloc;

/// The most bytes that were allocated at once during `work`, beyond those before it.
fn peak_of(work: impl FnOnce()) -> usize {
    METER.reset_peak_usage();
    let before = METER.current_usage();
    work();
    METER.peak_usage().saturating_sub(before)
}

fn allowed(input: &[u8]) -> usize {
    8 * input.len() + 4096
}

/// Everything a reader of frames and messages does with input before it knows what it is.
fn read_every_way(input: &Bytes) {
    let _ = Frame::decode(input.clone());
    let _ = SaslFrame::decode(input.clone());
    let _ = Reader::new(input).skip();
    if let Ok(value) = Reader::new(input).value() {
        look_at(&value);
    }
    if let Ok(message) = Message::parse(input.clone()) {
        let _ = (message.header(), message.properties(), message.value());
        let maps =
            [message.delivery_annotations(), message.message_annotations(), message.application_properties()];
        for map in maps.iter().flatten() {
            map.iter().for_each(|(_, value)| look_at(&value));
        }
        message.data().for_each(drop);
    }
}

fn look_at(value: &Value) {
    match value {
        Value::List(list) => list.iter().for_each(|item| look_at(&item)),
        Value::Map(map) => map.iter().for_each(|(key, value)| [key, value].iter().for_each(look_at)),
        Value::Array(array) => array.iter().for_each(|item| look_at(&item)),
        Value::Described(described) => look_at(&described.value),
        _ => {}
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body.len() + 8).unwrap();
    [&size.to_be_bytes()[..], &[2, 0, 0, 0], body].concat()
}

fn compound(constructor: u8, count: u32, items: &[u8]) -> Vec<u8> {
    let size = u32::try_from(items.len() + 4).unwrap();
    [&[constructor][..], &size.to_be_bytes(), &count.to_be_bytes(), items].concat()
}

/// Inputs that cost much more than their size when lists become vectors and counts become capacities.
fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let nulls = compound(0xd0, 60_000, &[0x40].repeat(60_000));
    let empty_texts = compound(0xd0, 30_000, &[0xa1, 0].repeat(30_000));
    let empty_pairs = compound(0xd1, 60_000, &[0xa3, 0, 0x40].repeat(30_000));
    let empty_lists = compound(0xd0, 60_000, &[0x45].repeat(60_000));
    let descriptions = compound(0xd0, 20_000, &[0, 0x44, 0x40].repeat(20_000));
    let zero_width = compound(0xf0, 61_000, &[0x45]);
    let capabilities = compound(0xf0, 60_000, &[&[0xa3][..], &[0].repeat(60_000)].concat());
    let described_items =
        compound(0xf0, 60_000, &[&[0, 0x44].repeat(30), &[0x50][..], &[7].repeat(60_000)].concat());
    let deep = [&[0, 0x44].repeat(32)[..], &nulls].concat();
    let open = |field: usize, value: &[u8]| {
        let fields = [&[0xa1, 1, b'c'][..], &[0x40].repeat(field - 1), value].concat();
        [&[0, 0x53, 0x10][..], &compound(0xd0, u32::try_from(field + 1).unwrap(), &fields)].concat()
    };
    vec![
        ("a list of nulls", nulls.clone()),
        ("a list of empty strings", empty_texts),
        ("a map of empty keys", empty_pairs.clone()),
        ("a list of empty lists", empty_lists),
        ("a list of descriptions", descriptions),
        ("an array of zero-width items", zero_width.clone()),
        ("an array of four billion", compound(0xf0, u32::MAX, &[0x40])),
        ("a list of four billion", compound(0xd0, u32::MAX, &[])),
        ("an array of items described thirty times", described_items),
        ("nulls below thirty descriptions", deep),
        ("an open with sixty thousand capabilities", framed(&open(7, &capabilities))),
        ("an open with sixty thousand zero-width capabilities", framed(&open(7, &zero_width))),
        ("an open with thirty thousand properties", framed(&open(9, &empty_pairs))),
        ("a message with thirty thousand properties", [&[0, 0x53, 0x74][..], &empty_pairs].concat()),
        ("a message with a body of nulls", [&[0, 0x53, 0x77][..], &nulls].concat()),
        ("a message of thousands of empty data sections", [0, 0x53, 0x75, 0xa0, 0].repeat(10_000)),
    ]
}

#[test]
fn no_input_allocates_beyond_its_allowance() {
    let mut inputs: Vec<(String, Vec<u8>)> =
        hostile().into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for kind in ["value", "frame", "message"] {
        for entry in fs::read_dir(corpus.join(kind)).unwrap() {
            let path = entry.unwrap().path();
            inputs.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    assert!(inputs.len() > 70, "the corpus is there");
    for (name, bytes) in inputs {
        let limit = allowed(&bytes);
        let input = Bytes::from(bytes);
        let peak = peak_of(|| read_every_way(&input));
        assert!(peak <= limit, "{name}: {peak} bytes at once for an input of {}", input.len());
    }
    the_meter_sees_what_it_is_for();
}

/// The checker checked: keeping every item of a list as a value is what must not happen, and the meter notices it.
fn the_meter_sees_what_it_is_for() {
    let bytes = compound(0xd0, 60_000, &[0x40].repeat(60_000));
    let limit = allowed(&bytes);
    let input = Bytes::from(bytes);
    let peak = peak_of(|| {
        let Ok(Value::List(list)) = Reader::new(&input).value() else { panic!("a list") };
        let kept: Vec<Value> = list.iter().collect();
        drop(kept);
    });
    assert!(peak > limit, "{peak} bytes stay below {limit}");
}
