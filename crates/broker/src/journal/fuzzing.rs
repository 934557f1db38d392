//! What the fuzzers call; the tests call the same.

use super::facts;
use super::record::{self, Assembler};
use bytes::Bytes;
use vorrang_log::{Location, RecordView};

/// Reads bytes as a record of the log: whatever they are, the answer is a fact or an error, and a fact
/// that was read is written as the bytes it was read from.
pub fn check_record(kind: u8, fixed: &[u8], payload: &[u8]) {
    let location = Location::from_raw(1 << 32);
    let _ = record::stored(fixed, Bytes::copy_from_slice(payload));
    let mut assembler = Assembler::default();
    for record in record::each(&RecordView { location, kind, fixed, payload }).flatten() {
        let _ = assembler.take(&record);
    }
    if let Ok(fact) = facts::decode(kind, fixed, None) {
        let mut written = Vec::new();
        assert_eq!(facts::encode(&fact, &mut written), Some(kind), "a fact keeps its kind");
        let again = facts::decode(kind, &written, None).map(|fact| format!("{fact:?}"));
        assert_eq!(again, Ok(format!("{fact:?}")), "what was read is written so that it reads the same");
    }
}
