//! What the official emulator's container is told from outside, so that ours can stand in its place.
//!
//! Its variables for the database and the licence mean nothing here and are passed over.

use std::path::Path;

use super::key::Key;
use super::{Override, Source};

/// Where the emulator's container expects its configuration.
pub const MOUNT_PATH: &str = "/ServiceBus_Emulator/ConfigFiles/Config.json";

/// The emulator's name for the HTTP port.
const HTTP_PORT: &str = "EMULATOR_HTTP_PORT";

/// What the environment says in the emulator's words. Our own variables beat these.
#[must_use]
pub fn from_environment(variable: impl Fn(&str) -> Option<String>, mount: &Path) -> Vec<Override> {
    let mut found = Vec::new();
    let port = variable(HTTP_PORT).filter(|text| !text.is_empty());
    if let (Some(text), Some(key)) = (port, Key::find("http_port")) {
        found.push(Override { key, source: Source::Variable(HTTP_PORT.to_owned()), text });
    }
    if let (true, Some(key)) = (mount.is_file(), Key::find("emulator_config")) {
        found.push(Override { key, source: Source::EmulatorMount, text: mount.display().to_string() });
    }
    found
}
