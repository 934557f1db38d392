//! `cargo xtask conformance`: real clients against the release binary.
//!
//! Every suite gets a broker of its own on free ports with an empty data directory, so that none
//! sees another's messages; whatever happens, the broker ends with its suite. The clients are
//! installed once below the target directory and again only when their list of versions changes,
//! so a machine without a network can repeat a run.

mod broker;
mod client;
mod tally;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::chore::{self, cargo, root};
use broker::Broker;
use client::Client;
use tally::Tally;

/// A set of tests of one client library.
struct Suite {
    /// What the command line calls it; several suites may share a name.
    name: &'static str,
    /// What it is called in the output and in file names.
    title: &'static str,
    /// What runs it, and from which folder.
    client: Client,
    /// What it needs to talk to.
    peer: Peer,
}

/// Who is on the other side of a suite.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Peer {
    /// The broker, started for the suite.
    Broker,
    /// The protocol engine alone; the suite starts it itself, as server and as client.
    Engine,
}

/// All suites. Another language is another line here and a folder beside the others.
const SUITES: &[Suite] = &[
    Suite {
        name: "interop",
        title: "interop-proton",
        client: Client::python("conformance/proton/requirements.txt", "conformance/interop/proton", "."),
        peer: Peer::Engine,
    },
    Suite {
        name: "interop",
        title: "interop-rhea",
        client: Client::node("conformance/javascript/package-lock.json", "conformance/interop/rhea"),
        peer: Peer::Engine,
    },
    Suite {
        name: "api",
        title: "api",
        client: Client::python("conformance/api/requirements.txt", "conformance/api", "."),
        peer: Peer::Broker,
    },
    Suite {
        name: "proton",
        title: "proton",
        client: Client::python("conformance/proton/requirements.txt", "conformance/proton", "."),
        peer: Peer::Broker,
    },
    Suite {
        name: "python",
        title: "python",
        client: Client::python("conformance/python/requirements.txt", "conformance/python", "sync"),
        peer: Peer::Broker,
    },
    Suite {
        name: "python",
        title: "python-asyncio",
        client: Client::python("conformance/python/requirements.txt", "conformance/python", "aio"),
        peer: Peer::Broker,
    },
    Suite {
        name: "javascript",
        title: "javascript",
        client: Client::node("conformance/javascript/package-lock.json", "conformance/javascript"),
        peer: Peer::Broker,
    },
    Suite { name: "go", title: "go", client: Client::go("conformance/go/go.sum"), peer: Peer::Broker },
];

/// What the command line asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    release_binary: Option<PathBuf>,
    /// The suites to run; empty means all.
    names: Vec<String>,
    /// Only tests whose name contains this.
    filter: Option<String>,
}

/// Runs the chosen suites and fails if any test did.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let options = Options::parse(words)?;
    let chosen =
        |suite: &&Suite| options.names.is_empty() || options.names.iter().any(|name| name == suite.name);
    let suites: Vec<&Suite> = SUITES.iter().filter(chosen).collect();
    let binary = match &options.release_binary {
        Some(path) => Some(path.canonicalize().with_context(|| format!("no binary at {}", path.display()))?),
        None if suites.iter().any(|suite| suite.peer == Peer::Broker) => Some(build_broker()?),
        None => None,
    };
    let mut total = Tally::default();
    for suite in suites {
        let tally = run_suite(suite, binary.as_ref(), options.filter.as_deref())
            .with_context(|| format!("suite {}", suite.title))?;
        println!("    {}: {tally}", suite.title);
        total.add(tally);
    }
    println!("{total}");
    if total.failed > 0 {
        bail!("conformance: {} of {} tests failed", total.failed, total.passed + total.failed);
    }
    Ok(())
}

fn run_suite(suite: &Suite, binary: Option<&PathBuf>, filter: Option<&str>) -> Result<Tally> {
    suite.client.install()?;
    let mut test = suite.client.test(suite.title, filter)?;
    // Held until the tests are through; dropping it ends the process.
    let _broker = if let (Peer::Broker, Some(binary)) = (suite.peer, binary) {
        let broker = Broker::start(binary, &work_folder(), suite.title)?;
        broker.introduce_to(&mut test.command);
        Some(broker)
    } else {
        test.command.env("VORRANG_INTEROP_PEER", build_interop_peer()?);
        None
    };
    println!("==> conformance {}", suite.title);
    let status = test.command.status().with_context(|| format!("cannot start {:?}", test.command))?;
    let tally = test.tally().with_context(|| format!("{:?} ended with {status}", test.command))?;
    // pytest takes a filter that matches nothing for a failure.
    let nothing_chosen = filter.is_some() && tally == Tally::default();
    if !status.success() && tally.failed == 0 && !nothing_chosen {
        bail!("{:?} ended with {status} though no test failed", test.command);
    }
    Ok(tally)
}

/// Where clients are installed and results are written.
fn work_folder() -> PathBuf {
    target_folder().join("conformance")
}

fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn build_broker() -> Result<PathBuf> {
    chore::run("build the broker", &mut cargo(&["build", "--release", "--locked", "--bin", "vorrang"]))?;
    Ok(target_folder().join("release/vorrang"))
}

fn build_interop_peer() -> Result<PathBuf> {
    let arguments = ["build", "--locked", "--package", "vorrang-amqp", "--example", "interop_peer"];
    chore::run("build the interop peer", &mut cargo(&arguments))?;
    Ok(target_folder().join("debug/examples/interop_peer"))
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Options::default();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            match *word {
                "--release-binary" => {
                    options.release_binary =
                        Some(rest.next().context("--release-binary takes a path")?.into());
                }
                "--filter" => {
                    options.filter =
                        Some((*rest.next().context("--filter takes a part of a test's name")?).to_owned());
                }
                name if SUITES.iter().any(|suite| suite.name == name) => options.names.push(name.to_owned()),
                unknown => bail!(
                    "`cargo xtask conformance` knows --release-binary PATH, --filter TEXT and the suites \
                     interop, proton, python, javascript and go, not '{unknown}'"
                ),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_name_suites_a_binary_and_a_filter() {
        let parsed =
            Options::parse(&["--release-binary", "b", "python", "proton", "--filter", "lock"]).unwrap();
        let names = vec!["python".to_owned(), "proton".to_owned()];
        let expected = Options { release_binary: Some("b".into()), names, filter: Some("lock".to_owned()) };
        assert_eq!(parsed, expected);
        assert_eq!(Options::parse(&[]).unwrap(), Options::default());
        for wrong in [&["--release-binary"][..], &["--filter"], &["cobol"], &["--fast"]] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn every_suite_has_its_folder_and_its_list_of_versions() {
        for suite in SUITES {
            for path in suite.client.sources() {
                assert!(root().join(path).exists(), "{} needs {path}", suite.title);
            }
        }
    }
}
