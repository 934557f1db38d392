//! What a collector wants to be told with every request: most often a key.
//!
//! They are written as OpenTelemetry's `OTEL_EXPORTER_OTLP_HEADERS` is: `name=value`, parted by commas, a value's
//! special characters percent-encoded. None of it is ever shown: not the names either, because a key given without
//! its name looks like one.

use std::fmt;

use ureq::http::{HeaderName, HeaderValue, header};

/// Headers for a collector; nobody needs more.
const COUNT_MAX: usize = 32;
/// Bytes of all of them as they are written.
const BYTES_MAX: usize = 8 * 1024;
/// What the exporter says itself, or HTTP decides.
const RESERVED: [HeaderName; 5] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::HOST,
];

/// Headers that go with every request to a collector.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(HeaderName, HeaderValue)>);

impl Headers {
    /// What they may be, for whoever gives others.
    pub const ALLOWED: &'static str = "a list like authorization=Bearer%20KEY,x-tenant=shop: up to 32 headers of 8192 \
        bytes in all, values percent-encoded, without content-type, content-length, transfer-encoding, connection, host";

    /// Reads a list of them.
    #[must_use]
    pub fn parse(text: &str) -> Option<Headers> {
        if text.len() > BYTES_MAX {
            return None;
        }
        let mut headers = Vec::new();
        // A comma at the end is how lists are written that programs put together.
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=')?;
            let name: HeaderName = name.trim().parse().ok()?;
            let value = decoded(value.trim())?;
            if value.is_empty() || RESERVED.contains(&name) || headers.len() == COUNT_MAX {
                return None;
            }
            let mut value = HeaderValue::from_bytes(&value).ok()?;
            value.set_sensitive(true);
            headers.push((name, value));
        }
        (!headers.is_empty()).then_some(Headers(headers))
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.0.iter().map(|(name, value)| (name, value))
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A value without its percent signs.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
        let (high, low) = (digit()?, digit()?);
        out.push(u8::try_from(high * 16 + low).ok()?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<(String, String)>> {
        let headers = Headers::parse(text)?;
        let plain = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        Some(headers.iter().map(|(name, value)| (name.to_string(), plain(value))).collect())
    }

    #[test]
    fn a_list_is_read_as_opentelemetry_writes_it() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let cases = [
            ("x-key=abc", Some(vec![pair("x-key", "abc")])),
            (" X-Key = abc , x-tenant=shop,", Some(vec![pair("x-key", "abc"), pair("x-tenant", "shop")])),
            ("authorization=Bearer%20a%2Cb%3d%3D", Some(vec![pair("authorization", "Bearer a,b==")])),
            ("authorization=Basic dXNlcg==", Some(vec![pair("authorization", "Basic dXNlcg==")])),
            ("", None),
            (",", None),
            ("key", None),
            ("key=", None),
            ("=value", None),
            ("a b=value", None),
            ("key=%0d%0ax-forged: 1", None),
            ("key=%4", None),
            ("key=%zz", None),
            ("Content-Type=text/plain", None),
            ("host=elsewhere", None),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn there_are_only_so_many_and_so_long_ones() {
        let list =
            |count: usize| (0..count).map(|number| format!("h{number}=x")).collect::<Vec<_>>().join(",");
        assert!(Headers::parse(&list(COUNT_MAX)).is_some() && Headers::parse(&list(COUNT_MAX + 1)).is_none());
        let long = |bytes: usize| format!("h={}", "x".repeat(bytes - 2));
        assert!(Headers::parse(&long(BYTES_MAX)).is_some() && Headers::parse(&long(BYTES_MAX + 1)).is_none());
    }

    #[test]
    fn nothing_of_them_is_shown() {
        let headers = Headers::parse("x-key=hunter2").unwrap();
        assert_eq!(format!("{headers:?}"), "***");
        assert!(headers.iter().all(|(_, value)| !format!("{value:?}").contains("hunter2")));
    }
}
