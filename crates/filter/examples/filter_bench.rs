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
    let message = order(500);
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

    for rules in [10, 1000, 100_000] {
        publish(&format!("{rules} correlation filters, 1 matches"), rules, &mut environment, |number| {
            Correlation::new([], [("number".to_owned(), Value::Int(number))])
                .expect("there is a field")
                .into()
        });
    }
    publish("100000 correlation filters on 2 fields, 1 matches", 100_000, &mut environment, |number| {
        let id = [(SystemProperty::CorrelationId, format!("correlation-{number}"))];
        let color = [("color".to_owned(), Value::from("blue"))];
        Correlation::new(id, color).expect("there is a field").into()
    });
    publish("100000 SQL filters with an equality, 1 matches", 100_000, &mut environment, |number| {
        parse(&format!("number = {number} AND quantity > 100"))
    });
    publish("64 shapes of one rule each, none matches", 64, &mut environment, |number| {
        parse(&format!("p{number} = 1"))
    });
    publish("1000 SQL filters without an equality, none matches", 1000, &mut environment, |number| {
        parse(&format!("quantity > {}", number + 120))
    });
}

fn order(number: i64) -> MapMessage {
    MapMessage::new()
        .with("color", "blue")
        .with("quantity", 120_i64)
        .with("price", 9.95)
        .with("region", "eu")
        .with("customer", "acme-industrial-corp-0042")
        .with("priority", 7_i64)
        .with("express", true)
        .with("tenant", "7d444840-9dc0-11d1-b245-5ffdce74fad2")
        .with("number", number)
        .with_system(SystemProperty::Label, "order")
        .with_system(SystemProperty::CorrelationId, format!("correlation-{number}"))
}

fn parse(text: &str) -> Filter {
    Sql::parse(text, Parameters::new()).expect("the filter parses").into()
}

/// Messages ask for rules all over the index, so that what is measured does not stay in a cache.
fn publish(name: &str, rules: i64, environment: &mut Environment<'_>, filter: impl Fn(i64) -> Filter) {
    let mut index = RuleIndex::new();
    for number in 0..rules {
        index.insert(number, &filter(number));
    }
    let messages: Vec<MapMessage> = (0..1024).map(|number| order(number * 7919 % rules)).collect();
    let mut next = messages.iter().cycle();
    let mut out = Vec::new();
    let repeats = if index.scanned() > 100 { 2000 } else { 100_000 };
    let cost = nanoseconds(repeats, || {
        out.clear();
        if let Some(message) = next.next() {
            index.matches(black_box(message), environment, &mut out);
        }
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
