//! `vorrang doctor`: verify a data directory that no broker is using.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use vorrang_log::Options as LogOptions;

/// What `doctor` can be told.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The data directory to verify; nothing in it is changed
    #[arg(long, value_name = "FOLDER", default_value = "./vorrang-data", env = "VORRANG_DATA_DIR")]
    data_dir: PathBuf,
}

/// Reads every byte that has a checksum and says what is wrong, by file and offset.
pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = &options.data_dir;
    if !folder.is_dir() {
        bail!("there is no data directory at {}; name one with --data-dir", folder.display());
    }
    let report = vorrang_log::verify(folder, &LogOptions::default())?;
    print!("{report}");
    if !report.is_sound() {
        bail!(
            "{} is damaged; keep a copy of it before anything else, then restore a backup",
            folder.display()
        );
    }
    println!("{} is sound", folder.display());
    Ok(())
}
