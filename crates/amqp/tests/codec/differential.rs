//! A second opinion: `serde_amqp` reads what we write, and we read what it writes.

use fe2o3_amqp_types::{performatives as other, sasl};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_amqp::Value as Other;
use vorrang_amqp::encode::Encode;
use vorrang_amqp::{Array, Frame, FrameBody, List, Map, SaslFrame, Symbol, Text, Timestamp, Uuid, Value};

use crate::performatives::{encoded, framed};
use crate::strategy;
use crate::values::decode;

/// Their value as ours. `None` for what they cannot hold.
fn ours(value: &Other) -> Option<Value> {
    Some(match value {
        Other::Null => Value::Null,
        Other::Bool(value) => (*value).into(),
        Other::Ubyte(value) => (*value).into(),
        Other::Ushort(value) => (*value).into(),
        Other::Uint(value) => (*value).into(),
        Other::Ulong(value) => (*value).into(),
        Other::Byte(value) => (*value).into(),
        Other::Short(value) => (*value).into(),
        Other::Int(value) => (*value).into(),
        Other::Long(value) => (*value).into(),
        Other::Float(value) => value.into_inner().into(),
        Other::Double(value) => value.into_inner().into(),
        Other::Decimal32(value) => Value::Decimal32(value.clone().into_inner()),
        Other::Decimal64(value) => Value::Decimal64(value.clone().into_inner()),
        Other::Decimal128(value) => Value::Decimal128(value.clone().into_inner()),
        Other::Char(value) => (*value).into(),
        Other::Timestamp(value) => Timestamp(value.milliseconds()).into(),
        Other::Uuid(value) => Uuid::from_bytes(value.clone().into_inner()).into(),
        Other::Binary(value) => bytes::Bytes::copy_from_slice(value).into(),
        Other::String(value) => Text::from(value.as_str()).into(),
        Other::Symbol(value) => Symbol::from(value.as_str()).into(),
        Other::List(items) => {
            let items: Option<Vec<Value>> = items.iter().map(ours).collect();
            Value::List(items?.into_iter().collect::<List>())
        }
        Other::Map(entries) => {
            let entries: Option<Vec<(Value, Value)>> =
                entries.iter().map(|(key, value)| Some((ours(key)?, ours(value)?))).collect();
            Value::Map(entries?.into_iter().collect::<Map>())
        }
        Other::Array(items) => {
            let items: Option<Vec<Value>> = items.iter().map(ours).collect();
            let items = items?;
            match items.first() {
                Some(Value::Long(_)) => Array::of(items.iter().filter_map(Value::as_i64)).into(),
                Some(Value::Ulong(_)) => Array::of(items.iter().filter_map(Value::as_u64)).into(),
                Some(Value::Timestamp(_)) => Array::of(items.iter().filter_map(Value::as_timestamp)).into(),
                Some(Value::Uuid(_)) => Array::of(items.iter().filter_map(Value::as_uuid)).into(),
                _ => return None,
            }
        }
        Other::Described(_) => return None,
    })
}

/// Runs `check` on many values; it answers whether the other codec could take part.
fn agree<S: Strategy>(strategy: S, name: &str, check: impl Fn(&S::Value) -> bool) {
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let rounds = 300;
    let took_part = (0..rounds)
        .filter(|_| {
            let value = strategy.new_tree(&mut runner).unwrap();
            check(&proptest::strategy::ValueTree::current(&value))
        })
        .count();
    assert!(took_part * 3 > rounds, "{name}: the other codec read only {took_part} of {rounds}");
}

#[test]
fn both_codecs_read_the_same_values() {
    agree(strategy::value(), "values", |value| {
        let encoded = value.to_encoded();
        let Ok(theirs) = serde_amqp::from_slice::<Other>(&encoded) else { return false };
        let Some(expected) = ours(&theirs) else { return false };
        assert_eq!(*value, expected, "{encoded:02x?}");
        let written = serde_amqp::to_vec(&theirs).unwrap();
        assert_eq!(decode(&written), Ok(value.clone()), "{written:02x?}");
        true
    });
}

/// The same performative after the other codec has read and written it.
fn through_other(code: u8, body: &[u8]) -> Option<Vec<u8>> {
    macro_rules! through {
        ($type:ty) => {{
            let read: $type = serde_amqp::from_slice(body).ok()?;
            serde_amqp::to_vec(&read).ok()
        }};
    }
    match code {
        0x10 => through!(other::Open),
        0x11 => through!(other::Begin),
        0x12 => through!(other::Attach),
        0x13 => through!(other::Flow),
        0x14 => through!(other::Transfer),
        0x15 => through!(other::Disposition),
        0x16 => through!(other::Detach),
        0x17 => through!(other::End),
        0x18 => through!(other::Close),
        0x40 => through!(sasl::SaslMechanisms),
        0x41 => through!(sasl::SaslInit),
        0x42 => through!(sasl::SaslChallenge),
        0x43 => through!(sasl::SaslResponse),
        0x44 => through!(sasl::SaslOutcome),
        _ => None,
    }
}

#[test]
fn performatives_pass_through_the_other_codec_unchanged() {
    let plain = strategy::frame_body().prop_filter("comparable", |body| match body {
        // The payload is no part of their type; they read a missing mode as the default and write that.
        FrameBody::Transfer(transfer, _) => transfer.state.is_none(),
        FrameBody::Attach(attach) => {
            attach.snd_settle_mode.is_some() && attach.rcv_settle_mode.is_some() && attach.target.is_some()
        }
        _ => true,
    });
    agree(plain, "performatives", |body| {
        let body = if let FrameBody::Transfer(transfer, _) = body {
            FrameBody::Transfer(transfer.clone(), bytes::Bytes::new())
        } else {
            body.clone()
        };
        let written = encoded(0, body.clone());
        if holds_arrays_or_descriptions(&crate::values::decode(&written[8..]).unwrap()) {
            return false;
        }
        let Some(theirs) = through_other(written[10], &written[8..]) else { return false };
        let read = Frame::decode(framed(&theirs)).map(|frame| frame.body);
        let read = read.unwrap_or_else(|error| panic!("{error}: {body:?} came back as {theirs:02x?}"));
        assert!(same_apart_from_defaults(&body, &read), "{body:?}\ncame back as\n{read:?}");
        true
    });
}

/// They lose their place behind arrays and described values inside a map, so only plain maps are compared. Described
/// composites and lists of symbols, which are part of every performative, they do read.
fn holds_arrays_or_descriptions(value: &Value) -> bool {
    match value {
        Value::Map(map) => map.iter().any(|(_, value)| !is_plain(&value)),
        Value::List(list) => list.iter().any(|item| holds_arrays_or_descriptions(&item)),
        Value::Described(described) => holds_arrays_or_descriptions(&described.value),
        _ => false,
    }
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::Array(_) | Value::Described(_) => false,
        Value::List(list) => list.iter().all(|item| is_plain(&item)),
        Value::Map(map) => map.iter().all(|(_, value)| is_plain(&value)),
        _ => true,
    }
}

/// Compares after filling in what the other codec writes for fields that were null and have a default.
fn same_apart_from_defaults(sent: &FrameBody, read: &FrameBody) -> bool {
    let (mut sent, mut read) = (sent.clone(), read.clone());
    for body in [&mut sent, &mut read] {
        match body {
            FrameBody::Open(open) => {
                open.max_frame_size.get_or_insert(u32::MAX);
                open.channel_max.get_or_insert(u16::MAX);
            }
            FrameBody::Begin(begin) => {
                begin.handle_max.get_or_insert(u32::MAX);
            }
            FrameBody::Attach(attach) => {
                let source = attach.source.get_or_insert_default();
                source.durable.get_or_insert(0);
                source.timeout.get_or_insert(0);
                source.expiry_policy.get_or_insert(Symbol::from_static("session-end"));
                if let Some(vorrang_amqp::performative::TargetNode::Node(target)) = &mut attach.target {
                    target.durable.get_or_insert(0);
                    target.timeout.get_or_insert(0);
                    target.expiry_policy.get_or_insert(Symbol::from_static("session-end"));
                }
            }
            _ => {}
        }
    }
    sent == read
}

#[test]
fn sasl_frames_pass_through_the_other_codec_unchanged() {
    agree(strategy::sasl_frame(), "sasl frames", |frame| {
        let mut written = Vec::new();
        frame.encode(&mut written);
        let Some(theirs) = through_other(written[10], &written[8..]) else { return false };
        let mut reframed = framed(&theirs).to_vec();
        reframed[5] = 1;
        assert_eq!(SaslFrame::decode(reframed.into()).as_ref(), Ok(frame), "{theirs:02x?}");
        true
    });
}
