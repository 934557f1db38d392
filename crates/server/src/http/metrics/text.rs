//! Prometheus' text format, version 0.0.4.
//!
//! Every family is introduced once, by HELP and TYPE, and all its samples follow: the type system of this
//! file is that a [`Family`] must end before the next one begins.

use std::fmt::Write as _;

/// What a family's numbers mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only grows, until the process ends.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by size.
    Histogram,
}

/// The text so far.
#[derive(Debug, Default)]
pub(super) struct Text {
    out: String,
}

/// One family, while its samples are written.
#[derive(Debug)]
pub(super) struct Family<'a> {
    text: &'a mut Text,
    name: &'static str,
}

/// Labels of a sample, in order.
pub(super) type Labels<'a> = &'a [(&'static str, &'a str)];

impl Text {
    /// Begins a family.
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { text: self, name }
    }

    /// A family of one sample without labels.
    pub(super) fn single(&mut self, name: &'static str, kind: Kind, help: &str, value: f64) {
        self.family(name, kind, help).sample(&[], value);
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}

impl Family<'_> {
    /// One sample.
    pub(super) fn sample(&mut self, labels: Labels<'_>, value: f64) {
        self.line("", labels, None, value);
    }

    /// One sample that is a count.
    pub(super) fn count(&mut self, labels: Labels<'_>, value: u64) {
        self.sample(labels, float(value));
    }

    /// A histogram: for each bound how many values were at most that, then all of them, and their sum.
    pub(super) fn histogram(
        &mut self,
        labels: Labels<'_>,
        buckets: impl IntoIterator<Item = (f64, u64)>,
        count: u64,
        sum: f64,
    ) {
        for (bound, at_most) in buckets {
            // A count read while others count may lag behind its buckets; the format forbids that.
            self.line("_bucket", labels, Some(&number(bound)), float(at_most.min(count)));
        }
        self.line("_bucket", labels, Some("+Inf"), float(count));
        self.line("_sum", labels, None, sum);
        self.line("_count", labels, None, float(count));
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, bound: Option<&str>, value: f64) {
        let out = &mut self.text.out;
        out.push_str(self.name);
        out.push_str(suffix);
        let labels = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        let mut opened = false;
        for (name, value) in labels {
            out.push(if opened { ',' } else { '{' });
            opened = true;
            out.push_str(name);
            out.push_str("=\"");
            escape(out, value);
            out.push('"');
        }
        out.push_str(if opened { "} " } else { " " });
        out.push_str(&number(value));
        out.push('\n');
    }
}

/// A label's value: backslash, quote and line feed have meanings of their own.
fn escape(out: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}

fn number(value: f64) -> String {
    if value == f64::INFINITY {
        return "+Inf".to_owned();
    }
    format!("{value}")
}

/// Counts beyond 2^53 lose their last digits, as they would in Prometheus.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "samples are floats")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

/// Milliseconds as the seconds that metrics speak of.
pub(super) fn seconds(millis: u64) -> f64 {
    float(millis) / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_numbers_are_plain() {
        let mut text = Text::default();
        let mut family = text.family("vorrang_x", Kind::Gauge, "a \\ and\nmore");
        family.sample(&[("entity", "a\"b\\c\nd"), ("class", "ü")], 0.001);
        family.sample(&[], f64::INFINITY);
        family.count(&[], 1_000_000_000_000);
        assert_eq!(
            text.finish(),
            "# HELP vorrang_x a \\\\ and\\nmore\n# TYPE vorrang_x gauge\n\
             vorrang_x{entity=\"a\\\"b\\\\c\\nd\",class=\"ü\"} 0.001\n\
             vorrang_x +Inf\nvorrang_x 1000000000000\n"
        );
    }

    #[test]
    fn a_histogram_ends_with_everything_its_sum_and_its_count() {
        let mut text = Text::default();
        let mut family = text.family("vorrang_wait_seconds", Kind::Histogram, "waits");
        family.histogram(&[("entity", "q")], [(0.5, 1), (10.0, 4)], 3, 2.5);
        assert_eq!(
            text.finish(),
            "# HELP vorrang_wait_seconds waits\n# TYPE vorrang_wait_seconds histogram\n\
             vorrang_wait_seconds_bucket{entity=\"q\",le=\"0.5\"} 1\n\
             vorrang_wait_seconds_bucket{entity=\"q\",le=\"10\"} 3\n\
             vorrang_wait_seconds_bucket{entity=\"q\",le=\"+Inf\"} 3\n\
             vorrang_wait_seconds_sum{entity=\"q\"} 2.5\n\
             vorrang_wait_seconds_count{entity=\"q\"} 3\n"
        );
    }
}
