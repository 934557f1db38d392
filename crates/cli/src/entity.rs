//! `vorrang queue|topic|subscription create|list|show|update|delete`.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use vorrang_server::http::api::model::{Entity, EntityKind};

use crate::api::{Api, subscription_path};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Cell, Format, Mood, Table};
use crate::properties::{Properties, Queue, Subscription, Topic};
use crate::watch::{self, Watch};
use crate::{percent, shown};

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Create a queue
    Create(Box<CreateQueue>),
    /// List queues with their counts
    List(Watch),
    /// Show everything about a queue
    Show(ShowOne),
    /// Change properties of a queue; those not mentioned stay as they are
    Update(Box<UpdateQueue>),
    /// Delete a queue and every message in it
    Delete(DeleteOne),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TopicCommand {
    /// Create a topic
    Create(Box<CreateTopic>),
    /// List topics
    List(Watch),
    /// Show everything about a topic
    Show(ShowOne),
    /// Change properties of a topic; those not mentioned stay as they are
    Update(Box<UpdateTopic>),
    /// Delete a topic, its subscriptions and every message in them
    Delete(DeleteOne),
}

#[derive(Debug, Subcommand)]
pub(crate) enum SubscriptionCommand {
    /// Create a subscription
    Create(Box<CreateSubscription>),
    /// List the subscriptions of a topic with their counts
    List {
        /// The topic
        topic: String,
        #[command(flatten)]
        watch: Watch,
    },
    /// Show everything about a subscription
    Show {
        /// The topic
        topic: String,
        #[command(flatten)]
        one: ShowOne,
    },
    /// Change properties of a subscription; those not mentioned stay as they are
    Update(Box<UpdateSubscription>),
    /// Delete a subscription and every message in it
    Delete {
        /// The topic
        topic: String,
        #[command(flatten)]
        one: DeleteOne,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateQueue {
    /// Its name
    name: String,
    #[command(flatten)]
    properties: Properties<Queue>,
    #[command(flatten)]
    create: Create,
}

#[derive(Debug, Args)]
pub(crate) struct CreateTopic {
    /// Its name
    name: String,
    #[command(flatten)]
    properties: Properties<Topic>,
    #[command(flatten)]
    create: Create,
}

#[derive(Debug, Args)]
pub(crate) struct CreateSubscription {
    /// The topic to subscribe to
    topic: String,
    /// Its name
    name: String,
    /// Take only messages for which this SQL condition holds
    #[arg(long, value_name = "SQL")]
    filter: Option<String>,
    /// What to do to each copy, in SQL
    #[arg(long, value_name = "SQL")]
    action: Option<String>,
    #[command(flatten)]
    properties: Properties<Subscription>,
    #[command(flatten)]
    create: Create,
}

#[derive(Debug, Args)]
struct Create {
    /// If it exists already, leave it as it is and succeed
    #[arg(long)]
    if_missing: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateQueue {
    /// Its name
    name: String,
    #[command(flatten)]
    properties: Properties<Queue>,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateTopic {
    /// Its name
    name: String,
    #[command(flatten)]
    properties: Properties<Topic>,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateSubscription {
    /// The topic
    topic: String,
    /// Its name
    name: String,
    #[command(flatten)]
    properties: Properties<Subscription>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowOne {
    /// Its name
    name: String,
    #[command(flatten)]
    watch: Watch,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteOne {
    /// Its name
    name: String,
    /// If it does not exist, succeed
    #[arg(long)]
    if_exists: bool,
}

pub(crate) fn queue(command: QueueCommand, api: &Api, format: Format) -> Outcome {
    let path = |name: &str| format!("/api/queues/{}", percent::encode(name));
    match command {
        QueueCommand::Create(create) => {
            put(api, &path(&create.name), &create.properties.body, &create.create, format)
        }
        QueueCommand::List(watch) => watch::run(&watch, || list(api, "/api/queues", format)),
        QueueCommand::Show(one) => watch::run(&one.watch, || show(api, &path(&one.name), format)),
        QueueCommand::Update(update) => patch(api, &path(&update.name), &update.properties.body, format),
        QueueCommand::Delete(one) => delete(api, &path(&one.name), &one),
    }
}

pub(crate) fn topic(command: TopicCommand, api: &Api, format: Format) -> Outcome {
    let path = |name: &str| format!("/api/topics/{}", percent::encode(name));
    match command {
        TopicCommand::Create(create) => {
            put(api, &path(&create.name), &create.properties.body, &create.create, format)
        }
        TopicCommand::List(watch) => watch::run(&watch, || list(api, "/api/topics", format)),
        TopicCommand::Show(one) => watch::run(&one.watch, || show(api, &path(&one.name), format)),
        TopicCommand::Update(update) => patch(api, &path(&update.name), &update.properties.body, format),
        TopicCommand::Delete(one) => delete(api, &path(&one.name), &one),
    }
}

pub(crate) fn subscription(command: SubscriptionCommand, api: &Api, format: Format) -> Outcome {
    match command {
        SubscriptionCommand::Create(create) => {
            let CreateSubscription { topic, name, filter, action, properties, create } = *create;
            let mut body = properties.body;
            if filter.is_some() || action.is_some() {
                let rule = crate::rule::definition(filter.as_deref(), None, action.as_deref());
                body.insert("rules".to_owned(), json!({ "$Default": rule }));
            }
            let put = put(api, &subscription_path(&topic, &name), &body, &create, format);
            put.map_err(|failure| match failure {
                Failure::NotFound(_) => {
                    let topic = output::printable(&topic);
                    Failure::NotFound(format!(
                        "there is no topic '{topic}' to subscribe to; `vorrang topic create {topic}` makes it"
                    ))
                }
                other => other,
            })
        }
        SubscriptionCommand::List { topic, watch } => {
            let path = format!("/api/topics/{}/subscriptions", percent::encode(&topic));
            watch::run(&watch, || list(api, &path, format))
        }
        SubscriptionCommand::Show { topic, one } => {
            watch::run(&one.watch, || show(api, &subscription_path(&topic, &one.name), format))
        }
        SubscriptionCommand::Update(update) => {
            patch(api, &subscription_path(&update.topic, &update.name), &update.properties.body, format)
        }
        SubscriptionCommand::Delete { topic, one } => {
            delete(api, &subscription_path(&topic, &one.name), &one)
        }
    }
}

fn put(api: &Api, path: &str, body: &Map<String, Value>, create: &Create, format: Format) -> Outcome {
    let path = if create.if_missing { format!("{path}?ifMissing=true") } else { path.to_owned() };
    let entity: Entity = api.put(&path, body)?;
    done(&entity, "is there", format)
}

fn patch(api: &Api, path: &str, body: &Map<String, Value>, format: Format) -> Outcome {
    if body.is_empty() {
        let text = "there is nothing to change; name a property, such as --lock-duration 30s";
        return Err(Failure::Usage(text.to_owned()));
    }
    let entity: Entity = api.patch(path, body)?;
    done(&entity, "is changed", format)
}

pub(crate) fn done(entity: &Entity, what: &str, format: Format) -> Outcome {
    match format {
        Format::Json => output::json(entity),
        Format::Table => {
            let kind = kind(entity.kind);
            output::line(&format!("{kind} {} {what}", output::printable(&entity.path)))
        }
    }
}

fn delete(api: &Api, path: &str, one: &DeleteOne) -> Outcome {
    match api.delete(path) {
        Err(Failure::NotFound(_)) if one.if_exists => Ok(()),
        other => other,
    }
}

fn list(api: &Api, path: &str, format: Format) -> Outcome {
    let entities: Vec<Entity> = api.list(path, None)?;
    if format == Format::Json {
        return output::json(&entities);
    }
    let topics = entities.iter().all(|entity| entity.kind == EntityKind::Topic);
    if topics && !entities.is_empty() {
        let mut table = Table::new(&["name", "status", "subscriptions", "size"]);
        for entity in &entities {
            table.row(vec![
                entity.name.as_str().into(),
                status(entity),
                entity.runtime.subscription_count.unwrap_or(0).into(),
                bytes(entity.runtime.size_in_bytes).into(),
            ]);
        }
        return table.print();
    }
    let mut table = Table::new(&[
        "name",
        "status",
        "active",
        "locked",
        "scheduled",
        "deferred",
        "dead",
        "receivers",
        "size",
    ]);
    for entity in &entities {
        let runtime = &entity.runtime;
        let dead = runtime.dead_letter_message_count + runtime.transfer_dead_letter_message_count;
        let mood = if dead > 0 { Mood::Warning } else { Mood::Plain };
        table.row(vec![
            entity.name.as_str().into(),
            status(entity),
            runtime.active_message_count.into(),
            runtime.locked_message_count.into(),
            runtime.scheduled_message_count.into(),
            runtime.deferred_message_count.into(),
            Cell::from(dead).in_mood(mood),
            runtime.receiver_count.into(),
            bytes(runtime.size_in_bytes).into(),
        ]);
    }
    table.print()
}

fn status(entity: &Entity) -> Cell {
    let paused = entity.properties.paused.unwrap_or(false);
    let status = entity.properties.status.map_or_else(String::new, |status| format!("{status:?}"));
    if paused {
        return Cell::from(format!("{status}, paused")).in_mood(Mood::Warning);
    }
    let mood = if status == "Active" { Mood::Good } else { Mood::Warning };
    Cell::from(status).in_mood(mood)
}

fn show(api: &Api, path: &str, format: Format) -> Outcome {
    let entity: Value = api.get(path)?;
    if format == Format::Json {
        return output::json(&entity);
    }
    let mut table = Table::new(&["property", "value"]);
    for part in ["name", "kind", "topic", "path"] {
        if let Some(value) = entity.get(part) {
            table.row(vec![part.into(), shown::plain(value).into()]);
        }
    }
    for part in ["properties", "runtime"] {
        for (name, value) in entity.get(part).and_then(Value::as_object).into_iter().flatten() {
            table.row(vec![name.as_str().into(), shown::property(name, value).into()]);
        }
    }
    table.print()
}

fn kind(kind: EntityKind) -> &'static str {
    match kind {
        EntityKind::Queue => "queue",
        EntityKind::Topic => "topic",
        EntityKind::Subscription => "subscription",
    }
}

/// A size in the unit people would choose.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{}.{} {unit}", bytes / size, bytes % size * 10 / size),
        None => format!("{bytes} B"),
    }
}
