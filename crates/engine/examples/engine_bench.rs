//! How fast the engine decides and applies, and how much memory a waiting message takes.
//!
//! `cargo run --release -p vorrang-engine --example engine_bench [-- --deepest 10000000]`
//!
//! One message is sent, locked and completed, decided and applied one by one on one core, in batches as
//! a shard would. There is no log: this is the cost of the decisions alone. Rates are by processor time,
//! so that they hold on a machine that does other things as well.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::disallowed_methods, reason = "how long a decision takes is read from the clock")]

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use smallvec::{SmallVec, smallvec};
use vorrang_engine::command::{Attach, ReceiveMode, Send, Settle, Settlement};
use vorrang_engine::entity::priority::Policy;
use vorrang_engine::entity::{EntityName, EntityPath, Request, Setting};
use vorrang_engine::{
    Command, Effect, EntityId, Incoming, Level, Limits, Location, LockToken, MailboxId, NoPayloads, Outcome,
    ReceiverId, RequestTag, State, Timestamp,
};
use vorrang_filter::MapMessage;

const BATCH: usize = 64;

struct Bench {
    state: State,
    outcome: Outcome,
    now: u64,
    location: u64,
    queue: EntityId,
    message: Incoming,
    levels: u64,
    sent: u64,
}

impl Bench {
    fn new(levels: u64, policy: Policy) -> Bench {
        let message = Incoming {
            message_id: Some(vorrang_engine::Text::from("0123456789abcdef")),
            ..Incoming::new(Bytes::from(vec![0; 200]), Arc::new(MapMessage::new()))
        };
        let mut bench = Bench {
            state: State::new(Limits::default()),
            outcome: Outcome::default(),
            now: 1_700_000_000_000,
            location: 0,
            queue: EntityId(0),
            message,
            levels,
            sent: 0,
        };
        bench.run(&Command::Create { seed: 42 });
        let name = EntityName::parse("bench").expect("a plain name");
        let settings = vec![Setting::MaxSizeInMegabytes(81_920), Setting::Policy(policy)];
        let change = Box::new(Request::CreateQueue { name, settings });
        bench.run(&Command::Administer { request: RequestTag(0), change });
        let attach = Attach {
            request: RequestTag(0),
            receiver: ReceiverId(1),
            mailboxes: smallvec![MailboxId::main(bench.queue)],
            mode: ReceiveMode::PeekLock,
            min_level: Level(0),
            selector: None,
        };
        bench.run(&Command::Attach(Box::new(attach)));
        bench
    }

    /// Decides, gives payloads a place as a log would, and applies.
    fn run(&mut self, command: &Command) {
        self.outcome.clear();
        let decided = self.state.decide(Timestamp(self.now), command, &NoPayloads, &mut self.outcome);
        assert!(decided.is_ok(), "{decided:?}");
        for fact in &mut self.outcome.facts {
            if let Some(payload) = fact.payload_mut() {
                self.location += 256;
                // Segments of 256 MB.
                payload.location = Location(((self.location >> 28) << 32) | (self.location & 0x0fff_ffff));
            }
            self.state.apply(fact);
        }
    }

    fn send(&mut self, count: usize) {
        let levels = self.levels;
        let sent = &mut self.sent;
        let messages: SmallVec<[Incoming; 1]> = (0..count)
            .map(|_| {
                *sent += 1;
                let level = u8::try_from(*sent * 7 % levels).unwrap_or(0);
                Incoming { priority: Some(level), ..self.message.clone() }
            })
            .collect();
        let entity = self.queue;
        let request = RequestTag(1);
        self.run(&Command::Send(Send { request, entity, via: None, transaction: None, messages }));
    }

    fn send_one(&mut self, _: &mut Vec<LockToken>) {
        self.send(1);
    }

    fn receive(&mut self, tokens: &mut Vec<LockToken>) {
        self.receive_up_to(u32::try_from(BATCH).unwrap_or(0), tokens);
    }

    fn receive_one(&mut self, tokens: &mut Vec<LockToken>) {
        self.receive_up_to(1, tokens);
    }

    fn receive_up_to(&mut self, credit: u32, tokens: &mut Vec<LockToken>) {
        self.run(&Command::Credit { receiver: ReceiverId(1), credit, drain: false });
        while self.state.has_deliverable() {
            self.run(&Command::Deliver);
            tokens.extend(self.outcome.effects.iter().filter_map(Effect::token));
        }
    }

    fn complete(&mut self, tokens: &mut Vec<LockToken>) {
        let mailbox = MailboxId::main(self.queue);
        for token in tokens.drain(..) {
            let tokens = smallvec![token];
            let (request, settlement) = (RequestTag(2), Settlement::Complete);
            self.run(&Command::Settle(Settle { request, mailbox, tokens, settlement, transaction: None }));
        }
    }

    /// Messages per second through send, lock and complete, with `depth` others waiting.
    fn throughput(&mut self, rounds: usize) -> f64 {
        let mut tokens = Vec::with_capacity(BATCH);
        let start = processor_seconds();
        for round in 0..rounds {
            self.now += u64::from(round % 16 == 0);
            self.send(BATCH);
            self.receive(&mut tokens);
            self.complete(&mut tokens);
        }
        let messages = u32::try_from(rounds * BATCH).unwrap_or(u32::MAX);
        f64::from(messages) / (processor_seconds() - start)
    }

    fn fill(&mut self, depth: usize) {
        let mut left = depth;
        while left > 0 {
            let count = left.min(1_000);
            self.send(count);
            left -= count;
            self.now += 1;
        }
    }
}

/// The time this thread has been on a processor.
fn processor_seconds() -> f64 {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds: f64 = spent.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    nanoseconds / 1e9
}

/// The memory this process uses, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    let kilobytes: u64 = line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    kilobytes * 1024
}

/// How long a snapshot holds the state up, and how fast one is put together again.
fn snapshot(depth: usize) {
    let mut bench = Bench::new(4, Policy::Strict);
    bench.fill(depth);
    let start = processor_seconds();
    let frozen = bench.state.freeze();
    // Too short for the clock: a thousand of them.
    for _ in 1..1_000 {
        drop(bench.state.freeze());
    }
    let froze = processor_seconds() - start;
    let mut restored = State::new(Limits::default());
    for fact in frozen.facts() {
        restored.apply(&fact);
    }
    let took = processor_seconds() - start - froze;
    let rate = f64::from(restored.messages_in_memory()) / took;
    println!("{depth} waiting: frozen in {froze:.3} ms, told and restored at {rate:.0} a second");
}

/// How long decisions take while a snapshot is being told on another thread: pages that are changed meanwhile are
/// copied first.
fn decisions_during_snapshot(depth: usize) {
    let mut bench = Bench::new(4, Policy::Strict);
    bench.fill(depth);
    bench.throughput(200);
    let frozen = bench.state.freeze();
    let mut taken: Vec<u32> = Vec::new();
    let mut tokens = Vec::with_capacity(BATCH);
    let told = thread::scope(|scope| {
        let telling = scope.spawn(|| frozen.facts().count());
        while !telling.is_finished() {
            bench.now += 1;
            for step in [Bench::send_one, Bench::receive_one, Bench::complete] {
                let start = Instant::now();
                step(&mut bench, &mut tokens);
                taken.push(u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX));
            }
        }
        telling.join().expect("telling a snapshot does not panic")
    });
    taken.sort_unstable();
    let quantile = |per_mille: usize| {
        let place = taken.len().saturating_sub(1) * per_mille / 1_000;
        taken.get(place).map_or(0.0, |ns| f64::from(*ns) / 1e3)
    };
    println!(
        "{depth} waiting, {told} facts told meanwhile: {} decisions, p50 {:.1} µs, p99.9 {:.1} µs, longest {:.1} µs",
        taken.len(),
        quantile(500),
        quantile(999),
        quantile(1_000)
    );
}

/// How long the deletion of a full queue holds everything up.
fn deletion(depth: usize) {
    let mut bench = Bench::new(4, Policy::Strict);
    bench.fill(depth);
    let path = EntityPath::parse("bench").expect("a plain path");
    let start = processor_seconds();
    bench.run(&Command::Administer { request: RequestTag(3), change: Box::new(Request::Delete { path }) });
    let took = (processor_seconds() - start) * 1e3;
    println!("{depth} waiting: deleted with their queue in {took:.0} ms");
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let deepest = match (arguments.next().as_deref(), arguments.next()) {
        (Some("--deepest"), Some(count)) => count.parse().unwrap_or(10_000_000),
        _ => 10_000_000,
    };
    println!("messages waiting  bytes per message  send + lock + complete per second");
    // The deepest first: memory that an earlier run gave back would hide what it takes.
    for depth in [10_000_000, 1_000_000, 100_000, 1_000_usize].into_iter().filter(|depth| *depth <= deepest) {
        let before = resident();
        let mut bench = Bench::new(1, Policy::Strict);
        bench.fill(depth);
        let bytes = resident().saturating_sub(before) / u64::try_from(depth).unwrap_or(1);
        bench.throughput(2_000);
        let best = (0..3).map(|_| bench.throughput(8_000)).fold(0.0, f64::max);
        // Later runs live in memory that the first gave back, so only the first says how much it takes.
        let bytes = if depth == deepest { bytes.to_string() } else { String::from("-") };
        println!("{depth:16}  {bytes:>17}  {best:12.0}");
    }
    snapshot(deepest.min(1_000_000));
    decisions_during_snapshot(deepest.min(8_000_000));
    deletion(deepest.min(1_000_000));
    println!("levels  policy  per second, 100000 waiting");
    let aged = Policy::Aged { step: vorrang_engine::Span::seconds(1) };
    for policy in [Policy::Strict, aged, Policy::Deadline, Policy::Fifo] {
        for levels in [1, 4, 256] {
            let mut bench = Bench::new(levels, policy);
            bench.fill(100_000);
            bench.throughput(2_000);
            let best = (0..3).map(|_| bench.throughput(8_000)).fold(0.0, f64::max);
            println!("{levels:6}  {:8}  {best:12.0}", policy.as_str());
        }
    }
}
