//! Values: every type, every encoding, and what the accessors make of them.

use bytes::Bytes;
use proptest::prelude::*;
use vorrang_amqp::decode::Reader;
use vorrang_amqp::encode::Encode;
use vorrang_amqp::{Array, DecodeError, List, Map, Symbol, Text, Timestamp, Uuid, Value, fuzzing};

use crate::strategy;
use crate::wide::wide;

pub(crate) fn decode(bytes: &[u8]) -> Result<Value, DecodeError> {
    let source = Bytes::copy_from_slice(bytes);
    let mut reader = Reader::new(&source);
    let value = reader.value()?;
    reader.finish()?;
    Ok(value)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn every_value_survives_being_written_and_read(value in strategy::value()) {
        let encoded = value.to_encoded();
        prop_assert_eq!(decode(&encoded), Ok(value));
        fuzzing::check_value(&encoded);
    }

    #[test]
    fn long_forms_mean_the_same_as_short_ones(value in strategy::value()) {
        let encoded = wide(&value);
        prop_assert_eq!(decode(&encoded), Ok(value));
        fuzzing::check_value(&encoded);
    }

    #[test]
    fn a_value_cut_short_is_refused(value in strategy::value()) {
        let encoded = value.to_encoded();
        for length in 0..encoded.len() {
            prop_assert!(decode(&encoded[..length]).is_err(), "cut to {} of {}", length, encoded.len());
            fuzzing::check_value(&encoded[..length]);
        }
    }

    #[test]
    fn any_bytes_end_in_a_value_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        fuzzing::check_value(&bytes);
    }

    #[test]
    fn a_damaged_value_ends_in_a_value_or_an_error(
        value in strategy::value(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut encoded = value.to_encoded();
        let place = place.index(encoded.len());
        encoded[place] = byte;
        fuzzing::check_value(&encoded);
    }
}

#[test]
fn scalars_are_written_in_their_shortest_form() {
    let cases: Vec<(Value, &[u8])> = vec![
        (Value::Null, &[0x40]),
        (true.into(), &[0x41]),
        (false.into(), &[0x42]),
        (0u32.into(), &[0x43]),
        (1u32.into(), &[0x52, 1]),
        (255u32.into(), &[0x52, 255]),
        (256u32.into(), &[0x70, 0, 0, 1, 0]),
        (0u64.into(), &[0x44]),
        (255u64.into(), &[0x53, 255]),
        (256u64.into(), &[0x80, 0, 0, 0, 0, 0, 0, 1, 0]),
        (127i32.into(), &[0x54, 127]),
        ((-128i32).into(), &[0x54, 0x80]),
        (128i32.into(), &[0x71, 0, 0, 0, 128]),
        ((-129i32).into(), &[0x71, 0xff, 0xff, 0xff, 0x7f]),
        ((-1i64).into(), &[0x55, 0xff]),
        (128i64.into(), &[0x81, 0, 0, 0, 0, 0, 0, 0, 128]),
        (1u8.into(), &[0x50, 1]),
        (1u16.into(), &[0x60, 0, 1]),
        ((-1i8).into(), &[0x51, 0xff]),
        ((-2i16).into(), &[0x61, 0xff, 0xfe]),
        (1.0f32.into(), &[0x72, 0x3f, 0x80, 0, 0]),
        (1.0f64.into(), &[0x82, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0]),
        ('é'.into(), &[0x73, 0, 0, 0, 0xe9]),
        (Timestamp(-1).into(), &[0x83, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        (Bytes::from_static(b"ab").into(), &[0xa0, 2, b'a', b'b']),
        ("é".into(), &[0xa1, 2, 0xc3, 0xa9]),
        (Value::symbol("ab"), &[0xa3, 2, b'a', b'b']),
        (List::EMPTY.into(), &[0x45]),
        (Map::EMPTY.into(), &[0xc1, 1, 0]),
        (Array::of([1i64]).into(), &[0xe0, 10, 1, 0x81, 0, 0, 0, 0, 0, 0, 0, 1]),
        (Value::described(0x24u64, List::EMPTY), &[0, 0x53, 0x24, 0x45]),
    ];
    for (value, expected) in cases {
        assert_eq!(value.to_encoded(), expected, "{value:?}");
        assert_eq!(decode(expected), Ok(value));
    }
}

#[test]
fn compound_values_switch_to_the_long_form_only_when_they_must() {
    let list = |count: usize| (0..count).map(|_| Value::Null).collect::<List>();
    assert_eq!(Value::from(list(254)).to_encoded()[0], 0xc0, "254 bytes of items and the count fit a byte");
    assert_eq!(Value::from(list(255)).to_encoded()[0], 0xd0, "255 bytes of items do not");
    let map = |count: u32| (0..count).map(|_| (Value::Null, Value::Null)).collect::<Map>();
    assert_eq!(Value::from(map(127)).to_encoded()[0], 0xc1);
    assert_eq!(Value::from(map(128)).to_encoded()[0], 0xd1);
}

#[test]
fn integers_are_found_whatever_their_type_and_only_where_they_fit() {
    let five: Vec<Value> = vec![
        5u8.into(),
        5u16.into(),
        5u32.into(),
        5u64.into(),
        5i8.into(),
        5i16.into(),
        5i32.into(),
        5i64.into(),
    ];
    for value in &five {
        assert_eq!(value.as_u32(), Some(5), "{value:?}");
        assert_eq!(value.as_u64(), Some(5), "{value:?}");
        assert_eq!(value.as_i32(), Some(5), "{value:?}");
        assert_eq!(value.as_i64(), Some(5), "{value:?}");
    }
    assert_eq!(Value::from(-1i64).as_u64(), None);
    assert_eq!(Value::from(-1i64).as_i32(), Some(-1));
    assert_eq!(Value::from(u64::from(u32::MAX) + 1).as_u32(), None);
    assert_eq!(Value::from(u64::MAX).as_i64(), None);
    assert_eq!(Value::from(1.0f64).as_i64(), None, "a fraction is no integer");
    assert_eq!(Value::from("5").as_i64(), None, "text is no integer");
}

#[test]
fn a_map_is_searched_by_strings_and_symbols_alike() {
    let map: Map = [
        (Value::from("text"), Value::from(1i32)),
        (Value::symbol("name"), Value::from(2i32)),
        (Value::symbol("nothing"), Value::Null),
        (Value::from(7u64), Value::from(3i32)),
        (Value::symbol("name"), Value::from(4i32)),
    ]
    .into_iter()
    .collect();
    assert_eq!(map.len(), 5);
    assert_eq!(map.value("text"), Some(Value::from(1i32)));
    assert_eq!(map.value("name"), Some(Value::from(2i32)), "the first of two equal keys counts");
    assert_eq!(map.value("nothing"), Some(Value::Null));
    assert!(map.contains("nothing"), "a key with a null value is there");
    assert!(!map.contains("nam"), "a prefix is another key");
}

#[test]
fn encoded_entries_can_be_copied_byte_for_byte_and_decoded() {
    let wide_five = [0x80, 0, 0, 0, 0, 0, 0, 0, 5];
    let encoded = [&[0xc1, 13, 2, 0xa1, 1, b'k'][..], &wide_five].concat();
    let Ok(Value::Map(map)) = decode(&encoded) else { panic!("a map") };
    let (key, value) = map.encoded_iter().next().unwrap();
    assert_eq!(key.as_str(), Some("k"));
    assert_eq!(value.as_bytes(), wide_five);
    assert_eq!(value.to_bytes(), wide_five.as_slice());
    assert_eq!(value.decode(), Value::from(5u64));
}

#[test]
fn arrays_of_described_and_of_zero_width_items_are_read() {
    let described = [0xe0, 8, 2, 0, 0xa3, 1, b'd', 0x54, 1, 2];
    let Ok(Value::Array(array)) = decode(&described) else { panic!("{:?}", decode(&described)) };
    let items: Vec<Value> = array.iter().collect();
    assert_eq!(items, [Value::described(Symbol::from("d"), 1i32), Value::described(Symbol::from("d"), 2i32)]);
    let Ok(Value::Array(array)) = decode(&[0xe0, 2, 3, 0x41]) else { panic!("an array") };
    assert_eq!(array.iter().collect::<Vec<_>>(), vec![Value::Boolean(true); 3]);
    let Ok(Value::Array(array)) = decode(&[0xe0, 1, 0]) else { panic!("an array without constructor") };
    assert!(array.is_empty());
    assert_eq!(Value::Array(array).to_encoded(), [0xe0, 2, 0, 0x40], "the constructor is added");
}

#[test]
fn a_list_of_lists_and_an_array_of_arrays_are_read_to_the_bottom() {
    let inner: List = [Value::from(1u32), Value::Null].into_iter().collect();
    let outer: List = [Value::from(inner.clone()), Value::from("x")].into_iter().collect();
    let Ok(Value::List(read)) = decode(&outer.to_encoded()) else { panic!("a list") };
    assert_eq!(read.item(0), Some(Value::List(inner)));
    assert_eq!(read.item(1), Some(Value::from("x")));
    assert_eq!(read.item(2), None);
    // An array of two arrays of one byte-wide int each.
    let nested = [0xe0, 10, 2, 0xe0, 3, 1, 0x54, 7, 3, 1, 0x54, 8];
    let Ok(Value::Array(read)) = decode(&nested) else { panic!("{:?}", decode(&nested)) };
    let numbers: Vec<Value> = read.iter().filter_map(|item| item.as_array()?.iter().next()).collect();
    assert_eq!(numbers, [Value::from(7i32), Value::from(8i32)]);
}

#[test]
fn text_and_binaries_share_the_buffer_they_came_from() {
    let source = Bytes::from(vec![0xa1, 3, b'a', b'b', b'c']);
    let Ok(Value::String(text)) = Reader::new(&source).value() else { panic!("a string") };
    assert_eq!(text.as_bytes().as_ptr(), source[2..].as_ptr());
    assert_ne!(text.detached().as_bytes().as_ptr(), text.as_bytes().as_ptr());
    assert_eq!(text, Text::from_static("abc"));
}

#[test]
fn floats_are_equal_when_their_bits_are() {
    assert_eq!(Value::from(f64::NAN), Value::from(f64::NAN));
    assert_ne!(Value::from(0.0f64), Value::from(-0.0f64));
    assert_ne!(Value::from(1i32), Value::from(1i64), "types are part of a value");
    assert_eq!(Value::from(Uuid::default()).as_uuid(), Some(Uuid::default()));
}
