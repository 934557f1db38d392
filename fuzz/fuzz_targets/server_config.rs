//! The configuration file: mistakes of one line each, or settings that are shown and read again.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vorrang_server::config::fuzzing::check_toml(bytes));
