//! A server inside the test's process, on free ports and a folder of its own.
//!
//! Tests that only need entities of their own share one server: it lives while any test holds it, and
//! its folder goes with it. Names are taken from a counter, so that no two tests meet.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::thread::JoinHandle;

use tempfile::TempDir;
use vorrang_broker::api::{Operation, Refused};
use vorrang_engine::entity::authorization::{AuthorizationRule, Rights, Secret};
use vorrang_engine::entity::{
    EntityName, EntityPath, Request, RuleDescription, RuleName, Setting, SubscriptionName,
};
use vorrang_filter::{Action, Filter, Parameters, Sql};
use vorrang_server::caller::Caller;
use vorrang_server::settings::{Ports, Settings};
use vorrang_server::stop::StopSwitch;
use vorrang_server::{Ready, serve};

/// The namespace's own key.
pub(crate) const ROOT: &str = "RootManageSharedAccessKey";
/// Its text in development mode.
pub(crate) const ROOT_KEY: &str = "SAS_KEY_VALUE";

static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
static NAMES: AtomicU32 = AtomicU32::new(0);

/// A running server; stopped in good order when dropped.
pub(crate) struct Server {
    pub(crate) ready: Ready,
    operator: Option<Caller>,
    asking: tokio::runtime::Runtime,
    switch: StopSwitch,
    thread: Option<JoinHandle<()>>,
    folder: Option<TempDir>,
}

impl Server {
    /// The server that tests share.
    pub(crate) fn shared() -> Arc<Server> {
        let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return server;
        }
        let server = Arc::new(Server::start());
        *shared = Arc::downgrade(&server);
        server
    }

    /// A server for one test, on an empty folder.
    pub(crate) fn start() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Server::start_in(folder.path());
        server.folder = Some(folder);
        server
    }

    /// A server on a folder that may hold data.
    pub(crate) fn start_in(folder: &Path) -> Server {
        Server::start_with(Settings {
            ports: Ports { amqp: 0, amqps: 0, http: 0, https: 0 },
            dev: true,
            ..Settings::new(PathBuf::from(folder))
        })
        .expect("the server starts")
    }

    /// A server with these settings, or why it does not start.
    pub(crate) fn start_with(settings: Settings) -> Result<Server, String> {
        let (switch, stop) = StopSwitch::new();
        let (sender, receiver) = mpsc::channel();
        let failed = sender.clone();
        let thread = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
            let served = runtime.block_on(serve(settings, stop, move |ready, broker| {
                sender.send(Ok((ready.clone(), Caller::operator(broker).unwrap()))).unwrap();
            }));
            if let Err(error) = served {
                // Nobody may be waiting any more.
                let _ = failed.send(Err(error.to_string()));
            }
        });
        let (ready, operator): (Ready, Caller) = receiver.recv().unwrap()?;
        let asking = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Ok(Server { ready, operator: Some(operator), asking, switch, thread: Some(thread), folder: None })
    }

    /// Changes an entity, or says why that is refused.
    pub(crate) fn try_administer(&self, request: Request) -> Result<(), Refused> {
        let operator = self.operator.as_ref().unwrap();
        let asked = operator.ask(Operation::Administer(Box::new(request)));
        self.asking.block_on(asked).unwrap().map(drop)
    }

    /// Changes an entity.
    pub(crate) fn administer(&self, request: Request) {
        self.try_administer(request).unwrap();
    }

    /// A new queue with defaults but for these; returns its name.
    pub(crate) fn queue(&self, settings: impl Into<Vec<Setting>>) -> String {
        let name = fresh("queue");
        self.queue_named(&name, settings);
        name
    }

    /// A new queue of this name.
    pub(crate) fn queue_named(&self, name: &str, settings: impl Into<Vec<Setting>>) {
        self.administer(Request::CreateQueue { name: entity_name(name), settings: settings.into() });
    }

    /// A new topic; returns its name.
    pub(crate) fn topic(&self, settings: impl Into<Vec<Setting>>) -> String {
        let name = fresh("topic");
        self.administer(Request::CreateTopic { name: entity_name(&name), settings: settings.into() });
        name
    }

    /// A new subscription that takes every message; returns its path.
    pub(crate) fn subscription(&self, topic: &str, name: &str, settings: impl Into<Vec<Setting>>) -> String {
        self.administer(Request::CreateSubscription {
            topic: entity_name(topic),
            name: SubscriptionName::parse(name).unwrap(),
            settings: settings.into(),
            first_rule: None,
        });
        format!("{topic}/Subscriptions/{name}")
    }

    /// A new rule of SQL, with an action if one is given.
    pub(crate) fn rule(&self, topic: &str, subscription: &str, name: &str, sql: &str, action: Option<&str>) {
        self.administer(Request::CreateRule {
            topic: entity_name(topic),
            subscription: SubscriptionName::parse(subscription).unwrap(),
            rule: RuleDescription {
                name: RuleName::parse(name).unwrap(),
                filter: Filter::from(Sql::parse(sql, Parameters::default()).unwrap()),
                action: action.map(|text| Arc::new(Action::parse(text, Parameters::default()).unwrap())),
            },
        });
    }

    /// Removes a rule.
    pub(crate) fn delete_rule(&self, topic: &str, subscription: &str, name: &str) {
        self.administer(Request::DeleteRule {
            topic: entity_name(topic),
            subscription: SubscriptionName::parse(subscription).unwrap(),
            rule: RuleName::parse(name).unwrap(),
        });
    }

    /// Changes what an entity is like.
    pub(crate) fn update(&self, path: &str, settings: impl Into<Vec<Setting>>) {
        self.administer(Request::Update { path: entity_path(path), settings: settings.into() });
    }

    /// Removes an entity.
    pub(crate) fn delete(&self, path: &str) {
        self.administer(Request::Delete { path: entity_path(path) });
    }

    /// Stops in good order, so that another server can use the folder.
    pub(crate) fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.operator = None;
        self.switch.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server stops in good order");
        }
    }
}

/// A name nobody has used.
pub(crate) fn fresh(kind: &str) -> String {
    format!("{kind}-{}", NAMES.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn entity_name(name: &str) -> EntityName {
    EntityName::parse(name).unwrap()
}

pub(crate) fn entity_path(path: &str) -> EntityPath {
    EntityPath::parse(path).unwrap()
}

/// A key of an entity that permits this.
pub(crate) fn key(name: &str, send: bool, listen: bool, manage: bool) -> AuthorizationRule {
    AuthorizationRule {
        key_name: Arc::from(name),
        primary_key: Secret::new(&format!("{name}-primary")),
        secondary_key: Secret::new(&format!("{name}-secondary")),
        rights: Rights { send, listen, manage },
    }
}
