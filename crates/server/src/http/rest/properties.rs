//! `BrokerProperties`: what Service Bus knows about a message, as a JSON object.

use axum::http::HeaderName;
use serde_json::{Map, Value};
use vorrang_engine::{Span, Timestamp};

use crate::date;
use crate::http::fault::Fault;

/// The header, in both directions.
pub(super) const HEADER: HeaderName = HeaderName::from_static("brokerproperties");
/// The same as the service writes it.
pub(super) const HEADER_WRITTEN: &str = "BrokerProperties";

/// Longer than any set of properties that could be accepted.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// What a sender may say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) message_id: Option<String>,
    pub(super) correlation_id: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) label: Option<String>,
    pub(super) reply_to: Option<String>,
    pub(super) reply_to_session_id: Option<String>,
    pub(super) to: Option<String>,
    pub(super) time_to_live: Option<Span>,
    pub(super) scheduled: Option<Timestamp>,
    pub(super) partition_key: Option<String>,
    pub(super) via_partition_key: Option<String>,
}

impl Sent {
    /// Reads the header's text.
    pub(super) fn parse(text: &str) -> Result<Sent, Fault> {
        if text.len() > TEXT_BYTES_MAX {
            let text = format!("BrokerProperties exceed the limit of {TEXT_BYTES_MAX} bytes.");
            return Err(Fault::malformed(text));
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Sent::of(&object),
            _ => Err(Fault::malformed("BrokerProperties must be a JSON object.")),
        }
    }

    /// Reads the object. Keys in any case; what only the broker can say, and what nobody knows, is ignored.
    pub(super) fn of(object: &Map<String, Value>) -> Result<Sent, Fault> {
        let mut sent = Sent::default();
        for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
            let wrong =
                |allowed: &str| Fault::malformed(format!("'{key}' in BrokerProperties must be {allowed}."));
            let text = || value.as_str().map(str::to_owned).ok_or_else(|| wrong("a string"));
            match key.to_ascii_lowercase().as_str() {
                "messageid" => sent.message_id = Some(text()?),
                "correlationid" => sent.correlation_id = Some(text()?),
                "sessionid" => sent.session_id = Some(text()?),
                "label" | "subject" => sent.label = Some(text()?),
                "replyto" => sent.reply_to = Some(text()?),
                "replytosessionid" => sent.reply_to_session_id = Some(text()?),
                "to" => sent.to = Some(text()?),
                "partitionkey" => sent.partition_key = Some(text()?),
                "viapartitionkey" => sent.via_partition_key = Some(text()?),
                "timetolive" => {
                    let span = seconds(value).ok_or_else(|| wrong("a number of seconds above zero"))?;
                    sent.time_to_live = Some(span);
                }
                "timetolivetimespan" => {
                    let span = value.as_str().and_then(timespan);
                    sent.time_to_live = Some(span.ok_or_else(|| wrong("a time span like 1.02:03:04"))?);
                }
                "scheduledenqueuetimeutc" => {
                    let at = value.as_str().and_then(date::parse);
                    let allowed = "a date like 'Sat, 31 Jan 2026 08:15:30 GMT'";
                    sent.scheduled = Some(at.ok_or_else(|| wrong(allowed))?);
                }
                _ => {}
            }
        }
        Ok(sent)
    }
}

/// Seconds with a fraction, as a number or as its text.
fn seconds(value: &Value) -> Option<Span> {
    let seconds = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    let span = std::time::Duration::try_from_secs_f64(seconds).ok()?;
    let milliseconds = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    (milliseconds > 0).then_some(Span(milliseconds))
}

/// .NET's `[d.]hh:mm:ss[.fffffff]`.
fn timespan(text: &str) -> Option<Span> {
    let (days, clock) = match text.split_once('.') {
        Some((days, clock)) if clock.contains(':') => (days.parse::<u64>().ok()?, clock),
        _ => (0, text),
    };
    let mut parts = clock.split(':');
    let hours = parts.next()?.parse::<u64>().ok().filter(|hours| *hours < 24)?;
    let minutes = parts.next()?.parse::<u64>().ok().filter(|minutes| *minutes < 60)?;
    let seconds = parts.next()?.parse::<f64>().ok().filter(|seconds| (0.0..60.0).contains(seconds))?;
    if parts.next().is_some() {
        return None;
    }
    let milliseconds = std::time::Duration::try_from_secs_f64(seconds).ok()?.as_millis();
    let whole = days.checked_mul(86_400)?.checked_add(hours * 3_600 + minutes * 60)?;
    Some(Span(whole.checked_mul(1_000)?.checked_add(u64::try_from(milliseconds).ok()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_a_sender_may_say_is_read() {
        let text = r#"{"MessageId":"m","CorrelationId":"c","SessionId":"s","Label":"l","ReplyTo":"r",
            "ReplyToSessionId":"rs","To":"t","TimeToLive":1.5,"PartitionKey":"p","ViaPartitionKey":"v",
            "ScheduledEnqueueTimeUtc":"Sat, 31 Jan 2026 08:15:30 GMT","ForcePersistence":false,"State":"Active"}"#;
        let some = |text: &str| Some(text.to_owned());
        let expected = Sent {
            message_id: some("m"),
            correlation_id: some("c"),
            session_id: some("s"),
            label: some("l"),
            reply_to: some("r"),
            reply_to_session_id: some("rs"),
            to: some("t"),
            time_to_live: Some(Span(1_500)),
            scheduled: Some(Timestamp(1_769_847_330_000)),
            partition_key: some("p"),
            via_partition_key: some("v"),
        };
        assert_eq!(Sent::parse(text).unwrap(), expected);
    }

    #[test]
    fn time_spans_are_those_of_dotnet() {
        let cases = [
            ("00:00:30", Some(30_000)),
            ("1.02:03:04.5", Some(93_784_500)),
            ("10675199.02:48:05.4775807", Some(922_337_203_685_477)),
            ("24:00:00", None),
            ("00:60:00", None),
            ("1:2", None),
            ("30", None),
            ("99999999999999999999.00:00:00", None),
        ];
        for (text, expected) in cases {
            assert_eq!(timespan(text), expected.map(Span), "{text}");
        }
    }

    #[test]
    fn a_wrong_value_is_named() {
        let cases = [
            ("[]", "must be a JSON object"),
            ("{", "must be a JSON object"),
            (r#"{"MessageId":7}"#, "'MessageId' in BrokerProperties must be a string"),
            (r#"{"TimeToLive":-1}"#, "'TimeToLive'"),
            (r#"{"TimeToLive":0}"#, "'TimeToLive'"),
            (r#"{"TimeToLive":"soon"}"#, "'TimeToLive'"),
            (r#"{"ScheduledEnqueueTimeUtc":"soon"}"#, "'ScheduledEnqueueTimeUtc'"),
            (r#"{"TimeToLiveTimeSpan":"soon"}"#, "'TimeToLiveTimeSpan'"),
        ];
        for (text, expected) in cases {
            let fault = Sent::parse(text).unwrap_err();
            assert!(fault.text.contains(expected), "{text}: {}", fault.text);
        }
    }
}
