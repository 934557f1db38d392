//! The emulator's `Config.json`: mistakes of one line each, or definitions without twins.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vorrang_server::definitions::fuzzing::check_emulator(bytes));
