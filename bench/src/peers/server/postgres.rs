//! PostgreSQL as it is installed, with a table as the queue.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::peers::daemon::{Daemon, free_port};
use crate::peers::driver::postgres::{LOOK_EVERY, Postgres};
use crate::peers::peer::{Ability, Clients, Facts, Layout, Peer};

pub(super) struct SkipLocked;

impl Peer for SkipLocked {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn package(&self) -> Option<&'static str> {
        Some("postgresql")
    }

    fn facts(&self) -> Result<Facts> {
        let server = programs()?.join("postgres");
        Ok(Facts {
            name: self.name().to_owned(),
            version: super::first_line(&server.to_string_lossy(), &["--version"])?,
            protocol: format!(
                "PostgreSQL 3.0, prepared; INSERT, and DELETE … FOR UPDATE SKIP LOCKED … RETURNING; an idle receiver looks every {LOOK_EVERY:?}"
            ),
            acknowledgement:
                "the transaction is committed: its log is synced; messages that wait together share one"
                    .to_owned(),
            settlement: "the transaction that deleted a batch of messages is committed".to_owned(),
            synced: true,
            configuration:
                "initdb --auth trust; postgres with its defaults (fsync, synchronous_commit on), TCP only"
                    .to_owned(),
        })
    }

    fn can(&self, ability: Ability) -> bool {
        ability == Ability::Priorities
    }

    fn start(&self, folder: &Path, _layout: Layout) -> Result<Daemon> {
        let programs = programs()?;
        let data = folder.join("data");
        if !data.exists() {
            fs::create_dir(&data)?;
            if let Some((user, group)) = owner()? {
                chown(&data, Some(user), Some(group))?;
                open_the_way(folder)?;
            }
            let mut initdb = as_owner(programs.join("initdb"))?;
            let output = initdb.args(["--auth", "trust", "-U", "postgres", "-D"]).arg(&data).output()?;
            if !output.status.success() {
                bail!("initdb failed: {}", String::from_utf8_lossy(&output.stderr));
            }
        }
        let port = free_port()?;
        let mut command = as_owner(programs.join("postgres"))?;
        command.arg("-D").arg(&data).args(["-p", &port.to_string()]);
        command.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
        Daemon::start(&mut command, folder.join("log"), port, Vec::new())
    }

    fn clients(&self, port: u16, _layout: Layout) -> Box<dyn Clients> {
        Box::new(Postgres { port })
    }
}

/// Where Debian puts the programs of the newest version.
fn programs() -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/usr/lib/postgresql").context("PostgreSQL is not installed")? {
        let path = entry?.path();
        let version =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<u32>().ok());
        found.extend(version.map(|version| (version, path.join("bin"))));
    }
    found.sort();
    found
        .pop()
        .map(|(_, path)| path)
        .filter(|path| path.join("postgres").exists())
        .context("PostgreSQL is not installed")
}

/// The server does not run as root: then, the user its package made.
fn owner() -> Result<Option<(u32, u32)>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let line =
        users.lines().find_map(|line| line.strip_prefix("postgres:")).context("there is no user postgres")?;
    let mut fields = line.split(':').skip(1);
    let mut number = || fields.next().and_then(|text| text.parse().ok()).context("a user without a number");
    Ok(Some((number()?, number()?)))
}

fn as_owner(program: PathBuf) -> Result<Command> {
    let mut command = Command::new(program);
    command.current_dir("/");
    if let Some((user, group)) = owner()? {
        command.uid(user).gid(group);
    }
    Ok(command)
}

/// Lets others pass through a temporary folder, which is its owner's alone.
fn open_the_way(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?)
}
