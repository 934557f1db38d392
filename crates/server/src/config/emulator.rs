//! What others' variables say: those of the official emulator's container, so that ours can stand in its place,
//! and those of OpenTelemetry, which every program of a deployment is given.
//!
//! The emulator's variables for the database and the licence mean nothing here and are passed over.

use std::path::Path;

use super::key::Key;
use super::{Override, Source};

/// Where the emulator's container expects its configuration.
pub const MOUNT_PATH: &str = "/ServiceBus_Emulator/ConfigFiles/Config.json";

/// The emulator's name for the HTTP port.
const HTTP_PORT: &str = "EMULATOR_HTTP_PORT";
/// OpenTelemetry's names for the collector, the authorities it is believed by, and what it wants to be told.
const COLLECTOR: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const COLLECTOR_CERTIFICATE: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";
const COLLECTOR_HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// What the environment says in others' words. Our own variables beat these.
#[must_use]
pub fn from_environment(variable: impl Fn(&str) -> Option<String>, mount: &Path) -> Vec<Override> {
    let mut found = Vec::new();
    let names = [
        (HTTP_PORT, "http_port"),
        (COLLECTOR, "otlp_endpoint"),
        (COLLECTOR_CERTIFICATE, "otlp_ca_file"),
        (COLLECTOR_HEADERS, "otlp_headers"),
    ];
    for (name, key) in names {
        let given = variable(name).filter(|text| !text.is_empty());
        if let (Some(text), Some(key)) = (given, Key::find(key)) {
            found.push(Override { key, source: Source::Variable(name.to_owned()), text });
        }
    }
    if let (true, Some(key)) = (mount.is_file(), Key::find("emulator_config")) {
        found.push(Override { key, source: Source::EmulatorMount, text: mount.display().to_string() });
    }
    found
}
