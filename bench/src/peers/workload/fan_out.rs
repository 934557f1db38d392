//! W8: one place to send to, and many filtered subscriptions behind it. Nobody receives while it is measured.
//!
//! Afterwards one subscription is drained, to see that it has what its filter lets through.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::{Figures, Running, Scale, count, flow, put};
use crate::peers::peer::{FanOut, Layout, Peer};

/// Subscriptions at most; Service Bus allows 2,000 for one topic. More keys than that share subscriptions.
const SUBSCRIPTIONS_MAX: u32 = 1_000;
/// Keys that messages have; a subscription that wants another one stays empty.
const KEYS: u64 = 10_000;
const END_WAIT: Duration = Duration::from_secs(10);

/// Subscriptions behind it.
pub(crate) fn count_of(behind: FanOut) -> u32 {
    match behind {
        FanOut::Expressions(number) => number,
        FanOut::Keys(number) => number.min(SUBSCRIPTIONS_MAX),
    }
}

/// The filter of one subscription: the last digit of the key, which ten of a hundred share.
pub(crate) fn expression(subscription: u32, property: &str) -> String {
    format!("{property} LIKE '%{}'", subscription % 10)
}

/// The keys one subscription wants.
pub(crate) fn keys_of(behind: FanOut, subscription: u32) -> Vec<u32> {
    match behind {
        FanOut::Expressions(_) => Vec::new(),
        FanOut::Keys(number) => {
            (subscription..number).step_by(usize::try_from(SUBSCRIPTIONS_MAX).unwrap_or(1)).collect()
        }
    }
}

fn key(number: u64) -> u32 {
    u32::try_from(number % KEYS).unwrap_or(0)
}

pub(crate) fn run(peer: &dyn Peer, behind: FanOut, scale: &Scale) -> Result<Figures> {
    let layout = Layout::FanOut(behind);
    let running = Running::start(peer, layout)?;
    // Every key once, so that what is measured has been touched.
    flow::fill(&running, KEYS, 1, scale.measured, Some(key))?;
    let cpu = running.daemon.cpu()?;
    let began = Instant::now();
    let sent = flow::fill(&running, u64::MAX, 1, scale.measured, Some(key))?;
    let seconds = began.elapsed().as_secs_f64();
    let cpu = running.daemon.cpu()?.saturating_sub(cpu).as_secs_f64();
    let mut receiver = running.clients.subscriber(0, 10)?;
    let mut found = None;
    let asked = Instant::now();
    while found.is_none() {
        receiver.poll(Duration::from_millis(20), &mut |delivery| found = Some(key(delivery.stamp.number)))?;
        if asked.elapsed() > END_WAIT {
            bail!("the first subscription is empty");
        }
    }
    let expected = match behind {
        FanOut::Expressions(_) => found.is_some_and(|key| key % 10 == 0),
        FanOut::Keys(_) => found.is_some_and(|key| keys_of(behind, 0).contains(&key)),
    };
    if !expected {
        bail!("the first subscription has a message of key {found:?}");
    }
    let mut figures = Figures::new();
    put(&mut figures, "rate", count(sent) / seconds);
    put(&mut figures, "cpu_us", cpu * 1e6 / count(sent).max(1.0));
    put(
        &mut figures,
        "copies",
        if matches!(behind, FanOut::Expressions(_)) { f64::from(count_of(behind)) / 10.0 } else { 1.0 },
    );
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_wanted_by_one_subscription() {
        let behind = FanOut::Keys(10_000);
        let mut all: Vec<u32> = (0..count_of(behind)).flat_map(|number| keys_of(behind, number)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10_000).collect::<Vec<_>>());
        assert_eq!((count_of(FanOut::Keys(10)), keys_of(FanOut::Keys(10), 3)), (10, vec![3]));
    }

    #[test]
    fn ten_of_a_hundred_expressions_are_the_same() {
        let same = (0..100).filter(|number| expression(*number, "k") == "k LIKE '%7'").count();
        assert_eq!(same, 10);
    }
}
