//! Entities: created, looked at, changed and deleted, over Vorrang's JSON API.
//!
//! Properties are kept as the API names them: what this client has no method for is read and written all the same.

mod http;

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::error::Error;
use crate::transport::TransportKind;
use http::Door;

/// Pages of a list; more are a mistake of somebody. A list that does not end is refused.
const PAGES_MAX: usize = 10_000;

/// Which entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entity {
    /// A queue.
    Queue(String),
    /// A topic.
    Topic(String),
    /// A subscription.
    Subscription {
        /// Of which topic.
        topic: String,
        /// Its name.
        name: String,
    },
}

impl Entity {
    /// A queue.
    pub fn queue(name: impl Into<String>) -> Self {
        Entity::Queue(name.into())
    }

    /// A topic.
    pub fn topic(name: impl Into<String>) -> Self {
        Entity::Topic(name.into())
    }

    /// A subscription.
    pub fn subscription(topic: impl Into<String>, name: impl Into<String>) -> Self {
        Entity::Subscription { topic: topic.into(), name: name.into() }
    }

    fn path(&self) -> String {
        let escape = crate::sas::escape;
        match self {
            Entity::Queue(name) => format!("api/queues/{}", escape(name)),
            Entity::Topic(name) => format!("api/topics/{}", escape(name)),
            Entity::Subscription { topic, name } => {
                format!("api/topics/{}/subscriptions/{}", escape(topic), escape(name))
            }
        }
    }
}

/// What an entity is told to be; what is not set keeps its value or gets the broker's default.
///
/// ```
/// use std::time::Duration;
/// use vorrang_client::admin::Properties;
///
/// let properties = Properties::default()
///     .with_max_delivery_count(3)
///     .with_lock_duration(Duration::from_secs(30))
///     .with("policy", "strict");
/// assert_eq!(properties.value("maxDeliveryCount"), Some(&3.into()));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Properties {
    values: Map<String, Value>,
}

impl Properties {
    /// Sets a property by the name the API has for it.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.values.insert(name.to_owned(), value.into());
        self
    }

    /// A property by the name the API has for it.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// How long a received message stays locked.
    #[must_use]
    pub fn with_lock_duration(self, time: Duration) -> Self {
        self.with("lockDuration", iso_duration(time))
    }

    /// After how many tries a message is dead-lettered.
    #[must_use]
    pub fn with_max_delivery_count(self, count: u32) -> Self {
        self.with("maxDeliveryCount", count)
    }

    /// Messages belong to sessions.
    #[must_use]
    pub fn with_sessions(self) -> Self {
        self.with("requiresSession", true)
    }

    /// A message id is taken once within this time.
    #[must_use]
    pub fn with_duplicate_detection(self, window: Duration) -> Self {
        self.with("requiresDuplicateDetection", true)
            .with("duplicateDetectionHistoryTimeWindow", iso_duration(window))
    }

    /// How long messages live that do not say it themselves.
    #[must_use]
    pub fn with_time_to_live(self, time: Duration) -> Self {
        self.with("defaultMessageTimeToLive", iso_duration(time))
    }

    /// After how long without use the entity is deleted.
    #[must_use]
    pub fn with_auto_delete_on_idle(self, time: Duration) -> Self {
        self.with("autoDeleteOnIdle", iso_duration(time))
    }
}

/// An entity as the broker shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// What it was told to be.
    pub properties: Properties,
    /// What is known of it now: counts, sizes, times.
    pub runtime: Map<String, Value>,
}

/// Creates, looks at, changes and deletes entities. Made by [`Client::admin`].
///
/// ```no_run
/// use vorrang_client::admin::{Entity, Properties};
///
/// # async fn example(client: vorrang_client::Client) -> Result<(), vorrang_client::Error> {
/// let admin = client.admin("http://localhost:5300")?;
/// let properties = Properties::default().with_max_delivery_count(3);
/// admin.create_if_missing(&Entity::queue("orders"), &properties).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Admin {
    door: Door,
}

impl Client {
    /// Administration over HTTP, with the credentials of this client's connection string.
    ///
    /// `endpoint` says where: `https://host[:port]` or `http://host[:port]`, for instance `http://localhost:5300`.
    pub fn admin(&self, endpoint: &str) -> Result<Admin, Error> {
        let wrong = || {
            Error::InvalidArgument(format!("'{endpoint}' is not of the form http[s]://host[:port]").into())
        };
        let (kind, rest) = match endpoint.split_once("://").ok_or_else(wrong)? {
            ("https", rest) => (TransportKind::Tls, rest),
            ("http", rest) => (TransportKind::Tcp, rest),
            _ => return Err(wrong()),
        };
        let authority = rest.trim_end_matches('/');
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
            None => (authority, if kind == TransportKind::Tls { 443 } else { 80 }),
        };
        if host.is_empty() {
            return Err(wrong());
        }
        Ok(Admin { door: Door::new(self, kind, host, port) })
    }
}

impl Admin {
    /// Creates an entity. [`Error::AlreadyExists`] if there is one of that name.
    pub async fn create(&self, entity: &Entity, properties: &Properties) -> Result<Description, Error> {
        self.put(entity, "", properties).await
    }

    /// Creates an entity unless there is one of that name already, which then stays as it is.
    pub async fn create_if_missing(
        &self,
        entity: &Entity,
        properties: &Properties,
    ) -> Result<Description, Error> {
        self.put(entity, "?ifMissing=true", properties).await
    }

    async fn put(&self, entity: &Entity, query: &str, properties: &Properties) -> Result<Description, Error> {
        let body = Value::Object(properties.values.clone());
        read(&self.door.ask("PUT", &format!("{}{query}", entity.path()), Some(&body)).await?)
    }

    /// An entity with its settings and figures. [`Error::NotFound`] if there is none.
    pub async fn get(&self, entity: &Entity) -> Result<Description, Error> {
        read(&self.door.ask("GET", &entity.path(), None).await?)
    }

    /// Changes what `properties` mentions and nothing else.
    pub async fn update(&self, entity: &Entity, properties: &Properties) -> Result<Description, Error> {
        let body = Value::Object(properties.values.clone());
        read(&self.door.ask("PATCH", &entity.path(), Some(&body)).await?)
    }

    /// Deletes an entity and everything in it.
    pub async fn delete(&self, entity: &Entity) -> Result<(), Error> {
        self.door.ask("DELETE", &entity.path(), None).await.map(|_| ())
    }

    /// All queues.
    pub async fn queues(&self) -> Result<Vec<Description>, Error> {
        self.list("api/queues".to_owned()).await
    }

    /// All topics.
    pub async fn topics(&self) -> Result<Vec<Description>, Error> {
        self.list("api/topics".to_owned()).await
    }

    /// All subscriptions of a topic.
    pub async fn subscriptions(&self, topic: &str) -> Result<Vec<Description>, Error> {
        self.list(format!("{}/subscriptions", Entity::topic(topic).path())).await
    }

    async fn list(&self, first: String) -> Result<Vec<Description>, Error> {
        let mut all = Vec::new();
        let mut path = first;
        for _ in 0..PAGES_MAX {
            let page = self.door.ask("GET", &path, None).await?;
            let items = page.get("items").and_then(Value::as_array);
            let items = items.ok_or_else(|| Error::Protocol("a list without items".into()))?;
            for item in items {
                all.push(read(item)?);
            }
            match page.get("next").and_then(Value::as_str) {
                Some(next) => next.trim_start_matches('/').clone_into(&mut path),
                None => return Ok(all),
            }
        }
        Err(Error::Limit { what: "pages of a list", limit: PAGES_MAX })
    }
}

/// Reads one entity.
fn read(shown: &Value) -> Result<Description, Error> {
    let part = |name: &str| shown.get(name).and_then(Value::as_object).cloned();
    let name = shown.get("name").and_then(Value::as_str);
    match (name, part("properties")) {
        (Some(name), Some(values)) => Ok(Description {
            name: name.to_owned(),
            properties: Properties { values },
            runtime: part("runtime").unwrap_or_default(),
        }),
        _ => Err(Error::Protocol(format!("an entity without name or properties: {}", json!(shown)).into())),
    }
}

/// A time span as ISO 8601 writes it.
fn iso_duration(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("PT{}S", time.as_secs()),
        milliseconds => format!("PT{}.{milliseconds:03}S", time.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_paths_are_written_as_the_api_reads_them() {
        assert_eq!(iso_duration(Duration::from_millis(90_500)), "PT90.500S");
        assert_eq!(iso_duration(Duration::from_mins(1)), "PT60S");
        assert_eq!(Entity::subscription("a/b", "c d").path(), "api/topics/a%2Fb/subscriptions/c%20d");
    }

    #[test]
    fn what_is_no_entity_is_told() {
        assert!(matches!(read(&json!({ "name": "x" })), Err(Error::Protocol(_))));
    }
}
