//! What must hold for any bytes at all.
//!
//! Fuzz targets, the corpus test and property tests all call these. They do not only look for panics: each states
//! what the codec promises and stops the process when it does not hold.

use bytes::Bytes;

use crate::budget::DEPTH_MAX;
use crate::decode::Reader;
use crate::encode::Encode;
use crate::error::DecodeError;
use crate::frame::{Frame, FrameBody, SaslFrame};
use crate::message::{Changes, Front, Header, Message, Outline, Section};
use crate::value::{Encoded, Value};

/// Reads `input` as one value and checks:
///
/// - reading and passing over agree on whether it is one and how long it is;
/// - what was read stays within the budget when every item is looked at;
/// - written and read again, it is the same.
pub fn check_value(input: &[u8]) {
    let source = Bytes::copy_from_slice(input);
    let mut reader = Reader::new(&source);
    let mut skipper = Reader::new(&source);
    let mut careful = Reader::new(&source);
    let value = reader.value();
    let skipped = skipper.skip();
    assert_eq!(skipped, careful.skip_carefully(), "the quick and the careful way pass over the same values");
    assert_eq!(value.as_ref().err(), skipped.as_ref().err(), "reading and passing over agree");
    let Ok(value) = value else { return };
    assert_eq!(reader.remaining(), skipper.remaining(), "reading and passing over end at the same byte");
    assert_eq!(careful.remaining(), skipper.remaining(), "both ways of passing over end at the same byte");
    assert_eq!(careful.budget(), skipper.budget(), "both ways of passing over cost the same");
    let allowed = Reader::new(&source).budget().items_left();
    let items = items_in(&value, 0);
    assert!(items <= u64::from(allowed) + 1, "{items} items came of a budget of {allowed}");
    let encoded = Bytes::from(value.to_encoded());
    let mut again = Reader::new(&encoded);
    assert_eq!(again.value().as_ref(), Ok(&value), "a value survives being written");
    assert_eq!(again.remaining(), 0, "a value is written to its last byte");
}

/// Counts a value and all values in it, looking at every one.
fn items_in(value: &Value, depth: u8) -> u64 {
    assert!(depth <= DEPTH_MAX, "nothing nests deeper than the limit");
    let inside = |item: &Value| items_in(item, depth.saturating_add(1));
    match value {
        Value::List(list) => list.iter().map(|item| inside(&item)).sum::<u64>().saturating_add(1),
        Value::Map(map) => {
            map.iter().map(|(key, value)| inside(&key) + inside(&value)).sum::<u64>().saturating_add(1)
        }
        Value::Array(array) => {
            // Described items share their descriptors; only the items themselves were paid for.
            let count = array.iter().map(|item| inside(item.undescribed())).sum::<u64>();
            count.saturating_add(1)
        }
        Value::Described(described) => inside(described.value.undescribed()),
        _ => 1,
    }
}

/// Reads `input` as one whole frame, of either layer, and checks:
///
/// - the short ways for common performatives and the general reader agree;
/// - written and read again, it is the same.
pub fn check_frame(input: &[u8]) {
    let source = Bytes::copy_from_slice(input);
    if let Ok(frame) = SaslFrame::decode(source.clone()) {
        let mut encoded = Vec::new();
        frame.encode(&mut encoded);
        assert_eq!(SaslFrame::decode(encoded.into()), Ok(frame), "a sasl frame survives being written");
    }
    let decoded = Frame::decode(source.clone());
    let carefully = Frame::decode_carefully(source);
    assert_eq!(decoded, carefully, "the quick and the careful way read the same frame");
    let Ok(mut frame) = decoded else { return };
    if let FrameBody::Transfer(transfer, _) = &mut frame.body {
        transfer.message_format = transfer.written_format();
    }
    let mut encoded = Vec::new();
    frame.encode(&mut encoded);
    assert_eq!(Frame::decode(encoded.into()), Ok(frame), "a frame survives being written");
}

/// Reads `input` as a message and checks:
///
/// - every section lies where the layout says, in order;
/// - the short ways for header and properties and the general reader agree;
/// - looked at again without a check, its sections lie where they lay;
/// - its outline, told as numbers, shows the same properties;
/// - rebuilt, it has the new header and, byte for byte, the old bare message.
pub fn check_message(input: &[u8]) {
    let source = Bytes::copy_from_slice(input);
    let Ok(message) = Message::parse(source.clone()) else { return };
    let layout = message.layout();
    let sections = [
        layout.header,
        layout.delivery_annotations,
        layout.message_annotations,
        layout.properties,
        layout.application_properties,
    ];
    let mut place = 0;
    for section in sections.into_iter().flatten() {
        assert_eq!(section.start(), place, "sections follow each other without a gap");
        let inside = section.start() < section.value() && section.value() < section.end();
        assert!(inside, "a section has a value");
        place = section.end();
    }
    assert_eq!(layout.body().start, place, "the body follows the sections before it");
    let end = layout.footer.map_or(layout.body().end, Section::end);
    assert_eq!(end, source.len(), "the message ends with its last section");
    let maps =
        [message.delivery_annotations(), message.message_annotations(), message.application_properties()];
    for map in maps.iter().flatten() {
        let entries = u32::try_from(map.iter().count());
        assert_eq!(entries, Ok(map.len()), "every entry of a checked map can be read");
    }
    let data: usize = message.data().map(|part| part.len()).sum();
    assert!(data <= source.len(), "data lies inside the message");
    assert_eq!(
        message.properties(),
        message.properties_carefully(),
        "the quick and the careful way read the same properties"
    );
    assert_eq!(
        message.essentials(),
        message.properties_carefully().map(|properties| properties.unwrap_or_default().into()),
        "the essentials are those of the properties"
    );
    assert_eq!(message.header(), message.header_carefully(), "both ways read the same header");
    assert_eq!(
        Message::parse_again(source.clone()).as_ref(),
        Ok(&message),
        "looked at again, it is the same"
    );
    check_front(&message);
    check_outline(&message);
    check_rebuilt(&message);
    if let Ok(properties) = message.properties() {
        check_properties_change(&message, &properties.unwrap_or_default());
    }
}

fn check_front(message: &Message) {
    let front = Front::of_checked(message.encoded()).expect("the message was parsed");
    assert_eq!(front.header(), message.header(), "the header in front is the message's");
    let layout = message.layout();
    assert_eq!(front.is_annotated(), layout.message_annotations.is_some(), "annotations are seen in front");
    assert_eq!(front.bare_start(), layout.bare_start(), "the bare message begins behind what is in front");
}

fn check_outline(message: &Message) {
    let outline = Outline::from_words(message.outline().words());
    assert_eq!(outline, message.outline(), "an outline is its numbers");
    let encoded = message.encoded();
    let properties = message.properties().ok().flatten();
    assert_eq!(outline.properties(encoded), properties, "an outline shows the properties");
    assert_eq!(
        outline.has_application_properties(),
        message.layout().application_properties.is_some(),
        "an outline knows whether there are any of the application"
    );
    let bytes = |(key, value): (Encoded<'_>, Encoded<'_>)| {
        (Bytes::copy_from_slice(key.as_bytes()), Bytes::copy_from_slice(value.as_bytes()))
    };
    assert!(
        outline.annotation_entries(encoded).map(bytes).eq(message.annotation_entries().map(bytes)),
        "an outline shows the annotations"
    );
    assert!(
        outline.application_entries(encoded).map(bytes).eq(message.application_entries().map(bytes)),
        "an outline shows the application properties"
    );
}

fn check_rebuilt(message: &Message) {
    let header = Header { delivery_count: 3, ..Header::default() };
    let mut out = Vec::new();
    let tail = message.rebuild(&mut out, &header, |_| {}, |_| {}, Changes::default());
    out.extend_from_slice(tail);
    let rebuilt = parse_rebuilt(out.into());
    assert_eq!(rebuilt.header(), Ok(Some(header)), "a rebuilt message has the new header");
    let bare = |message: &Message| message.encoded().slice(message.layout().bare_start()..);
    assert_eq!(bare(&rebuilt), bare(message), "a rebuilt message keeps the bare message");
}

fn check_properties_change(message: &Message, properties: &crate::message::Properties) {
    let map = message.application_properties().unwrap_or_default();
    let changes = Changes { properties: Some(properties), application_properties: Some(&map) };
    let mut out = Vec::new();
    let tail = message.rebuild(&mut out, &Header::default(), |_| {}, |_| {}, changes);
    out.extend_from_slice(tail);
    let rebuilt = parse_rebuilt(out.into());
    assert_eq!(rebuilt.properties(), Ok(Some(properties.clone())), "new properties are written");
    assert_eq!(rebuilt.application_properties().unwrap_or_default(), map, "application properties are kept");
    let body = |message: &Message| message.encoded().slice(message.layout().body().start..);
    assert_eq!(body(&rebuilt), body(message), "body and footer are kept");
}

fn parse_rebuilt(encoded: Bytes) -> Message {
    let parsed: Result<Message, DecodeError> = Message::parse(encoded);
    parsed.expect("a rebuilt message is a message")
}
