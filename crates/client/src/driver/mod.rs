//! The task that owns a connection: the protocol engine, the socket, and every link of the client.
//!
//! It reads a large piece, handles every frame in it, takes all commands that wait, and writes everything at once.
//! Reading and writing go on side by side: a broker that waits for us to read must not find us waiting for it.
//!
//! What must stay true:
//!
//! - **Every command is answered once**, whatever becomes of the connection; an answer that cannot be known is
//!   [`Error::Ambiguous`].
//! - **Nothing here grows without a bound**: commands come through a bounded channel, sends hold a share of their
//!   sender's bound, deliveries are bounded by the credit that was granted, requests by a count.

mod claims;
mod command;
mod desk;
mod establish;
mod io;
mod link;
mod nodes;
mod receiving;
mod sending;
mod slab;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};

pub(crate) use command::{
    Accepted, Arrived, Command, DeliveryRef, Farewell, LinkKey, NodeRequest, OpenLink, OpenRole, Opened,
    ReceiverShared, Reply, Response, SendItem, SenderShared,
};
use desk::Desk;
pub(crate) use establish::establish;
use io::{Io, Woken};
pub(crate) use sending::discharge;

use crate::backoff::{Attempts, RetryPolicy};
use crate::claim::Claimant;
use crate::error::{Error, Gravity};
use crate::transport::Route;
use vorrang_amqp::connection::{Connection, Login};

/// Commands that may wait for the driver; callers wait for room beyond that.
const COMMANDS_MAX: usize = 1024;
/// Commands taken at once.
const COMMANDS_AT_ONCE: usize = 512;
/// How long a closing client waits for outcomes that are on their way.
const FAREWELL_MAX: Duration = Duration::from_secs(5);
/// How long the transport may take to say its own good-bye.
const SHUT_DOWN_MAX: Duration = Duration::from_secs(1);

/// Everything a driver needs to know.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) route: Route,
    pub(crate) login: Login,
    /// Our name in `open`, and the beginning of every link's name.
    pub(crate) container: String,
    /// The host in `open` and in audiences.
    pub(crate) host: String,
    pub(crate) claimant: Option<Claimant>,
    pub(crate) retry: RetryPolicy,
    pub(crate) idle_time_out: Duration,
    pub(crate) connect_time_out: Duration,
}

/// The driver's end of the channels.
pub(crate) struct Inbox {
    commands: mpsc::Receiver<Command>,
    farewells: mpsc::UnboundedReceiver<Farewell>,
    attention: mpsc::UnboundedReceiver<LinkKey>,
    ending: Arc<OnceLock<Error>>,
}

/// The handles' end of the channels.
#[derive(Debug, Clone)]
pub(crate) struct Hub {
    commands: mpsc::Sender<Command>,
    farewells: mpsc::UnboundedSender<Farewell>,
    attention: mpsc::UnboundedSender<LinkKey>,
    /// Why the driver has ended, if nobody asked it to.
    ending: Arc<OnceLock<Error>>,
}

/// Both ends.
pub(crate) fn channels() -> (Hub, Inbox) {
    let (commands, commands_out) = mpsc::channel(COMMANDS_MAX);
    let (farewells, farewells_out) = mpsc::unbounded_channel();
    let (attention, attention_out) = mpsc::unbounded_channel();
    let ending: Arc<OnceLock<Error>> = Arc::default();
    let inbox = Inbox {
        commands: commands_out,
        farewells: farewells_out,
        attention: attention_out,
        ending: Arc::clone(&ending),
    };
    (Hub { commands, farewells, attention, ending }, inbox)
}

impl Hub {
    /// Hands a command to the driver, waiting for room.
    pub(crate) async fn command(&self, command: Command) -> Result<(), Error> {
        self.commands.send(command).await.map_err(|_| self.ending())
    }

    /// Why nothing is answered any more.
    pub(crate) fn ending(&self) -> Error {
        self.ending.get().cloned().unwrap_or(Error::Closed)
    }

    /// Hands a command to the driver and waits for the answer.
    pub(crate) async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, Error> {
        let (reply, answer) = tokio::sync::oneshot::channel();
        self.command(command(reply)).await?;
        answer.await.map_err(|_| self.ending())?
    }

    /// Leaves something behind; a driver that is gone needs nothing.
    pub(crate) fn farewell(&self, farewell: Farewell) {
        let _ = self.farewells.send(farewell);
    }

    /// Asks the driver to look after a receiver's credit. At most one such wish per receiver is on its way.
    pub(crate) fn attend(&self, link: LinkKey) {
        let _ = self.attention.send(link);
    }
}

/// Runs until the client is closed or all its handles are gone.
pub(crate) async fn run(setup: Arc<Setup>, mut inbox: Inbox, connection: Connection, io: Io) {
    let mut desk = Desk::new(Arc::clone(&setup));
    let mut next = Some((connection, io));
    while let Some((connection, io)) = next.take() {
        desk.connected(connection);
        let reason = serve(&mut desk, &mut inbox, io).await;
        desk.lost(&reason);
        if desk.is_closing() {
            break;
        }
        info!(endpoint = %setup.route.endpoint(), %reason, "connection lost");
        next = reconnect(&mut desk, &mut inbox, &setup).await;
    }
    desk.finish();
}

/// Serves one connection until it ends; why it did.
async fn serve(desk: &mut Desk, inbox: &mut Inbox, mut io: Io) -> Error {
    let reason = serve_until_lost(desk, inbox, &mut io).await;
    io.shut_down(SHUT_DOWN_MAX).await;
    reason
}

async fn serve_until_lost(desk: &mut Desk, inbox: &mut Inbox, io: &mut Io) -> Error {
    let mut commands = Vec::with_capacity(COMMANDS_AT_ONCE);
    loop {
        desk.settle_down();
        if let Some(live) = desk.live() {
            io.take_output(live);
        }
        if let Some(reason) = desk.ending()
            && !io.has_output()
        {
            return reason;
        }
        let deadline = desk.next_deadline(io.started());
        let woken = tokio::select! {
            woken = io.wait(desk.may_read()) => woken,
            count = inbox.commands.recv_many(&mut commands, COMMANDS_AT_ONCE), if !desk.is_closing() => {
                if count == 0 {
                    desk.close(None, FAREWELL_MAX);
                }
                for command in commands.drain(..) {
                    desk.command(command);
                }
                continue;
            }
            Some(farewell) = inbox.farewells.recv() => {
                // What the handle asked for before it went comes first.
                while let Ok(command) = inbox.commands.try_recv() {
                    desk.command(command);
                }
                desk.farewell(farewell);
                continue;
            }
            Some(link) = inbox.attention.recv() => {
                desk.attend(link);
                continue;
            }
            () = sleep_until(deadline) => {
                desk.on_time(io.millis());
                continue;
            }
        };
        match woken {
            Ok(Woken::Read(0)) => {
                desk.transport_closed();
                return desk.ending().unwrap_or_else(|| desk.unreachable("the broker closed the connection"));
            }
            Ok(Woken::Read(_)) => {
                if let Some(live) = desk.live() {
                    io.handle_input(live);
                }
            }
            Ok(Woken::Wrote) => desk.output_taken(),
            Err(error) => {
                desk.transport_closed();
                return desk.unreachable(&error.to_string());
            }
        }
    }
}

/// Tries to connect again until it succeeds, the client is closed, or trying is useless.
async fn reconnect(desk: &mut Desk, inbox: &mut Inbox, setup: &Arc<Setup>) -> Option<(Connection, Io)> {
    let since = Instant::now();
    let mut attempts = Attempts::default();
    loop {
        let pause = attempts.next_pause(&setup.retry);
        let attempt = async {
            tokio::time::sleep(pause).await;
            establish(setup).await
        };
        match wait_with_commands(desk, inbox, attempt).await? {
            Ok(connected) => {
                info!(endpoint = %setup.route.endpoint(), "connected again");
                return Some(connected);
            }
            Err(error) if error.gravity() == Gravity::Final => {
                warn!(%error, "cannot connect again");
                // Set once: the driver ends with this.
                let _ = inbox.ending.set(error.clone());
                desk.end_all(&error);
                return None;
            }
            Err(error) => {
                debug!(%error, "no connection yet");
                if since.elapsed() >= setup.retry.give_up_after {
                    desk.give_up(&error);
                }
            }
        }
    }
}

/// Takes commands while something else is under way; none if the client is closed meanwhile.
async fn wait_with_commands<T>(
    desk: &mut Desk,
    inbox: &mut Inbox,
    under_way: impl Future<Output = T>,
) -> Option<T> {
    let mut under_way = std::pin::pin!(under_way);
    loop {
        tokio::select! {
            done = &mut under_way => return Some(done),
            command = inbox.commands.recv() => match command {
                Some(command) => desk.command(command),
                None => return None,
            },
            Some(farewell) = inbox.farewells.recv() => desk.farewell(farewell),
            Some(link) = inbox.attention.recv() => desk.attend(link),
        }
        if desk.is_closing() {
            return None;
        }
    }
}
