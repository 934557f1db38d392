//! What one seed is about: who takes part, and what goes wrong how often.
//!
//! Every seed gets a different mixture, with some faults off and some extreme, so that rare
//! combinations are reached which an average day never sees.

use vorrang_log::dice::Dice;

/// The mixture of one run. Times are in milliseconds.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// How long the busy part lasts.
    pub(crate) length: u64,
    /// The mean pause between two acts of a client.
    pub(crate) pause: u64,
    /// The longest a message is on its way over the network.
    pub(crate) network_delay: u64,
    /// The longest a commit takes.
    pub(crate) disk_delay: u64,
    /// The mean time between crashes; none for never. Half of them are in the middle of a commit.
    pub(crate) crashes: Option<u64>,
    /// The mean time between lost connections.
    pub(crate) cuts: Option<u64>,
    /// The mean time between failing disk calls.
    pub(crate) disk_errors: Option<u64>,
    /// The mean time between periods without disk space.
    pub(crate) disk_full: Option<u64>,
    /// The mean time between stops of the clock.
    pub(crate) freezes: Option<u64>,
    /// What the log may take on disk before old messages must move.
    pub(crate) ring_bytes: u64,
    /// One commit in so many goes with a snapshot.
    pub(crate) snapshots: u64,
    /// How far the clock jumps at a restart, at most.
    pub(crate) jump: u64,
    /// Clients of each role: senders, receivers, session holders, transactors, operators.
    pub(crate) clients: [u64; 5],
}

impl Plan {
    /// Draws the plan of a seed.
    #[must_use]
    pub(crate) fn draw(dice: &mut Dice, length: u64) -> Plan {
        let pause = pick(dice, &[50, 200, 600]);
        let sometimes = |dice: &mut Dice, often: &[u64]| match dice.below(3) {
            0 => None,
            _ => Some(pick(dice, often)),
        };
        Plan {
            length,
            pause,
            network_delay: pick(dice, &[1, 20, 3_000]),
            disk_delay: pick(dice, &[1, 10, 800]),
            crashes: sometimes(dice, &[4_000, 30_000, 120_000]),
            cuts: sometimes(dice, &[3_000, 30_000]),
            disk_errors: sometimes(dice, &[20_000, 90_000]),
            disk_full: sometimes(dice, &[30_000, 120_000]),
            freezes: sometimes(dice, &[20_000, 100_000]),
            ring_bytes: pick(dice, &[1 << 20, 64 << 20]),
            snapshots: pick(dice, &[20, 200, 2_000]),
            jump: pick(dice, &[0, 2_000, 60_000, 86_400_000]),
            clients: [1 + dice.below(3), 1 + dice.below(3), 1 + dice.below(2), dice.below(3), dice.below(2)],
        }
    }
}

fn pick(dice: &mut Dice, choices: &[u64]) -> u64 {
    choices.get(dice.index(choices.len())).copied().unwrap_or_default()
}
