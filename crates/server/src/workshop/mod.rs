//! What a broker in development mode has beside the others: namespaces kept by name, and the configuration to
//! begin anew with.

pub mod images;

use std::path::{Path, PathBuf};

use self::images::Images;
use crate::caller::Caller;
use crate::definitions::{Definitions, apply, emulator};

/// A developer's tools.
#[derive(Debug)]
pub struct Workshop {
    /// Namespaces kept by name.
    pub images: Images,
    definitions: Definitions,
    emulator_config: Option<PathBuf>,
}

/// Why the configuration's entities could not be made anew.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A definition was refused.
    #[error(transparent)]
    Apply(#[from] apply::Error),
    /// The emulator's file cannot be used any more.
    #[error(transparent)]
    File(#[from] emulator::FileError),
}

impl Workshop {
    /// Tools for the data in this folder and the configuration the broker was started with.
    #[must_use]
    pub fn new(data_dir: &Path, definitions: Definitions, emulator_config: Option<PathBuf>) -> Workshop {
        Workshop { images: Images::new(data_dir), definitions, emulator_config }
    }

    /// Makes the entities of the configuration, as at the start.
    pub async fn apply_definitions(&self, operator: &Caller) -> Result<(), Error> {
        apply::apply(&self.definitions, operator).await?;
        if let Some(path) = &self.emulator_config {
            apply::apply(&emulator::read(path)?, operator).await?;
        }
        Ok(())
    }
}
