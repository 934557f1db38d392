//! The client libraries: installed by package name and version, run by their own test runner.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::tally::Tally;
use super::work_folder;
use crate::chore::{self, root};

/// A language with its test runner. All paths are relative to the root of the project.
pub(super) enum Client {
    /// pytest in a virtual environment.
    Python {
        /// The packages, with their versions.
        requirements: &'static str,
        /// Where the tests run, with their `pytest.ini`.
        folder: &'static str,
        /// Which part of the folder.
        part: &'static str,
    },
    /// node's own test runner.
    Node {
        /// The lock file that pins the versions, beside its `package.json`.
        lock: &'static str,
        /// The folder of the `*.test.js` files.
        folder: &'static str,
    },
    /// Go's own test runner.
    Go {
        /// The checksums that pin the versions, beside `go.mod` and the tests.
        sums: &'static str,
    },
}

/// A suite ready to run, and where its report will be.
pub(super) struct Test {
    pub(super) command: Command,
    report: PathBuf,
    read: fn(&str) -> Result<Tally>,
    /// Whether the report is all the runner says, and has yet to be shown.
    silent: bool,
}

impl Test {
    /// The counts in the report the runner wrote.
    pub(super) fn tally(&self) -> Result<Tally> {
        let text = fs::read_to_string(&self.report)
            .with_context(|| format!("no report at {}", self.report.display()))?;
        if self.silent {
            println!("{text}");
        }
        (self.read)(&text)
    }
}

impl Client {
    pub(super) const fn python(requirements: &'static str, folder: &'static str, part: &'static str) -> Self {
        Client::Python { requirements, folder, part }
    }

    pub(super) const fn node(lock: &'static str, folder: &'static str) -> Self {
        Client::Node { lock, folder }
    }

    pub(super) const fn go(sums: &'static str) -> Self {
        Client::Go { sums }
    }

    /// Installs the packages unless this very list of versions is installed already.
    pub(super) fn install(&self) -> Result<()> {
        let (list, folder) = (root().join(self.versions()), self.installed_in());
        let wanted = fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
        let stamp = folder.join("installed-versions");
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(());
        }
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        match self {
            Client::Python { .. } => {
                let mut make = Command::new("python3");
                chore::run("create a virtual environment", make.args(["-m", "venv"]).arg(&folder))?;
                let mut pip = Command::new(folder.join("bin/python"));
                pip.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&list);
                chore::run("install the Python packages", &mut pip)?;
            }
            Client::Node { .. } => {
                for file in ["package.json", "package-lock.json"] {
                    let from = list.with_file_name(file);
                    fs::copy(&from, folder.join(file))
                        .with_context(|| format!("cannot copy {}", from.display()))?;
                }
                let mut npm = Command::new("npm");
                npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&folder);
                chore::run("install the JavaScript packages", &mut npm)?;
            }
            Client::Go { .. } => {
                let mut go = Command::new("go");
                go.args(["mod", "download"]).current_dir(list.with_file_name(""));
                chore::run("install the Go modules", &mut go)?;
            }
        }
        fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
    }

    /// The command that runs the tests, those matching `filter` if one is given.
    pub(super) fn test(&self, title: &str, filter: Option<&str>) -> Result<Test> {
        let (report, read): (_, fn(&str) -> Result<Tally>) = match self {
            Client::Python { .. } => (work_folder().join(format!("{title}.xml")), Tally::from_junit),
            Client::Node { .. } => (work_folder().join(format!("{title}.tap")), Tally::from_tap),
            Client::Go { .. } => (work_folder().join(format!("{title}.txt")), Tally::from_go),
        };
        // A report of an earlier run must not be taken for this one's.
        if report.exists() {
            fs::remove_file(&report).with_context(|| format!("cannot remove {}", report.display()))?;
        }
        let command = match self {
            Client::Python { folder, part, .. } => self.pytest(folder, part, &report, filter),
            Client::Node { folder, .. } => self.node_test(folder, &report, filter)?,
            Client::Go { sums } => go_test(&root().join(sums), &report, filter)?,
        };
        Ok(Test { command, report, read, silent: matches!(self, Client::Go { .. }) })
    }

    fn pytest(&self, folder: &str, part: &str, report: &Path, filter: Option<&str>) -> Command {
        let mut command = Command::new(self.installed_in().join("bin/python"));
        command.args(["-B", "-m", "pytest", part]).arg(format!("--junitxml={}", report.display()));
        if let Some(filter) = filter {
            command.args(["-k", filter]);
        }
        command.current_dir(root().join(folder));
        command
    }

    fn node_test(&self, folder: &str, report: &Path, filter: Option<&str>) -> Result<Command> {
        let mut command = Command::new("node");
        command.args(["--test", "--test-timeout=120000"]);
        command.args(["--test-reporter=spec", "--test-reporter-destination=stdout", "--test-reporter=tap"]);
        command.arg(format!("--test-reporter-destination={}", report.display()));
        if let Some(filter) = filter {
            command.arg(format!("--test-name-pattern={filter}"));
        }
        let folder = root().join(folder);
        command.args(test_files(&folder)?).current_dir(&folder);
        command.env("NODE_PATH", self.installed_in().join("node_modules"));
        Ok(command)
    }

    /// Where the packages of this list are installed; lists of the same folder share it.
    pub(super) fn installed_in(&self) -> PathBuf {
        let list = Path::new(self.versions());
        let language = list.parent().and_then(Path::file_name).unwrap_or_default();
        work_folder().join(language)
    }

    /// The file that pins the versions.
    fn versions(&self) -> &'static str {
        match self {
            Client::Python { requirements, .. } => requirements,
            Client::Node { lock, .. } => lock,
            Client::Go { sums } => sums,
        }
    }

    /// What must be in the repository for this client to run.
    #[cfg(test)]
    pub(super) fn sources(&self) -> [&'static str; 2] {
        match self {
            Client::Python { folder, .. } | Client::Node { folder, .. } => [self.versions(), folder],
            Client::Go { sums } => [sums, "conformance/go/go.mod"],
        }
    }
}

fn go_test(sums: &Path, report: &Path, filter: Option<&str>) -> Result<Command> {
    let mut command = Command::new("go");
    command.args(["test", "-v", "-count=1", "-timeout=10m"]);
    if let Some(filter) = filter {
        command.arg(format!("-run=(?i){filter}"));
    }
    let output = File::create(report).with_context(|| format!("cannot create {}", report.display()))?;
    command.arg("./...").current_dir(sums.with_file_name("")).stdout(output);
    Ok(command)
}

fn test_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.to_str().is_some_and(|text| text.ends_with(".test.js")));
    files.sort();
    if files.is_empty() {
        bail!("no *.test.js in {}", folder.display());
    }
    Ok(files)
}
