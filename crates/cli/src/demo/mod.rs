//! `vorrang demo`: a broker, two tenants, four classes and too much work, for a quarter of a minute.
//!
//! Everything is real and lives in a temporary folder: a durable broker on a free port, a queue in strict order with a
//! rescue after two seconds, a pool with preemption. First slow low work fills every slot and an urgent message takes
//! one; then both tenants send a fifth more than the pool can do, and the waits per class show who is served; one
//! message can never be handled and ends in the dead-letter queue.

mod waits;

use std::future::Future;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use tokio::sync::oneshot;
use vorrang_client::{Client, Message, Received, Source, SubQueue};
use vorrang_server::config::Config;
use vorrang_server::settings::{Ports, Settings};
use vorrang_server::stop::StopSwitch;
use vorrang_worker::plan::size::Size;
use vorrang_worker::pool::{Options as PoolOptions, Pool, Preemption};
use vorrang_worker::{Context, Outcome as Handled};

use crate::failure::{Failure, Outcome};
use waits::{CLASSES, Waits};

const CONFIG: &str = "[[queue]]\nname = \"orders\"\nrescue = { after = \"2s\", share = 0.1 }\n";
const SLOTS: u32 = 8;
const SERVICE: Duration = Duration::from_millis(20);
/// Messages per class in each tenth of a second; together a fifth more than the slots can do.
const ARRIVALS: [u32; 4] = [22, 16, 8, 2];
/// How long the queue's rescue waits, for telling who was rescued.
const RESCUE: Duration = Duration::from_secs(2);

/// See priorities at work: a broker, two tenants, four classes and an overload, for a quarter of a minute
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How many seconds the overload lasts
    #[arg(long, default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
}

/// Runs the demonstration and ends by itself.
pub(crate) fn run(options: &Options) -> Outcome {
    let folder = tempfile::tempdir()?;
    let settings = settings(folder.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(with_broker(settings, |port| show(port, options.seconds)))
}

fn settings(folder: &Path) -> Result<Settings, Failure> {
    let file = folder.join("vorrang.toml");
    std::fs::write(&file, CONFIG)?;
    let config = Config::load(Some(&file), &[])?;
    let ports = Ports { amqp: 0, amqps: 0, http: 0, https: 0 };
    Ok(Settings { data_dir: folder.join("data"), ports, dev: true, ..config.settings })
}

async fn with_broker<Show: Future<Output = Result<(), Error>>>(
    settings: Settings,
    show: impl FnOnce(u16) -> Show,
) -> Outcome {
    let (switch, stop) = StopSwitch::new();
    let (told, ready) = oneshot::channel();
    let broker = tokio::spawn(async move {
        // Nobody waits for the port any more if the demonstration was cut short.
        let announce = |ready: &vorrang_server::Ready, _: &_| {
            let _ = told.send(ready.amqp.port());
        };
        vorrang_server::serve(settings, stop, announce).await
    });
    let shown = match ready.await {
        Ok(port) => show(port).await.map_err(Failure::Other),
        Err(_) => Ok(()),
    };
    switch.stop();
    let served = broker.await.map_err(|error| Failure::Other(error.into()))?;
    served.map_err(|error| Failure::Other(error.into()))?;
    shown
}

type Error = anyhow::Error;
/// The future of a handler that is a closure.
type Handling = Pin<Box<dyn Future<Output = Handled> + Send>>;

async fn show(port: u16, seconds: u64) -> Result<(), Error> {
    let text = format!(
        "Endpoint=sb://localhost:{port};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;\
         UseDevelopmentEmulator=true"
    );
    let client = Client::connect(&text).await?;
    let waits = Arc::new(Waits::default());
    let mut options = PoolOptions::new(Size::Fixed(SLOTS), ["orders"]);
    options.preemption = Some(Preemption { levels: vec![9], ..Preemption::default() });
    options.retries.attempts_max = 3;
    options.retries.backoff.first = Duration::from_millis(200);
    let pool = Pool::start(&client, options, handler(Arc::clone(&waits))).await?;

    println!("1. slow low work fills all {SLOTS} slots; an urgent message arrives");
    preempt(&client, &pool).await?;
    println!("2. two tenants send a fifth more than the pool can do, for {seconds} s; one message is poison");
    overload(&client, &waits, seconds).await?;
    println!("3. what came of it");
    summary(&client, &pool, &waits).await?;
    pool.stop(Duration::from_secs(2)).await;
    client.close().await?;
    Ok(())
}

fn handler(waits: Arc<Waits>) -> impl Fn(Context, Received) -> Handling + Send + Sync + 'static {
    move |context, message| {
        let waits = Arc::clone(&waits);
        Box::pin(async move {
            let enqueued = message.enqueued_time().unwrap_or(SystemTime::now());
            let waited = SystemTime::now().duration_since(enqueued).unwrap_or_default();
            match message.text() {
                Some("slow") => tokio::time::sleep(Duration::from_secs(1)).await,
                Some("poison") => return Handled::Failed("this order cannot be read".to_owned()),
                _ => {
                    waits.add(context.level(), waited, waited >= RESCUE);
                    tokio::time::sleep(SERVICE).await;
                }
            }
            Handled::Complete
        })
    }
}

async fn preempt(client: &Client, pool: &Pool) -> Result<(), Error> {
    let sender = client.sender("orders").await?;
    sender.send_all((0..SLOTS).map(|_| Message::text("slow").with_class("low"))).await?;
    while pool.figures().snapshot().running < u64::from(SLOTS) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let begin = Instant::now();
    sender.send(Message::text("urgent").with_class("urgent")).await?;
    while pool.figures().snapshot().preempted == 0 && begin.elapsed() < Duration::from_secs(5) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = begin.elapsed().as_millis();
    println!("   one low task was set aside and the urgent one ran, {took} ms after it was sent");
    Ok(())
}

async fn overload(client: &Client, waits: &Waits, seconds: u64) -> Result<(), Error> {
    let sender = client.sender("orders").await?;
    sender.send(Message::text("poison").with_class("high")).await?;
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    let mut drawn = 0;
    for tick in 0..seconds.saturating_mul(10) {
        ticks.tick().await;
        let mut batch = Vec::new();
        for ((class, _), count) in CLASSES.iter().zip(ARRIVALS) {
            for number in 0..count {
                let tenant = if number % 2 == 0 { "acme" } else { "globex" };
                batch.push(Message::text("order").with_class(*class).with_property("Tenant", tenant));
            }
        }
        sender.send_all(batch).await?;
        if tick % 5 == 4 {
            drawn = draw(waits, drawn);
        }
    }
    Ok(())
}

/// Draws the waits, over those of the last time on a terminal.
fn draw(waits: &Waits, drawn: usize) -> usize {
    let mut out = std::io::stdout().lock();
    let lines = waits.lines();
    if drawn > 0 && std::io::stdout().is_terminal() {
        // A closed output is no reason to stop.
        let _ = write!(out, "\x1b[{drawn}A");
    }
    for line in &lines {
        let _ = writeln!(out, "\x1b[2K   {line}");
    }
    let _ = out.flush();
    lines.len()
}

async fn summary(client: &Client, pool: &Pool, waits: &Waits) -> Result<(), Error> {
    let dead = Source::from("orders").sub_queue(SubQueue::DeadLetter);
    let mut letters = client.receiver(dead).await?;
    let letter = letters.recv_timeout(Duration::from_secs(5)).await?;
    for line in waits.lines() {
        println!("   {line}");
    }
    println!("   {} low messages were rescued after {} s of waiting", waits.rescued(), RESCUE.as_secs());
    println!("   {} tasks were set aside for urgent ones and went on", pool.figures().snapshot().preempted);
    match letter {
        Some(letter) => println!(
            "   the poison message is in the dead-letter queue: {} ({})",
            letter.dead_letter_reason().unwrap_or_default(),
            letter.dead_letter_description().unwrap_or_default()
        ),
        None => println!("   the poison message is still being tried"),
    }
    Ok(())
}
