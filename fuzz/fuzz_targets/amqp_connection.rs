//! A whole connection, from the first byte.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vorrang_amqp::connection::fuzzing::check(bytes));
