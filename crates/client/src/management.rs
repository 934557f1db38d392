//! Requests to an entity's `$management`.

use std::time::Duration;

use tokio::time::timeout;
use vorrang_amqp::performative::DeliveryState;
use vorrang_amqp::value::{Map, Value};

use crate::driver::{Command, Hub, NodeRequest, Response};
use crate::error::Error;

/// How often a request that does no harm when repeated is sent.
const TRIES: u32 = 3;

/// The `$management` of one entity.
#[derive(Debug, Clone)]
pub(crate) struct Management {
    hub: Hub,
    entity: String,
    time_out: Duration,
}

/// Arguments of a request.
pub(crate) type Arguments = Vec<(&'static str, Value)>;

impl Management {
    pub(crate) fn new(hub: Hub, entity: &str, time_out: Duration) -> Self {
        Management { hub, entity: entity.to_owned(), time_out }
    }

    /// The same client, another entity.
    pub(crate) fn of(&self, entity: &str) -> Self {
        Management { entity: entity.to_owned(), ..self.clone() }
    }

    /// Asks once: for what must not happen twice.
    pub(crate) async fn call(
        &self,
        operation: &'static str,
        arguments: Arguments,
        state: Option<DeliveryState>,
    ) -> Result<Response, Error> {
        let body: Map = arguments.into_iter().map(|(name, value)| (Value::from(name), value)).collect();
        self.ask(operation, body, state).await
    }

    /// Asks again if the connection broke: for what does no harm when it happens twice.
    pub(crate) async fn call_repeatable(
        &self,
        operation: &'static str,
        arguments: Arguments,
    ) -> Result<Response, Error> {
        let body: Map = arguments.into_iter().map(|(name, value)| (Value::from(name), value)).collect();
        for _ in 1..TRIES {
            match self.ask(operation, body.clone(), None).await {
                Err(Error::Ambiguous) => {}
                answer => return answer,
            }
        }
        self.ask(operation, body, None).await
    }

    async fn ask(
        &self,
        operation: &'static str,
        body: Map,
        state: Option<DeliveryState>,
    ) -> Result<Response, Error> {
        let milliseconds = u32::try_from(self.time_out.as_millis()).unwrap_or(u32::MAX);
        let application_properties: Map = [
            ("operation", Value::from(operation)),
            ("com.microsoft:server-timeout", Value::from(milliseconds)),
        ]
        .into_iter()
        .map(|(name, value)| (Value::from(name), value))
        .collect();
        let asking = self.hub.ask(|reply| {
            Command::Request(Box::new(NodeRequest {
                node: format!("{}/$management", self.entity),
                audiences: vec![self.entity.clone()],
                application_properties,
                body,
                state,
                reply,
            }))
        });
        match timeout(self.time_out, asking).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::Timeout(self.time_out)),
        }
    }
}

impl Response {
    /// Something that the answer must hold.
    pub(crate) fn value(&self, name: &str) -> Result<Value, Error> {
        self.body.value(name).ok_or_else(|| Error::Protocol(format!("the answer has no '{name}'").into()))
    }

    /// The items of a list or array in the answer; none if nothing was found.
    pub(crate) fn items(&self, name: &str) -> Result<Vec<Value>, Error> {
        // 204: nothing there.
        if self.status == 204 {
            return Ok(Vec::new());
        }
        match self.value(name)? {
            Value::List(list) => Ok(list.iter().collect()),
            Value::Array(array) => Ok(array.iter().collect()),
            _ => Err(Error::Protocol(format!("'{name}' in the answer is no sequence").into())),
        }
    }
}
