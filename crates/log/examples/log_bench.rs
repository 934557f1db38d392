//! The log against the bare disk, in one run, as ratios.
//!
//! ```text
//! cargo run --release -p vorrang-log --example log_bench -- [directory] [seconds]
//! ```
//!
//! Both sides overwrite blocks that were written before and sync every commit. The bare disk
//! writes commits of the size the log's group commit arrived at. CPU is that of all threads.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a command line program that measures time"
)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use vorrang_log::disk::{Disk, FileName, RealDisk};
use vorrang_log::{Log, Notice, Opening, Options, Pace, Position};

type Outcome<T> = Result<T, Box<dyn Error>>;

const MESSAGE_BYTES: usize = 1024;
/// Log and bare disk take turns this often within one figure: whatever else the disk is doing, both meet the same of it.
const TURNS: u32 = 6;
const FILE: FileName = FileName::Segment(1);

fn main() -> Outcome<()> {
    let mut words = std::env::args().skip(1);
    let parent = words.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let seconds: u64 = words.next().map_or(Ok(3), |text| text.parse())?;
    let duration = Duration::from_secs(seconds);
    let directory = parent.join(format!("vorrang-log-bench-{}", std::process::id()));
    let outcome = measure(&directory, duration);
    std::fs::remove_dir_all(&directory)?;
    outcome
}

fn measure(directory: &Path, duration: Duration) -> Outcome<()> {
    println!(
        "directory {}, {} s for each figure, messages of {MESSAGE_BYTES} bytes",
        directory.display(),
        duration.as_secs()
    );

    let began = Instant::now();
    let bench = open(&directory.join("empty"), Options::default())?;
    println!("start on an empty directory: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
    drop(bench);

    let mut grouped = Grouped::open(&directory.join("log"))?;
    let mut alone = Alone::open(&directory.join("bare"))?;
    for round in 1..=2 {
        let (mut ours, mut bare) = (Measured::default(), Measured::default());
        for _ in 0..TURNS {
            let turn = grouped.run(duration / TURNS)?;
            let commit = usize::try_from(turn.bytes / turn.commits.max(1))?.next_multiple_of(4096);
            bare.add(&alone.run(commit, duration / TURNS)?);
            ours.add(&turn);
        }
        let rate = per_second(ours.messages, ours.elapsed);
        let messages_of_a_commit = ours.messages as f64 / ours.commits as f64;
        let bare_messages = per_second(bare.commits, bare.elapsed) * messages_of_a_commit;
        println!(
            "group commit {round}: {rate:.0} messages/s in commits of {} KiB; bare disk {bare_messages:.0}/s, in turns; ratio {:.2} (at least 0.80)",
            (ours.bytes / ours.commits.max(1)) >> 10,
            rate / bare_messages,
        );
        println!(
            "  CPU {:.2} µs per message (at most 1.50): shard and commit threads together",
            ours.cpu.as_secs_f64() * 1e6 / ours.messages as f64,
        );
    }
    drop((grouped, alone));

    let mut one = one_at_a_time(directory, duration)?;
    let (bare, ours) = (median(&mut one.bare).as_secs_f64(), median(&mut one.log).as_secs_f64());
    println!(
        "one at a time: median {:.0} µs, bare write and sync {:.0} µs, in turns; added {:+.0} % (below 20)",
        ours * 1e6,
        bare * 1e6,
        (ours / bare - 1.0) * 100.0,
    );
    Ok(())
}

fn per_second(count: u64, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64()
}

#[derive(Default)]
struct Measured {
    messages: u64,
    commits: u64,
    bytes: u64,
    elapsed: Duration,
    cpu: Duration,
}

impl Measured {
    fn add(&mut self, turn: &Measured) {
        self.messages += turn.messages;
        self.commits += turn.commits;
        self.bytes += turn.bytes;
        self.elapsed += turn.elapsed;
        self.cpu += turn.cpu;
    }
}

struct Bench {
    log: Log,
    notices: Receiver<Notice>,
    disk: Arc<RealDisk>,
}

fn open(directory: &Path, options: Options) -> Outcome<Bench> {
    let disk = Arc::new(RealDisk::open(directory)?);
    let opening = Opening::begin(Arc::clone(&disk) as Arc<dyn Disk>, options)?;
    let (sender, notices) = mpsc::channel();
    let notify = Arc::new(move |notice| drop(sender.send(notice)));
    let log = opening.replay(|_| Ok::<_, String>(()))?.start(notify, 0)?;
    Ok(Bench { log, notices, disk })
}

/// Keeps the ring turning: nothing stays live, and two snapshots cover everything.
fn recycle(bench: &mut Bench) -> Outcome<()> {
    bench.log.release_through(bench.log.submitted());
    for _ in 0..2 {
        let mut snapshot = bench.log.snapshot(Pace::UNLIMITED)?;
        bench.log.flush()?;
        snapshot.finish()?;
    }
    Ok(())
}

/// The log under as much as it takes.
struct Grouped {
    bench: Bench,
    message: Vec<u8>,
}

impl Grouped {
    fn open(directory: &Path) -> Outcome<Self> {
        let options = Options {
            ring_bytes: 1 << 30,
            spare_segments: 12,
            fill_bytes_per_second: u64::MAX,
            ..Options::default()
        };
        let mut bench = open(directory, options)?;
        let message = vec![7; MESSAGE_BYTES];
        // Wait until the spares are filled, then fill them once more through the log.
        while bench.disk.list()?.iter().filter(|file| matches!(file, FileName::Spare(_))).count() < 12 {
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut sent = 0;
        while sent < 500_000 {
            sent += fill(&mut bench, &message)?;
        }
        recycle(&mut bench)?;
        Ok(Self { bench, message })
    }

    fn run(&mut self, duration: Duration) -> Outcome<Measured> {
        let bench = &mut self.bench;
        let (began, cpu_before, first) = (Instant::now(), cpu()?, bench.log.durable());
        let (mut messages, mut bytes) = (0, 0);
        while began.elapsed() < duration {
            let sent = fill(bench, &self.message)?;
            messages += sent;
            bytes += sent * (MESSAGE_BYTES as u64 + 16);
            if bench.log.pressure().used_segments > 8 {
                recycle(bench)?;
            }
        }
        let last = bench.log.flush()?;
        let elapsed = began.elapsed();
        let cpu = cpu()?.saturating_sub(cpu_before);
        Ok(Measured { messages, commits: last.0 - first.0, bytes, elapsed, cpu })
    }
}

/// Fills the batch that waits behind the one in flight; waits for the disk when it is full.
fn fill(bench: &mut Bench, message: &[u8]) -> Outcome<u64> {
    let mut batch = loop {
        match bench.log.batch() {
            Some(batch) => break batch,
            None => expect_durable(bench.notices.recv()?)?,
        }
    };
    let mut sent = 0;
    // A shard drains its inbox in pieces; what came in meanwhile joins the waiting batch.
    for _ in 0..64 {
        if batch.is_full() {
            break;
        }
        batch.record(1, b"0123456789abcdef", &[message])?;
        sent += 1;
    }
    bench.log.submit(batch, 0)?;
    while let Ok(notice) = bench.notices.try_recv() {
        expect_durable(notice)?;
    }
    Ok(sent)
}

fn expect_durable(notice: Notice) -> Outcome<()> {
    match notice {
        Notice::Durable(_) => Ok(()),
        Notice::Failed(failure) => Err(failure.into()),
    }
}

#[derive(Default)]
struct Samples {
    bare: Vec<Duration>,
    log: Vec<Duration>,
}

/// A bare write and sync, then one message through the log, in turns: whatever else the disk is
/// doing, both sides meet the same of it.
fn one_at_a_time(directory: &Path, duration: Duration) -> Outcome<Samples> {
    let length = 256 << 20;
    let disk = bare(&directory.join("alone"), length)?;
    let options = Options { first_segment_bytes: length as u64, spare_segments: 0, ..Options::default() };
    let mut bench = open(&directory.join("single"), options)?;
    let (content, message) = (vec![7; 4096], vec![7; MESSAGE_BYTES]);
    let mut samples = Samples::default();
    let began = Instant::now();
    while began.elapsed() < 2 * duration && samples.log.len() < 40_000 {
        let before = Instant::now();
        disk.write_at(FILE, (samples.bare.len() * 4096) as u64, &[&content])?;
        disk.sync(FILE)?;
        samples.bare.push(before.elapsed());

        let before = Instant::now();
        let mut batch = bench.log.batch().ok_or("no batch although nothing is on the way")?;
        batch.record(1, b"0123456789abcdef", &[&message])?;
        let position = bench.log.submit(batch, 0)?;
        wait_for(&bench, position)?;
        samples.log.push(before.elapsed());
    }
    Ok(samples)
}

fn wait_for(bench: &Bench, position: Position) -> Outcome<()> {
    while bench.log.durable() < position {
        expect_durable(bench.notices.recv()?)?;
    }
    Ok(())
}

fn bare(directory: &Path, bytes: usize) -> Outcome<RealDisk> {
    let disk = RealDisk::open(directory)?;
    disk.create(FILE, bytes as u64)?;
    disk.write_at(FILE, 0, &[&vec![1; bytes]])?;
    disk.sync(FILE)?;
    Ok(disk)
}

/// The disk without the log: commits of one size, one after the other, over as many blocks as the log uses.
struct Alone {
    disk: RealDisk,
    offset: usize,
}

impl Alone {
    const BYTES: usize = 768 << 20;

    fn open(directory: &Path) -> Outcome<Self> {
        Ok(Self { disk: bare(directory, Self::BYTES)?, offset: 0 })
    }

    fn run(&mut self, commit: usize, duration: Duration) -> Outcome<Measured> {
        let content = vec![7; commit];
        let mut commits = 0;
        let began = Instant::now();
        while began.elapsed() < duration {
            if self.offset + commit > Self::BYTES {
                self.offset = 0;
            }
            self.disk.write_at(FILE, self.offset as u64, &[&content])?;
            self.disk.sync(FILE)?;
            self.offset += commit;
            commits += 1;
        }
        Ok(Measured { commits, elapsed: began.elapsed(), ..Measured::default() })
    }
}

fn median(samples: &mut [Duration]) -> Duration {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

/// CPU time of all threads of this process so far.
fn cpu() -> Outcome<Duration> {
    let mut nanos = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        nanos += text.split_whitespace().next().ok_or("empty schedstat")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}
