//! The shell around a [`Door`]: one task per connection that moves bytes, requests and events.
//!
//! It reads a large piece, lets the door handle every frame in it, hands the requests to the broker
//! as one batch and writes all answers at once. While the broker's inbox is full or the peer does
//! not read, nothing more is read: that is the backpressure, end to end.

use std::future::{pending, poll_fn};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, ready};
use std::time::{Duration, Instant, SystemTime};

use bytes::{Buf, Bytes, BytesMut};
use smallvec::SmallVec;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{sleep_until, timeout};
use tracing::{Instrument, debug, info_span};
use vorrang_amqp::connection::{Millis, Received};
use vorrang_broker::api::{Event, Outlet};
use vorrang_broker::shard::{Connection, Handed, Stopped};
use vorrang_engine::Timestamp;

use super::door::{Door, Now, Shared};
use crate::registry::{Client, Entered, Wish};
use crate::stop::Stop;
use crate::transport::Transport;

/// What an idle connection reads at a time, into the stack; it doubles while reads fill it and shrinks when they do not.
const READ_BYTES_MIN: usize = 2 * 1024;
const READ_BYTES_MAX: usize = 256 * 1024;
/// Pieces of output handed to the system at once.
const PIECES_MAX: usize = 64;
/// A peer that takes nothing for so long is gone.
const WRITE_STALL_MAX: Duration = Duration::from_mins(1);
/// How long a stopping broker waits for answers that are owed, and then for the peer's good-bye.
const FAREWELL_MAX: Duration = Duration::from_secs(2);
/// How many events ahead a message is fetched from memory, which answers while those before it are written.
const AHEAD: usize = 2;

/// Serves one connection until it ends.
pub async fn serve<S>(stream: S, peer: SocketAddr, transport: Transport, shared: Arc<Shared>, stop: Stop)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let span = info_span!("connection", %peer, %transport);
    let served = async {
        let entered = shared.registry.enter(peer, transport, wall_time());
        match Shell::new(stream, shared, entered) {
            Ok(mut shell) => match shell.run(stop).await {
                Ok(()) => debug!("connection ended"),
                Err(error) => debug!(%error, "connection lost"),
            },
            Err(stopped) => debug!(reason = %stopped, "turned away"),
        }
    };
    served.instrument(span).await;
}

/// Where the shard leaves events for a connection.
#[derive(Debug, Default)]
struct Letterbox {
    /// Each batch in the buffer it was told in: that goes back to be filled again, and no event is moved.
    batches: Mutex<Batches>,
    arrived: Notify,
}

/// Mostly one, and some if the connection is kept waiting for a processor.
type Batches = SmallVec<[Vec<Event>; 2]>;

impl Outlet for Letterbox {
    fn effects(&self, batch: Vec<Event>) {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner).push(batch);
        self.arrived.notify_one();
    }
}

impl Letterbox {
    fn take(&self) -> Batches {
        std::mem::take(&mut *self.batches.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Shell<S> {
    stream: S,
    door: Door,
    client: Arc<Client>,
    broker: Connection,
    letterbox: Arc<Letterbox>,
    input: BytesMut,
    /// Whether frames wait to be handled, in the input or within the protocol engine.
    paused: bool,
    read_bytes: usize,
    output: Vec<Bytes>,
    started: Instant,
}

/// What woke a connection up.
enum Woken {
    Read(usize),
    Events,
    Deadline,
    Stop,
    /// Somebody wants something of this connection.
    Wished,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Shell<S> {
    fn new(stream: S, shared: Arc<Shared>, entered: Entered) -> Result<Self, Stopped> {
        let letterbox = Arc::new(Letterbox::default());
        let broker = shared.broker.connect(Arc::<Letterbox>::clone(&letterbox))?;
        let started = Instant::now();
        let client = Arc::clone(entered.client());
        let door = Door::new(shared, entered, now(started));
        Ok(Shell {
            stream,
            door,
            client,
            broker,
            letterbox,
            input: BytesMut::new(),
            paused: false,
            read_bytes: READ_BYTES_MIN,
            output: Vec::new(),
            started,
        })
    }

    async fn run(&mut self, mut stop: Stop) -> io::Result<()> {
        loop {
            self.settle_down().await?;
            if self.door.amqp().is_finished() {
                return self.stream.shutdown().await;
            }
            match self.wait(&mut stop).await? {
                Woken::Read(0) => {
                    self.door.amqp().transport_closed();
                    self.door.pump(self.now());
                    return Ok(());
                }
                Woken::Read(bytes) => {
                    self.client.bytes_in.add(u64::try_from(bytes).unwrap_or(u64::MAX));
                    self.handle_input();
                }
                Woken::Events => {}
                Woken::Deadline => self.on_time(),
                Woken::Stop => return self.say_goodbye("the broker is stopping").await,
                Woken::Wished => {
                    for wish in self.client.take_wishes() {
                        match wish {
                            Wish::Close(reason) => return self.say_goodbye(reason).await,
                            Wish::Cut => return Ok(()),
                            Wish::Detach(link, reason) => self.door.force_detach(link, reason),
                        }
                    }
                }
            }
        }
    }

    /// Handles events, hands over requests and writes output until nothing is left to do.
    async fn settle_down(&mut self) -> io::Result<()> {
        let mut done_here = false;
        loop {
            let now = self.now();
            let answering = std::mem::take(&mut done_here);
            let batches = self.letterbox.take();
            let busy = !batches.is_empty();
            for mut events in batches {
                let mut behind = events.as_mut_slice();
                while let Some((event, rest)) = behind.split_first_mut() {
                    if let Some(soon) = rest.get(AHEAD - 1) {
                        soon.fetch();
                    }
                    self.door.on_broker(event);
                    behind = rest;
                }
                self.broker.give_back(events);
            }
            self.door.pump(now);
            if let Some(principal) = self.door.take_principal() {
                self.broker.become_principal(principal).map_err(io::Error::other)?;
            }
            if self.door.claims_due().is_some_and(|due| now.wall >= due) {
                self.door.check_claims(now);
            }
            self.door.tell_taken();
            let asked = self.door.has_requests();
            if asked {
                let requests = self.door.take_requests();
                done_here = self.broker.push(requests).await.map_err(io::Error::other)? == Handed::Done;
            }
            let wrote = self.write_output().await?;
            if wrote {
                if answering {
                    give_way();
                }
                self.door.resume_output();
            }
            // Frames may be left because there was too much to do at once, or because a login had to be decided
            // first; nothing else would wake us for them.
            let waiting = self.paused || !self.input.is_empty();
            let resumed = waiting && !self.door.is_saturated() && self.handle_frames();
            if !busy && !asked && !wrote && !resumed {
                self.door.rest();
                return Ok(());
            }
        }
    }

    async fn wait(&mut self, stop: &mut Stop) -> io::Result<Woken> {
        let deadline = self.deadline();
        // A peer that always has something to say must not keep time from running out.
        if deadline.is_some_and(|at| at <= Instant::now()) {
            return Ok(Woken::Deadline);
        }
        let time_up = async {
            match deadline {
                Some(at) => sleep_until(at.into()).await,
                None => pending().await,
            }
        };
        let reads = !self.door.is_saturated();
        tokio::select! {
            biased;
            () = stop.requested() => Ok(Woken::Stop),
            () = self.letterbox.arrived.notified() => Ok(Woken::Events),
            () = self.client.asked() => Ok(Woken::Wished),
            read = read_some(&mut self.stream, &mut self.input, self.read_bytes), if reads => read.map(Woken::Read),
            () = time_up => Ok(Woken::Deadline),
        }
    }

    fn handle_input(&mut self) {
        let filled = self.input.len();
        if wastes(self.read_bytes, filled) {
            self.input = BytesMut::from(self.input.as_ref());
        }
        self.read_bytes = next_read_bytes(self.read_bytes, filled);
        self.handle_frames();
    }

    /// Handles complete frames, as many as are allowed at once; whether there may be more.
    fn handle_frames(&mut self) -> bool {
        let now = self.now();
        let left = self.input.len();
        self.paused = self.door.amqp().receive(&mut self.input, now.steady) == Received::Paused;
        let taken = self.input.len() < left;
        self.door.pump(now);
        if self.input.is_empty() && self.read_bytes == READ_BYTES_MIN {
            // An idle connection keeps no buffer.
            self.input = BytesMut::new();
        }
        self.paused || taken
    }

    fn on_time(&mut self) {
        let now = self.now();
        self.door.amqp().on_time(now.steady);
    }

    /// Writes everything that waits; whether there was anything.
    async fn write_output(&mut self) -> io::Result<bool> {
        self.door.amqp().take_output(&mut self.output);
        if self.output.is_empty() {
            return Ok(false);
        }
        let mut first = 0;
        while let Some(waiting) = self.output.get(first..).filter(|waiting| !waiting.is_empty()) {
            let writing = timeout(WRITE_STALL_MAX, write_pieces(&mut self.stream, waiting));
            let mut written = match writing.await {
                Ok(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(Ok(written)) => written,
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")),
            };
            self.client.bytes_out.add(u64::try_from(written).unwrap_or(u64::MAX));
            while let Some(piece) = self.output.get_mut(first).filter(|_| written > 0) {
                let taken = written.min(piece.len());
                piece.advance(taken);
                written -= taken;
                if piece.is_empty() {
                    first += 1;
                }
            }
        }
        self.output.clear();
        timeout(WRITE_STALL_MAX, self.stream.flush())
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        Ok(true)
    }

    /// Answers what is owed, says that we stop, and waits a little for the peer to agree.
    async fn say_goodbye(&mut self, reason: &str) -> io::Result<()> {
        let answered = async {
            while self.door.owes_answers() {
                self.letterbox.arrived.notified().await;
                self.settle_down().await?;
            }
            io::Result::Ok(())
        };
        // What could not be answered in time is sent again by the client.
        let _ = timeout(FAREWELL_MAX, answered).await;
        self.door.close(reason);
        let agreed = async {
            loop {
                self.settle_down().await?;
                if self.door.amqp().is_finished() {
                    return self.stream.shutdown().await;
                }
                if read_some(&mut self.stream, &mut self.input, READ_BYTES_MIN).await? == 0 {
                    return Ok(());
                }
                self.handle_input();
            }
        };
        timeout(FAREWELL_MAX, agreed).await.unwrap_or(Ok(()))
    }

    /// When something is due though nothing happens.
    fn deadline(&mut self) -> Option<Instant> {
        let protocol = self.door.amqp().next_deadline().map(|at| self.started + Duration::from_millis(at.0));
        let claims = self.door.claims_due().map(|due| {
            let left = due.since(self.now().wall).0;
            Instant::now() + Duration::from_millis(left)
        });
        [protocol, claims].into_iter().flatten().min()
    }

    fn now(&self) -> Now {
        now(self.started)
    }
}

/// Lets the peer go first that was just answered. What was carried out here may have brought something for other connections,
/// and their tasks are next on this thread; a peer on the same machine has mostly been woken on this thread's processor, and
/// would wait until all of them are served.
fn give_way() {
    std::thread::yield_now();
}

/// Reads what has come, up to so many bytes. Where little comes at a time it is read into the stack, and the connection has
/// memory for it only once it is there: thousands of connections that wait would have thousands of empty buffers.
async fn read_some<S: AsyncRead + Unpin>(
    stream: &mut S,
    input: &mut BytesMut,
    read_bytes: usize,
) -> io::Result<usize> {
    if read_bytes > READ_BYTES_MIN {
        if input.capacity() - input.len() < read_bytes {
            input.reserve(read_bytes);
        }
        return stream.read_buf(input).await;
    }
    poll_fn(|context| {
        let mut place = [MaybeUninit::uninit(); READ_BYTES_MIN];
        let mut read = ReadBuf::uninit(&mut place);
        ready!(Pin::new(&mut *stream).poll_read(context, &mut read))?;
        input.extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    })
    .await
}

/// Writes as much of the pieces as the system takes at once. The slices are listed anew in each attempt: a list that is
/// kept while waiting would be most of what an idle connection needs.
fn write_pieces<S: AsyncWrite + Unpin>(
    stream: &mut S,
    pieces: &[Bytes],
) -> impl Future<Output = io::Result<usize>> {
    poll_fn(move |context| {
        let mut slices = [IoSlice::new(&[]); PIECES_MAX];
        let mut count = 0;
        for (slice, piece) in slices.iter_mut().zip(pieces) {
            *slice = IoSlice::new(piece);
            count += 1;
        }
        Pin::new(&mut *stream).poll_write_vectored(context, slices.get(..count).unwrap_or_default())
    })
}

/// Whether what was read is moved to memory of its size, in which it is already if little is read at a time. Messages are
/// kept as slices of what was read: a small one must not keep a large empty buffer.
fn wastes(read_bytes: usize, filled: usize) -> bool {
    read_bytes > READ_BYTES_MIN && filled <= read_bytes / 4
}

/// How much to read next, after `filled` came of the most that was asked for.
fn next_read_bytes(read_bytes: usize, filled: usize) -> usize {
    if filled >= read_bytes {
        read_bytes.saturating_mul(2).min(READ_BYTES_MAX)
    } else if filled <= read_bytes / 4 {
        (read_bytes / 2).max(READ_BYTES_MIN)
    } else {
        read_bytes
    }
}

/// Both clocks.
fn now(started: Instant) -> Now {
    let steady = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Now { steady: Millis(steady), wall: wall_time() }
}

/// Milliseconds since 1970.
pub(crate) fn wall_time() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_in_the_order_and_in_the_buffers_they_were_told_in() {
        let letterbox = Letterbox::default();
        let told: Vec<Vec<Event>> =
            (1..=3).map(|count| (0..count).map(|_| Event::KeysChanged).collect()).collect();
        let seen = |batches: &[Vec<Event>]| -> Vec<_> {
            batches.iter().map(|batch| (batch.as_ptr(), batch.len())).collect()
        };
        let expected = seen(&told);
        for batch in told {
            letterbox.effects(batch);
        }
        assert_eq!(seen(&letterbox.take()), expected);
        assert!(letterbox.take().is_empty(), "they are taken once");
    }

    #[test]
    fn what_is_kept_of_a_read_is_at_least_a_quarter_full_whatever_comes() {
        for filled in [1, 100, READ_BYTES_MIN - 1, READ_BYTES_MIN, 5_000, 70_000, READ_BYTES_MAX, 1 << 20] {
            let mut read_bytes = READ_BYTES_MAX;
            for _ in 0..20 {
                let of_its_size = read_bytes == READ_BYTES_MIN || wastes(read_bytes, filled);
                assert!(of_its_size || filled > read_bytes / 4);
                read_bytes = next_read_bytes(read_bytes, filled);
                assert!((READ_BYTES_MIN..=READ_BYTES_MAX).contains(&read_bytes));
            }
            // Whoever always sends as much soon has nothing copied, but for single small messages.
            assert!(filled < READ_BYTES_MIN || !wastes(read_bytes, filled), "{filled} of {read_bytes}");
        }
    }

    #[tokio::test]
    async fn a_connection_that_waits_has_no_buffer_and_what_comes_has_one_of_its_size() {
        let (mut near, mut far) = tokio::io::duplex(64 * 1024);
        let mut input = BytesMut::new();
        let waited = timeout(Duration::ZERO, read_some(&mut near, &mut input, READ_BYTES_MIN)).await;
        assert!(waited.is_err(), "nothing has come");
        assert_eq!(input.capacity(), 0);
        for (bytes, read) in [(100, 100), (READ_BYTES_MIN + 1, READ_BYTES_MIN)] {
            far.write_all(&vec![7; bytes]).await.unwrap();
            let mut input = BytesMut::new();
            assert_eq!(read_some(&mut near, &mut input, READ_BYTES_MIN).await.unwrap(), read);
            assert_eq!((input.len(), input.capacity()), (read, read));
        }
    }
}
