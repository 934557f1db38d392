//! Counting what a suite reports: pytest writes `JUnit` XML, node's runner TAP, Go's a line per test.

use std::fmt;

use anyhow::{Context, Result};

/// How many tests ended how.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

impl Tally {
    pub(super) fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Reads the attributes of the `testsuite` element; a test that could not be set up counts as failed.
    pub(super) fn from_junit(text: &str) -> Result<Self> {
        let (_, element) = text.split_once("<testsuite ").context("no <testsuite> in the report")?;
        let number = |name: &str| -> Result<usize> {
            let (_, value) =
                element.split_once(&format!(" {name}=\"")).with_context(|| format!("no {name}"))?;
            let (digits, _) = value.split_once('"').with_context(|| format!("{name} has no end"))?;
            digits.parse().with_context(|| format!("{name} is '{digits}'"))
        };
        let (tests, skipped) = (number("tests")?, number("skipped")?);
        let failed = number("failures")? + number("errors")?;
        Ok(Tally { passed: tests.saturating_sub(failed + skipped), failed, skipped })
    }

    /// Reads the summary at the end of a TAP stream; a cancelled test (it timed out) counts as failed.
    pub(super) fn from_tap(text: &str) -> Result<Self> {
        let number = |name: &str| -> Result<usize> {
            let line = text.lines().rev().find_map(|line| line.strip_prefix(&format!("# {name} ")));
            let digits = line.with_context(|| format!("no '# {name}' in the report"))?;
            digits.trim().parse().with_context(|| format!("{name} is '{digits}'"))
        };
        let failed = number("fail")? + number("cancelled")?;
        Ok(Tally { passed: number("pass")?, failed, skipped: number("skipped")? })
    }

    /// Counts the lines of Go's runner, those of tests inside tests left out: they are indented.
    pub(super) fn from_go(text: &str) -> Result<Self> {
        let count = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        let (passed, failed, skipped) = (count("--- PASS: "), count("--- FAIL: "), count("--- SKIP: "));
        anyhow::ensure!(passed + failed + skipped > 0, "no test in the report:\n{text}");
        Ok(Tally { passed, failed, skipped })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junit_errors_count_as_failures() {
        let text = r#"<?xml version="1.0"?><testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10" time="1.0">"#;
        assert_eq!(Tally::from_junit(text).unwrap(), Tally { passed: 4, failed: 3, skipped: 3 });
        assert!(Tally::from_junit("").is_err());
        assert!(Tally::from_junit("<testsuite name=\"cut").is_err());
    }

    #[test]
    fn tap_counts_are_those_of_the_last_summary() {
        let text =
            "# pass 1\nok 1 - a\n# tests 9\n# pass 5\n# fail 1\n# cancelled 1\n# skipped 2\n# todo 0\n";
        assert_eq!(Tally::from_tap(text).unwrap(), Tally { passed: 5, failed: 2, skipped: 2 });
        assert!(Tally::from_tap("# pass 1\n").is_err());
    }

    #[test]
    fn go_tests_are_counted_by_their_lines() {
        let text = "=== RUN   TestA\n--- PASS: TestA (0.1s)\n--- FAIL: TestB (0.1s)\n    --- PASS: TestB/part (0s)\nFAIL\n";
        assert_eq!(Tally::from_go(text).unwrap(), Tally { passed: 1, failed: 1, skipped: 0 });
        assert!(Tally::from_go("build failed").is_err());
    }

    #[test]
    fn the_summary_line_names_skipped_tests_only_if_there_are_some() {
        assert_eq!(Tally { passed: 2, failed: 1, skipped: 0 }.to_string(), "2 passed, 1 failed");
        assert_eq!(Tally { passed: 2, failed: 0, skipped: 1 }.to_string(), "2 passed, 0 failed, 1 skipped");
    }
}
