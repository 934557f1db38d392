//! The key that opens the namespace: made on first start, kept beside the data, mode 0600.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The name Service Bus gives the namespace's own key.
pub const NAME: &str = "RootManageSharedAccessKey";

/// The key text everybody knows from the emulator; accepted in development mode only.
pub const EMULATOR_KEY: &str = "SAS_KEY_VALUE";

/// Why the key cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read or written.
    #[error("cannot use the key file {}: {source}", path.display())]
    File {
        /// The key file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is there but holds no key.
    #[error("the key file {} is empty; remove it to have a new key generated", path.display())]
    Empty {
        /// The key file.
        path: PathBuf,
    },
    /// The operating system gave no randomness.
    #[error("no random bytes from the operating system: {0}")]
    Random(getrandom::Error),
}

/// The key text in `folder`, generated if there is none yet.
pub fn load_or_generate(folder: &Path) -> Result<String, Error> {
    let path = folder.join("root-key");
    match fs::read_to_string(&path) {
        Ok(text) if text.trim().is_empty() => Err(Error::Empty { path }),
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = generate()?;
            write_private(&path, &text).map_err(|source| Error::File { path, source })?;
            Ok(text)
        }
        Err(source) => Err(Error::File { path, source }),
    }
}

/// 256 random bits as hexadecimal text: safe in a connection string as it stands.
pub(crate) fn generate() -> Result<String, Error> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(Error::Random)?;
    Ok(bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_is_generated_once_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = load_or_generate(folder.path()).unwrap();
        assert_eq!(first.len(), 64);
        assert_eq!(load_or_generate(folder.path()).unwrap(), first);
        let mode = fs::metadata(folder.path().join("root-key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(load_or_generate(other.path()).unwrap(), first);
    }

    #[test]
    fn an_empty_key_file_is_refused_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("root-key"), "\n").unwrap();
        assert!(load_or_generate(folder.path()).unwrap_err().to_string().contains("is empty"));
    }
}
