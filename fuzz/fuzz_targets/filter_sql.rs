//! SQL filters and actions: parsing, printing, evaluation within its budget.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vorrang_filter::fuzzing::check_sql(bytes));
