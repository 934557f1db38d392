//! The client: one connection, and where senders, receivers and all else come from.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::timeout;
use vorrang_amqp::connection::Login;
use vorrang_amqp::sasl_plain::PlainCredentials;

use crate::backoff::RetryPolicy;
use crate::call;
use crate::claim::Claimant;
use crate::connection_string::{ConnectionString, Credential};
use crate::driver::{self, Command, Hub, OpenLink, Setup};
use crate::entity::Source;
use crate::error::Error;
use crate::management::Management;
use crate::message::Message;
use crate::received::Received;
use crate::receiver::{Receiver, ReceiverOptions};
use crate::rules::Rules;
use crate::sender::{Sender, SenderOptions};
use crate::session::SessionReceiver;
use crate::transaction::{Coordinator, Transaction};
use crate::transport::{Route, TlsOptions, TransportKind};

/// How to pass the broker's door.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Authentication {
    /// `ANONYMOUS`, then a token per entity on `$cbs`, renewed while links live. What every Service Bus takes.
    #[default]
    Tokens,
    /// The same under the name `MSSBCBS`, the only one some servers offer.
    TokensMssbcbs,
    /// `PLAIN` with the key's name and the key itself; no tokens. One round trip less per link.
    Plain,
}

/// A client: one connection, shared by everything that is made from it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    hub: Hub,
    retry: RetryPolicy,
    operation_time_out: Duration,
    entity_path: Option<String>,
    endpoint: String,
    host: String,
    reply_queue: Option<String>,
    /// Where the reply queue is made when it is missing.
    reply_admin: Option<String>,
    credential: Credential,
    tls: TlsOptions,
    coordinator: OnceCell<Coordinator>,
}

/// How a client is made.
///
/// ```no_run
/// use std::time::Duration;
/// use vorrang_client::{Client, TlsOptions, TransportKind};
///
/// # async fn example(connection_string: &str) -> Result<(), vorrang_client::Error> {
/// let client = Client::builder(connection_string)?
///     .transport(TransportKind::WebSocket)
///     .tls(TlsOptions::platform_roots())
///     .idle_time_out(Duration::from_secs(30))
///     .connect()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ClientBuilder {
    connection: ConnectionString,
    transport: Option<TransportKind>,
    port: Option<u16>,
    tls: TlsOptions,
    authentication: Authentication,
    retry: RetryPolicy,
    idle_time_out: Duration,
    connect_time_out: Duration,
    operation_time_out: Duration,
    token_lifetime: Duration,
    client_id: Option<String>,
    reply_queue: Option<String>,
    reply_admin: Option<String>,
}

/// What can be read as a connection string.
pub trait IntoConnectionString {
    /// Reads it.
    fn into_connection_string(self) -> Result<ConnectionString, Error>;
}

impl IntoConnectionString for &str {
    fn into_connection_string(self) -> Result<ConnectionString, Error> {
        Ok(self.parse()?)
    }
}

impl IntoConnectionString for &String {
    fn into_connection_string(self) -> Result<ConnectionString, Error> {
        Ok(self.parse()?)
    }
}

impl IntoConnectionString for &ConnectionString {
    fn into_connection_string(self) -> Result<ConnectionString, Error> {
        Ok(self.clone())
    }
}

impl IntoConnectionString for ConnectionString {
    fn into_connection_string(self) -> Result<ConnectionString, Error> {
        Ok(self)
    }
}

impl ClientBuilder {
    /// How to reach the broker. Without it, TCP if the connection string says `UseDevelopmentEmulator=true`, else TLS.
    #[must_use]
    pub fn transport(mut self, transport: TransportKind) -> Self {
        self.transport = Some(transport);
        self
    }

    /// The port. Without it, the connection string's, or the transport's own.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// How the broker proves who it is.
    #[must_use]
    pub fn tls(mut self, tls: TlsOptions) -> Self {
        self.tls = tls;
        self
    }

    /// How to pass the broker's door.
    #[must_use]
    pub fn authentication(mut self, authentication: Authentication) -> Self {
        self.authentication = authentication;
        self
    }

    /// When a lost connection or link is tried again.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// After how much silence the broker is given up. Both sides keep a quiet connection alive.
    #[must_use]
    pub fn idle_time_out(mut self, time: Duration) -> Self {
        self.idle_time_out = time;
        self
    }

    /// How long a connection may take to be made.
    #[must_use]
    pub fn connect_time_out(mut self, time: Duration) -> Self {
        self.connect_time_out = time;
        self
    }

    /// How long requests and the attaching of links may take.
    #[must_use]
    pub fn operation_time_out(mut self, time: Duration) -> Self {
        self.operation_time_out = time;
        self
    }

    /// How long a token made from a key is good. It is renewed after three quarters of that.
    #[must_use]
    pub fn token_lifetime(mut self, time: Duration) -> Self {
        self.token_lifetime = time;
        self
    }

    /// A name by which the broker's logs and listings know this client. Without it, a random one.
    #[must_use]
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.client_id = Some(id.into());
        self
    }

    /// The queue replies to [`Client::call`] come on. It must require sessions: every call has one of its own.
    #[must_use]
    pub fn reply_queue(mut self, queue: impl Into<String>) -> Self {
        self.reply_queue = Some(queue.into());
        self
    }

    /// Makes the reply queue when it is missing, over the administration API at this URL. Without [`ClientBuilder::reply_queue`] the client
    /// has one to itself, which the broker deletes when it has not been used for a while.
    #[must_use]
    pub fn create_reply_queue(mut self, url: impl Into<String>) -> Self {
        self.reply_admin = Some(url.into());
        self
    }

    /// Connects.
    pub async fn connect(self) -> Result<Client, Error> {
        let (operation_time_out, retry) = (self.operation_time_out, self.retry);
        let entity_path = self.connection.entity_path.clone();
        let reply_admin = self.reply_admin.clone();
        let reply_queue = match (&self.reply_queue, &reply_admin) {
            (Some(queue), _) => Some(queue.clone()),
            (None, Some(_)) => Some(format!("replies-{:016x}{:016x}", random()?, random()?)),
            (None, None) => None,
        };
        let (credential, tls) = (self.connection.credential.clone(), self.tls.clone());
        let host = self.connection.host.clone();
        let setup = Arc::new(self.setup()?);
        let (connection, io) = driver::establish(&setup).await?;
        let (hub, inbox) = driver::channels();
        let endpoint = setup.route.endpoint();
        // The task ends when the last handle is dropped or the client is closed, which waits for it.
        tokio::spawn(driver::run(setup, inbox, connection, io));
        let coordinator = OnceCell::new();
        let inner = Inner {
            hub,
            retry,
            operation_time_out,
            entity_path,
            endpoint,
            host,
            reply_queue,
            reply_admin,
            credential,
            tls,
            coordinator,
        };
        Ok(Client { inner: Arc::new(inner) })
    }

    fn setup(self) -> Result<Setup, Error> {
        let ConnectionString { host, port, credential, emulator, .. } = self.connection;
        let kind = self.transport.unwrap_or(if emulator { TransportKind::Tcp } else { TransportKind::Tls });
        let port = self.port.or(port).unwrap_or(kind.default_port());
        let (login, claimant) = match (&credential, self.authentication) {
            (Credential::None, _) => (Login::Anonymous, None),
            (Credential::Token(token), mode) => (token_login(mode), Some(Claimant::from_token(&host, token))),
            (Credential::Key { name, key }, Authentication::Plain) => {
                let credentials = PlainCredentials {
                    authorization_identity: "".into(),
                    user: name.as_str().into(),
                    password: key.as_str().into(),
                };
                (Login::Plain(credentials), None)
            }
            (Credential::Key { name, key }, mode) => {
                (token_login(mode), Some(Claimant::from_key(&host, name, key, self.token_lifetime)))
            }
        };
        let container = match self.client_id {
            Some(id) => id,
            None => format!("vorrang-client-{:016x}", random()?),
        };
        Ok(Setup {
            route: Route { kind, host: host.clone(), port, tls: self.tls },
            login,
            container,
            host,
            claimant,
            retry: self.retry,
            idle_time_out: self.idle_time_out,
            connect_time_out: self.connect_time_out,
        })
    }
}

fn token_login(mode: Authentication) -> Login {
    match mode {
        Authentication::TokensMssbcbs => Login::Mssbcbs,
        Authentication::Tokens | Authentication::Plain => Login::Anonymous,
    }
}

/// A random number, for names that must not meet.
pub(crate) fn random() -> Result<u64, Error> {
    getrandom::u64().map_err(|error| Error::Protocol(format!("no randomness: {error}").into()))
}

impl Client {
    /// Connects with the defaults.
    pub async fn connect(connection: impl IntoConnectionString) -> Result<Client, Error> {
        Client::builder(connection)?.connect().await
    }

    /// A client to be made with settings of your own.
    pub fn builder(connection: impl IntoConnectionString) -> Result<ClientBuilder, Error> {
        Ok(ClientBuilder {
            connection: connection.into_connection_string()?,
            transport: None,
            port: None,
            tls: TlsOptions::default(),
            authentication: Authentication::default(),
            retry: RetryPolicy::default(),
            idle_time_out: Duration::from_mins(1),
            connect_time_out: Duration::from_secs(15),
            operation_time_out: Duration::from_mins(1),
            token_lifetime: Duration::from_hours(1),
            client_id: None,
            reply_queue: None,
            reply_admin: None,
        })
    }

    /// Sends to a queue or topic.
    pub async fn sender(&self, entity: impl AsRef<str>) -> Result<Sender, Error> {
        self.sender_with(entity, SenderOptions::default()).await
    }

    /// Sends to a queue or topic, with options.
    pub async fn sender_with(
        &self,
        entity: impl AsRef<str>,
        options: SenderOptions,
    ) -> Result<Sender, Error> {
        Sender::open(self, entity.as_ref(), options).await
    }

    /// Receives from a queue, a subscription, or several of them in order.
    pub async fn receiver(&self, source: impl Into<Source>) -> Result<Receiver, Error> {
        self.receiver_with(source, ReceiverOptions::default()).await
    }

    /// Receives with options.
    pub async fn receiver_with(
        &self,
        source: impl Into<Source>,
        options: ReceiverOptions,
    ) -> Result<Receiver, Error> {
        Receiver::open(self, source.into(), options).await
    }

    /// Locks a session and receives its messages: the one named, or the next that has any.
    ///
    /// Waits up to `wait` for one; [`Error::Timeout`] if none came.
    pub async fn accept_session(
        &self,
        source: impl Into<Source>,
        session: Option<&str>,
        wait: Duration,
    ) -> Result<SessionReceiver, Error> {
        SessionReceiver::accept(self, source.into(), session, wait, ReceiverOptions::default()).await
    }

    /// The same, with options.
    pub async fn accept_session_with(
        &self,
        source: impl Into<Source>,
        session: Option<&str>,
        wait: Duration,
        options: ReceiverOptions,
    ) -> Result<SessionReceiver, Error> {
        SessionReceiver::accept(self, source.into(), session, wait, options).await
    }

    /// Begins a transaction.
    pub async fn transaction(&self) -> Result<Transaction, Error> {
        let coordinator = self.inner.coordinator.get_or_try_init(|| Coordinator::open(self)).await?;
        Transaction::declare(coordinator).await
    }

    /// The rules of a subscription.
    pub fn rules(&self, topic: impl AsRef<str>, subscription: impl AsRef<str>) -> Rules {
        let path = Source::subscription(topic, subscription).to_string();
        Rules::new(self.management(&path))
    }

    /// Sends a message to a queue or topic and waits for the reply. Needs [`ClientBuilder::reply_queue`] or
    /// [`ClientBuilder::create_reply_queue`].
    ///
    /// The message says where its reply goes; whoever handles it answers with [`Client::reply`] or with whatever it has
    /// that knows `reply-to`, `reply-to-group-id` and `correlation-id`. [`Error::Timeout`] if no reply came in time.
    pub async fn call(
        &self,
        queue: impl AsRef<str>,
        message: impl Into<Message>,
        time_out: Duration,
    ) -> Result<Received, Error> {
        let Some(reply_queue) = &self.inner.reply_queue else {
            let text = "a call needs a queue for its reply: set one with ClientBuilder::reply_queue, or have one made with \
                        create_reply_queue";
            return Err(Error::InvalidArgument(text.into()));
        };
        let replies = call::Replies { queue: reply_queue, admin: self.inner.reply_admin.as_deref() };
        call::call(self, queue.as_ref(), &replies, message.into(), time_out).await
    }

    /// Answers a request: to its `reply-to`, in its `reply-to-group-id`, with its id as correlation id.
    pub async fn reply(&self, request: &Received, reply: impl Into<Message>) -> Result<(), Error> {
        call::reply(self, request, reply.into()).await
    }

    /// The entity the connection string names, if it does.
    #[must_use]
    pub fn entity_path(&self) -> Option<&str> {
        self.inner.entity_path.as_deref()
    }

    /// Host and port of the broker.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.inner.endpoint
    }

    /// Waits for outcomes that are on their way, a few seconds at most, and closes the connection.
    pub async fn close(&self) -> Result<(), Error> {
        match self.inner.hub.ask(|reply| Command::Close { reply }).await {
            // It was closed before, or has ended for a reason that others were told.
            Err(Error::Closed) => Ok(()),
            Err(error) if error == self.inner.hub.ending() => Ok(()),
            other => other,
        }
    }

    pub(crate) fn host(&self) -> &str {
        &self.inner.host
    }

    pub(crate) fn credentials(&self) -> (Credential, TlsOptions) {
        (self.inner.credential.clone(), self.inner.tls.clone())
    }

    pub(crate) fn operation_time_out(&self) -> Duration {
        self.inner.operation_time_out
    }

    pub(crate) fn retry(&self) -> RetryPolicy {
        self.inner.retry
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.inner.hub
    }

    pub(crate) fn management(&self, entity: &str) -> Management {
        Management::new(self.inner.hub.clone(), entity, self.inner.operation_time_out)
    }

    /// Attaches a link, waiting no longer than operations may take plus `extra`.
    pub(crate) async fn open_link(
        &self,
        extra: Duration,
        open: impl FnOnce(driver::Reply<driver::Opened>) -> OpenLink,
    ) -> Result<driver::Opened, Error> {
        let limit = self.inner.operation_time_out.saturating_add(extra);
        match timeout(limit, self.inner.hub.ask(|reply| Command::Open(Box::new(open(reply))))).await {
            Ok(opened) => opened,
            Err(_) => Err(Error::Timeout(limit)),
        }
    }
}
