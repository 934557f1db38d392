//! The settings of `serve` on the command line, made from the one table of keys.
//!
//! Flags and variables are taken as text and read together with the file, so that all mistakes are told
//! at once, wherever they were made.

use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use vorrang_server::config::{self, Config, KEYS, Mistake, Override, Problem, Problems, Shape, Source};

use crate::logging;

/// What the command line and the environment say.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    /// The file that was named.
    file: Option<PathBuf>,
    overrides: Vec<Override>,
}

impl Given {
    /// Reads everything, or tells everything that is wrong.
    pub(crate) fn load(&self) -> Result<Config, Problems> {
        let variable = |name: &str| std::env::var(name).ok();
        let mut overrides = config::from_environment(variable, Path::new(config::MOUNT_PATH));
        overrides.extend(self.overrides.iter().cloned());
        let found = Path::new(config::FILE_NAME);
        let file = self.file.as_deref().or_else(|| found.is_file().then_some(found));
        let config = Config::load(file, &overrides)?;
        match logging::check(&config.log.filter) {
            Ok(()) => Ok(config),
            Err(error) => {
                let mistake = Mistake::Other(error.to_string());
                let source = config.source("log");
                Err(Problems(vec![Problem { source, key: "log".to_owned(), mistake }]))
            }
        }
    }
}

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .env("VORRANG_CONFIG")
            .hide_env_values(true)
            .help(
                "The configuration file; without this, vorrang.toml in the working directory if it is there",
            );
        command.arg(file).args(KEYS.iter().map(|key| {
            let argument = Arg::new(key.name)
                .long(key.flag())
                .env(key.variable())
                // A value from the environment has no place in a help text.
                .hide_env_values(true)
                .help(key.help);
            match key.shape {
                Shape::Switch => argument
                    .value_name("BOOL")
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true"),
                _ => argument.value_name(key.placeholder),
            }
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Given::augment_args(command)
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut overrides = Vec::new();
        for key in KEYS {
            let Some(text) = matches.get_one::<String>(key.name) else { continue };
            let source = match matches.value_source(key.name) {
                Some(ValueSource::EnvVariable) => Source::Variable(key.variable()),
                _ => Source::Flag(key.flag()),
            };
            // An empty variable is how compose files and shells say "not set".
            if !(text.is_empty() && matches!(source, Source::Variable(_))) {
                overrides.push(Override { key, source, text: text.clone() });
            }
        }
        let file = matches.get_one::<String>("config").filter(|text| !text.is_empty()).map(PathBuf::from);
        Ok(Given { file, overrides })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Given::from_arg_matches(matches)?;
        Ok(())
    }
}
