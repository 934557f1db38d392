//! Any sequence of commands to the engine.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vorrang_engine::fuzzing::check_commands(bytes));
