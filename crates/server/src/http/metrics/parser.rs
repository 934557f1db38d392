//! A strict reader of the text format, for tests: what Prometheus and promtool object to, this objects to.

use std::collections::{BTreeMap, BTreeSet};

type Labels = BTreeMap<String, String>;

/// One sample: its name, its labels in order, its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: Labels,
    pub(super) value: f64,
}

/// Reads a text, or says what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Vec<Sample>, String> {
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line does not end".to_owned());
    }
    let mut samples = Vec::new();
    let mut seen = BTreeSet::new();
    let mut families = BTreeSet::new();
    let mut current: Option<(String, String)> = None;
    let mut help: Option<String> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, words) = rest.split_once(' ').ok_or(format!("no help text: {line}"))?;
            if words.trim().is_empty() {
                return Err(format!("empty help: {line}"));
            }
            help = Some(name.to_owned());
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or(format!("no type: {line}"))?;
            if help.as_deref() != Some(name) {
                return Err(format!("no help before: {line}"));
            }
            if !families.insert(name.to_owned()) {
                return Err(format!("a family comes twice: {name}"));
            }
            check_family(name, kind)?;
            current = Some((name.to_owned(), kind.to_owned()));
            continue;
        }
        if line.starts_with('#') || line.trim().is_empty() {
            return Err(format!("neither sample nor introduction: {line:?}"));
        }
        let sample = read_sample(line)?;
        let (family, kind) = current.as_ref().ok_or(format!("a sample without a family: {line}"))?;
        let own = if kind == "histogram" {
            ["_bucket", "_sum", "_count"].iter().any(|suffix| sample.name == format!("{family}{suffix}"))
        } else {
            sample.name == *family
        };
        if !own {
            return Err(format!("{} among the samples of {family}", sample.name));
        }
        if kind != "gauge" && sample.value < 0.0 {
            return Err(format!("a count below nothing: {line}"));
        }
        if !seen.insert((sample.name.clone(), sample.labels.clone())) {
            return Err(format!("a series comes twice: {line}"));
        }
        samples.push(sample);
    }
    check_histograms(&samples)?;
    Ok(samples)
}

fn check_family(name: &str, kind: &str) -> Result<(), String> {
    if !is_name(name) {
        return Err(format!("no metric can be called {name}"));
    }
    match kind {
        "counter" if !name.ends_with("_total") => Err(format!("a counter without _total: {name}")),
        "gauge" | "histogram" if name.ends_with("_total") => Err(format!("_total, but no counter: {name}")),
        "counter" | "gauge" | "histogram" => Ok(()),
        other => Err(format!("unknown type {other}")),
    }
}

fn is_name(name: &str) -> bool {
    let first = name.chars().next();
    first.is_some_and(|first| first.is_ascii_lowercase() || first == '_')
        && name
            .chars()
            .all(|character| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_')
}

fn read_sample(line: &str) -> Result<Sample, String> {
    let end = line.find(['{', ' ']).ok_or(format!("no value: {line}"))?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, after) = rest.split_once("=\"").ok_or(format!("no label value: {line}"))?;
            if !is_name(label) {
                return Err(format!("no label can be called {label:?}: {line}"));
            }
            let (value, after) = read_value(after).ok_or(format!("an unquoted label: {line}"))?;
            if labels.insert(label.to_owned(), value).is_some() {
                return Err(format!("a label comes twice: {line}"));
            }
            if let Some(more) = after.strip_prefix(',') {
                rest = more;
            } else {
                rest = after.strip_prefix('}').ok_or(format!("labels do not end: {line}"))?;
                break;
            }
        }
    }
    let value = rest.strip_prefix(' ').ok_or(format!("no space before the value: {line}"))?;
    let value = match value {
        "+Inf" => f64::INFINITY,
        plain => plain.parse().map_err(|_| format!("no number: {line}"))?,
    };
    if !is_name(name) || value.is_nan() {
        return Err(format!("no sample: {line}"));
    }
    Ok(Sample { name: name.to_owned(), labels, value })
}

/// A label's value up to its closing quote, and what follows.
fn read_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                escaped @ ('"' | '\\') => value.push(escaped),
                _ => return None,
            },
            other => value.push(other),
        }
    }
    None
}

/// Buckets grow, end with everything, and agree with the count.
fn check_histograms(samples: &[Sample]) -> Result<(), String> {
    let mut buckets: BTreeMap<(String, Labels), Vec<(f64, f64)>> = BTreeMap::new();
    for sample in samples {
        if let (Some(family), Some(bound)) = (sample.name.strip_suffix("_bucket"), sample.labels.get("le")) {
            let bound =
                if bound == "+Inf" { f64::INFINITY } else { bound.parse().map_err(|_| "no bound")? };
            let mut labels = sample.labels.clone();
            labels.remove("le");
            buckets.entry((family.to_owned(), labels)).or_default().push((bound, sample.value));
        }
    }
    for ((family, labels), buckets) in &buckets {
        let grows = buckets.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let last = buckets.last().copied();
        let count = samples
            .iter()
            .find(|sample| sample.name == format!("{family}_count") && sample.labels == *labels)
            .ok_or(format!("{family} has no count"))?;
        if !grows || last != Some((f64::INFINITY, count.value)) {
            return Err(format!("buckets of {family}{labels:?} do not add up: {buckets:?}"));
        }
        if !samples.iter().any(|sample| sample.name == format!("{family}_sum") && sample.labels == *labels) {
            return Err(format!("{family} has no sum"));
        }
    }
    Ok(())
}

#[test]
fn the_parser_reads_what_is_right_and_objects_to_each_planted_mistake() {
    let right = "# HELP a_total Of a.\n# TYPE a_total counter\na_total{x=\"1\\\"\"} 5\na_total 7\n\
                 # HELP h H.\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 4.5\nh_count 3\n";
    let samples = parse(right).unwrap();
    assert_eq!(samples.len(), 6);
    assert_eq!(samples[0].labels["x"], "1\"");
    let planted = [
        ("the last line does not end", right.trim_end().to_owned()),
        ("no help", right.replace("# HELP a_total Of a.\n", "")),
        ("empty help", right.replace("Of a.", " ")),
        ("no type", right.replace("# TYPE a_total counter\n", "")),
        ("twice the same series", right.replace("a_total 7", "a_total{x=\"1\\\"\"} 7")),
        ("twice the same family", format!("{right}# HELP a_total A.\n# TYPE a_total counter\n")),
        ("a sample in the wrong family", format!("{right}a_total{{x=\"2\"}} 5\n")),
        ("a counter by another name", right.replace("a_total", "a")),
        ("a gauge called total", right.replace("a_total counter", "a_total gauge")),
        ("a quote in a label", right.replace("1\\\"", "1\"")),
        ("a bad escape", right.replace("1\\\"", "1\\x")),
        ("no number", right.replace(" 7", " seven")),
        ("a name with a dash", right.replace("h_", "h-").replace(" h ", " h- ")),
        ("a negative count", right.replace(" 7", " -7")),
        ("buckets that shrink", right.replace("le=\"1\"} 2", "le=\"1\"} 4")),
        ("a count that differs", right.replace("h_count 3", "h_count 4")),
        ("no last bucket", right.replace("h_bucket{le=\"+Inf\"} 3\n", "")),
        ("no sum", right.replace("h_sum 4.5\n", "")),
        ("an empty line", right.replace("h_sum", "\nh_sum")),
    ];
    for (mistake, text) in planted {
        assert!(parse(&text).is_err(), "{mistake}");
    }
}
