//! A second encoder that never uses a short form, to see that the codec reads what it does not write.

use vorrang_amqp::encode::Encode;
use vorrang_amqp::{List, Map, Value};

/// The longest encoding of a value.
pub(crate) fn wide(value: &Value) -> Vec<u8> {
    match value {
        Value::Boolean(value) => vec![0x56, u8::from(*value)],
        Value::Uint(value) => [&[0x70][..], &value.to_be_bytes()].concat(),
        Value::Ulong(value) => [&[0x80][..], &value.to_be_bytes()].concat(),
        Value::Int(value) => [&[0x71][..], &value.to_be_bytes()].concat(),
        Value::Long(value) => [&[0x81][..], &value.to_be_bytes()].concat(),
        Value::Binary(bytes) => variable(0xb0, bytes),
        Value::String(text) => variable(0xb1, text.as_bytes()),
        Value::Symbol(symbol) => variable(0xb3, symbol.as_bytes()),
        Value::List(list) => wide_list(list),
        Value::Map(map) => wide_map(map),
        Value::Array(array) => compound(0xf0, array.count(), array.encoded_body()),
        Value::Described(described) => {
            [vec![0], wide(&described.descriptor), wide(&described.value)].concat()
        }
        other => other.to_encoded(),
    }
}

fn variable(constructor: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap();
    [&[constructor][..], &length.to_be_bytes(), bytes].concat()
}

fn compound(constructor: u8, count: u32, body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body.len() + 4).unwrap();
    [&[constructor][..], &size.to_be_bytes(), &count.to_be_bytes(), body].concat()
}

fn wide_list(list: &List) -> Vec<u8> {
    let items: Vec<u8> = list.iter().flat_map(|item| wide(&item)).collect();
    compound(0xd0, list.count(), &items)
}

fn wide_map(map: &Map) -> Vec<u8> {
    let items: Vec<u8> = map.iter().flat_map(|(key, value)| [wide(&key), wide(&value)].concat()).collect();
    compound(0xd1, map.len() * 2, &items)
}
