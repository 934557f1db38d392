//! What a filter costs: nanoseconds per evaluation, and per publish through an index of rules.
//!
//! `cargo run --release -p vorrang-filter --example filter_bench`
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use vorrang_filter::{
    Action, Correlation, Environment, Filter, MapMessage, Parameters, RuleIndex, Sql, SystemProperty, Value,
};

const FILTERS: [&str; 8] = [
    "color = 'red'",
    "quantity > 100 AND color = 'blue'",
    "sys.Label = 'order' AND region IN ('eu', 'us', 'asia') AND quantity >= 10",
    "customer LIKE 'acme-%'",
    "customer LIKE '%-corp%' OR NOT (priority < 5 AND EXISTS(express))",
    "quantity * price + 10 > 1000",
    "missing = 1 OR missing LIKE 'x' OR color = 'blue'",
    "tenant = '7d444840-9dc0-11d1-b245-5ffdce74fad2' AND color = 'blue'",
];

fn main() {
    let message = MapMessage::new()
        .with("color", "blue")
        .with("quantity", 120_i64)
        .with("price", 9.95)
        .with("region", "eu")
        .with("customer", "acme-industrial-corp-0042")
        .with("priority", 7_i64)
        .with("express", true)
        .with("tenant", "7d444840-9dc0-11d1-b245-5ffdce74fad2")
        .with("number", 50_000_i64)
        .with_system(SystemProperty::Label, "order")
        .with_system(SystemProperty::CorrelationId, "correlation-500");
    let mut next = 0_u128;
    let mut new_id = || {
        next += 1;
        next
    };
    let mut environment = Environment::new(&mut new_id);

    for text in FILTERS {
        let filter = Sql::parse(text, Parameters::new()).expect("the filter parses");
        let cost = nanoseconds(200_000, || {
            let _ = black_box(filter.matches(black_box(&message), &mut environment));
        });
        println!("{cost:>9.1} ns  evaluate  {text}");
    }
    let text = "SET color = 'green'; SET total = quantity * price; SET sys.Label = 'changed'; REMOVE express";
    let action = Action::parse(text, Parameters::new()).expect("the action parses");
    let cost = nanoseconds(100_000, || {
        let _ = black_box(action.apply(black_box(&message), &mut environment));
    });
    println!("{cost:>9.1} ns  apply     {text}");
    let text = FILTERS[2];
    let cost = nanoseconds(50_000, || {
        let _ = black_box(Sql::parse(black_box(text), Parameters::new()));
    });
    println!("{cost:>9.1} ns  parse     {text}");

    for rules in [10_i64, 1000, 100_000] {
        publish(
            &format!("{rules} correlation filters, 1 matches"),
            rules,
            &message,
            &mut environment,
            |number| {
                let matching = rules / 2 == number;
                let value = if matching { 50_000 } else { 1_000_000 + number };
                Correlation::new([], [("number".to_owned(), Value::Int(value))])
                    .expect("there is a field")
                    .into()
            },
        );
    }
    publish(
        "100000 correlation filters on 2 fields, 1 matches",
        100_000,
        &message,
        &mut environment,
        |number| {
            let label = [(SystemProperty::CorrelationId, format!("correlation-{number}"))];
            let color = [("color".to_owned(), Value::from("blue"))];
            Correlation::new(label, color).expect("there is a field").into()
        },
    );
    publish("100000 SQL equalities, 1 matches", 100_000, &message, &mut environment, |number| {
        Sql::parse(&format!("number = {number} AND quantity > 100"), Parameters::new())
            .expect("the filter parses")
            .into()
    });
    publish("64 shapes of one rule each", 64, &message, &mut environment, |number| {
        Sql::parse(&format!("p{number} = 1"), Parameters::new()).expect("the filter parses").into()
    });
    publish("1000 SQL filters without an equality", 1000, &message, &mut environment, |number| {
        Sql::parse(&format!("quantity > {}", number + 120), Parameters::new())
            .expect("the filter parses")
            .into()
    });
}

fn publish(
    name: &str,
    rules: i64,
    message: &MapMessage,
    environment: &mut Environment<'_>,
    filter: impl Fn(i64) -> Filter,
) {
    let mut index = RuleIndex::new();
    for number in 0..rules {
        index.insert(number, &filter(number));
    }
    let mut out = Vec::new();
    let repeats = if index.scanned() > 100 { 2000 } else { 100_000 };
    let cost = nanoseconds(repeats, || {
        out.clear();
        index.matches(black_box(message), environment, &mut out);
    });
    println!("{cost:>9.1} ns  publish   {name} ({} found, {} scanned)", out.len(), index.scanned());
}

/// The best of five runs, per repetition.
fn nanoseconds(repeats: u32, mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..repeats {
            run();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(repeats));
    }
    best
}
