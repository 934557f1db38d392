//! Messages the API stores: new ones, and dead letters that are sent again.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::{Bytes, BytesMut};
use vorrang_amqp::descriptor;
use vorrang_amqp::message::{
    Header, Message, MessageId, Properties, put_data, put_header, put_map_section, put_properties,
};
use vorrang_amqp::value::{Map, MapBuilder};
use vorrang_amqp::{Symbol, Text};
use vorrang_engine::{Incoming, Overlay, Span};

use super::filter::join;
use super::value;
use crate::front::message::{EncodedValue, OWNED_ANNOTATIONS, encoded_value, read_incoming};
use crate::http::api::complaint::Complaints;
use crate::http::api::model::{Edit, MessageBody, NewMessage, PropertyValue};
use crate::{date, duration};

/// The content type of a JSON body that does not say.
const JSON: &str = "application/json";

/// The sections of a message that is to be written.
struct Draft<'a> {
    header: Header,
    annotations: Option<&'a Map>,
    properties: Properties,
    application: Map,
    body: BodySource<'a>,
}

enum BodySource<'a> {
    /// As it was: all body sections.
    Kept(&'a [u8]),
    /// New data.
    Data(Vec<u8>),
}

impl Draft<'_> {
    fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        put_header(&mut out, &self.header);
        if let Some(annotations) = self.annotations {
            put_map_section(&mut out, descriptor::MESSAGE_ANNOTATIONS, |map| {
                map.keep_except(annotations, &OWNED_ANNOTATIONS);
            });
        }
        put_properties(&mut out, &self.properties);
        if !self.application.is_empty() {
            put_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, |map| {
                map.keep_except(&self.application, &[]);
            });
        }
        match &self.body {
            BodySource::Kept(sections) => out.extend_from_slice(sections),
            BodySource::Data(data) => put_data(&mut out, data),
        }
        out.freeze()
    }
}

/// Reads a message to send.
pub(crate) fn read(given: &NewMessage, field: &str, complaints: &mut Complaints) -> Option<Incoming> {
    let before = complaints.is_empty();
    let data = given.body.as_ref().map_or(Some(Vec::new()), |body| read_body(body, field, complaints));
    let time_to_live = given
        .time_to_live
        .as_ref()
        .and_then(|text| complaints.check(&join(field, "timeToLive"), duration::parse(text)));
    let scheduled_for = given.scheduled_for.as_ref().and_then(|text| {
        let at = date::parse(text).ok_or("must be a point in time in RFC 3339");
        complaints.check(&join(field, "scheduledFor"), at)
    });
    let mut application = MapBuilder::default();
    for (name, found) in &given.properties {
        push_property(&mut application, name, found, field, complaints);
    }
    let default = matches!(given.body, Some(MessageBody::Json(_))).then(|| JSON.to_owned());
    let content_type = given.content_type.clone().or(default);
    if !before || !complaints.is_empty() {
        return None;
    }
    let draft = Draft {
        header: Header { priority: given.level, durable: Some(true), ..Header::default() },
        annotations: None,
        properties: Properties {
            message_id: given.message_id.as_deref().map(text_id),
            correlation_id: given.correlation_id.as_deref().map(text_id),
            group_id: given.session_id.as_deref().map(Text::from),
            subject: given.subject.as_deref().map(Text::from),
            content_type: content_type.as_deref().map(|name| Symbol::from(Text::from(name))),
            to: given.to.as_deref().map(Text::from),
            reply_to: given.reply_to.as_deref().map(Text::from),
            reply_to_group_id: given.reply_to_session_id.as_deref().map(Text::from),
            ..Properties::default()
        },
        application: application.finish(),
        body: BodySource::Data(data?),
    };
    let read = complaints.check(field, read_incoming(draft.encode()))?;
    Some(Incoming { time_to_live, scheduled_for, ..read })
}

/// The bytes of a body.
fn read_body(body: &MessageBody, field: &str, complaints: &mut Complaints) -> Option<Vec<u8>> {
    match body {
        MessageBody::Json(json) => complaints.check(&join(field, "body.json"), serde_json::to_vec(json)),
        MessageBody::Text(text) => Some(text.clone().into_bytes()),
        MessageBody::Base64(text) => complaints.check(&join(field, "body.base64"), BASE64.decode(text)),
        MessageBody::Value(_) => {
            complaints.add(join(field, "body.value"), "cannot be sent: use json, text or base64");
            None
        }
    }
}

fn push_property(
    map: &mut MapBuilder,
    name: &str,
    given: &PropertyValue,
    field: &str,
    complaints: &mut Complaints,
) {
    match value::read(given) {
        Ok(Some(found)) => map.push(&Text::from(name), &EncodedValue(&encoded_value(&found))),
        Ok(None) => map.push(&Text::from(name), &vorrang_amqp::value::Value::Null),
        Err(error) => complaints.add(format!("{}.{name}", join(field, "properties")), error),
    }
}

fn text_id(text: &str) -> MessageId {
    MessageId::String(Text::from(text))
}

/// What to change in every message that is sent again: checked once, applied to each.
#[derive(Debug, Default)]
pub(crate) struct Amendment {
    edit: Edit,
    data: Option<Vec<u8>>,
    time_to_live: Option<Span>,
    /// Properties to set, encoded, or to remove.
    properties: Vec<(String, Option<Vec<u8>>)>,
}

impl Amendment {
    /// Reads an edit.
    pub(crate) fn read(edit: Option<&Edit>, complaints: &mut Complaints) -> Amendment {
        let Some(edit) = edit else { return Amendment::default() };
        let data = edit.body.as_ref().and_then(|body| read_body(body, "edit", complaints));
        let time_to_live = edit.time_to_live.as_ref();
        let time_to_live =
            time_to_live.and_then(|text| complaints.check("edit.timeToLive", duration::parse(text)));
        let mut properties = Vec::new();
        for (name, given) in &edit.properties {
            match value::read(given) {
                Ok(found) => {
                    properties.push((name.clone(), found.map(|found| encoded_value(&found))));
                }
                Err(error) => complaints.add(format!("edit.properties.{name}"), error),
            }
        }
        Amendment { edit: Edit { body: None, ..edit.clone() }, data, time_to_live, properties }
    }

    /// The level the messages get, if not their own.
    pub(crate) fn level(&self) -> Option<vorrang_engine::Level> {
        self.edit.level.map(vorrang_engine::Level)
    }

    /// A message as it is sent again: without what being dead-lettered added, with the changes.
    pub(crate) fn apply(&self, message: &Message) -> Result<Incoming, String> {
        let stored = message.header().ok().flatten().unwrap_or_default();
        let mut properties = message.properties().ok().flatten().unwrap_or_default();
        // They say when it would have expired; its life begins anew.
        (properties.creation_time, properties.absolute_expiry_time) = (None, None);
        let edit = &self.edit;
        let set = |field: &mut Option<Text>, new: &Option<String>| {
            if let Some(new) = new {
                *field = Some(Text::from(new.as_str()));
            }
        };
        set(&mut properties.subject, &edit.subject);
        set(&mut properties.group_id, &edit.session_id);
        if let Some(id) = &edit.message_id {
            properties.message_id = Some(text_id(id));
        }
        if let Some(id) = &edit.correlation_id {
            properties.correlation_id = Some(text_id(id));
        }
        if let Some(name) = &edit.content_type {
            properties.content_type = Some(Symbol::from(Text::from(name.as_str())));
        }
        let annotations = message.message_annotations();
        let kept = || message.encoded().get(message.layout().body()).unwrap_or_default();
        let body = self.data.clone().map_or_else(|| BodySource::Kept(kept()), BodySource::Data);
        let draft = Draft {
            header: Header {
                delivery_count: 0,
                ttl: stored.ttl.filter(|_| self.time_to_live.is_none()),
                ..stored
            },
            annotations: annotations.as_ref(),
            properties,
            application: self.application(message),
            body,
        };
        let mut incoming = read_incoming(draft.encode()).map_err(|error| error.to_string())?;
        incoming.time_to_live = self.time_to_live.or(incoming.time_to_live);
        if edit.session_id.is_some() {
            // Whatever it was before, it must be the session now.
            incoming.partition_key = None;
        }
        Ok(incoming)
    }

    fn application(&self, message: &Message) -> Map {
        let mut map = MapBuilder::default();
        let stored = message.application_properties().unwrap_or_default();
        for (key, found) in stored.encoded_iter() {
            let Some(name) = key.as_str() else { continue };
            let dropped = [Overlay::REASON, Overlay::DESCRIPTION].contains(&name)
                || self.properties.iter().any(|(changed, _)| changed == name);
            if !dropped {
                map.push(&Text::from(name), &EncodedValue(found.as_bytes()));
            }
        }
        for (name, found) in &self.properties {
            if let Some(found) = found {
                map.push(&Text::from(name.as_str()), &EncodedValue(found));
            }
        }
        map.finish()
    }
}
