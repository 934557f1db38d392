//! Input made to hurt: lying counts and sizes, bottomless nesting, descriptor tricks.

use bytes::Bytes;
use vorrang_amqp::budget::DEPTH_MAX;
use vorrang_amqp::decode::Reader;
use vorrang_amqp::{DecodeError, Frame, Message, Value, fuzzing};

use crate::performatives::framed;
use crate::values::decode;

#[test]
fn counts_and_sizes_that_lie_are_refused() {
    let billions = u32::MAX;
    let too_many = |claimed, bytes: u32| DecodeError::TooManyItems { claimed, allowed: bytes + 1024 };
    let cases: Vec<(&str, Vec<u8>, DecodeError)> = vec![
        (
            "four billion nulls in ten bytes",
            vec![0xf0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x40],
            too_many(billions, 10),
        ),
        (
            "four billion empty lists in ten bytes",
            vec![0xf0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x45],
            too_many(billions, 10),
        ),
        ("a list of four billion", vec![0xd0, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff], too_many(billions, 9)),
        (
            "a list of more items than it has",
            vec![0xc0, 3, 3, 0x40, 0x40],
            DecodeError::Truncated { needed: 1, available: 0 },
        ),
        (
            "a list of fewer items than it has",
            vec![0xc0, 3, 1, 0x40, 0x40],
            DecodeError::SizeMismatch { left: 1 },
        ),
        (
            "a list larger than the input",
            vec![0xc0, 200, 1, 0x40],
            DecodeError::Truncated { needed: 200, available: 2 },
        ),
        (
            "a list of almost 4 GiB",
            vec![0xd0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0x40],
            DecodeError::Truncated { needed: 0xffff_ffff, available: 5 },
        ),
        (
            "a list too small for its count",
            vec![0xc0, 0, 0],
            DecodeError::Truncated { needed: 1, available: 0 },
        ),
        (
            "a wide list too small for its count",
            vec![0xd0, 0, 0, 0, 3, 0, 0, 0],
            DecodeError::Truncated { needed: 4, available: 3 },
        ),
        ("a key without a value", vec![0xc1, 2, 1, 0x40], DecodeError::OddMap { count: 1 }),
        (
            "a string longer than the input",
            vec![0xa1, 2, b'a'],
            DecodeError::Truncated { needed: 2, available: 1 },
        ),
        ("a string that is not text", vec![0xa1, 1, 0xff], DecodeError::InvalidText),
        ("a symbol that is not text", vec![0xa3, 2, 0xc3, 0x28], DecodeError::InvalidText),
        ("bad text inside a list", vec![0xc0, 4, 1, 0xa1, 1, 0xff], DecodeError::InvalidText),
        ("a surrogate for a character", vec![0x73, 0, 0, 0xd8, 0], DecodeError::InvalidChar { code: 0xd800 }),
        ("a boolean of two", vec![0x56, 2], DecodeError::InvalidBoolean { byte: 2 }),
        ("the constructor 0xff", vec![0xff], DecodeError::UnknownConstructor { code: 0xff }),
        (
            "the constructor 0xff in an array",
            vec![0xe0, 3, 1, 0xff, 0],
            DecodeError::UnknownConstructor { code: 0xff },
        ),
        (
            "an array with a count and no constructor",
            vec![0xe0, 1, 1],
            DecodeError::Truncated { needed: 1, available: 0 },
        ),
        (
            "a descriptor with a descriptor",
            vec![0, 0, 0x44, 0x44, 0x44],
            DecodeError::UnexpectedType { expected: "a plain descriptor", code: 0 },
        ),
        ("nothing", vec![], DecodeError::Truncated { needed: 1, available: 0 }),
    ];
    for (case, bytes, expected) in cases {
        assert_eq!(decode(&bytes), Err(expected), "{case}");
        fuzzing::check_value(&bytes);
    }
}

#[test]
fn many_arrays_of_zero_width_items_share_one_budget() {
    // Each array is within the budget; together they are not. (A cap per array alone would let them through.)
    let array = [0xf0, 0, 0, 0, 5, 0, 0, 4, 0, 0x40];
    let count = 100u32;
    let mut list = vec![0xd0];
    list.extend_from_slice(&(count * 10 + 4).to_be_bytes());
    list.extend_from_slice(&count.to_be_bytes());
    list.extend(array.repeat(100));
    assert!(matches!(decode(&list), Err(DecodeError::TooManyItems { claimed: 1024, .. })));
}

#[test]
fn as_many_zero_width_items_as_the_budget_allows_are_read() {
    let array = |count: u32| {
        let mut bytes = vec![0xf0, 0, 0, 0, 5];
        bytes.extend_from_slice(&count.to_be_bytes());
        bytes.push(0x41);
        bytes
    };
    let Ok(Value::Array(read)) = decode(&array(1034)) else { panic!("ten bytes may hold 1034 items") };
    assert_eq!(read.iter().count(), 1034);
    assert_eq!(decode(&array(1035)), Err(DecodeError::TooManyItems { claimed: 1035, allowed: 1034 }));
}

/// A value nested `depth` times by each of the ways to nest.
fn nested(depth: usize) -> Vec<(&'static str, Vec<u8>)> {
    let described = [[0, 0x44].repeat(depth), vec![0x40]].concat();
    let wrap = |head: fn(u32) -> Vec<u8>| {
        // From the inside out; each level is a 32-bit compound of one or two items.
        let mut heads = Vec::new();
        let mut inner = 1usize;
        for _ in 0..depth {
            let level = head(u32::try_from(inner).unwrap());
            inner += level.len();
            heads.push(level);
        }
        heads.reverse();
        let mut bytes = heads.concat();
        bytes.push(0x40);
        bytes
    };
    let list = wrap(|inner| [&[0xd0][..], &(inner + 4).to_be_bytes(), &1u32.to_be_bytes()].concat());
    let map = wrap(|inner| [&[0xd1][..], &(inner + 5).to_be_bytes(), &2u32.to_be_bytes(), &[0x40]].concat());
    let mut arrays = Vec::new();
    // In an array of arrays only the outermost has its own constructor in front.
    for level in 0..depth {
        let below = u32::try_from(9 * (depth - level - 1) + 1).unwrap();
        if level == 0 {
            arrays.push(0xf0);
        }
        arrays.extend_from_slice(&(below + 4).to_be_bytes());
        arrays.extend_from_slice(&1u32.to_be_bytes());
        arrays.push(if level + 1 == depth { 0x40 } else { 0xf0 });
    }
    vec![("described", described), ("lists", list), ("maps", map), ("arrays", arrays)]
}

#[test]
fn nesting_is_read_to_the_limit_and_refused_beyond() {
    let limit = usize::from(DEPTH_MAX);
    for (case, bytes) in nested(limit) {
        assert!(decode(&bytes).is_ok(), "{case} at the limit: {:?}", decode(&bytes));
        fuzzing::check_value(&bytes);
    }
    for (case, bytes) in nested(limit + 1) {
        assert_eq!(decode(&bytes), Err(DecodeError::TooDeep { limit: DEPTH_MAX }), "{case} beyond the limit");
        fuzzing::check_value(&bytes);
    }
}

#[test]
fn an_empty_array_takes_a_level_even_without_a_constructor() {
    // Once, it did not: below 32 descriptions it was read, and could not be read again as it was written.
    let below = |levels: usize| [&[0, 0x44].repeat(levels)[..], &[0xe0, 1, 0]].concat();
    assert!(decode(&below(31)).is_ok());
    assert_eq!(decode(&below(32)), Err(DecodeError::TooDeep { limit: DEPTH_MAX }));
}

#[test]
fn a_million_levels_do_not_overflow_a_small_stack() {
    let inputs = nested(1_000_000);
    let checks = move || {
        for (case, bytes) in inputs {
            let source = Bytes::from(bytes);
            assert_eq!(
                Reader::new(&source).value(),
                Err(DecodeError::TooDeep { limit: DEPTH_MAX }),
                "{case}"
            );
            assert_eq!(Reader::new(&source).skip(), Err(DecodeError::TooDeep { limit: DEPTH_MAX }), "{case}");
            let in_properties = [&[0, 0x53, 0x74][..], &source].concat();
            assert!(Message::parse(in_properties.into()).is_err(), "{case} as application properties");
            let in_body = [&[0, 0x53, 0x77][..], &source].concat();
            let parsed = Message::parse(in_body.into());
            assert!(parsed.is_err() || parsed.unwrap().value().is_err(), "{case} as a body");
        }
    };
    let small = std::thread::Builder::new().stack_size(256 * 1024).spawn(checks).unwrap();
    small.join().expect("the small stack holds");
}

#[test]
fn descriptors_that_only_look_like_ours_are_refused() {
    let flow = [0xc0, 5, 4, 0x40, 0x43, 0x43, 0x43];
    let cases: Vec<(&str, Vec<u8>, bool)> = vec![
        ("the number in two bytes", vec![0, 0x53, 0x13], true),
        ("the number in eight bytes", vec![0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x13], true),
        ("the name", [&[0, 0xa3, 14][..], b"amqp:flow:list"].concat(), true),
        ("the name with a long length", [&[0, 0xb3, 0, 0, 0, 14][..], b"amqp:flow:list"].concat(), true),
        ("a number whose low byte is ours", vec![0, 0x80, 0, 0, 0, 1, 0, 0, 0, 0x13], false),
        ("a prefix of the name", [&[0, 0xa3, 9][..], b"amqp:flow"].concat(), false),
        ("the name and more", [&[0, 0xa3, 15][..], b"amqp:flow:list "].concat(), false),
        ("the name as a string", [&[0, 0xa1, 14][..], b"amqp:flow:list"].concat(), false),
        ("the number as a uint", vec![0, 0x52, 0x13], false),
        ("a described descriptor", vec![0, 0, 0x53, 0x13, 0x53, 0x13], false),
        ("no descriptor", vec![], false),
    ];
    for (case, descriptor, readable) in cases {
        let frame = framed(&[&descriptor[..], &flow].concat());
        assert_eq!(
            Frame::decode(frame.clone()).is_ok(),
            readable,
            "{case}: {:?}",
            Frame::decode(frame.clone())
        );
        fuzzing::check_frame(&frame);
    }
}

#[test]
fn a_delivery_tag_is_read_up_to_its_limit() {
    for (length, readable) in [(0usize, true), (16, true), (31, true), (32, true), (33, false), (255, false)]
    {
        let size = u8::try_from(length).unwrap();
        let tag = [&[0xa0, size][..], &vec![7; length]].concat();
        let fields = [&[0x43, 0x43][..], &tag].concat();
        let list_size = u32::try_from(fields.len() + 4).unwrap();
        let body =
            [&[0, 0x53, 0x14, 0xd0][..], &list_size.to_be_bytes(), &3u32.to_be_bytes(), &fields].concat();
        let read = Frame::decode(framed(&body));
        assert_eq!(read.is_ok(), readable, "{length} bytes: {read:?}");
        fuzzing::check_frame(&framed(&body));
    }
}
