//! `cargo xtask conformance`: real clients against the release binary.
//!
//! Every suite gets a broker of its own on free ports with an empty data directory, so that none
//! sees another's messages; whatever happens, the broker ends with its suite. Two suites run at a time: they mostly
//! wait, for locks to end and for clients to give up; what a suite prints is shown when it is over. The clients are
//! installed once below the target directory and again only when their list of versions changes,
//! so a machine without a network can repeat a run.

mod broker;
mod client;
mod promtool;
mod tally;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::chore::{self, cargo, target_folder};
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
    /// The protocol engine and the client library alone; the suite starts them itself, as server and as client.
    Engine,
    /// The programs of `examples/`; the suite starts them itself, and a broker for them.
    Samples,
}

/// The programs of the patterns, by the names they have in every language.
const SAMPLES: [&str; 3] = ["priority_sender", "priority_worker", "competing_consumers"];

/// How many suites run at a time.
const LANES: usize = 2;

/// All suites, those that take longest first. Another language is another line here and a folder beside the others.
const SUITES: &[Suite] = &[
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
        name: "javascript",
        title: "javascript",
        client: Client::node("conformance/javascript/package-lock.json", "conformance/javascript"),
        peer: Peer::Broker,
    },
    Suite {
        name: "samples",
        title: "samples",
        client: Client::python("conformance/python/requirements.txt", "conformance/samples", "."),
        peer: Peer::Samples,
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
        None if suites.iter().any(|suite| suite.peer != Peer::Engine) => Some(build_broker()?),
        None => None,
    };
    for suite in &suites {
        suite.client.install()?;
    }
    let metrics = suites.iter().any(|suite| suite.name == "api");
    let tools = if metrics { find_tools()? } else { Vec::new() };
    let needs = |peer: Peer| suites.iter().any(|suite| suite.peer == peer);
    let engine = if needs(Peer::Engine) { build_engine()? } else { Vec::new() };
    let samples = if needs(Peer::Samples) { build_samples()? } else { Vec::new() };
    let programs = Programs { broker: binary, tools, engine, samples };
    let (next, total) = (Mutex::new(suites.into_iter()), Mutex::new(Tally::default()));
    thread::scope(|scope| {
        let lane = || -> Result<()> {
            loop {
                // A statement of its own, so that the list is free for the other lane while this suite runs.
                let Some(suite) = taken(&next).next() else { break };
                let run = run_suite(suite, &programs, options.filter.as_deref());
                taken(&total).add(run.with_context(|| format!("suite {}", suite.title))?);
            }
            Ok(())
        };
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        lanes
            .into_iter()
            .try_for_each(|lane| lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    let total = *taken(&total);
    println!("{total}");
    if total.failed > 0 {
        bail!("conformance: {} of {} tests failed", total.failed, total.passed + total.failed);
    }
    Ok(())
}

fn taken<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What suites run against.
struct Programs {
    broker: Option<PathBuf>,
    /// What tests against the broker need beside it.
    tools: Vec<Told>,
    engine: Vec<Told>,
    samples: Vec<Told>,
}

/// A place that a suite is told of, in a variable of its environment.
type Told = (&'static str, PathBuf);

fn run_suite(suite: &Suite, programs: &Programs, filter: Option<&str>) -> Result<Tally> {
    let mut test = suite.client.test(suite.title, filter)?;
    // Held until the tests are through; dropping it ends the process.
    let _broker = match (suite.peer, &programs.broker) {
        (Peer::Broker | Peer::Samples, Some(binary)) => {
            let broker = Broker::start(binary, &work_folder(), suite.title)?;
            broker.introduce_to(&mut test.command);
            Some(broker)
        }
        (Peer::Engine, _) => None,
        _ => bail!("what it runs against was not built"),
    };
    let told = match suite.peer {
        Peer::Broker => &programs.tools,
        Peer::Engine => &programs.engine,
        Peer::Samples => &programs.samples,
    };
    test.command.envs(told.iter().map(|(variable, place)| (variable, place)));
    println!("==> conformance {}", suite.title);
    let started = Instant::now();
    let output = test.command.output().with_context(|| format!("cannot start {:?}", test.command))?;
    let printed = [output.stdout, output.stderr].concat();
    println!("==> what {} printed\n{}", suite.title, String::from_utf8_lossy(&printed));
    let status = output.status;
    let tally = test.tally().with_context(|| format!("{:?} ended with {status}", test.command))?;
    // pytest takes a filter that matches nothing for a failure.
    let nothing_chosen = filter.is_some() && tally == Tally::default();
    if !status.success() && tally.failed == 0 && !nothing_chosen {
        bail!("{:?} ended with {status} though no test failed", test.command);
    }
    println!("    {}: {tally} in {:.1} s", suite.title, started.elapsed().as_secs_f64());
    Ok(tally)
}

/// Where clients are installed and results are written.
fn work_folder() -> PathBuf {
    target_folder().join("conformance")
}

fn build_broker() -> Result<PathBuf> {
    chore::run("build the broker", &mut cargo(&["build", "--release", "--locked", "--bin", "vorrang"]))?;
    Ok(target_folder().join("release/vorrang"))
}

fn find_tools() -> Result<Vec<Told>> {
    Ok(vec![("VORRANG_PROMTOOL", promtool::ensure(&work_folder().join("promtool"))?)])
}

/// The programs that talk to other makes of AMQP.
fn build_engine() -> Result<Vec<Told>> {
    let folder = chore::tested_examples(&["interop_peer", "interop_client"])?;
    Ok(vec![
        ("VORRANG_INTEROP_PEER", folder.join("interop_peer")),
        ("VORRANG_INTEROP_CLIENT", folder.join("interop_client")),
    ])
}

/// The Rust samples are built, the packages of the JavaScript ones installed.
fn build_samples() -> Result<Vec<Told>> {
    let packages = Client::node("conformance/javascript/package-lock.json", "conformance/javascript");
    packages.install()?;
    Ok(vec![
        ("VORRANG_NODE_MODULES", packages.installed_in().join("node_modules")),
        ("VORRANG_RUST_SAMPLES", chore::tested_examples(&SAMPLES)?),
    ])
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
                     interop, api, proton, python, javascript, go and samples, not '{unknown}'"
                ),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chore::root;

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
