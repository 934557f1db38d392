//! The XML of the administration API: a bounded tree or an error, and descriptions read out of it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vorrang_server::http::atom::fuzzing::check_document(bytes));
