//! `vorrang config`: look at the configuration without starting anything.

use clap::Subcommand;
use serde_json::{Map, Value, json};
use vorrang_server::config::{self, KEYS, show};

use crate::failure::{Failure, Outcome};
use crate::output::Format;
use crate::settings::Given;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Report every mistake in the file, the environment and the flags at once
    Check(Given),
    /// Print the configuration in force and where each value comes from; keys are masked
    Show(Given),
    /// Print the JSON Schema of vorrang.toml, for editors
    Schema,
}

/// What the file would say, in JSON.
fn typed(toml: &str) -> Result<Value, Failure> {
    Ok(toml::from_str(toml).map_err(anyhow::Error::from)?)
}

/// Runs one of them.
pub(crate) fn run(command: &Command, format: Format) -> Outcome {
    match command {
        Command::Check(given) => {
            given.load()?;
            println!("the configuration is sound");
        }
        Command::Show(given) => {
            let config = given.load()?;
            match format {
                Format::Table => print!("{}", show::config(&config)),
                Format::Json => {
                    let mut settings = Map::new();
                    for key in KEYS {
                        let source = config.source(key.name).to_string();
                        let value =
                            key.shown(&config).map(|value| typed(&format!("value = {value}"))).transpose()?;
                        let value = value.and_then(|table| table.get("value").cloned());
                        settings.insert(key.name.to_owned(), json!({ "value": value, "source": source }));
                    }
                    let definitions = typed(&show::definitions(&config.settings.definitions))?;
                    let names = config.settings.keys.iter().map(|rule| Value::from(&*rule.key_name));
                    crate::output::json(&json!({
                        "settings": settings,
                        "keys": names.collect::<Value>(),
                        "definitions": definitions,
                    }))?;
                }
            }
        }
        Command::Schema => crate::output::json(&config::schema())?,
    }
    Ok(())
}
