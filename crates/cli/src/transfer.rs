//! `vorrang send`, `receive` and `call`: messages as lines of JSON, over AMQP like any other client.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use vorrang_client::{Client, Error, ReceiveMode, Received, Receiver, ReceiverOptions, Source, SubQueue};
use vorrang_server::duration;
use vorrang_server::http::api::model::{MessageBody, NewMessage, PropertyValue};

use crate::api::Api;
use crate::connection::Connection;
use crate::failure::{Failure, Outcome};
use crate::line::{self, Line};
use crate::{output, percent};

/// Messages sent in one go, and received in one go.
const BATCH: usize = 500;
/// The longest line that is read: more than the largest message in base64.
const LINE_BYTES_MAX: usize = 160 * 1024 * 1024;

/// A message on the command line.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// The body, as text
    #[arg(long, value_name = "TEXT")]
    body: Option<String>,
    /// What the body is
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Its id
    #[arg(long, value_name = "ID")]
    message_id: Option<String>,
    /// Its session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Its subject, which Service Bus also calls label
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,
    /// Its level, 0 to 255
    #[arg(long, value_name = "LEVEL")]
    level: Option<u8>,
    /// Its class, such as high
    #[arg(long, value_name = "NAME", conflicts_with = "level")]
    class: Option<String>,
    /// How long it lives
    #[arg(long, value_name = "DURATION")]
    time_to_live: Option<String>,
    /// An application property; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = line::pair)]
    property: Vec<(String, PropertyValue)>,
}

#[derive(Debug, Args)]
pub(crate) struct Send {
    /// The queue or topic
    entity: String,
    #[command(flatten)]
    one: One,
    /// Read messages from this file instead, one JSON object a line; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Receive {
    /// A queue, or a subscription as TOPIC/Subscriptions/NAME
    entity: String,
    /// Write messages to this file instead of standard output, one JSON object a line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// End after so many
    #[arg(long, value_name = "COUNT")]
    max: Option<u64>,
    /// End when none has come for so long
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = wait)]
    wait: Duration,
    /// From the dead-letter queue
    #[arg(long)]
    dead_letter: bool,
    /// From this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// From the next session that has messages
    #[arg(long, conflicts_with = "session")]
    next_session: bool,
    /// Only messages of this level or higher
    #[arg(long, value_name = "LEVEL")]
    min_level: Option<u8>,
    /// Delete messages as they are sent to us; what is lost on the way is lost
    #[arg(long = "receive-and-delete")]
    delete_at_once: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The queue or topic that takes requests
    entity: String,
    #[command(flatten)]
    one: One,
    /// How long to wait for the reply
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = wait)]
    wait: Duration,
}

impl One {
    fn message(&self) -> NewMessage {
        let mut properties = line::properties(&self.property);
        if let Some(class) = &self.class {
            properties.insert("Priority".to_owned(), PropertyValue::from(class.as_str()));
        }
        NewMessage {
            body: self.body.clone().map(MessageBody::Text),
            message_id: self.message_id.clone(),
            session_id: self.session.clone(),
            subject: self.subject.clone(),
            content_type: self.content_type.clone(),
            time_to_live: self.time_to_live.clone(),
            level: self.level,
            properties,
            ..NewMessage::default()
        }
    }
}

/// Sends one message, or every line of a file; each line is safe in the broker before the count says so.
pub(crate) fn send(send: &Send, connection: &Connection) -> Outcome {
    let Some(path) = &send.file else {
        if send.one.body.is_none() && io::stdin().is_terminal() {
            let text =
                "there is nothing to send; give --body TEXT, or --file FILE with one JSON object a line";
            return Err(Failure::Usage(text.to_owned()));
        }
        if send.one.body.is_none() {
            return send_lines(send, Path::new("-"), connection);
        }
        let message = line::message(send.one.message()).map_err(Failure::Usage)?;
        return with_client(connection, async |client| {
            client.sender(&send.entity).await?.send(message).await
        });
    };
    send_lines(send, path, connection)
}

fn send_lines(send: &Send, path: &Path, connection: &Connection) -> Outcome {
    let (mut lines, bytes): (Box<dyn BufRead>, Option<u64>) = if path.as_os_str() == "-" {
        (Box::new(BufReader::new(io::stdin())), None)
    } else {
        let unreadable = |error| Failure::Usage(format!("{} cannot be read: {error}", path.display()));
        let file = File::open(path).map_err(unreadable)?;
        let bytes = file.metadata().map(|data| data.len()).ok();
        (Box::new(BufReader::new(file)), bytes)
    };
    let progress = progress(bytes);
    let mut count = 0_u64;
    let outcome = run(async {
        let client = connect(connection).await?;
        let sender = client.sender(&send.entity).await.map_err(failure)?;
        let mut number = 0_u64;
        loop {
            let mut batch = Vec::new();
            let mut read = 0_u64;
            while batch.len() < BATCH {
                let Some(text) = next_line(&mut lines)? else { break };
                read += u64::try_from(text.len()).unwrap_or(0);
                number += 1;
                if text.trim().is_empty() {
                    continue;
                }
                let wrong = |error| {
                    Failure::Usage(format!(
                        "line {number} of {} cannot be sent: {error}; {count} messages before it were",
                        path.display()
                    ))
                };
                batch.push(line::read(&text).and_then(line::message).map_err(wrong)?);
            }
            if read == 0 {
                break;
            }
            let sent = u64::try_from(batch.len()).unwrap_or(0);
            sender.send_all(batch).await.map_err(failure)?;
            count += sent;
            progress.inc(if bytes.is_some() { read } else { sent });
            progress.set_message(format!("{count} messages"));
        }
        client.close().await.map_err(failure)
    });
    progress.finish_and_clear();
    outcome?;
    output::line(&format!("{count} messages sent"))
}

/// A line, or none at the end.
fn next_line(lines: &mut dyn BufRead) -> Result<Option<String>, Failure> {
    let mut text = Vec::new();
    let read = io::Read::take(lines, u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX))
        .read_until(b'\n', &mut text)?;
    if read == 0 {
        return Ok(None);
    }
    if read >= LINE_BYTES_MAX {
        return Err(Failure::Usage(format!(
            "a line is longer than {LINE_BYTES_MAX} bytes, which no message is"
        )));
    }
    String::from_utf8(text).map(Some).map_err(|_| Failure::Usage("a line is not UTF-8".to_owned()))
}

/// Writes messages out, and completes each only after it was written.
pub(crate) fn receive(receive: &Receive, connection: &Connection) -> Outcome {
    let to_file = receive.file.is_some();
    let mut out: Box<dyn Write> = match &receive.file {
        Some(path) => {
            let unwritable = |error| Failure::Usage(format!("{} cannot be written: {error}", path.display()));
            Box::new(BufWriter::new(File::create(path).map_err(unwritable)?))
        }
        None => Box::new(BufWriter::new(io::stdout())),
    };
    let progress = if to_file { progress(None) } else { ProgressBar::hidden() };
    let mut count = 0_u64;
    let outcome = run(async {
        let client = connect(connection).await?;
        let mut receiver = Attached::attach(&client, receive).await.map_err(failure)?;
        while receive.max.is_none_or(|max| count < max) {
            let left = receive.max.map_or(u64::MAX, |max| max - count);
            let most = u32::try_from(left.min(u64::try_from(BATCH).unwrap_or(1))).unwrap_or(1);
            let batch = receiver.get().recv_batch(most, receive.wait).await.map_err(failure)?;
            if batch.is_empty() {
                break;
            }
            for received in &batch {
                write_line(&mut out, received)?;
            }
            out.flush()?;
            if !receive.delete_at_once {
                let outcomes = receiver.get().complete_all(&batch).await;
                outcomes.into_iter().collect::<Result<(), Error>>().map_err(failure)?;
            }
            count += u64::try_from(batch.len()).unwrap_or(0);
            progress.set_position(count);
        }
        receiver.close().await.map_err(failure)?;
        client.close().await.map_err(failure)
    });
    progress.finish_and_clear();
    outcome?;
    if to_file {
        output::line(&format!("{count} messages received"))?;
    }
    Ok(())
}

fn write_line(out: &mut dyn Write, received: &Received) -> Outcome {
    let text = serde_json::to_string(&Line::of(received)).map_err(|error| Failure::Other(error.into()))?;
    match writeln!(out, "{text}") {
        // Nobody reads on: what was not written stays in the queue.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}

/// A receiver, of a session or not.
enum Attached {
    Plain(Receiver),
    Session(vorrang_client::SessionReceiver),
}

impl Attached {
    async fn attach(client: &Client, receive: &Receive) -> Result<Attached, Error> {
        let mode = if receive.delete_at_once { ReceiveMode::ReceiveAndDelete } else { ReceiveMode::PeekLock };
        let sub_queue = receive.dead_letter.then_some(SubQueue::DeadLetter);
        let options =
            ReceiverOptions { mode, min_level: receive.min_level, sub_queue, ..ReceiverOptions::default() };
        let source = Source::from(receive.entity.as_str());
        if receive.session.is_none() && !receive.next_session {
            return client.receiver_with(source, options).await.map(Attached::Plain);
        }
        let session = receive.session.as_deref();
        client.accept_session_with(source, session, receive.wait, options).await.map(Attached::Session)
    }

    fn get(&mut self) -> &mut Receiver {
        match self {
            Attached::Plain(receiver) => receiver,
            Attached::Session(receiver) => receiver,
        }
    }

    async fn close(self) -> Result<(), Error> {
        match self {
            Attached::Plain(receiver) => receiver.close().await,
            Attached::Session(receiver) => receiver.close().await,
        }
    }
}

/// Sends a request, waits for its reply on a queue of its own, and prints it.
pub(crate) fn call(call: &Call, connection: &Connection) -> Outcome {
    let api = Api::new(connection.clone());
    let number = getrandom::u64().map_err(|error| anyhow::anyhow!("no random number: {error}"))?;
    let reply_to = format!("vorrang-call-{number:016x}");
    let path = format!("/api/queues/{}", percent::encode(&reply_to));
    // Should we be killed, the queue goes by itself.
    let _: crate::api::Json = api.put(&path, &json!({ "autoDeleteOnIdle": "PT5M" }))?;
    let mut request = call.one.message();
    request.message_id.get_or_insert_with(|| reply_to.clone());
    request.reply_to = Some(reply_to.clone());
    let replied = line::message(request).map_err(Failure::Usage).and_then(|message| {
        run(async {
            let client = connect(connection).await?;
            let mut receiver = client.receiver(reply_to.as_str()).await.map_err(failure)?;
            client.sender(&call.entity).await.map_err(failure)?.send(message).await.map_err(failure)?;
            let reply = receiver.recv_timeout(call.wait).await.map_err(failure)?;
            if let Some(reply) = &reply {
                receiver.complete(reply).await.map_err(failure)?;
            }
            client.close().await.map_err(failure)?;
            Ok(reply)
        })
    });
    api.delete(&path)?;
    match replied? {
        Some(reply) => output::json_line(&Line::of(&reply)),
        None => Err(Failure::Refused(format!(
            "no reply within {:?}; is a worker receiving from {} and answering to reply-to?",
            call.wait,
            output::printable(&call.entity)
        ))),
    }
}

async fn connect(connection: &Connection) -> Result<Client, Failure> {
    connection.client().await.map_err(failure)
}

/// Connects, does one thing, and closes.
fn with_client(connection: &Connection, work: impl AsyncFnOnce(&Client) -> Result<(), Error>) -> Outcome {
    run(async {
        let client = connect(connection).await?;
        work(&client).await.map_err(failure)?;
        client.close().await.map_err(failure)
    })
}

fn run<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(work)
}

/// What the client's errors mean to somebody at a terminal.
#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` takes")]
pub(crate) fn failure(error: Error) -> Failure {
    let text = output::printable(error.to_string().trim_end_matches('.'));
    match error {
        // TLS was spoken to a door that speaks AMQP as it is.
        Error::Disconnected { .. } | Error::Tls(_) if text.contains("InvalidContentType") => {
            Failure::Unreachable(format!(
                "{text}; that port does not speak TLS: add UseDevelopmentEmulator=true to the connection string, or \
                 name the port for AMQP over TLS in its Endpoint (5671 unless configured)"
            ))
        }
        Error::Disconnected { .. } | Error::Tls(_) if text.contains("certificate") => {
            Failure::Unreachable(format!(
                "{text}; if the broker's certificate is to be trusted, name the file of its authority with --ca-file"
            ))
        }
        Error::Disconnected { .. } => Failure::Unreachable(format!(
            "{text}; start a broker with `vorrang serve --dev`, or say where it is with --connection-string"
        )),
        Error::ConnectionString(_) => Failure::Usage(text),
        Error::Unauthorized(_) => Failure::Forbidden(format!("{text}; check the connection string")),
        Error::NotFound(_) => Failure::NotFound(format!("{text}; `vorrang queue list` shows what there is")),
        _ if text.contains("received from its subscriptions") => Failure::Refused(format!(
            "{text}; name one as TOPIC/Subscriptions/NAME, `vorrang subscription list TOPIC` shows them"
        )),
        Error::Ambiguous => Failure::Unreachable(text),
        _ => Failure::Refused(text),
    }
}

fn progress(bytes: Option<u64>) -> ProgressBar {
    let (bar, template) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), "{wide_bar} {percent} %  {msg}  {eta} left"),
        None => (ProgressBar::new_spinner(), "{spinner} {pos} messages  {per_sec}"),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// A time to wait, of the command line.
pub(crate) fn wait(text: &str) -> Result<Duration, String> {
    let span = duration::parse(text).map_err(|error| error.to_string())?;
    if span.0 <= 86_400_000 {
        Ok(Duration::from_millis(span.0))
    } else {
        Err("allowed is at most 1d".to_owned())
    }
}
