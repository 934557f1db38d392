//! Records of the log: kind, fixed fields and payload.

#![no_main]

libfuzzer_sys::fuzz_target!(|record: (u8, Vec<u8>, Vec<u8>)| {
    vorrang_broker::journal::fuzzing::check_record(record.0, &record.1, &record.2);
});
