//! Brings the namespace to what a file says. Applying a file twice changes nothing.
//!
//! The file is understood as a whole before anything is done. Then each entity is compared with what there
//! is; one that is refused is told and does not hold up the others. Forwarding is set when all entities
//! exist, so that files may refer ahead. What the file does not have stays, unless it is to be pruned.

use axum::response::Response;
use vorrang_engine::entity::{
    Description, Entity, EntityLimits, EntityName, EntityPath, Kind, Request, RuleDescription, Setting,
    SubscriptionName,
};

use super::namespace::Namespace;
use crate::http::api::asker::Asker;
use crate::http::api::call::{Call, ok};
use crate::http::api::complaint::Complaints;
use crate::http::api::entities::create_subscription;
use crate::http::api::failure::{Failure, camel};
use crate::http::api::model::{Applied, ApplyReport, Definitions, Outcome, Properties};
use crate::http::api::translation::properties;

/// Bytes of a definitions file: a namespace of ten thousand entities fits well.
const FILE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Applies definitions.
pub(crate) async fn apply(mut call: Call) -> Result<Response, Failure> {
    let definitions: Definitions = call.json(FILE_BYTES_MAX).await?;
    let wanted = read(&definitions)?;
    let asker = call.asker()?;
    let namespace = Namespace::read(&asker).await?;
    let (dry_run, prune) = (call.query.flag("dryRun"), call.query.flag("prune"));
    let report = ApplyReport { dry_run, ..ApplyReport::default() };
    let mut application = Application { asker, dry_run, prune, report, forwards: Vec::new() };
    for item in &wanted {
        application.entity(item, &namespace).await?;
    }
    application.set_forwards().await?;
    application.leftovers(&wanted, &namespace).await?;
    ok(&application.report)
}

/// One entity that shall be there.
#[derive(Debug)]
struct Wanted<'a> {
    path: EntityPath,
    kind: WantedKind,
    properties: &'a Properties,
    rules: Option<Vec<RuleDescription>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WantedKind {
    Queue,
    Topic,
    Subscription,
}

/// Whether a file can be understood.
pub(crate) fn understood(definitions: &Definitions) -> Result<(), Failure> {
    read(definitions).map(drop)
}

/// Understands a file: everything it wants, in the order in which it can be created.
fn read(definitions: &Definitions) -> Result<Vec<Wanted<'_>>, Failure> {
    let mut complaints = Complaints::default();
    let mut wanted = Vec::new();
    for (name, properties) in &definitions.queues {
        let field = format!("queues.{name}");
        let name = complaints.check(&field, EntityName::parse(name));
        let path = name.map(EntityPath::of);
        wanted.extend(read_one(path, WantedKind::Queue, properties, &field, &mut complaints));
    }
    for (name, topic) in &definitions.topics {
        let field = format!("topics.{name}");
        let name = complaints.check(&field, EntityName::parse(name));
        let path = name.clone().map(EntityPath::of);
        let place = format!("{field}.properties");
        wanted.extend(read_one(path, WantedKind::Topic, &topic.properties, &place, &mut complaints));
        for (subscription, properties) in &topic.subscriptions {
            let field = format!("{field}.subscriptions.{subscription}");
            let subscription = complaints.check(&field, SubscriptionName::parse(subscription));
            let path =
                name.clone().zip(subscription).map(|(topic, name)| EntityPath::of_subscription(topic, name));
            wanted.extend(read_one(path, WantedKind::Subscription, properties, &field, &mut complaints));
        }
    }
    complaints.finish(wanted)
}

fn read_one<'a>(
    path: Option<EntityPath>,
    kind: WantedKind,
    properties: &'a Properties,
    field: &str,
    complaints: &mut Complaints,
) -> Option<Wanted<'a>> {
    properties::read(properties, None, field, complaints);
    let rules = properties.rules.as_ref().map(|rules| properties::read_rules(rules, field, complaints));
    if rules.is_some() && kind != WantedKind::Subscription {
        complaints.add(format!("{field}.rules"), "are a subscription's alone");
    }
    Some(Wanted { path: path?, kind, properties, rules })
}

struct Application {
    asker: Asker,
    dry_run: bool,
    prune: bool,
    report: ApplyReport,
    /// Forwarding to set when everything is there.
    forwards: Vec<(EntityPath, Vec<Setting>)>,
}

impl Application {
    async fn entity(&mut self, wanted: &Wanted<'_>, namespace: &Namespace) -> Result<(), Failure> {
        let before = find(&wanted.path, namespace);
        // It was understood before; now the keys there are, are kept.
        let settings = properties::read(wanted.properties, before, "", &mut Complaints::default());
        let Some(before) = before else { return self.create(wanted, settings).await };
        if kind(before) != wanted.kind {
            let detail = "the name is taken by another kind of entity; delete that first".to_owned();
            self.note(&wanted.path.to_string(), Outcome::Failed, Vec::new(), Some(detail));
            return Ok(());
        }
        let changed: Vec<Setting> = settings.into_iter().filter(|setting| differs(before, setting)).collect();
        let changes: Vec<String> = changed.iter().map(|setting| camel(setting.property().name())).collect();
        let (forwards, now): (Vec<Setting>, Vec<Setting>) = changed.into_iter().partition(is_forward);
        let path = wanted.path.clone();
        let done = if now.is_empty() {
            Ok(())
        } else {
            self.administer(Request::Update { path: path.clone(), settings: now }, &path).await?
        };
        let outcome = if changes.is_empty() { Outcome::Unchanged } else { Outcome::Changed };
        self.conclude(&path, done, outcome, changes, forwards);
        if let Some(rules) = &wanted.rules {
            self.rules(&path, before, rules).await?;
        }
        Ok(())
    }

    async fn create(&mut self, wanted: &Wanted<'_>, settings: Vec<Setting>) -> Result<(), Failure> {
        let (forwards, settings): (Vec<Setting>, Vec<Setting>) = settings.into_iter().partition(is_forward);
        let (path, name) = (wanted.path.clone(), wanted.path.name.clone());
        let done = match wanted.kind {
            WantedKind::Queue => self.administer(Request::CreateQueue { name, settings }, &path).await?,
            WantedKind::Topic => self.administer(Request::CreateTopic { name, settings }, &path).await?,
            WantedKind::Subscription if self.dry_run => Ok(()),
            WantedKind::Subscription => {
                refused(create_subscription(&self.asker, &path, settings, wanted.rules.clone()).await)?
            }
        };
        self.conclude(&path, done, Outcome::Created, Vec::new(), forwards);
        Ok(())
    }

    /// Tells of an entity, and keeps its forwarding for later.
    fn conclude(
        &mut self,
        path: &EntityPath,
        done: Result<(), String>,
        outcome: Outcome,
        changes: Vec<String>,
        forwards: Vec<Setting>,
    ) {
        match done {
            Ok(()) => {
                self.note(&path.to_string(), outcome, changes, None);
                if !forwards.is_empty() {
                    self.forwards.push((path.clone(), forwards));
                }
            }
            Err(detail) => self.note(&path.to_string(), Outcome::Failed, changes, Some(detail)),
        }
    }

    async fn rules(
        &mut self,
        path: &EntityPath,
        before: &Entity,
        wanted: &[RuleDescription],
    ) -> Result<(), Failure> {
        let (Some(known), Some(subscription)) = (before.subscription(), path.subscription.clone()) else {
            return Ok(());
        };
        for rule in wanted {
            let shown = format!("{path}/Rules/{}", rule.name);
            let (topic, subscription, rule) = (path.name.clone(), subscription.clone(), rule.clone());
            let (outcome, request) = match known.rule(&rule.name) {
                Some(old) if old.description == rule => {
                    self.note(&shown, Outcome::Unchanged, Vec::new(), None);
                    continue;
                }
                Some(_) => (Outcome::Changed, Request::UpdateRule { topic, subscription, rule }),
                None => (Outcome::Created, Request::CreateRule { topic, subscription, rule }),
            };
            let done = self.administer(request, path).await?;
            self.tell(&shown, outcome, done);
        }
        for old in known.rules.values().map(|old| &old.description.name) {
            if wanted.iter().all(|rule| rule.name != *old) {
                let (topic, subscription, rule) = (path.name.clone(), subscription.clone(), old.clone());
                let shown = format!("{path}/Rules/{old}");
                self.leftover(&shown, Request::DeleteRule { topic, subscription, rule }, path).await?;
            }
        }
        Ok(())
    }

    async fn set_forwards(&mut self) -> Result<(), Failure> {
        for (path, settings) in std::mem::take(&mut self.forwards) {
            let request = Request::Update { path: path.clone(), settings };
            if let Err(detail) = self.administer(request, &path).await? {
                let changes = vec!["forwardTo".to_owned()];
                self.note(&path.to_string(), Outcome::Failed, changes, Some(detail));
            }
        }
        Ok(())
    }

    /// What there is and the file does not have.
    async fn leftovers(&mut self, wanted: &[Wanted<'_>], namespace: &Namespace) -> Result<(), Failure> {
        let is_wanted = |path: &EntityPath| wanted.iter().any(|wanted| wanted.path == *path);
        let mut paths: Vec<EntityPath> = Vec::new();
        for topic in namespace.topics.values() {
            // With a topic its subscriptions go.
            if !is_wanted(&topic.entity.path) {
                paths.push(topic.entity.path.clone());
                continue;
            }
            paths.extend(
                topic
                    .subscriptions
                    .values()
                    .map(|entity| entity.path.clone())
                    .filter(|path| !is_wanted(path)),
            );
        }
        paths.extend(
            namespace.queues.values().map(|entity| entity.path.clone()).filter(|path| !is_wanted(path)),
        );
        for path in paths {
            self.leftover(&path.to_string(), Request::Delete { path: path.clone() }, &path).await?;
        }
        Ok(())
    }

    async fn leftover(&mut self, shown: &str, request: Request, path: &EntityPath) -> Result<(), Failure> {
        if !self.prune || self.dry_run {
            self.note(shown, Outcome::WouldDelete, Vec::new(), None);
            return Ok(());
        }
        let done = self.administer(request, path).await?;
        self.tell(shown, Outcome::Deleted, done);
        Ok(())
    }

    /// Asks for a change unless this is a dry run. A refusal is told; a broker that is gone ends it all.
    async fn administer(&self, request: Request, path: &EntityPath) -> Result<Result<(), String>, Failure> {
        if self.dry_run {
            return Ok(Ok(()));
        }
        refused(self.asker.administer(request, &path.to_string()).await.map(|_| ()))
    }

    fn tell(&mut self, shown: &str, outcome: Outcome, done: Result<(), String>) {
        match done {
            Ok(()) => self.note(shown, outcome, Vec::new(), None),
            Err(detail) => self.note(shown, Outcome::Failed, Vec::new(), Some(detail)),
        }
    }

    fn note(&mut self, path: &str, outcome: Outcome, changes: Vec<String>, detail: Option<String>) {
        let count = match outcome {
            Outcome::Created => &mut self.report.created,
            Outcome::Changed => &mut self.report.changed,
            Outcome::Unchanged => &mut self.report.unchanged,
            Outcome::Deleted => &mut self.report.deleted,
            Outcome::WouldDelete => &mut self.report.would_delete,
            Outcome::Failed => &mut self.report.failed,
        };
        *count = count.saturating_add(1);
        self.report.entities.push(Applied { path: path.to_owned(), outcome, changes, detail });
    }
}

/// A refusal as words; a broker that is gone stays an error.
fn refused(done: Result<(), Failure>) -> Result<Result<(), String>, Failure> {
    match done {
        Ok(()) => Ok(Ok(())),
        Err(failure) if failure.is_unavailable() => Err(failure),
        Err(failure) => Ok(Err(failure.detail().to_owned())),
    }
}

fn find<'n>(path: &EntityPath, namespace: &'n Namespace) -> Option<&'n Entity> {
    let topic = namespace.topics.get(&path.name);
    match &path.subscription {
        Some(name) => topic.and_then(|topic| topic.subscriptions.get(name)).map(|entity| &**entity),
        None => topic
            .map(|topic| &*topic.entity)
            .or_else(|| namespace.queues.get(&path.name).map(|queue| &**queue)),
    }
}

fn kind(entity: &Entity) -> WantedKind {
    match entity.kind {
        Kind::Queue(_) => WantedKind::Queue,
        Kind::Topic(_) => WantedKind::Topic,
        Kind::Subscription(_) => WantedKind::Subscription,
    }
}

/// Whether a setting would change the entity. One that it refuses by itself is not what it has.
fn differs(entity: &Entity, setting: &Setting) -> bool {
    fn changes<D: Description + PartialEq>(description: &D, setting: &Setting) -> bool {
        let updated = description.update(std::slice::from_ref(setting), &EntityLimits::default());
        updated.map_or(true, |updated| updated != *description)
    }
    match &entity.kind {
        Kind::Queue(queue) => changes(queue, setting),
        Kind::Topic(topic) => changes(&topic.description, setting),
        Kind::Subscription(subscription) => changes(&subscription.description, setting),
    }
}

fn is_forward(setting: &Setting) -> bool {
    matches!(setting, Setting::ForwardTo(_) | Setting::ForwardDeadLetteredMessagesTo(_))
}
