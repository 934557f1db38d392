//! AMQP values: reading, writing, reading again.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vorrang_amqp::fuzzing::check_value(bytes));
