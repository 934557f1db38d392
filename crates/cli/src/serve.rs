//! `vorrang serve`: run the broker until it is told to stop.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use vorrang_server::settings::{Bounds, Ports, Settings};
use vorrang_server::stop::{Stop, StopSwitch};
use vorrang_server::tls::CertificateFiles;
use vorrang_server::{Ready, root_key};

use crate::logging::{self, LogFormat};

/// What `serve` can be told; every flag is also a variable.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Where the data lives; made on first start
    #[arg(long, value_name = "FOLDER", default_value = "./vorrang-data", env = "VORRANG_DATA_DIR")]
    data_dir: PathBuf,
    /// The address to listen on; the plain ports stay on loopback unless told otherwise
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", env = "VORRANG_HOST")]
    host: IpAddr,
    /// Port for AMQP; 0 picks a free one and prints it
    #[arg(long, value_name = "PORT", default_value_t = Ports::default().amqp, env = "VORRANG_AMQP_PORT")]
    amqp_port: u16,
    /// Port for AMQP over TLS
    #[arg(long, value_name = "PORT", default_value_t = Ports::default().amqps, env = "VORRANG_AMQPS_PORT")]
    amqps_port: u16,
    /// Port for HTTP
    #[arg(long, value_name = "PORT", default_value_t = Ports::default().http, env = "VORRANG_HTTP_PORT")]
    http_port: u16,
    /// Port for HTTPS and for AMQP over WebSocket
    #[arg(long, value_name = "PORT", default_value_t = Ports::default().https, env = "VORRANG_HTTPS_PORT")]
    https_port: u16,
    /// Accept the emulator's well-known key; for development, on loopback only
    #[arg(long, env = "VORRANG_DEV")]
    dev: bool,
    /// Certificate chain for the TLS ports (PEM); without it a development certificate is made
    #[arg(long, value_name = "FILE", requires = "tls_key", env = "VORRANG_TLS_CERTIFICATE")]
    tls_certificate: Option<PathBuf>,
    /// Private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate", env = "VORRANG_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Serve the plain ports beyond loopback, though keys then cross the network unencrypted
    #[arg(long, env = "VORRANG_DANGER_PLAIN_REMOTE")]
    danger_plain_remote: bool,
    /// An emulator Config.json whose entities are created at start
    #[arg(long, value_name = "FILE", env = "VORRANG_EMULATOR_CONFIG")]
    emulator_config: Option<PathBuf>,
    /// Most AMQP connections at a time
    #[arg(long, value_name = "COUNT", default_value_t = Bounds::default().connections_max, env = "VORRANG_MAX_CONNECTIONS")]
    max_connections: usize,
    /// How log lines are written
    #[arg(long, value_enum, default_value_t = LogFormat::Text, env = "VORRANG_LOG_FORMAT")]
    log_format: LogFormat,
    /// What is logged: a level such as info, or a list of target=level
    #[arg(long, value_name = "FILTER", default_value = "info", env = "VORRANG_LOG")]
    log: String,
}

/// Starts, prints the connection string and the ready line, and serves until a signal comes.
pub(crate) fn run(options: &Options) -> Result<()> {
    let settings = settings(options);
    let problems = settings.problems();
    if !problems.is_empty() {
        bail!("cannot start:\n  {}", problems.join("\n  "));
    }
    logging::start(options.log_format, &options.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("vorrang-net")
        .build()
        .context("cannot start the network threads")?;
    runtime.block_on(async {
        let stop = stop_on_signals()?;
        vorrang_server::serve(settings, stop, announce).await?;
        Ok(())
    })
}

fn settings(options: &Options) -> Settings {
    let certificate = options.tls_certificate.clone().zip(options.tls_key.clone());
    Settings {
        data_dir: options.data_dir.clone(),
        host: options.host,
        ports: Ports {
            amqp: options.amqp_port,
            amqps: options.amqps_port,
            http: options.http_port,
            https: options.https_port,
        },
        dev: options.dev,
        certificate: certificate.map(|(certificate, key)| CertificateFiles { certificate, key }),
        danger_plain_remote: options.danger_plain_remote,
        emulator_config: options.emulator_config.clone(),
        bounds: Bounds { connections_max: options.max_connections, ..Bounds::default() },
    }
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
