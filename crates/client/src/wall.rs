//! Wall time between the system's form and AMQP's: milliseconds since 1970.

use std::time::{Duration, SystemTime};

use vorrang_amqp::value::Timestamp;

/// The wire's form of a time; what 64 bits cannot say is held at their ends.
pub(crate) fn timestamp(at: SystemTime) -> Timestamp {
    match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
        Err(before) => {
            let before = i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX);
            Timestamp(before.checked_neg().unwrap_or(i64::MIN))
        }
    }
}

/// The system's form of a time on the wire; none if the system cannot say it.
pub(crate) fn system_time(at: Timestamp) -> Option<SystemTime> {
    let distance = Duration::from_millis(at.0.unsigned_abs());
    if at.0 >= 0 {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_both_ways() {
        for milliseconds in [0, 1, -1, 1_767_225_600_123, -62_135_596_800_000] {
            let at = Timestamp(milliseconds);
            assert_eq!(system_time(at).map(timestamp), Some(at));
        }
    }
}
