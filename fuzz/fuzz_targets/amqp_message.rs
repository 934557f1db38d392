//! Message sections.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vorrang_amqp::fuzzing::check_message(bytes));
