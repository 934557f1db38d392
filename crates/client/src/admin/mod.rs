//! Entities and rules: created, looked at, changed and deleted, over the administration API that every Service Bus has.
//!
//! What was read keeps everything the service showed, so that an update changes what was changed and nothing else.
//! Priority settings, which only Vorrang has, travel in an element of their own: other services pass over it.

mod entities;
mod envelope;
mod fields;
mod http;
mod iso;
mod priority;
mod rule;
mod xml;

use std::time::{Duration, SystemTime};

pub use entities::{QueueProperties, Runtime, SubscriptionProperties, TopicProperties};
pub use fields::Status;
pub use iso::FOREVER;
pub use priority::{Class, Policy, Priority, PriorityRule};

use crate::client::{Client, IntoConnectionString};
use crate::connection_string::ConnectionString;
use crate::error::Error;
use crate::rules::Rule;
use crate::sas::escape;
use crate::transport::TlsOptions;
use entities::{Described, subscription_place};
use fields::Fields;
use http::{Door, Intent};
use xml::Element;

/// Entries of a page; the service gives no more.
const PAGE: usize = 100;
/// Pages of a list; more are a mistake of somebody. A list that does not end is refused.
const PAGES_MAX: usize = 10_000;
/// Where a development broker's HTTP is.
const DEVELOPMENT_PORT: u16 = 5300;
const RULE: &str = "RuleDescription";

/// Creates, looks at, changes and deletes entities and rules. Needs a key with the right to manage.
///
/// ```no_run
/// use vorrang_client::admin::{Admin, QueueProperties};
///
/// # async fn example(connection_string: &str) -> Result<(), vorrang_client::Error> {
/// let admin = Admin::new(connection_string)?;
/// let queue = admin.create_queue_if_missing(&QueueProperties::new("orders").with_max_delivery_count(3)).await?;
/// println!("{} messages wait", queue.runtime().active);
/// admin.update_queue(&queue.with_max_delivery_count(5)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Admin {
    door: Door,
}

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// What was bought: `Basic`, `Standard` or `Premium`.
    pub sku: Option<String>,
    /// When it was made.
    pub created: Option<SystemTime>,
}

impl Client {
    /// Administration over HTTP, with the credentials and roots of trust of this client.
    ///
    /// `endpoint` says where: `https://host[:port]` or `http://host[:port]`, for instance `http://localhost:5300`.
    pub fn admin(&self, endpoint: &str) -> Result<Admin, Error> {
        let (credential, tls) = self.credentials();
        let door = Door::at(endpoint, self.host(), credential, tls)?;
        Ok(Admin { door }.with_time_out(self.operation_time_out()))
    }
}

impl Admin {
    /// Administration of the namespace a connection string names, over HTTPS; with `UseDevelopmentEmulator=true` over
    /// HTTP, at the port in the string or 5300.
    pub fn new(connection: impl IntoConnectionString) -> Result<Self, Error> {
        let ConnectionString { host, port, credential, emulator, .. } =
            connection.into_connection_string()?;
        let shown = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let endpoint = if emulator {
            format!("http://{shown}:{}", port.unwrap_or(DEVELOPMENT_PORT))
        } else {
            format!("https://{shown}")
        };
        Ok(Admin { door: Door::at(&endpoint, &host, credential, TlsOptions::default())? })
    }

    /// Another place than the connection string's: `http[s]://host[:port]`.
    pub fn with_endpoint(self, endpoint: &str) -> Result<Self, Error> {
        let Door { route, host, credential, time_out } = self.door;
        let door = Door::at(endpoint, &host, credential, route.tls.clone())?;
        Ok(Admin { door }.with_time_out(time_out))
    }

    /// How the service proves who it is.
    #[must_use]
    pub fn with_tls(mut self, tls: TlsOptions) -> Self {
        let route = crate::transport::Route { tls, ..(*self.door.route).clone() };
        self.door.route = route.into();
        self
    }

    /// How long a request may take.
    #[must_use]
    pub fn with_time_out(mut self, time_out: Duration) -> Self {
        self.door.time_out = time_out;
        self
    }

    /// The namespace.
    pub async fn namespace(&self) -> Result<Namespace, Error> {
        let (_, info) = described(self.door.get("$namespaceinfo", "").await?, "NamespaceInfo")?;
        Ok(Namespace {
            name: info.value_of("Name").unwrap_or_default().to_owned(),
            sku: info.value_of("MessagingSKU").map(str::to_owned),
            created: info.value_of("CreatedTime").and_then(iso::read_time),
        })
    }

    /// Creates a queue. [`Error::AlreadyExists`] if there is a queue or topic of that name.
    pub async fn create_queue(&self, queue: &QueueProperties) -> Result<QueueProperties, Error> {
        self.put(queue, Intent::Create).await
    }

    /// Creates a queue unless there is one of that name already, which then stays as it is and is answered.
    pub async fn create_queue_if_missing(&self, queue: &QueueProperties) -> Result<QueueProperties, Error> {
        self.create_if_missing(queue).await
    }

    /// A queue with its settings and figures. [`Error::NotFound`] if there is none.
    pub async fn queue(&self, name: &str) -> Result<QueueProperties, Error> {
        self.get(&QueueProperties::new(name)).await
    }

    /// Whether there is a queue of this name.
    pub async fn queue_exists(&self, name: &str) -> Result<bool, Error> {
        exists(self.queue(name).await)
    }

    /// Changes a queue to what `queue` says. Start from one that was read: Service Bus takes what is absent for its
    /// default.
    pub async fn update_queue(&self, queue: &QueueProperties) -> Result<QueueProperties, Error> {
        self.put(queue, Intent::Update).await
    }

    /// Deletes a queue and everything in it.
    pub async fn delete_queue(&self, name: &str) -> Result<(), Error> {
        self.door.delete(&escape(name)).await
    }

    /// All queues.
    pub async fn queues(&self) -> Result<Vec<QueueProperties>, Error> {
        self.list("$Resources/Queues", QueueProperties::new).await
    }

    /// Creates a topic. [`Error::AlreadyExists`] if there is a queue or topic of that name.
    pub async fn create_topic(&self, topic: &TopicProperties) -> Result<TopicProperties, Error> {
        self.put(topic, Intent::Create).await
    }

    /// Creates a topic unless there is one of that name already, which then stays as it is and is answered.
    pub async fn create_topic_if_missing(&self, topic: &TopicProperties) -> Result<TopicProperties, Error> {
        self.create_if_missing(topic).await
    }

    /// A topic with its settings and figures. [`Error::NotFound`] if there is none.
    pub async fn topic(&self, name: &str) -> Result<TopicProperties, Error> {
        self.get(&TopicProperties::new(name)).await
    }

    /// Whether there is a topic of this name.
    pub async fn topic_exists(&self, name: &str) -> Result<bool, Error> {
        exists(self.topic(name).await)
    }

    /// Changes a topic to what `topic` says. Start from one that was read.
    pub async fn update_topic(&self, topic: &TopicProperties) -> Result<TopicProperties, Error> {
        self.put(topic, Intent::Update).await
    }

    /// Deletes a topic with its subscriptions and everything in them.
    pub async fn delete_topic(&self, name: &str) -> Result<(), Error> {
        self.door.delete(&escape(name)).await
    }

    /// All topics.
    pub async fn topics(&self) -> Result<Vec<TopicProperties>, Error> {
        self.list("$Resources/Topics", TopicProperties::new).await
    }

    /// Creates a subscription. [`Error::AlreadyExists`] if the topic has one of that name.
    pub async fn create_subscription(
        &self,
        subscription: &SubscriptionProperties,
    ) -> Result<SubscriptionProperties, Error> {
        self.put(subscription, Intent::Create).await
    }

    /// Creates a subscription unless there is one of that name already, which then stays as it is and is answered.
    pub async fn create_subscription_if_missing(
        &self,
        subscription: &SubscriptionProperties,
    ) -> Result<SubscriptionProperties, Error> {
        self.create_if_missing(subscription).await
    }

    /// A subscription with its settings and figures. [`Error::NotFound`] if there is none.
    pub async fn subscription(&self, topic: &str, name: &str) -> Result<SubscriptionProperties, Error> {
        self.get(&SubscriptionProperties::new(topic, name)).await
    }

    /// Whether a topic has a subscription of this name.
    pub async fn subscription_exists(&self, topic: &str, name: &str) -> Result<bool, Error> {
        exists(self.subscription(topic, name).await)
    }

    /// Changes a subscription to what `subscription` says. Start from one that was read.
    pub async fn update_subscription(
        &self,
        subscription: &SubscriptionProperties,
    ) -> Result<SubscriptionProperties, Error> {
        self.put(subscription, Intent::Update).await
    }

    /// Deletes a subscription and everything in it.
    pub async fn delete_subscription(&self, topic: &str, name: &str) -> Result<(), Error> {
        self.door.delete(&subscription_place(topic, name)).await
    }

    /// All subscriptions of a topic.
    pub async fn subscriptions(&self, topic: &str) -> Result<Vec<SubscriptionProperties>, Error> {
        let path = format!("{}/Subscriptions", escape(topic));
        self.list(&path, |name| SubscriptionProperties::new(topic, name)).await
    }

    /// Adds a rule to a subscription. [`Error::AlreadyExists`] if it has one of that name.
    pub async fn create_rule(&self, topic: &str, subscription: &str, rule: &Rule) -> Result<Rule, Error> {
        self.put_rule(topic, subscription, rule, Intent::Create).await
    }

    /// A rule of a subscription. [`Error::NotFound`] if there is none of that name.
    pub async fn rule(&self, topic: &str, subscription: &str, name: &str) -> Result<Rule, Error> {
        read_rule(self.door.get(&rule_place(topic, subscription, name), "").await?)
    }

    /// Whether a subscription has a rule of this name.
    pub async fn rule_exists(&self, topic: &str, subscription: &str, name: &str) -> Result<bool, Error> {
        exists(self.rule(topic, subscription, name).await)
    }

    /// Replaces a rule in one step: no message falls between the old and the new one.
    pub async fn update_rule(&self, topic: &str, subscription: &str, rule: &Rule) -> Result<Rule, Error> {
        self.put_rule(topic, subscription, rule, Intent::Update).await
    }

    /// Removes a rule.
    pub async fn delete_rule(&self, topic: &str, subscription: &str, name: &str) -> Result<(), Error> {
        self.door.delete(&rule_place(topic, subscription, name)).await
    }

    /// All rules of a subscription.
    pub async fn rules(&self, topic: &str, subscription: &str) -> Result<Vec<Rule>, Error> {
        let path = format!("{}/Rules", subscription_place(topic, subscription));
        let described = self.pages(&path, RULE).await?;
        described.iter().map(|(name, description)| readable_rule(name, description)).collect()
    }

    async fn put<D: Described>(&self, wanted: &D, intent: Intent) -> Result<D, Error> {
        let entry = envelope::wrap(wanted.described(&self.door.host));
        let answer = self.door.put(&wanted.place(), intent, &entry).await?;
        let (_, description) = described(answer, D::ROOT)?;
        Ok(wanted.read_as(Fields::of(description)))
    }

    async fn get<D: Described>(&self, wanted: &D) -> Result<D, Error> {
        let (_, description) = described(self.door.get(&wanted.place(), "").await?, D::ROOT)?;
        Ok(wanted.read_as(Fields::of(description)))
    }

    /// Creating comes first, so that of several who find it missing one succeeds and none fails.
    async fn create_if_missing<D: Described>(&self, wanted: &D) -> Result<D, Error> {
        match self.put(wanted, Intent::Create).await {
            Err(Error::AlreadyExists(said)) => match self.get(wanted).await {
                // Something else has the name.
                Err(Error::NotFound(_)) => Err(Error::AlreadyExists(said)),
                found => found,
            },
            made => made,
        }
    }

    async fn list<D: Described>(&self, path: &str, named: impl Fn(String) -> D) -> Result<Vec<D>, Error> {
        let all = self.pages(path, D::ROOT).await?.into_iter();
        Ok(all.map(|(name, description)| named(name).read_as(Fields::of(description))).collect())
    }

    /// All entries of a list. A page that is full may be followed by another one whether it says so or not.
    async fn pages(&self, path: &str, root: &str) -> Result<Vec<(String, Element)>, Error> {
        let mut all = Vec::new();
        for _ in 0..PAGES_MAX {
            let query = format!("$skip={}&$top={PAGE}&", all.len());
            let page = envelope::page(self.door.get(path, &query).await?, root)
                .map_err(|error| unexpected(&error))?;
            let count = page.items.len();
            all.extend(page.items);
            if count == 0 || (count < PAGE && !page.more) {
                return Ok(all);
            }
        }
        Err(Error::Limit { what: "pages of a list", limit: PAGES_MAX })
    }

    async fn put_rule(
        &self,
        topic: &str,
        subscription: &str,
        rule: &Rule,
        intent: Intent,
    ) -> Result<Rule, Error> {
        let entry = envelope::wrap(rule::write(rule, RULE));
        read_rule(self.door.put(&rule_place(topic, subscription, &rule.name), intent, &entry).await?)
    }
}

fn rule_place(topic: &str, subscription: &str, name: &str) -> String {
    format!("{}/Rules/{}", subscription_place(topic, subscription), escape(name))
}

fn described(answer: Element, root: &str) -> Result<(String, Element), Error> {
    envelope::unwrap(answer, root).map_err(|error| unexpected(&error))
}

fn unexpected(error: &envelope::Error) -> Error {
    match error {
        envelope::Error::Other { .. } => Error::NotFound(error.to_string().into()),
        envelope::Error::Root { .. } => Error::Protocol(error.to_string().into()),
    }
}

fn read_rule(answer: Element) -> Result<Rule, Error> {
    let (title, description) = described(answer, RULE)?;
    readable_rule(&title, &description)
}

fn readable_rule(title: &str, description: &Element) -> Result<Rule, Error> {
    let name = description.value_of("Name").unwrap_or(title);
    let read = rule::read(name, description);
    read.ok_or_else(|| Error::Protocol(format!("the rule '{name}' has a filter of an unknown kind").into()))
}

fn exists<T>(found: Result<T, Error>) -> Result<bool, Error> {
    match found {
        Ok(_) => Ok(true),
        Err(Error::NotFound(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_string_says_where_administration_is() {
        let cases = [
            ("Endpoint=sb://ns.example/;UseDevelopmentEmulator=true", "ns.example:5300"),
            ("Endpoint=sb://localhost:9;UseDevelopmentEmulator=true", "localhost:9"),
            ("Endpoint=sb://ns.example/", "ns.example:443"),
            ("Endpoint=sb://ns.example:5671/", "ns.example:443"),
        ];
        for (text, expected) in cases {
            assert_eq!(Admin::new(text).unwrap().door.route.endpoint(), expected, "{text}");
        }
        let moved = Admin::new("Endpoint=sb://ns.example/").unwrap().with_endpoint("http://here:1").unwrap();
        assert_eq!(
            (moved.door.route.endpoint().as_str(), moved.door.host.as_str()),
            ("here:1", "ns.example")
        );
    }
}
