//! JSON bodies of the API: something that can be written again, or a bounded problem.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vorrang_server::http::api::fuzzing::check_body(bytes));
