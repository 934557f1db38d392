//! Any bytes as a life of a namespace: nothing panics, everything adds up, and replay equals live.
//!
//! The bytes are read as commands: sends, receives, settlements, sessions, transactions, changes of
//! settings, time passing, messages leaving memory and coming back, restarts. The namespace is small and
//! its limits are low, so that a few hundred bytes reach them. The same function serves libFuzzer, the
//! corpus test and the random runs.

mod read;
mod world;

use read::Bytes;
use world::World;

/// Lives through the bytes. Panics if anything is wrong, which is what a fuzzer waits for.
pub fn check_commands(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let mut world = World::new();
    while !bytes.is_over() {
        world.step(&mut bytes);
    }
    world.rest();
    world.audit();
    world.compare_with_replay();
}

/// Lives through the bytes, then damages the log by them: facts are lost, repeated and out of order.
/// Whatever is left of it, applying it neither panics nor leaves a state that does not add up. Says how
/// many facts did not fit.
pub fn check_damaged_log(bytes: &[u8]) -> u64 {
    let mut choices = Bytes::new(bytes);
    let mut world = World::new();
    while !choices.is_over() {
        world.step(&mut choices);
    }
    let damage = Bytes::new(bytes);
    world.apply_damaged(damage)
}
