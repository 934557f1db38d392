//! A disk that has rested, before a measurement in which milliseconds count.
//!
//! What was synced is not always done with. The disk of a virtual machine may be a file in somebody's memory: gigabytes that a
//! server has written, or that went when its folder was removed, go on to the device for a minute or so, and meanwhile a single
//! sync takes up to half a second. So whoever came after a server that had written a lot looked slow. Before such a measurement
//! the disk is watched until it is calm; not for ever, because others may use it, too: neither for one measurement nor for all of
//! a run together.

use std::time::Duration;

use anyhow::Result;

use crate::disk::{self, Blocks};
use crate::histogram::Histogram;

const BYTES: usize = 4_096;
/// Between two synced writes: few, so that the disk has its rest.
const TICK: Duration = Duration::from_millis(5);
const LOOK: Duration = Duration::from_secs(2);
/// What one measurement may wait.
const PATIENCE: Duration = Duration::from_secs(90);
/// What all of a run may wait together. After that there is one look before each of them.
const PATIENCE_OF_A_RUN: Duration = Duration::from_mins(10);
/// How many times what the disk takes when nothing is in the way one write of a hundred may take.
const CALM: f64 = 5.0;

/// How long a run may go on waiting.
pub(crate) struct Rest {
    left: Duration,
}

impl Rest {
    pub(crate) const fn new() -> Rest {
        Rest { left: PATIENCE_OF_A_RUN }
    }

    /// Waits until the disk is calm, and says so where it takes long.
    pub(crate) fn wait(&mut self) -> Result<()> {
        let mut blocks = Blocks::new(&std::env::temp_dir(), BYTES)?;
        let (calm, waited) = self.look(|| Ok((is_calm(&disk::look(&mut blocks, TICK, LOOK)?), LOOK)))?;
        if calm && waited > 3 * LOOK {
            println!("the disk has rested for {:.0} s", waited.as_secs_f64());
        }
        if !calm {
            println!("the disk is not calm after {:.0} s: others use it", waited.as_secs_f64());
        }
        Ok(())
    }

    /// Looks until it is calm or patience is at its end; whether it is, and the time that took. Each look says whether it
    /// saw a calm disk, and how long it took.
    fn look(&mut self, mut one: impl FnMut() -> Result<(bool, Duration)>) -> Result<(bool, Duration)> {
        let mut waited = Duration::ZERO;
        loop {
            let (calm, took) = one()?;
            waited += took;
            // The first one is part of every measurement.
            let waits = waited > took;
            self.left = self.left.saturating_sub(if waits { took } else { Duration::ZERO });
            if calm || waited >= PATIENCE || self.left.is_zero() {
                return Ok((calm, waited));
            }
        }
    }
}

/// Whether hardly a write takes longer than the fastest ones.
fn is_calm(writes: &Histogram) -> bool {
    writes.quantile_ms(990) <= CALM * writes.quantile_ms(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_calm_when_hardly_a_write_takes_much_longer_than_the_fastest() {
        let writes = |slow: u32, millis: u64| {
            let mut histogram = Histogram::new();
            (0..400 - slow).for_each(|_| histogram.record(Duration::from_micros(300)));
            (0..slow).for_each(|_| histogram.record(Duration::from_millis(millis)));
            histogram
        };
        for (slow, millis, calm) in
            [(0, 0, true), (3, 50, true), (200, 1, true), (8, 50, false), (300, 20, false)]
        {
            assert_eq!(is_calm(&writes(slow, millis)), calm, "{slow} of 400 take {millis} ms");
        }
    }

    #[test]
    fn one_measurement_waits_for_a_while_and_all_of_a_run_have_a_bound_too() {
        let mut rest = Rest::new();
        let mut restless = || rest.look(|| Ok((false, LOOK))).unwrap();
        assert_eq!(restless(), (false, PATIENCE));
        let rests = PATIENCE_OF_A_RUN.as_secs() / PATIENCE.saturating_sub(LOOK).as_secs();
        (0..rests).for_each(|_| assert!(!restless().0));
        assert_eq!(restless(), (false, LOOK), "one look when patience is at its end");
        let mut looks = [false, false, true].into_iter();
        let calming = Rest::new().look(|| Ok((looks.next().unwrap(), LOOK))).unwrap();
        assert_eq!(calming, (true, 3 * LOOK));
    }
}
