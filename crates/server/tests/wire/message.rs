//! Messages as clients write them.

use bytes::Bytes;
use vorrang_amqp::descriptor;
use vorrang_amqp::message::{
    BatchBuilder, Header, Message, MessageId, Properties, put_data, put_header, put_map_section,
    put_properties,
};
use vorrang_amqp::value::{Timestamp, Value};

/// A message to be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    pub(crate) header: Option<Header>,
    pub(crate) properties: Properties,
    annotations: Vec<(String, Value)>,
    application: Vec<(String, Value)>,
    body: Bytes,
}

/// A message with a body of data.
pub(crate) fn message(body: &str) -> Draft {
    Draft { body: Bytes::copy_from_slice(body.as_bytes()), ..Draft::default() }
}

/// A message of so many bytes.
pub(crate) fn large(bytes: usize) -> Draft {
    Draft { body: vec![b'x'; bytes].into(), ..Draft::default() }
}

impl Draft {
    pub(crate) fn id(mut self, id: &str) -> Draft {
        self.properties.message_id = Some(MessageId::String(id.into()));
        self
    }

    pub(crate) fn session(mut self, session: &str) -> Draft {
        self.properties.group_id = Some(session.into());
        self
    }

    pub(crate) fn ttl(mut self, milliseconds: u32) -> Draft {
        self.header.get_or_insert_default().ttl = Some(milliseconds);
        self
    }

    pub(crate) fn annotation(mut self, key: &str, value: impl Into<Value>) -> Draft {
        self.annotations.push((key.to_owned(), value.into()));
        self
    }

    pub(crate) fn scheduled(self, at: i64) -> Draft {
        self.annotation("x-opt-scheduled-enqueue-time", Timestamp(at))
    }

    pub(crate) fn property(mut self, key: &str, value: impl Into<Value>) -> Draft {
        self.application.push((key.to_owned(), value.into()));
        self
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        if let Some(header) = &self.header {
            put_header(&mut out, header);
        }
        if !self.annotations.is_empty() {
            put_map_section(&mut out, descriptor::MESSAGE_ANNOTATIONS, |map| {
                for (key, value) in &self.annotations {
                    map.symbol(key, value);
                }
            });
        }
        if self.properties != Properties::default() {
            put_properties(&mut out, &self.properties);
        }
        if !self.application.is_empty() {
            put_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, |map| {
                for (key, value) in &self.application {
                    map.entry(&Value::from(key.as_str()), value);
                }
            });
        }
        put_data(&mut out, &self.body);
        out.into()
    }
}

impl From<Draft> for Bytes {
    fn from(draft: Draft) -> Bytes {
        draft.encode()
    }
}

/// The payload of a batch.
pub(crate) fn batch<'a>(messages: impl IntoIterator<Item = &'a Draft>) -> Bytes {
    let mut builder = BatchBuilder::default();
    for message in messages {
        builder.push(&message.encode());
    }
    builder.finish().into()
}

/// A body of data as text.
pub(crate) fn body(message: &Message) -> String {
    message.data().map(|data| String::from_utf8(data.to_vec()).unwrap()).collect()
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}
