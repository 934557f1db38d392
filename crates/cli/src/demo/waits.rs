//! How long each class waits.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A class of messages.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) name: &'static str,
    pub(super) level: u8,
    /// How long its messages should wait at most.
    pub(super) target: Option<Duration>,
}

/// The classes, lowest first.
pub(super) const CLASSES: [Class; 4] = [
    Class { name: "low", level: 1, target: None },
    Class { name: "normal", level: 4, target: Some(Duration::from_secs(5)) },
    Class { name: "high", level: 7, target: Some(Duration::from_secs(1)) },
    Class { name: "urgent", level: 9, target: Some(Duration::from_millis(250)) },
];

/// Waits per class, as they come.
#[derive(Debug, Default)]
pub(super) struct Waits {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    classes: [Vec<Duration>; 4],
    tenants: BTreeMap<String, usize>,
    rescued: usize,
}

impl Waits {
    /// A message of this level and tenant has waited so long.
    pub(super) fn add(&self, level: u8, tenant: &str, waited: Duration, rescued: bool) {
        let mut inner = self.lock();
        let index = CLASSES.iter().rposition(|class| class.level <= level).unwrap_or(0);
        if !tenant.is_empty() {
            let served = inner.tenants.entry(tenant.to_owned()).or_default();
            *served = served.saturating_add(1);
        }
        if let Some(waits) = inner.classes.get_mut(index) {
            waits.push(waited);
        }
        inner.rescued += usize::from(rescued && index == 0);
    }

    /// How many low messages were served after they had waited for the rescue.
    pub(super) fn rescued(&self) -> usize {
        self.lock().rescued
    }

    /// How many messages of each tenant were served.
    pub(super) fn tenants(&self) -> BTreeMap<String, usize> {
        self.lock().tenants.clone()
    }

    /// A table, the highest class first.
    pub(super) fn lines(&self) -> Vec<String> {
        let inner = self.lock();
        let mut lines =
            vec![format!("{:<8} {:>8} {:>10} {:>10} {:>10}", "class", "served", "p50", "p95", "target")];
        for (Class { name, target, .. }, waits) in CLASSES.iter().zip(&inner.classes).rev() {
            let mut sorted = waits.clone();
            sorted.sort_unstable();
            let at = |percent: usize| sorted.get(sorted.len() * percent / 100).copied();
            let shown = |wait: Option<Duration>| {
                wait.map_or("-".to_owned(), |wait| format!("{} ms", wait.as_millis()))
            };
            let kept = match (at(95), target) {
                (Some(wait), Some(target)) if wait > *target => "  late",
                _ => "",
            };
            lines.push(format!(
                "{name:<8} {:>8} {:>10} {:>10} {:>10}{kept}",
                sorted.len(),
                shown(at(50)),
                shown(at(95)),
                shown(*target)
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
        waits.add(1, "acme", Duration::from_secs(3), true);
        waits.add(9, "", Duration::from_millis(900), false);
        let lines = waits.lines();
        assert!(lines[1].starts_with("urgent") && lines[1].ends_with("late"), "{lines:?}");
        assert!(lines[2].starts_with("high") && lines[2].contains('-'), "{lines:?}");
        assert!(lines[4].starts_with("low") && !lines[4].ends_with("late"), "{lines:?}");
        assert_eq!(waits.rescued(), 1);
        assert_eq!(waits.tenants().into_iter().collect::<Vec<_>>(), [("acme".to_owned(), 1)]);
    }
}
