//! Getting the peers that are Debian packages, without leaving them running as services.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::peer::Peer;

/// Debian asks this program whether a package may start its service.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Installs what is missing and can be had. What cannot is no error: it will be reported as missing, with its own reason.
pub(crate) fn missing(peers: &[Box<dyn Peer>]) {
    let mut wanted: Vec<&str> =
        peers.iter().filter(|peer| peer.wants_package()).filter_map(|peer| peer.package()).collect();
    wanted.dedup();
    packages(&wanted);
}

/// Installs packages by name, as far as they can be had, and says which cannot.
pub(crate) fn packages(wanted: &[&str]) {
    if wanted.is_empty() {
        return;
    }
    println!("installing {}", wanted.join(", "));
    if let Err(reason) = without_services(|| apt(wanted)) {
        println!("  not all of it: {reason:#}");
    }
}

fn apt(packages: &[&str]) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!(
            "only root can install packages: apt-get install --no-install-recommends {}",
            packages.join(" ")
        );
    }
    run(Command::new("apt-get").arg("update"))?;
    // One after another, so that one that is not to be had does not keep out the others.
    for package in packages {
        let mut command = Command::new("apt-get");
        command
            .args(["install", "-y", "--no-install-recommends", package])
            .env("DEBIAN_FRONTEND", "noninteractive");
        if let Err(reason) = run(&mut command) {
            println!("  {package}: {reason:#}");
        }
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    let status =
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().context("there is no apt-get here")?;
    if !status.success() {
        bail!("{command:?} failed ({status})");
    }
    Ok(())
}

/// Does something while Debian starts no services; a policy that is already there stays as it is.
fn without_services(what: impl FnOnce() -> Result<()>) -> Result<()> {
    let policy = Path::new(POLICY);
    if policy.exists() || !rustix::process::geteuid().is_root() {
        return what();
    }
    fs::write(policy, "#!/bin/sh\nexit 101\n")?;
    fs::set_permissions(policy, fs::Permissions::from_mode(0o755))?;
    let outcome = what();
    fs::remove_file(policy)?;
    outcome
}
