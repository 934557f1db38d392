//! One AMQP connection on a blocking socket: the engine's client role and its shell.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::{Bytes, BytesMut};
use vorrang_amqp::connection::{
    ClientConfig, Connection, Event, Limits, LinkId, Login, Millis, OwnAttach, Received, SessionId,
};
use vorrang_amqp::performative::{
    Attach, ReceiverSettleMode, Role, SenderSettleMode, Source, Target, TargetNode,
};
use vorrang_amqp::sasl_plain::PlainCredentials;

const READ_BYTES: usize = 128 * 1024;
/// How long a broker may take to answer an open or an attach; one that is out of memory may never.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// Who logs in, with a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// The name.
    pub user: &'static str,
    /// The password.
    pub password: &'static str,
}

impl Account {
    /// The emulator's well-known key; a broker that asks for no password takes it as well.
    pub const EMULATOR: Account = Account { user: "RootManageSharedAccessKey", password: "SAS_KEY_VALUE" };
}

/// A connection with one session.
#[derive(Debug)]
pub struct Wire {
    socket: TcpStream,
    /// The protocol engine.
    pub amqp: Connection,
    input: BytesMut,
    scratch: Box<[u8]>,
    chunks: Vec<Bytes>,
    started: Instant,
    session: Option<SessionId>,
    answer_wait: Duration,
}

impl Wire {
    /// Connects with the emulator's key as user and password.
    pub fn connect(address: &str) -> Result<Wire> {
        Wire::connect_as(Account::EMULATOR, address)
    }

    /// The same as somebody else.
    pub fn connect_as(account: Account, address: &str) -> Result<Wire> {
        Wire::connect_within(account, address, ANSWER_WAIT)
    }

    fn connect_within(account: Account, address: &str, answer_wait: Duration) -> Result<Wire> {
        let socket = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        socket.set_nodelay(true)?;
        let login = Login::Plain(PlainCredentials {
            authorization_identity: "".into(),
            user: account.user.into(),
            password: account.password.into(),
        });
        let config = ClientConfig { login, ..ClientConfig::new("vorrang-bench") };
        let started = Instant::now();
        let amqp = Connection::client(config, Limits::default(), Millis(0));
        let mut wire = Wire {
            socket,
            amqp,
            input: BytesMut::new(),
            scratch: vec![0; READ_BYTES].into_boxed_slice(),
            chunks: Vec::new(),
            started,
            session: None,
            answer_wait,
        };
        wire.open()?;
        wire.session = Some(wire.amqp.begin().context("cannot begin a session")?);
        Ok(wire)
    }

    fn open(&mut self) -> Result<()> {
        self.answered("an open", |event| Ok(matches!(event, Event::Opened(_)).then_some(())))
    }

    /// Attaches a link and waits for the answer. A receiver asks to have its settlements confirmed.
    pub fn attach(&mut self, queue: &str, role: Role) -> Result<LinkId> {
        let confirmed = (role == Role::Receiver).then_some(ReceiverSettleMode::Second);
        self.attach_with(queue, role, confirmed).map(|(link, _)| link)
    }

    /// The same, with the answer; whether settlements are to be confirmed is given, and the answer says whether they are.
    pub fn attach_with(
        &mut self,
        queue: &str,
        role: Role,
        rcv_settle_mode: Option<ReceiverSettleMode>,
    ) -> Result<(LinkId, Box<Attach>)> {
        let session = self.session.context("no session")?;
        let attach = OwnAttach {
            snd_settle_mode: Some(SenderSettleMode::Unsettled),
            rcv_settle_mode,
            source: Some(Source::at(queue)),
            target: Some(TargetNode::Node(Target::at(queue))),
            ..OwnAttach::new(format!("{queue}-{role:?}"), role)
        };
        let link = self.amqp.attach(session, attach).context("cannot attach")?;
        let answer = self.answered("an attach", |event| match event {
            Event::Attached { answer, .. } => Ok(Some(answer)),
            Event::LinkEnded { ending, .. } => bail!("{queue} was refused: {ending:?}"),
            _ => Ok(None),
        })?;
        Ok((link, answer))
    }

    /// Waits for the event that answers what we asked; those before it are passed over.
    fn answered<T>(&mut self, asked: &str, answer: impl Fn(Event) -> Result<Option<T>>) -> Result<T> {
        self.patience(self.answer_wait)?;
        let since = Instant::now();
        loop {
            self.flush()?;
            while let Some(event) = self.amqp.next_event() {
                if let Event::Closed(closed) = event {
                    bail!("connection closed: {closed:?}");
                }
                if let Some(answer) = answer(event)? {
                    return Ok(answer);
                }
            }
            if since.elapsed() >= self.answer_wait {
                bail!("{asked} was not answered within {:?}", self.answer_wait);
            }
            self.read()?;
        }
    }

    /// Writes everything that waits.
    pub fn flush(&mut self) -> Result<()> {
        self.amqp.take_output(&mut self.chunks);
        for chunk in self.chunks.drain(..) {
            self.socket.write_all(&chunk)?;
        }
        Ok(())
    }

    /// Reads what there is, waiting for the first byte; handles every frame. False if the time is up.
    pub fn read(&mut self) -> Result<bool> {
        let read = match self.socket.read(&mut self.scratch) {
            Ok(0) => bail!("the broker closed the connection"),
            Ok(read) => read,
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
            {
                0
            }
            Err(error) => return Err(error.into()),
        };
        self.input.extend_from_slice(self.scratch.get(..read).unwrap_or_default());
        let now = Millis(u64::try_from(self.started.elapsed().as_millis())?);
        while self.amqp.receive(&mut self.input, now) == Received::Paused {}
        Ok(read > 0)
    }

    /// Reads what there is, waiting for nothing.
    pub fn read_now(&mut self) -> Result<bool> {
        self.socket.set_nonblocking(true)?;
        let read = self.read();
        self.socket.set_nonblocking(false)?;
        read
    }

    /// How long [`Wire::read`] waits.
    pub fn patience(&mut self, patience: Duration) -> Result<()> {
        self.socket.set_read_timeout(Some(patience))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_broker_that_never_answers_is_given_up() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap().to_string();
        let given_up =
            Wire::connect_within(Account::EMULATOR, &address, Duration::from_millis(5)).unwrap_err();
        assert_eq!(given_up.to_string(), "an open was not answered within 5ms");
    }
}
