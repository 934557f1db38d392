//! `$cbs`: tokens become rights.
//!
//! A token is recognised by its text, not by the type its sender names: Python calls shared access
//! signatures `jwt`.

use bytes::BytesMut;
use vorrang_amqp::connection::Delivery;
use vorrang_amqp::message::{Message, MessageId, Properties, put_map_section, put_properties, put_value};
use vorrang_amqp::value::Value;
use vorrang_amqp::{Symbol, Text, descriptor};
use vorrang_broker::access::{Principal, Scope, Token};

use super::condition::name;
use super::door::{Door, Now};
use super::links::Node;
use super::rpc;

/// Why a token gives no rights: a status and words.
struct Refused(i32, String);

impl Door {
    /// A request to `$cbs`.
    pub(super) fn put_token(&mut self, delivery: &Delivery, now: Now) {
        let Some(session) = self.links.entry(delivery.link).map(|entry| entry.session) else { return };
        if !delivery.settled {
            // The link may be gone; then nobody waits.
            let _ = self.amqp.accept(delivery.link, delivery.delivery);
        }
        let Ok(request) = Message::parse(delivery.payload.clone()) else { return };
        let properties = request.properties().ok().flatten().unwrap_or_default();
        let outcome = self.granted(&request, now);
        let Some(link) = rpc::route(&self.links, &Node::Cbs, properties.reply_to.as_ref(), session) else {
            return;
        };
        let response = match outcome {
            Ok(principal) => {
                self.now_is(principal);
                self.amqp.authenticated();
                response(properties.message_id, 202, "Accepted")
            }
            Err(Refused(status, text)) => {
                self.entered.totals().tokens_refused.add(1);
                response(properties.message_id, status, &text)
            }
        };
        rpc::respond(&mut self.amqp, &mut self.links, link, response);
    }

    fn granted(&self, request: &Message, now: Now) -> Result<Principal, Refused> {
        let properties = request.application_properties().unwrap_or_default();
        let text = |key: &str| properties.value(key).and_then(|value| value.as_text().cloned());
        let malformed = |what: &str| Refused(400, format!("The request to $cbs needs {what}."));
        match text("operation") {
            Some(operation) if operation == "put-token" => {}
            _ => return Err(malformed("the operation 'put-token'")),
        }
        let audience = text("name").ok_or_else(|| malformed("the audience as 'name'"))?;
        let audience =
            Scope::of_address(audience.as_str()).map_err(|error| Refused(400, error.to_string()))?;
        let body = request.value().ok().flatten();
        let token =
            body.as_ref().and_then(Value::as_str).ok_or_else(|| malformed("the token as its value"))?;
        if !Token::is_shared_access(token) {
            let text = "Only tokens of the form 'SharedAccessSignature sr=...' are accepted.";
            return Err(Refused(401, text.to_owned()));
        }
        let unauthorized = |text: String| Refused(401, text);
        let token = Token::parse(token).map_err(|error| unauthorized(format!("MalformedToken: {error}.")))?;
        let keys = self.shared.broker.keys();
        let grant =
            keys.verify(&token, &audience, now.wall).map_err(|error| unauthorized(error.to_string()))?;
        if let Some(name) = token.key_names().last() {
            self.entered.client().proved(name);
        }
        self.principal.and(grant, now.wall).map_err(|error| Refused(403, error.to_string()))
    }
}

/// A response in the spelling of `$cbs`, which is not that of `$management`.
fn response(correlation: Option<MessageId>, status: i32, text: &str) -> BytesMut {
    let mut out = BytesMut::new();
    put_properties(&mut out, &Properties { correlation_id: correlation, ..Properties::default() });
    put_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, |map| {
        map.entry(&Text::from_static("status-code"), &status);
        map.entry(&Text::from_static("status-description"), &Text::from(text));
        if status >= 300 {
            map.entry(&Text::from_static("error-condition"), &Symbol::from_static(name::UNAUTHORIZED));
        }
    });
    put_value(&mut out, &Value::Null);
    out
}
