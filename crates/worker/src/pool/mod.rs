//! Pools: so many slots for one or more queues, and a handler.
//!
//! ```no_run
//! use vorrang_client::{Client, Received};
//! use vorrang_worker::plan::size::Size;
//! use vorrang_worker::pool::{Options, Pool};
//! use vorrang_worker::{Context, Outcome};
//!
//! # async fn example(client: &Client) -> Result<(), Box<dyn std::error::Error>> {
//! let high = Pool::start(client, Options::new(Size::Fixed(8), ["high"]), handle).await?;
//! let low = Pool::start(client, Options::new(Size::parse("0..4")?, ["low"]), handle).await?;
//! # low.pause().await; low.resume().await;
//! high.stop(std::time::Duration::from_secs(30)).await;
//! # Ok(())
//! # }
//!
//! async fn handle(_context: Context, message: Received) -> Outcome {
//!     println!("{:?}", message.message_id());
//!     Outcome::Complete
//! }
//! ```

mod gauge;
mod line;
mod links;
mod options;
mod problem;
mod pump;
mod sessions;
mod task;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tracing::{Instrument, info_span};
use vorrang_client::{Client, Error};

use crate::figures::Figures;
use crate::handler::Handler;
use crate::plan::size::Size;
use crate::replies::Replies;
use gauge::Chosen;
pub use gauge::{Backlog, Gauge, peeking};
pub(crate) use line::Reins;
use links::Links;
pub use options::{ENTITIES_MAX, Options, OptionsError, PREFETCH_MAX, Precedence, Preemption, Served};
pub use problem::{OnProblem, Problem, log_problems};
pub(crate) use pump::{CHECKPOINT, PREEMPTIONS};
use pump::{Control, Pump};
pub use sessions::Sessions;
pub(crate) use task::Settled;

/// Why a pool does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Its options make no sense.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Its entities cannot be received from.
    #[error(transparent)]
    Client(#[from] Error),
}

/// A running pool. Dropping it cancels its tasks and gives their messages back; see [`Pool::stop`] for the gentle way.
#[derive(Debug)]
pub struct Pool {
    control: mpsc::Sender<Control>,
    figures: Arc<Figures>,
}

/// A pool to be started.
#[derive(Clone)]
pub struct Builder {
    client: Client,
    options: Options,
    on_problem: OnProblem,
    gauge: Option<Gauge>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Builder {
    /// Hears of everything that goes wrong; without it, the log does.
    #[must_use]
    pub fn on_problem(mut self, on_problem: OnProblem) -> Builder {
        self.on_problem = on_problem;
        self
    }

    /// Looks at the backlog for the autoscaler; without it, the head of each entity is peeked at.
    #[must_use]
    pub fn gauge(mut self, gauge: Gauge) -> Builder {
        self.gauge = Some(gauge);
        self
    }

    /// Attaches to the entities and starts working.
    pub async fn start(self, handler: impl Handler) -> Result<Pool, StartError> {
        let Builder { client, options, on_problem, gauge } = self;
        options.check()?;
        let entities = options.serves.iter().map(|served| Arc::from(served.entity.as_str()));
        let figures = Arc::new(Figures::new(Arc::from(options.name.as_str()), entities));
        let replies = Arc::new(Replies::new(client.clone()));
        let span = info_span!("pool", name = %options.name);
        let (control, commands) = mpsc::channel(16);
        // Either task ends when it is stopped or its handle is dropped; `stopped` waits for it.
        if let Some(sessions) = options.sessions {
            let surroundings = sessions::Surroundings {
                client,
                options: Arc::new(options),
                sessions,
                handler: Arc::new(handler),
                figures: Arc::clone(&figures),
                replies,
                on_problem,
            };
            tokio::spawn(sessions::run(surroundings, commands).instrument(span));
        } else {
            let links = Links::open(&client, &options).await?;
            let own = gauge.is_some();
            let gauge = Chosen { gauge: gauge.unwrap_or_else(|| peeking(&client, &options)), own };
            let (options, handler) = (Arc::new(options), Arc::new(handler));
            let pump = Pump::new(options, handler, Arc::clone(&figures), replies, on_problem, links, gauge);
            tokio::spawn(pump.run(commands).instrument(span));
        }
        Ok(Pool { control, figures })
    }
}

impl Pool {
    /// A pool to be started with more than the usual.
    pub fn builder(client: &Client, options: Options) -> Builder {
        Builder { client: client.clone(), options, on_problem: log_problems(), gauge: None }
    }

    /// Starts a pool.
    pub async fn start(client: &Client, options: Options, handler: impl Handler) -> Result<Pool, StartError> {
        Pool::builder(client, options).start(handler).await
    }

    /// What it has done and is doing.
    pub fn figures(&self) -> &Arc<Figures> {
        &self.figures
    }

    /// Takes no more messages; what runs goes on. Returns when the pump has heard of it.
    pub async fn pause(&self) {
        let (done, heard) = oneshot::channel();
        // A pool that has ended takes no messages either.
        if self.control.send(Control::Pause(done)).await.is_ok() {
            let _ = heard.await;
        }
    }

    /// Takes messages again.
    pub async fn resume(&self) {
        // A pool that has ended cannot be resumed; its figures show it.
        let _ = self.control.send(Control::Resume).await;
    }

    /// Changes its size. Running tasks are not stopped for it.
    pub async fn resize(&self, size: Size) -> Result<(), OptionsError> {
        let pool = self.figures.snapshot().pool.to_string();
        let size = size.checked().map_err(|source| OptionsError::Size { pool, source })?;
        // As above.
        let _ = self.control.send(Control::Resize(size)).await;
        Ok(())
    }

    /// Stops: takes no more messages, lets running tasks finish for `within`, then cancels them and gives their
    /// messages back without counting a delivery. Returns when nothing is held any more.
    pub async fn stop(&self, within: Duration) {
        self.begin_stop(within).await;
        self.stopped().await;
    }

    /// Asks for a stop without waiting for it, to stop several pools at once.
    pub async fn begin_stop(&self, within: Duration) {
        // A pool that has ended is stopped.
        let _ = self.control.send(Control::Stop { within }).await;
    }

    /// Waits until the pool has ended.
    pub async fn stopped(&self) {
        self.control.closed().await;
    }
}
