//! A real broker in this process, on free ports, with its data in a temporary folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use vorrang_client::{Client, ClientBuilder, RetryPolicy, TlsOptions, TransportKind};
use vorrang_server::Ready;
use vorrang_server::settings::{Ports, Settings};
use vorrang_server::stop::StopSwitch;

/// The entities the tests use, one queue per story.
const ENTITIES: &str = r#"{ "UserConfig": { "Namespaces": [ { "Name": "sbemulatorns",
  "Queues": [
    { "Name": "orders" }, { "Name": "results" }, { "Name": "high" }, { "Name": "low" },
    { "Name": "short-lock", "Properties": { "LockDuration": "PT5S", "MaxDeliveryCount": 100 } },
    { "Name": "poison", "Properties": { "MaxDeliveryCount": 2 } },
    { "Name": "once", "Properties": { "RequiresDuplicateDetection": true } },
    { "Name": "replies", "Properties": { "RequiresSession": true } },
    { "Name": "sessions", "Properties": { "RequiresSession": true } } ],
  "Topics": [ { "Name": "topic", "Subscriptions": [ { "Name": "sub" } ] } ]
} ] } }"#;

/// A broker. Dropping it stops it without waiting.
pub(crate) struct Broker {
    folder: TempDir,
    running: Option<Running>,
    pub(crate) ready: Ready,
}

struct Running {
    switch: StopSwitch,
    task: JoinHandle<()>,
}

impl Broker {
    pub(crate) async fn start() -> Broker {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("entities.json"), ENTITIES).unwrap();
        let ports = Ports { amqp: 0, amqps: 0, http: 0, https: 0 };
        let (running, ready) = run(folder.path(), ports).await;
        Broker { folder, running: Some(running), ready }
    }

    /// Stops gracefully.
    pub(crate) async fn stop(&mut self) {
        if let Some(Running { switch, task }) = self.running.take() {
            switch.stop();
            task.await.unwrap();
        }
    }

    /// Starts again with the same data on the same ports.
    pub(crate) async fn start_again(&mut self) {
        let ports = Ports {
            amqp: self.ready.amqp.port(),
            amqps: self.ready.amqps.port(),
            http: self.ready.http.port(),
            https: self.ready.https.port(),
        };
        let (running, ready) = run(self.folder.path(), ports).await;
        self.running = Some(running);
        self.ready = ready;
    }

    pub(crate) fn connection_string(&self) -> String {
        format!(
            "Endpoint=sb://localhost:{};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;\
             UseDevelopmentEmulator=true",
            self.ready.amqp.port()
        )
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        let retry = RetryPolicy {
            pause_min: Duration::from_millis(10),
            pause_max: Duration::from_millis(200),
            give_up_after: Duration::from_secs(20),
        };
        Client::builder(&self.connection_string()).unwrap().retry(retry)
    }

    /// A builder for one of the transports, trusting the broker's own development certificate.
    pub(crate) fn builder_over(&self, kind: TransportKind) -> ClientBuilder {
        let port = match kind {
            TransportKind::Tcp => self.ready.amqp.port(),
            TransportKind::Tls => self.ready.amqps.port(),
            TransportKind::WebSocket => self.ready.https.port(),
            TransportKind::PlainWebSocket => self.ready.http.port(),
        };
        let pem = std::fs::read(self.certificate()).unwrap();
        self.builder().transport(kind).port(port).tls(TlsOptions::roots_from_pem(&pem).unwrap())
    }

    pub(crate) async fn client(&self) -> Client {
        self.builder().connect().await.unwrap()
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("development-certificate.pem")
    }
}

async fn run(folder: &Path, ports: Ports) -> (Running, Ready) {
    let settings = Settings {
        ports,
        dev: true,
        emulator_config: Some(folder.join("entities.json")),
        ..Settings::new(folder.to_path_buf())
    };
    let (switch, stop) = StopSwitch::new();
    let (told, ready) = oneshot::channel();
    let task = tokio::spawn(async move {
        let serving = vorrang_server::serve(settings, stop, |ready, _| {
            told.send(ready.clone()).unwrap();
        });
        serving.await.unwrap();
    });
    (Running { switch, task }, ready.await.unwrap())
}
