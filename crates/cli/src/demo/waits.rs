//! How long each class waits.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The classes, lowest first, and how long each should wait at most.
pub(super) const CLASSES: [(&str, Duration); 4] = [
    ("low", Duration::MAX),
    ("normal", Duration::from_secs(5)),
    ("high", Duration::from_secs(1)),
    ("urgent", Duration::from_millis(250)),
];

/// Waits per class, as they come.
#[derive(Debug, Default)]
pub(super) struct Waits {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    classes: [Vec<Duration>; 4],
    rescued: usize,
}

impl Waits {
    /// A message of this level has waited so long.
    pub(super) fn add(&self, level: u8, waited: Duration, rescued: bool) {
        let mut inner = self.lock();
        let index = match level {
            0..=1 => 0,
            2..=4 => 1,
            5..=7 => 2,
            _ => 3,
        };
        if let Some(waits) = inner.classes.get_mut(index) {
            waits.push(waited);
        }
        inner.rescued += usize::from(rescued && index == 0);
    }

    /// How many low messages were served after they had waited for the rescue.
    pub(super) fn rescued(&self) -> usize {
        self.lock().rescued
    }

    /// A table, the highest class first.
    pub(super) fn lines(&self) -> Vec<String> {
        let inner = self.lock();
        let mut lines =
            vec![format!("{:<8} {:>8} {:>10} {:>10} {:>10}", "class", "served", "p50", "p95", "target")];
        for ((name, target), waits) in CLASSES.iter().zip(&inner.classes).rev() {
            let mut sorted = waits.clone();
            sorted.sort_unstable();
            let at = |percent: usize| sorted.get(sorted.len() * percent / 100).copied();
            let shown = |wait: Option<Duration>| {
                wait.map_or("-".to_owned(), |wait| format!("{} ms", wait.as_millis()))
            };
            let target = Some(*target).filter(|target| *target != Duration::MAX);
            let kept = match (at(95), target) {
                (Some(wait), Some(target)) if wait > target => "  late",
                _ => "",
            };
            lines.push(format!(
                "{name:<8} {:>8} {:>10} {:>10} {:>10}{kept}",
                sorted.len(),
                shown(at(50)),
                shown(at(95)),
                shown(target)
            ));
        }
        lines
    }

    /// Nobody panics while holding it.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_tells_who_waits_and_who_is_late() {
        let waits = Waits::default();
        waits.add(1, Duration::from_secs(3), true);
        waits.add(9, Duration::from_millis(900), false);
        let lines = waits.lines();
        assert!(lines[1].starts_with("urgent") && lines[1].ends_with("late"), "{lines:?}");
        assert!(lines[2].starts_with("high") && lines[2].contains('-'), "{lines:?}");
        assert!(lines[4].starts_with("low") && !lines[4].ends_with("late"), "{lines:?}");
        assert_eq!(waits.rescued(), 1);
    }
}
