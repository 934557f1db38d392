//! Everything put together: data, broker, doors; from start to graceful stop.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{debug, info, warn};
use vorrang_amqp::connection::Limits;
use vorrang_broker::shard::{self, Broker, OpenError, Preparing, Stopped};
use vorrang_engine::entity::authorization::{AuthorizationRule, Rights, Secret};
use vorrang_log::disk::{Disk, DiskError, RealDisk};

use crate::caller::{Caller, Unanswered};
use crate::definitions::{apply, emulator};
use crate::front::connection::{self, wall_time};
use crate::front::door::Shared;
use crate::front::message::StoredMessages;
use crate::http::metrics::Scrapes;
use crate::http::{self, ServeWebSocket, Site};
use crate::listener::{Accepted, BindError, Listener};
use crate::measured_disk::{Figures, MeasuredDisk};
use crate::places::Places;
use crate::registry::Registry;
use crate::root_key;
use crate::settings::Settings;
use crate::stop::{Stop, StopSwitch};
use crate::targets::sampler;
use crate::telemetry::{self, Exporter};
use crate::tls;
use crate::transport::Transport;
use crate::watch::Watch;
use crate::workshop::Workshop;

/// Why the server does not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data directory cannot be made.
    #[error("cannot make the data directory {}: {source}", path.display())]
    DataDirectory {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The data directory cannot be used.
    #[error("cannot use the data directory {}: {source}", path.display())]
    Disk {
        /// Where.
        path: PathBuf,
        /// Why.
        source: DiskError,
    },
    /// The data cannot be read.
    #[error("cannot open the data in {}: {source}", path.display())]
    Open {
        /// Where.
        path: PathBuf,
        /// Why.
        source: Box<OpenError>,
    },
    /// The root key cannot be had.
    #[error(transparent)]
    RootKey(#[from] root_key::Error),
    /// TLS cannot be offered.
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// A port cannot be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A definitions file cannot be used.
    #[error(transparent)]
    Definitions(#[from] emulator::FileError),
    /// A definition was refused.
    #[error("{}: {source}", path.display())]
    Apply {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<apply::Error>,
    },
    /// The broker stopped while starting.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The broker stopped by itself: the disk failed.
    #[error("the broker stopped to keep what it has acknowledged safe: {reason}")]
    Failed {
        /// Why.
        reason: Arc<str>,
    },
    /// The broker stopped before it answered.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// Nobody can be told of deliveries.
    #[error(transparent)]
    Telemetry(#[from] telemetry::Error),
    /// The system does not say where a door is.
    #[error("cannot find out the address of a door: {0}")]
    Address(#[source] io::Error),
}

/// What the operator needs to know once the doors are open.
#[derive(Debug, Clone)]
pub struct Ready {
    /// Where plain AMQP is.
    pub amqp: SocketAddr,
    /// Where AMQP on TLS is.
    pub amqps: SocketAddr,
    /// Where HTTP is.
    pub http: SocketAddr,
    /// Where HTTPS and WebSocket are.
    pub https: SocketAddr,
    /// The key text that opens the namespace.
    pub root_key: String,
    /// Whether an emulator configuration was applied.
    pub emulator: bool,
}

/// The four doors, open and waiting.
struct Doors {
    amqp: Listener,
    amqps: Listener,
    http: Listener,
    https: Listener,
}

/// What the namespace is called; there is one, under the name test modules know from the emulator.
const NAMESPACE: &str = "sbemulatorns";

/// Runs the broker until `stop`, calling `on_ready` once clients can connect.
///
/// What is behind the doors is shown to `on_ready` too, for a program that runs the server inside itself. Whoever keeps
/// a clone of it keeps the data directory locked, stopped or not.
pub async fn serve(
    settings: Settings,
    mut stop: Stop,
    on_ready: impl FnOnce(&Ready, &Broker),
) -> Result<(), Error> {
    let folder = settings.data_dir.clone();
    fs::create_dir_all(&folder).map_err(|source| Error::DataDirectory { path: folder.clone(), source })?;
    let disk = RealDisk::open(&folder).map_err(|source| Error::Disk { path: folder.clone(), source })?;
    let disk_figures = Arc::new(Figures::default());
    let disk: Arc<dyn Disk> = Arc::new(MeasuredDisk::new(Arc::new(disk), Arc::clone(&disk_figures)));
    let root_key =
        if settings.dev { root_key::EMULATOR_KEY.to_owned() } else { root_key::load_or_generate(&folder)? };
    // A certificate that is made now takes about as long as an empty log, and needs nothing of it.
    let acceptor = tokio::task::spawn_blocking({
        let (files, folder, host) = (settings.certificate.clone(), folder.clone(), settings.host.to_string());
        move || match files {
            Some(files) => tls::acceptor(&files).map(|acceptor| (acceptor, None)),
            None => tls::development(&folder, &host),
        }
    });
    let preparing = open_broker(&disk, &folder, &root_key, &settings.keys)?;
    let operator = Caller::operator(preparing.broker())?;
    apply_definitions(&settings, &operator).await?;
    if let Some(path) = &settings.emulator_config {
        apply_emulator_config(path, &operator).await?;
    }
    let (broker, prepared) = preparing.finish()?;
    let (acceptor, certificate) = acceptor.await.expect("making an acceptor does not panic")?;
    let (spans, exporter) = match &settings.collector {
        Some(collector) => Exporter::start(collector).map(|(spans, exporter)| (Some(spans), Some(exporter))),
        None => Ok((None, None)),
    }?;
    let watch = Arc::new(Watch {
        registry: Arc::default(),
        targets: Arc::default(),
        spans: spans.clone(),
        disk,
        disk_figures,
        amqp_places: Arc::new(Places::new(settings.bounds.connections_max)),
        http_places: Arc::new(Places::new(settings.bounds.http_connections_max)),
        scrapes: Scrapes::default(),
        metrics_open: settings.danger_open_metrics,
    });
    let doors = open_doors(&settings, &watch).await?;
    let ready = ready(&doors, root_key, settings.emulator_config.is_some())?;
    let shared = Arc::new(Shared {
        container: format!("vorrang-{:016x}", seed()),
        limits: Limits::default(),
        silence_max: settings.bounds.silence_max,
        broker: broker.clone(),
        registry: Arc::clone(&watch.registry),
        spans,
    });
    let (switch, inner_stop) = StopSwitch::new();
    let site = Arc::new(Site {
        broker: broker.clone(),
        namespace: NAMESPACE.to_owned(),
        started: wall_time(),
        workshop: settings
            .dev
            .then(|| Workshop::new(&folder, settings.definitions.clone(), settings.emulator_config.clone())),
        stop: inner_stop.clone(),
        watch: Arc::clone(&watch),
        feed: http::api::Feed::default(),
    });
    let mut serving = serve_doors(doors, &settings, &shared, &site, &acceptor);
    let (watcher, targets) = (Caller::operator(&broker)?, Arc::clone(&watch.targets));
    serving.spawn(sampler::run(broker.clone(), watcher, targets, inner_stop));
    // Clients are heard while the disk has yet to take what was arranged for them; what they are promised comes behind it.
    let prepared = tokio::task::spawn_blocking(move || -> Result<(), Error> {
        certificate.map_or(Ok(()), |certificate| certificate.save())?;
        prepared.wait().map_err(|failure| Error::Failed { reason: Arc::from(failure.to_string()) })
    });
    let prepared = tokio::select! {
        () = stop.requested() => Ok(()),
        outcome = prepared => outcome.expect("waiting for the disk does not panic").map(|()| on_ready(&ready, &broker)),
    };
    let outcome = match prepared {
        Ok(()) => tokio::select! {
            () = stop.requested() => Ok(()),
            reason = operator.stopped() => Err(Error::Failed { reason }),
        },
        unready => unready,
    };
    switch.stop();
    while serving.join_next().await.is_some() {}
    drop(operator);
    drop(shared);
    if let Some(exporter) = exporter {
        // It waits for the collector, which is nothing to do on a thread that serves.
        let _ = tokio::task::spawn_blocking(move || exporter.stop()).await;
    }
    broker.stop();
    info!("stopped");
    outcome
}

fn open_broker(
    disk: &Arc<dyn Disk>,
    folder: &Path,
    root_key: &str,
    others: &[AuthorizationRule],
) -> Result<Preparing, Error> {
    let key = Secret::new(root_key);
    let root = AuthorizationRule {
        key_name: Arc::from(root_key::NAME),
        primary_key: key.clone(),
        secondary_key: key,
        rights: Rights { send: true, listen: true, manage: true },
    };
    let settings = shard::Settings {
        limits: vorrang_engine::Limits::default(),
        log: vorrang_log::Options::default(),
        decode: Arc::new(StoredMessages),
        keys: [&[root], others].concat(),
        snapshots: shard::Schedule::default(),
    };
    let preparing = Broker::prepare(disk, settings, Arc::new(wall_time))
        .map_err(|source| Error::Open { path: folder.to_path_buf(), source: Box::new(source) })?;
    info!(folder = %folder.display(), findings = ?preparing.broker().findings(), "data opened");
    Ok(preparing)
}

async fn apply_definitions(settings: &Settings, operator: &Caller) -> Result<(), Error> {
    let path = settings.definitions_file.clone().unwrap_or_default();
    let refused = |source| Error::Apply { path, source: Box::new(source) };
    apply::apply(&settings.definitions, operator).await.map_err(refused)
}

async fn apply_emulator_config(path: &Path, operator: &Caller) -> Result<(), Error> {
    let definitions = emulator::read(path)?;
    let refused = |source| Error::Apply { path: path.to_path_buf(), source: Box::new(source) };
    apply::apply(&definitions, operator).await.map_err(refused)
}

async fn open_doors(settings: &Settings, watch: &Watch) -> Result<Doors, BindError> {
    let (connections, requests) = (&watch.amqp_places, &watch.http_places);
    let (plain, ports) = (settings.plain_host(), settings.ports);
    if plain != settings.host {
        warn!(
            "plain AMQP and HTTP stay on {plain}: keys would cross the network unencrypted; clients elsewhere use the \
             TLS ports, or start with --danger-plain-remote"
        );
    }
    Ok(Doors {
        amqp: Listener::bind("AMQP", plain, ports.amqp, Arc::clone(connections)).await?,
        amqps: Listener::bind("AMQP over TLS", settings.host, ports.amqps, Arc::clone(connections)).await?,
        http: Listener::bind("HTTP", plain, ports.http, Arc::clone(requests)).await?,
        https: Listener::bind("HTTPS", settings.host, ports.https, Arc::clone(requests)).await?,
    })
}

fn ready(doors: &Doors, root_key: String, emulator: bool) -> Result<Ready, Error> {
    Ok(Ready {
        amqp: doors.amqp.address().map_err(Error::Address)?,
        amqps: doors.amqps.address().map_err(Error::Address)?,
        http: doors.http.address().map_err(Error::Address)?,
        https: doors.https.address().map_err(Error::Address)?,
        root_key,
        emulator,
    })
}

fn serve_doors(
    doors: Doors,
    settings: &Settings,
    shared: &Arc<Shared>,
    site: &Arc<Site>,
    acceptor: &TlsAcceptor,
) -> JoinSet<()> {
    let handshake_max = settings.bounds.handshake_max;
    let stop = &site.stop;
    let router = http::router(Arc::clone(site));
    let acceptor = &Acceptor { tls: acceptor.clone(), handshake_max, registry: Arc::clone(&shared.registry) };
    let mut serving = JoinSet::new();
    serving.spawn(doors.amqp.serve(stop.clone(), {
        let (shared, stop) = (Arc::clone(shared), stop.clone());
        move |accepted: Accepted| {
            let (shared, stop) = (Arc::clone(&shared), stop.clone());
            async move {
                let Accepted { stream, peer, place } = accepted;
                connection::serve(stream, peer, Transport::Plain, shared, stop).await;
                drop(place);
            }
        }
    }));
    serving.spawn(doors.amqps.serve(stop.clone(), {
        let (shared, stop, acceptor) = (Arc::clone(shared), stop.clone(), acceptor.clone());
        move |accepted: Accepted| {
            let (shared, stop, acceptor) = (Arc::clone(&shared), stop.clone(), acceptor.clone());
            async move {
                let Accepted { stream, peer, place } = accepted;
                if let Some(stream) = acceptor.accept(stream, peer).await {
                    connection::serve(stream, peer, Transport::Tls, shared, stop).await;
                }
                drop(place);
            }
        }
    }));
    serving.spawn(doors.http.serve(stop.clone(), {
        let (shared, stop) = (Arc::clone(shared), stop.clone());
        let (router, places) = (router.clone(), Arc::clone(&site.watch.amqp_places));
        move |accepted: Accepted| {
            let websocket = websocket_server(&shared, &places, accepted.peer, &stop);
            let (router, stop) = (router.clone(), stop.clone());
            async move {
                let peer = http::Peer { address: accepted.peer, tls: false };
                http::serve(accepted.stream, peer, router, websocket, handshake_max, stop).await;
                drop(accepted.place);
            }
        }
    }));
    serving.spawn(doors.https.serve(stop.clone(), {
        let (shared, stop, acceptor) = (Arc::clone(shared), stop.clone(), acceptor.clone());
        let places = Arc::clone(&site.watch.amqp_places);
        move |accepted: Accepted| {
            let websocket = websocket_server(&shared, &places, accepted.peer, &stop);
            let (router, stop, acceptor) = (router.clone(), stop.clone(), acceptor.clone());
            async move {
                let Accepted { stream, peer, place } = accepted;
                if let Some(stream) = acceptor.accept(stream, peer).await {
                    let peer = http::Peer { address: peer, tls: true };
                    http::serve(stream, peer, router, websocket, handshake_max, stop).await;
                }
                drop(place);
            }
        }
    }));
    serving
}

/// Serves AMQP on a WebSocket once it is upgraded. It holds a place like every other AMQP connection.
fn websocket_server(
    shared: &Arc<Shared>,
    places: &Arc<Places>,
    peer: SocketAddr,
    stop: &Stop,
) -> ServeWebSocket {
    let (shared, places, stop) = (Arc::clone(shared), Arc::clone(places), stop.clone());
    Arc::new(move |socket| {
        let (shared, place, stop) = (Arc::clone(&shared), places.take(), stop.clone());
        Box::pin(async move {
            let Some(_place) = place else {
                warn!(%peer, "turned away: the bound on open connections is reached");
                return;
            };
            connection::serve(socket, peer, Transport::WebSocket, shared, stop).await;
        })
    })
}

/// Shakes hands on TLS, within a bound, and counts those who do not.
#[derive(Clone)]
struct Acceptor {
    tls: TlsAcceptor,
    handshake_max: Duration,
    registry: Arc<Registry>,
}

impl Acceptor {
    async fn accept(&self, stream: TcpStream, peer: SocketAddr) -> Option<TlsStream<TcpStream>> {
        match timeout(self.handshake_max, self.tls.accept(stream)).await {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(error)) => debug!(%peer, %error, "no TLS handshake"),
            Err(_) => debug!(%peer, "the TLS handshake took too long"),
        }
        self.registry.totals().tls_refused.add(1);
        None
    }
}

/// A number that tells this run from others; nothing secret depends on it.
fn seed() -> u64 {
    getrandom::u64().unwrap_or_else(|_| wall_time().0)
}
