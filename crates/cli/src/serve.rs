//! `vorrang serve`: run the broker until it is told to stop.

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};
use vorrang_server::stop::{Stop, StopSwitch};
use vorrang_server::{Ready, root_key};

use crate::failure::Outcome;
use crate::logging;
use crate::settings::Given;

/// Starts, prints the connection string and the ready line, and serves until a signal comes.
pub(crate) fn run(given: &Given) -> Outcome {
    let config = given.load()?;
    logging::start(&config.log)?;
    vorrang_memory::keep_little();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("vorrang-net")
        .build()
        .context("cannot start the network threads")?;
    let served: Result<()> = runtime.block_on(async {
        let stop = stop_on_signals()?;
        vorrang_server::serve(config.settings, stop, |ready, _| announce(ready)).await?;
        Ok(())
    });
    Ok(served?)
}

/// Says where the broker is and how to reach it; the last line means ready.
fn announce(ready: &Ready) {
    println!("amqp    {}", ready.amqp);
    println!("amqps   {}", ready.amqps);
    println!("http    {}", ready.http);
    println!("https   {} (and AMQP over WebSocket)", ready.https);
    println!(
        "connect with  Endpoint=sb://{};SharedAccessKeyName={};SharedAccessKey={};UseDevelopmentEmulator=true;",
        ready.amqp,
        root_key::NAME,
        ready.root_key,
    );
    if ready.emulator {
        println!("Emulator Service is Successfully Up!");
    }
    println!("vorrang is ready");
}

/// The wish to stop: SIGTERM or Ctrl-C.
fn stop_on_signals() -> Result<Stop> {
    let (switch, stop) = StopSwitch::new();
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: finishing commits and closing connections");
        switch.stop();
    });
    Ok(stop)
}
