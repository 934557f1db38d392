//! One wait in a queue as a span, and many of them as a request of OTLP over HTTP in JSON.

use serde_json::{Value, json};
use vorrang_engine::Timestamp;

use super::context::Context;

/// A message's time in the broker: from being enqueued to being delivered.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) context: Context,
    /// The span's own id.
    pub(super) id: u64,
    /// The path of the queue or subscription.
    pub(super) entity: Box<str>,
    pub(super) message_id: Option<Box<str>>,
    pub(super) sequence: u64,
    pub(super) level: u8,
    /// Deliveries before this one.
    pub(super) earlier_deliveries: u32,
    pub(super) enqueued: Timestamp,
    pub(super) delivered: Timestamp,
}

impl Span {
    fn to_json(&self) -> Value {
        // A clock that was set back must not make a span that ends before it begins.
        let delivered = self.delivered.max(self.enqueued);
        let nanos = |at: Timestamp| (u128::from(at.0) * 1_000_000).to_string();
        let mut attributes = vec![
            text("messaging.system", "vorrang"),
            text("messaging.operation.name", "deliver"),
            text("messaging.destination.name", &self.entity),
            number("vorrang.sequence_number", self.sequence),
            number("vorrang.level", u64::from(self.level)),
            number("vorrang.earlier_deliveries", u64::from(self.earlier_deliveries)),
            number("vorrang.time_in_queue_ms", delivered.since(self.enqueued).0),
        ];
        attributes.extend(self.message_id.as_ref().map(|id| text("messaging.message.id", id)));
        let mut span = json!({
            "traceId": self.context.trace,
            "spanId": format!("{:016x}", self.id),
            "parentSpanId": self.context.parent,
            "name": format!("wait {}", self.entity),
            "kind": INTERNAL,
            "startTimeUnixNano": nanos(self.enqueued),
            "endTimeUnixNano": nanos(delivered),
            "attributes": attributes,
        });
        if let (false, Some(members)) = (self.context.state.is_empty(), span.as_object_mut()) {
            members.insert("traceState".to_owned(), Value::from(&*self.context.state));
        }
        span
    }
}

/// `SPAN_KIND_INTERNAL`: sending and receiving are the clients' spans.
const INTERNAL: u8 = 1;

/// The body of one request.
pub(super) fn request(spans: &[Span]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let spans: Vec<Value> = spans.iter().map(Span::to_json).collect();
    let resource = [text("service.name", "vorrang"), text("service.version", version)];
    let scope = json!({ "name": "vorrang", "version": version });
    let request = json!({
        "resourceSpans": [{
            "resource": { "attributes": resource },
            "scopeSpans": [{ "scope": scope, "spans": spans }],
        }],
    });
    request.to_string().into_bytes()
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// The JSON of protocol buffers writes 64-bit numbers as text.
fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}
