//! `vorrang demo`: a broker, two tenants, four classes and too much work, for a quarter of a minute.
//!
//! Everything is real and lives in a temporary folder: a durable broker on a free port, a queue in strict order with a
//! rescue after two seconds and a target for each class, two pools with preemption. First slow low work fills every slot
//! and an urgent message takes one; then both tenants send a fifth more than the pools can do, and the waits per class
//! show who is served; one message can never be handled and ends in the dead-letter queue.

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
use vorrang_worker::figures::Snapshot;
use vorrang_worker::plan::size::Size;
use vorrang_worker::pool::{Options as PoolOptions, Pool, Preemption};
use vorrang_worker::{Context, Outcome as Handled};

use crate::failure::{Failure, Outcome};
use waits::{CLASSES, Class, Waits};

const QUEUE: &str = "[[queue]]\nname = \"orders\"\nrescue = { after = \"2s\", share = 0.1 }\n";
/// The pools and their slots.
const POOLS: [(&str, u32); 2] = [("front", 6), ("back", 2)];
const SLOTS: u32 = 8;
const SERVICE: Duration = Duration::from_millis(20);
/// Messages per class in each tenth of a second; together a fifth more than the slots can do.
const ARRIVALS: [usize; 4] = [22, 16, 8, 2];
const TENANTS: [&str; 2] = ["acme", "globex"];
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
    std::fs::write(&file, config())?;
    let config = Config::load(Some(&file), &[])?;
    let ports = Ports { amqp: 0, amqps: 0, http: 0, https: 0 };
    Ok(Settings { data_dir: folder.join("data"), ports, dev: true, ..config.settings })
}

/// The queue, with what is promised to each class.
fn config() -> String {
    let class = |class: &Class| {
        let target = class.target.map(|target| format!("target_wait = \"{}ms\"\n", target.as_millis()));
        let Class { name, level, .. } = class;
        format!("[[queue.class]]\nname = \"{name}\"\nlevel = {level}\n{}", target.unwrap_or_default())
    };
    let classes: Vec<String> = CLASSES.iter().map(class).collect();
    format!("{QUEUE}{}", classes.concat())
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
    let mut pools = Vec::new();
    for (name, slots) in POOLS {
        let mut options = PoolOptions::new(Size::Fixed(slots), ["orders"]);
        name.clone_into(&mut options.name);
        options.preemption = Some(Preemption { levels: vec![9], ..Preemption::default() });
        options.retries.attempts_max = 3;
        options.retries.backoff.first = Duration::from_millis(200);
        pools.push(Pool::start(&client, options, handler(Arc::clone(&waits))).await?);
    }

    println!("1. slow low work fills all {SLOTS} slots; an urgent message arrives");
    preempt(&client, &pools).await?;
    println!(
        "2. two tenants send a fifth more than both pools can do, for {seconds} s; one message is poison"
    );
    overload(&client, &waits, seconds).await?;
    println!("3. what came of it");
    summary(&client, &pools, &waits).await?;
    for pool in &pools {
        pool.begin_stop(Duration::from_secs(2)).await;
    }
    for pool in &pools {
        pool.stopped().await;
    }
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
                    let tenant = message.property("Tenant");
                    let tenant = tenant.as_ref().and_then(|tenant| tenant.as_str()).unwrap_or_default();
                    waits.add(context.level(), tenant, waited, waited >= RESCUE);
                    tokio::time::sleep(SERVICE).await;
                }
            }
            Handled::Complete
        })
    }
}

/// A figure of all pools together.
fn sum(pools: &[Pool], figure: impl Fn(&Snapshot) -> u64) -> u64 {
    pools.iter().map(|pool| figure(&pool.figures().snapshot())).sum()
}

async fn preempt(client: &Client, pools: &[Pool]) -> Result<(), Error> {
    let sender = client.sender("orders").await?;
    sender.send_all((0..SLOTS).map(|_| Message::text("slow").with_class("low"))).await?;
    while sum(pools, |figures| figures.running) < u64::from(SLOTS) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let begin = Instant::now();
    sender.send(Message::text("urgent").with_class("urgent")).await?;
    while sum(pools, |figures| figures.preempted) == 0 && begin.elapsed() < Duration::from_secs(5) {
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
        for (class, count) in CLASSES.iter().zip(ARRIVALS) {
            for tenant in TENANTS.iter().cycle().take(count) {
                batch.push(Message::text("order").with_class(class.name).with_property("Tenant", *tenant));
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
    let live = std::io::stdout().is_terminal();
    // A closed output is no reason to stop.
    if drawn > 0 && live {
        let _ = write!(out, "\x1b[{drawn}A");
    }
    for line in &lines {
        let _ = writeln!(out, "{}   {line}", if live { "\x1b[2K" } else { "" });
    }
    let _ = out.flush();
    lines.len()
}

async fn summary(client: &Client, pools: &[Pool], waits: &Waits) -> Result<(), Error> {
    let dead = Source::from("orders").sub_queue(SubQueue::DeadLetter);
    let mut letters = client.receiver(dead).await?;
    let letter = letters.recv_timeout(Duration::from_secs(5)).await?;
    for line in waits.lines() {
        println!("   {line}");
    }
    for (tenant, served) in waits.tenants() {
        println!("   {tenant}: {served} messages served");
    }
    for figures in pools.iter().map(|pool| pool.figures().snapshot()) {
        let completed: u64 = figures.entities.iter().map(|entity| entity.completed).sum();
        println!("   pool {} with {} slots: {completed} completed", figures.pool, figures.slots);
    }
    println!("   {} low messages were rescued after {} s of waiting", waits.rescued(), RESCUE.as_secs());
    println!(
        "   {} tasks were set aside for urgent ones and went on",
        sum(pools, |figures| figures.preempted)
    );
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
