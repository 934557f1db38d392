//! Debian's packages, for what the tests need and a machine may not have.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::chore;

/// Installs a package; `what` is what it is there for.
pub(crate) fn install(what: &str, package: &str) -> Result<()> {
    refresh()?;
    let words = ["install", "--yes", "--quiet", "--no-install-recommends", package];
    chore::run(&format!("install {what}"), &mut privileged("apt-get", &words))
}

/// Fetches a package and unpacks it into `folder`, without installing it.
pub(crate) fn unpack(what: &str, package: &str, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    refresh()?;
    let mut fetch = Command::new("apt-get");
    chore::run(&format!("fetch {what}"), fetch.args(["download", "--quiet", package]).current_dir(folder))?;
    for file in std::fs::read_dir(folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            let mut unpack = Command::new("dpkg-deb");
            chore::run(&format!("unpack {what}"), unpack.arg("--extract").arg(&path).arg(folder))?;
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn refresh() -> Result<()> {
    chore::run("look for new packages", &mut privileged("apt-get", &["update", "--quiet"]))
}

/// As root directly, else by `sudo` without asking for a password.
fn privileged(program: &str, arguments: &[&str]) -> Command {
    let by_sudo = Path::new("/usr/bin/sudo").exists();
    let mut command = Command::new(if by_sudo { "sudo" } else { program });
    if by_sudo {
        command.args(["--non-interactive", program]);
    }
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command
}
