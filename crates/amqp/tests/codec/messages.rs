//! Messages: finding, reading, building and rebuilding sections.

use bytes::Bytes;
use proptest::option;
use proptest::prelude::*;
use vorrang_amqp::encode::Encode;
use vorrang_amqp::message::{
    BatchBuilder, BodyKind, Changes, Header, MessageId, Properties, put_data, put_header, put_map_section,
    put_properties, put_value,
};
use vorrang_amqp::{
    DecodeError, List, Map, Message, Symbol, Text, Timestamp, Uuid, Value, descriptor, fuzzing,
};

use crate::strategy;

const HEADER: &[u8] = &[0, 0x53, 0x70, 0x45];
const DELIVERY_ANNOTATIONS: &[u8] = &[0, 0x53, 0x71, 0xc1, 1, 0];
const MESSAGE_ANNOTATIONS: &[u8] = &[0, 0x53, 0x72, 0xc1, 1, 0];
const PROPERTIES: &[u8] = &[0, 0x53, 0x73, 0x45];
const APPLICATION_PROPERTIES: &[u8] = &[0, 0x53, 0x74, 0xc1, 1, 0];
const DATA: &[u8] = &[0, 0x53, 0x75, 0xa0, 1, b'd'];
const SEQUENCE: &[u8] = &[0, 0x53, 0x76, 0x45];
const VALUE: &[u8] = &[0, 0x53, 0x77, 0x40];
const FOOTER: &[u8] = &[0, 0x53, 0x78, 0xc1, 1, 0];

fn parse(sections: &[&[u8]]) -> Result<Message, DecodeError> {
    let encoded = sections.concat();
    fuzzing::check_message(&encoded);
    Message::parse(encoded.into())
}

#[test]
fn sections_are_accepted_in_order_and_in_no_other() {
    let cases: [(&str, &[&[u8]], bool); 19] = [
        ("nothing at all", &[], true),
        ("a header alone", &[HEADER], true),
        ("a footer alone", &[FOOTER], true),
        (
            "everything",
            &[
                HEADER,
                DELIVERY_ANNOTATIONS,
                MESSAGE_ANNOTATIONS,
                PROPERTIES,
                APPLICATION_PROPERTIES,
                DATA,
                FOOTER,
            ],
            true,
        ),
        ("two data sections", &[DATA, DATA], true),
        ("two sequences", &[SEQUENCE, SEQUENCE], true),
        ("no body but a footer", &[PROPERTIES, FOOTER], true),
        ("two values", &[VALUE, VALUE], false),
        ("data behind a value", &[VALUE, DATA], false),
        ("a sequence behind data", &[DATA, SEQUENCE], false),
        ("a value behind data", &[DATA, VALUE], false),
        ("two headers", &[HEADER, HEADER], false),
        ("two properties", &[PROPERTIES, PROPERTIES], false),
        ("a header behind annotations", &[MESSAGE_ANNOTATIONS, HEADER], false),
        ("annotations swapped", &[MESSAGE_ANNOTATIONS, DELIVERY_ANNOTATIONS], false),
        ("properties behind the body", &[DATA, PROPERTIES], false),
        ("a body behind the footer", &[FOOTER, DATA], false),
        ("two footers", &[FOOTER, FOOTER], false),
        ("a performative", &[&[0, 0x53, 0x14, 0x45]], false),
    ];
    for (case, sections, accepted) in cases {
        let parsed = parse(sections);
        assert_eq!(parsed.is_ok(), accepted, "{case}: {parsed:?}");
    }
    assert_eq!(
        parse(&[DATA, PROPERTIES]).unwrap_err().to_string(),
        "message section properties may not follow data"
    );
}

#[test]
fn a_section_of_the_wrong_shape_is_refused() {
    let cases: [(&str, &[u8]); 8] = [
        ("a header that is a map", &[0, 0x53, 0x70, 0xc1, 1, 0]),
        ("annotations that are a list", &[0, 0x53, 0x72, 0x45]),
        ("annotations that are null", &[0, 0x53, 0x72, 0x40]),
        ("properties that are null", &[0, 0x53, 0x73, 0x40]),
        ("data that is text", &[0, 0x53, 0x75, 0xa1, 1, b'd']),
        ("a sequence that is a map", &[0, 0x53, 0x76, 0xc1, 1, 0]),
        ("a section without a value", &[0, 0x53, 0x77]),
        ("a section without a descriptor", &[0x45]),
    ];
    for (case, section) in cases {
        assert!(parse(&[section]).is_err(), "{case}");
    }
}

#[test]
fn section_descriptors_may_be_names_but_must_match_exactly() {
    let named = [&[0, 0xa3, 15][..], b"amqp:data:binar"].concat();
    assert!(parse(&[&[&named[..], &[0xa0, 0]].concat()]).is_err());
    let named = [&[0, 0xa3, 16][..], b"amqp:data:binary", &[0xa0, 1, b'd']].concat();
    let message = parse(&[&named]).unwrap();
    assert_eq!(message.data().collect::<Vec<_>>(), [Bytes::from_static(b"d")]);
}

#[test]
fn an_application_property_keeps_its_exact_bytes() {
    // A wide ulong and a described timespan; encoding either again would change it.
    let wide = [0x80, 0, 0, 0, 0, 0, 0, 0, 5];
    let timespan = [&[0, 0xa3, 22][..], b"com.microsoft:timespan", &[0x55, 9]].concat();
    let mut entries = [&[0xa1, 1, b'a'][..], &wide, &[0xa1, 1, b'b'], &timespan].concat();
    let mut section = vec![0, 0x53, 0x74, 0xc1, u8::try_from(entries.len() + 1).unwrap(), 4];
    section.append(&mut entries);
    let message = parse(&[&section, VALUE]).unwrap();
    let map = message.application_properties().unwrap();
    let found: Vec<_> =
        map.encoded_iter().map(|(key, value)| (key.as_str().unwrap(), value.as_bytes())).collect();
    assert_eq!(found, [("a", &wide[..]), ("b", &timespan[..])]);
    assert_eq!(map.value("b"), Some(Value::described(Symbol::from_static("com.microsoft:timespan"), 9i64)));
}

#[test]
fn a_body_is_not_looked_into_until_someone_asks() {
    // A value whose list lies about its items: it travels, but it cannot be decoded.
    let broken = [0, 0x53, 0x77, 0xc0, 2, 9, 0x40];
    let message = parse(&[&broken]).unwrap();
    assert_eq!(message.layout().body_kind, BodyKind::Value);
    assert!(message.value().is_err());
}

#[test]
fn the_sections_of_a_put_token_request_are_read() {
    let mut out = Vec::new();
    let id = Uuid::from_bytes([3; 16]);
    put_properties(&mut out, &Properties { message_id: Some(MessageId::Uuid(id)), ..Properties::default() });
    put_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, |entries| {
        entries.entry(&Text::from_static("operation"), &Text::from_static("put-token"));
        entries.entry(&Text::from_static("type"), &Text::from_static("jwt"));
        entries.entry(&Text::from_static("expiration"), &Timestamp(1_767_225_600_000));
    });
    put_value(&mut out, &Text::from_static("SharedAccessSignature sr=x"));
    let message = parse(&[&out]).unwrap();
    assert_eq!(message.header(), Ok(None));
    assert_eq!(message.properties().unwrap().unwrap().message_id, Some(MessageId::Uuid(id)));
    let properties = message.application_properties().unwrap();
    assert_eq!(properties.value("operation").unwrap().as_str(), Some("put-token"));
    assert_eq!(properties.value("expiration").unwrap().as_timestamp(), Some(Timestamp(1_767_225_600_000)));
    assert_eq!(message.value().unwrap(), Some(Value::from("SharedAccessSignature sr=x")));
    assert_eq!(message.data().count(), 0);
}

#[test]
fn a_delivery_carries_new_annotations_and_the_untouched_bare_message() {
    let mut stored = Vec::new();
    put_header(&mut stored, &Header { durable: Some(true), ttl: Some(5), ..Header::default() });
    put_map_section(&mut stored, descriptor::DELIVERY_ANNOTATIONS, |entries| entries.symbol("old", &1i32));
    put_map_section(&mut stored, descriptor::MESSAGE_ANNOTATIONS, |entries| {
        entries.symbol("x-opt-partition-key", &Text::from_static("p"));
        entries.entry(&Text::from_static("x-opt-sequence-number"), &999i64);
    });
    let front = stored.len();
    put_properties(&mut stored, &Properties { subject: Some("s".into()), ..Properties::default() });
    put_data(&mut stored, &[9; 300]);
    let message = parse(&[&stored]).unwrap();

    let token = Uuid::from_bytes([1; 16]);
    let header = Header { durable: Some(true), ttl: Some(5), delivery_count: 2, ..Header::default() };
    let annotations = message.message_annotations().unwrap();
    let mut head = Vec::new();
    let tail = message.rebuild(
        &mut head,
        &header,
        |entries| entries.symbol("x-opt-lock-token", &token),
        |entries| {
            entries.keep_except(&annotations, &["x-opt-sequence-number"]);
            entries.symbol("x-opt-sequence-number", &42i64);
        },
        Changes::default(),
    );
    assert_eq!(tail.as_ptr(), message.encoded()[front..].as_ptr(), "the bare message is not copied");
    assert_eq!(tail, &stored[front..]);
    let delivered = parse(&[&head, tail]).unwrap();
    assert_eq!(delivered.header(), Ok(Some(header)));
    let delivery = delivered.delivery_annotations().unwrap();
    assert_eq!(delivery, [(Symbol::from_static("x-opt-lock-token"), token)].into_iter().collect::<Map>());
    let annotations = delivered.message_annotations().unwrap();
    assert_eq!(annotations.len(), 2);
    assert_eq!(annotations.value("x-opt-partition-key"), Some(Value::from("p")));
    assert_eq!(annotations.value("x-opt-sequence-number"), Some(Value::from(42i64)));
}

#[test]
fn changed_properties_replace_the_old_and_leave_the_rest() {
    let subject = Properties { subject: Some("new".into()), ..Properties::default() };
    let reason: Map =
        [(Text::from_static("DeadLetterReason"), Text::from_static("bad"))].into_iter().collect();
    let cases: [(&str, &[&[u8]]); 4] = [
        ("all sections", &[HEADER, PROPERTIES, APPLICATION_PROPERTIES, DATA, FOOTER]),
        ("no properties", &[APPLICATION_PROPERTIES, DATA]),
        ("only a body", &[VALUE]),
        ("nothing", &[]),
    ];
    for (case, sections) in cases {
        let message = parse(sections).unwrap();
        for (properties, map) in [
            (Some(&subject), None),
            (None, Some(&reason)),
            (Some(&subject), Some(&reason)),
            (None, Some(&Map::EMPTY)),
        ] {
            let mut out = Vec::new();
            let changes = Changes { properties, application_properties: map };
            let tail = message.rebuild(&mut out, &Header::default(), |_| {}, |_| {}, changes);
            let rebuilt = parse(&[&out, tail]).unwrap();
            let expected = properties.cloned().or_else(|| message.properties().unwrap());
            assert_eq!(rebuilt.properties().unwrap(), expected, "{case}");
            let expected = match map {
                Some(map) if map.is_empty() => None,
                Some(map) => Some(map.clone()),
                None => message.application_properties(),
            };
            assert_eq!(rebuilt.application_properties(), expected, "{case}");
            assert_eq!(
                rebuilt.encoded()[rebuilt.layout().body().start..],
                message.encoded()[message.layout().body().start..]
            );
        }
    }
}

#[test]
fn a_batch_is_a_message_whose_data_are_messages() {
    let inner: Vec<Vec<u8>> = [10usize, 300, 0]
        .into_iter()
        .map(|size| {
            let mut out = Vec::new();
            put_data(&mut out, &vec![5; size]);
            out
        })
        .collect();
    let mut batch = BatchBuilder::default();
    for message in &inner {
        let predicted = batch.size_with(message.len());
        batch.push(message);
        assert_eq!(batch.clone().finish().len(), predicted, "the size is known before");
    }
    assert_eq!(batch.count(), 3);
    // Clients put copies of the first message's sections in front; they change nothing.
    let payload = [PROPERTIES, &batch.finish()].concat();
    let envelope = parse(&[&payload]).unwrap();
    let read: Vec<Bytes> = envelope.data().collect();
    assert_eq!(read, inner);
    assert!(read.into_iter().all(|message| Message::parse(message).is_ok()));
    assert_eq!(parse(&[]).unwrap().data().count(), 0, "an empty batch");
}

#[test]
fn a_message_that_was_parsed_before_is_found_by_its_sizes_alone() {
    let again = |sections: &[&[u8]]| Message::parse_again(sections.concat().into());
    let whole = [HEADER, PROPERTIES, APPLICATION_PROPERTIES, DATA];
    assert_eq!(again(&whole), parse(&whole));
    for (case, sections) in [
        ("another order", &[DATA, PROPERTIES][..]),
        ("another shape", &[&[0, 0x53, 0x70, 0xc1, 1, 0]]),
        ("an end too early", &[HEADER, &[0, 0x53, 0x75, 0xa0, 2, b'd']]),
    ] {
        assert_eq!(again(sections), parse(sections), "{case}");
        assert!(again(sections).is_err(), "{case}");
    }
    // A subject that is not text: nothing that could have been parsed before, and still no panic.
    let broken = again(&[&[0, 0x53, 0x73, 0xc0, 7, 4, 0x40, 0x40, 0x40, 0xa1, 1, 0xff]]).unwrap();
    assert!(broken.properties().is_err());
}

/// Whether a section may follow another; both by their place in the list of all, in which the three bodies are 5 to 7.
fn may_follow(after: usize, section: usize) -> bool {
    let is_body = |place| (5..=7).contains(&place);
    if is_body(after) && is_body(section) { after == section && section != 7 } else { after < section }
}

proptest! {
    #[test]
    fn the_first_section_out_of_order_is_named_with_the_one_before_it(
        places in proptest::collection::vec(0usize..9, 0..6),
    ) {
        let all = [
            (HEADER, "header"),
            (DELIVERY_ANNOTATIONS, "delivery-annotations"),
            (MESSAGE_ANNOTATIONS, "message-annotations"),
            (PROPERTIES, "properties"),
            (APPLICATION_PROPERTIES, "application-properties"),
            (DATA, "data"),
            (SEQUENCE, "amqp-sequence"),
            (VALUE, "amqp-value"),
            (FOOTER, "footer"),
        ];
        let encoded: Vec<u8> = places.iter().flat_map(|place| all[*place].0).copied().collect();
        let wrong = places.windows(2).find(|pair| !may_follow(pair[0], pair[1]));
        let expected = wrong.map(|pair| format!(
            "message section {} may not follow {}",
            all[pair[1]].1,
            all[pair[0]].1,
        ));
        let told = |parsed: Result<Message, DecodeError>| parsed.err().map(|error| error.to_string());
        prop_assert_eq!(told(Message::parse(encoded.clone().into())), expected.clone());
        prop_assert_eq!(told(Message::parse_again(encoded.into())), expected);
    }
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let front =
        (option::of(strategy::header()), option::of(strategy::fields()), option::of(strategy::fields()));
    let middle = (option::of(strategy::properties()), option::of(strategy::any_keys()));
    let body = prop_oneof![
        Just(Vec::new()),
        proptest::collection::vec(strategy::binary(), 1..4).prop_map(|parts| {
            let mut out = Vec::new();
            for part in &parts {
                put_data(&mut out, part);
            }
            out
        }),
        strategy::value().prop_map(|value| {
            let mut out = Vec::new();
            put_value(&mut out, &value);
            out
        }),
        proptest::collection::vec(strategy::value(), 0..4).prop_map(|items| [
            &[0, 0x53, 0x76][..],
            &items.into_iter().collect::<List>().to_encoded()
        ]
        .concat()),
    ];
    let footer = option::of(strategy::fields());
    (front, middle, body, footer).prop_map(|(front, middle, body, footer)| {
        let mut out = Vec::new();
        let put_map = |out: &mut Vec<u8>, section, map: &Option<Map>| {
            if let Some(map) = map {
                put_map_section(out, section, |entries| entries.keep_except(map, &[]));
            }
        };
        if let Some(header) = &front.0 {
            put_header(&mut out, header);
        }
        put_map(&mut out, descriptor::DELIVERY_ANNOTATIONS, &front.1);
        put_map(&mut out, descriptor::MESSAGE_ANNOTATIONS, &front.2);
        if let Some(properties) = &middle.0 {
            put_properties(&mut out, properties);
        }
        put_map(&mut out, descriptor::APPLICATION_PROPERTIES, &middle.1);
        out.extend_from_slice(&body);
        put_map(&mut out, descriptor::FOOTER, &footer);
        out
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn any_message_can_be_taken_apart_and_rebuilt(encoded in message()) {
        prop_assert!(Message::parse(encoded.clone().into()).is_ok());
        fuzzing::check_message(&encoded);
    }

    #[test]
    fn header_and_properties_survive_being_written_and_read(
        header in strategy::header(),
        properties in strategy::properties(),
    ) {
        let mut out = Vec::new();
        put_header(&mut out, &header);
        put_properties(&mut out, &properties);
        let message = Message::parse(out.into()).unwrap();
        prop_assert_eq!(message.header(), Ok(Some(header)));
        prop_assert_eq!(message.properties(), Ok(Some(properties)));
    }

    #[test]
    fn a_damaged_or_cut_message_ends_in_a_message_or_an_error(
        encoded in message(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut damaged = encoded;
        if !damaged.is_empty() {
            let place = place.index(damaged.len());
            fuzzing::check_message(&damaged[..place]);
            damaged[place] = byte;
        }
        fuzzing::check_message(&damaged);
    }
}
