//! `libaio.so.1`, which the journal wants for its asynchronous writes.
//!
//! Artemis recommends it; without the library `artemis create` chooses plain writes, and a message costs several times
//! the CPU. Debian has it in a package. From Debian 13 on the library has another name there, because on some machines
//! its times became longer; on those with 64 bits it is the same, and a link gives it the name that Artemis asks for.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use tempfile::TempDir;

/// A package that brings it in every release; the library's own has another name since Debian 13.
pub(super) const PACKAGE: &str = "libaio-dev";

/// As Artemis asks for it.
const WANTED: &str = "libaio.so.1";
/// As Debian calls it from version 13 on.
const RENAMED: &str = "libaio.so.1t64";

/// The library on this machine.
#[derive(Debug)]
pub(super) enum Libaio {
    /// It is found by its name, or not at all.
    AsItIs,
    /// It is found by its name in a folder of ours.
    Linked(TempDir),
}

impl Libaio {
    pub(super) fn find() -> Result<Libaio> {
        Libaio::within(&folder())
    }

    fn within(folder: &Path) -> Result<Libaio> {
        let renamed = folder.join(RENAMED);
        if folder.join(WANTED).exists() || !renamed.exists() {
            return Ok(Libaio::AsItIs);
        }
        let link = TempDir::new()?;
        symlink(renamed, link.path().join(WANTED))?;
        Ok(Libaio::Linked(link))
    }

    /// Lets a program find it.
    pub(super) fn show(&self, command: &mut Command) {
        if let Libaio::Linked(folder) = self {
            command.env("LD_LIBRARY_PATH", folder.path());
        }
    }
}

/// Whether it is there under one of its names.
pub(super) fn is_present() -> bool {
    [WANTED, RENAMED].iter().any(|name| folder().join(name).exists())
}

/// Where Debian has its libraries.
fn folder() -> PathBuf {
    Path::new("/usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_library_of_another_name_is_linked_and_one_that_is_right_or_missing_is_not() {
        for (case, present, linked) in [
            ("missing", &[][..], false),
            ("as it is wanted", &[WANTED][..], false),
            ("renamed", &[RENAMED][..], true),
            ("both", &[WANTED, RENAMED][..], false),
        ] {
            let folder = TempDir::new().unwrap();
            for name in present {
                fs::write(folder.path().join(name), name).unwrap();
            }
            let mut command = Command::new("java");
            match Libaio::within(folder.path()).unwrap() {
                Libaio::AsItIs => assert!(!linked, "{case}"),
                Libaio::Linked(link) => {
                    assert!(linked, "{case}");
                    assert_eq!(fs::read_to_string(link.path().join(WANTED)).unwrap(), RENAMED);
                    Libaio::Linked(link).show(&mut command);
                }
            }
            assert_eq!(command.get_envs().count(), usize::from(linked), "{case}");
        }
    }
}
