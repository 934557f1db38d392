//! What publishing costs as a topic gets more rules, and more subscriptions.
//!
//! `cargo run --release -p vorrang-engine --example fan_out_bench [-- --idle]`
//!
//! Every message is decided and applied. With correlation rules each message matches one of them, so
//! the cost of finding it shows; with catch-all subscriptions each message is copied to all of them, so
//! the cost of a copy shows. Times are of the processor, so that they hold on a busy machine. With
//! `--idle`, the memory of subscriptions that nobody has published to.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::sync::Arc;

use bytes::Bytes;
use smallvec::smallvec;
use vorrang_engine::command::Send;
use vorrang_engine::entity::{EntityName, Request, RuleDescription, RuleName, SubscriptionName};
use vorrang_engine::{
    Command, EntityId, Incoming, Limits, Location, NoPayloads, Outcome, RequestTag, State, Timestamp,
};
use vorrang_filter::{Correlation, Filter, MapMessage, SystemProperty, Value};

/// Subscriptions that are never used.
const IDLE: usize = 100_000;

struct Bench {
    state: State,
    location: u64,
}

impl Bench {
    fn new() -> Bench {
        let mut limits = Limits::default();
        limits.entities.subscriptions_per_topic_max = IDLE;
        limits.entities.sql_filters_per_topic_max = IDLE;
        let mut bench = Bench { state: State::new(limits), location: 0 };
        bench.run(&Command::Create { seed: 1 });
        bench.administer(Request::CreateTopic { name: topic(), settings: Vec::new() });
        bench
    }

    fn run(&mut self, command: &Command) -> usize {
        let mut outcome = Outcome::default();
        self.state.decide(Timestamp(1), command, &NoPayloads, &mut outcome).expect("the step is possible");
        let mut copies = 0;
        for mut fact in outcome.facts {
            if let Some(payload) = fact.payload_mut() {
                self.location += 1;
                payload.location = Location(self.location);
            }
            if let vorrang_engine::Fact::Published { copies: made, .. } = &fact {
                copies += made.len();
            }
            self.state.apply(&fact);
        }
        copies
    }

    fn administer(&mut self, change: Request) {
        self.run(&Command::Administer { request: RequestTag(0), change: Box::new(change) });
    }

    fn subscribe(&mut self, name: &str, first_rule: Option<RuleDescription>) {
        let name = SubscriptionName::parse(name).expect("a plain name");
        self.administer(Request::CreateSubscription {
            topic: topic(),
            name,
            settings: Vec::new(),
            first_rule,
        });
    }

    /// Publishes messages with these labels in turn; microseconds and copies for each.
    fn publish(&mut self, messages: u32, labels: u32) -> (f64, f64) {
        let payload = Bytes::from(vec![0; 200]);
        let labelled = |number: u32| {
            let label = Value::String(format!("label-{number}").into());
            Incoming::new(
                payload.clone(),
                Arc::new(MapMessage::new().with_system(SystemProperty::Label, label)),
            )
        };
        let variety: Vec<_> =
            (0..labels.min(1_000)).map(|number| labelled(number * labels.div_ceil(1_000))).collect();
        let mut copies = 0;
        let start = processor_seconds();
        for message in variety.iter().cycle().take(usize::try_from(messages).unwrap_or(0)) {
            let messages = smallvec![message.clone()];
            let send =
                Send { request: RequestTag(0), entity: EntityId(0), via: None, transaction: None, messages };
            copies += self.run(&Command::Send(send));
        }
        let each = f64::from(messages);
        let copies = f64::from(u32::try_from(copies).unwrap_or(u32::MAX));
        ((processor_seconds() - start) * 1e6 / each, copies / each)
    }
}

fn topic() -> EntityName {
    EntityName::parse("topic").expect("a plain name")
}

fn correlation(number: u32) -> RuleDescription {
    let fields = [(SystemProperty::Label, format!("label-{number}"))];
    let filter = Filter::Correlation(Arc::new(Correlation::new(fields, []).expect("one field")));
    RuleDescription {
        name: RuleName::parse(&format!("r{number}")).expect("a plain name"),
        filter,
        action: None,
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

/// Measured alone, because what was freed before would be used again.
fn idle_memory() {
    let before = resident();
    let mut bench = Bench::new();
    for number in 0..IDLE {
        bench.subscribe(&format!("s{number}"), None);
    }
    let each = resident().saturating_sub(before) / u64::try_from(IDLE).unwrap_or(1);
    println!("{IDLE} idle subscriptions: {each} bytes each, with their first rule");
}

fn main() {
    if std::env::args().any(|argument| argument == "--idle") {
        return idle_memory();
    }
    println!("correlation rules  copies  microseconds for each message");
    for rules in [1, 100, 10_000, 100_000_u32] {
        let mut bench = Bench::new();
        bench.subscribe("s", Some(correlation(0)));
        for number in 1..rules {
            let subscription = SubscriptionName::parse("s").expect("a plain name");
            let rule = correlation(number);
            bench.administer(Request::CreateRule { topic: topic(), subscription, rule });
        }
        let (time, copies) = bench.publish(50_000, rules);
        println!("{rules:17}  {copies:6.1}  {time:.2}");
    }
    println!("catch-all subscriptions  copies  microseconds for each message");
    for subscriptions in [1, 100, 2_000] {
        let mut bench = Bench::new();
        for number in 0..subscriptions {
            bench.subscribe(&format!("s{number}"), None);
        }
        let (time, copies) = bench.publish(400_000 / subscriptions.max(10), 1);
        println!("{subscriptions:23}  {copies:6.1}  {time:.2}");
    }
}
