//! Peers of another release of Debian than the machine's, in a folder of their own.
//!
//! A stable release keeps the versions it was made with: one that is some years old has a RabbitMQ that nobody would pick
//! today, and a NATS that cannot sync before it answers. `debootstrap` puts another release into a folder, and this program runs
//! itself again with that folder as the root of its file system. From there on everything is as on a machine with that
//! release: packages are installed, servers started and folders made by the same code. What is mounted for it is seen by this
//! program's processes alone and goes with them.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::{env, fs};

use anyhow::{Context, Result, bail};

use super::{install, machine};

/// Set for the run inside, so that it does not go in again.
const INSIDE: &str = "VORRANG_BENCH_INSIDE";

/// Enters the folder `$1` from the working directory `$2`; then come the folders that are to be seen inside where they are outside, a
/// `--`, and the command.
const ENTER: &str = r#"
root=$1 here=$2
shift 2
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do
    mkdir -p "$root$1"
    mount --bind "$1" "$root$1"
    shift
done
shift
exec chroot "$root" env --chdir="$here" "$@"
"#;

/// Where programs are in every Debian; the machine's own search path means nothing inside.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The code name of a release, known to be safe as the name of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release(String);

impl Release {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Release {
    type Err = String;

    fn from_str(text: &str) -> Result<Release, String> {
        let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase());
        is_name
            .then(|| Release(text.to_owned()))
            .ok_or_else(|| "a release is a code name in small letters, such as trixie".to_owned())
    }
}

/// Whether this is the run inside.
pub(crate) fn is_inside() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Makes the folder if it is not there and does what this program was asked for inside. `others` are folders it uses there.
pub(crate) fn run_inside(release: &Release, folder: &Path, others: &[&Path]) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("--debian needs root: it makes a system in {} and changes into it", folder.display());
    }
    let root = system(release, folder)?;
    // Names of hosts and servers are looked up as outside.
    for file in ["/etc/hosts", "/etc/resolv.conf"] {
        if Path::new(file).exists() {
            let place = root.join(file.trim_start_matches('/'));
            fs::copy(file, &place).with_context(|| format!("cannot write {}", place.display()))?;
        }
    }
    let here = env::current_dir()?;
    let program = env::current_exe()?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-euc", ENTER, "sh"]).arg(&root).arg(&here);
    let artemis = env::var_os("ARTEMIS_HOME");
    let others = others.iter().copied().chain(program.parent()).chain(artemis.as_deref().map(Path::new));
    command.args(seen_inside(&here, others)).arg("--").arg(&program);
    command.args(env::args_os().skip(1));
    command
        .env(INSIDE, release.as_str())
        .env(machine::COMMIT, machine::commit().unwrap_or_default())
        .env("PATH", SEARCH_PATH)
        .env_remove("JAVA_HOME")
        .env_remove("TMPDIR");
    Err(command.exec()).context("cannot start unshare, which is in Debian's package util-linux")
}

/// Folders that the run inside needs, each once and none within another.
fn seen_inside<'a>(here: &Path, others: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = vec![here.to_path_buf()];
    folders.extend(others.map(|other| here.join(other)));
    folders.sort();
    // One within another comes right behind it, or behind its like.
    folders.dedup_by(|folder, before| folder.starts_with(before));
    folders
}

/// The root of a system of this release, made now if it was not before.
fn system(release: &Release, folder: &Path) -> Result<PathBuf> {
    let root = folder.join(release.as_str());
    if root.exists() {
        return Ok(root);
    }
    let present = || Command::new("debootstrap").arg("--version").output().is_ok();
    if !present() {
        install::packages(&["debootstrap"]);
    }
    if !present() {
        bail!("debootstrap is not installed: apt-get install debootstrap");
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    println!("making a Debian {} in {}, which takes a minute", release.as_str(), root.display());
    // One that was left unfinished has another name.
    let unfinished = folder.join(format!("{}.unfinished", release.as_str()));
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    let mut command = Command::new("debootstrap");
    let output = command
        .args(["--variant=minbase", release.as_str()])
        .arg(&unfinished)
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        let last = said.lines().last().unwrap_or_default();
        bail!("debootstrap made no {} ({}): {last}", release.as_str(), output.status);
    }
    fs::rename(&unfinished, &root)?;
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_a_word_that_cannot_lead_anywhere_else() {
        assert_eq!("trixie".parse(), Ok(Release("trixie".to_owned())));
        for wrong in ["", "..", "a/b", "Trixie", "--help", "trixie "] {
            assert!(wrong.parse::<Release>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_seen_inside_is_named_once() {
        let seen = |here: &str, others: &[&str]| {
            let folders = seen_inside(here.as_ref(), others.iter().map(Path::new));
            folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(seen("/p", &["/p/target/release", "docs"]), ["/p"]);
        assert_eq!(seen("/p", &["/t", "/t", "/a", "/t/u"]), ["/a", "/p", "/t"]);
        assert_eq!(seen("/p/q", &["/p"]), ["/p"]);
    }
}
