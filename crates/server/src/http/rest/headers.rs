//! Application properties as HTTP headers, and which headers are none.
//!
//! A value in double quotes is text; one without is a number or a flag if it reads like one, else text.
//! Names are kept as they were written, as far as that is known, and an answer writes them so.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use vorrang_amqp::value::Value;

use super::capitals::Capitals;
use crate::http::fault::Fault;
use crate::http::spelling::Spelling;

/// Headers that mean something to HTTP, to proxies or to us; never properties, in either direction.
const STANDARD: [&str; 47] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "age",
    "allow",
    "alt-svc",
    "authorization",
    "brokerproperties",
    "cache-control",
    "connection",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expect",
    "expires",
    "forwarded",
    "from",
    "host",
    "keep-alive",
    "last-modified",
    "location",
    "max-forwards",
    "origin",
    "pragma",
    "range",
    "referer",
    "retry-after",
    "server",
    "servicebusauthorization",
    "set-cookie",
    "strict-transport-security",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
];

/// Beginnings of such headers.
const PREFIXES: [&str; 8] =
    ["access-control-", "if-", "proxy-", "sec-", "servicebus", "www-", "x-forwarded-", "x-ms-"];

fn is_property(name: &str) -> bool {
    !STANDARD.contains(&name) && !PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The properties among the headers of a request.
pub(super) fn read(headers: &HeaderMap, spelling: &Spelling) -> Result<Vec<(String, Value)>, Fault> {
    let properties = headers.iter().filter(|(name, _)| is_property(name.as_str()));
    properties.map(|(name, value)| Ok((spelling.of(name.as_str()).to_owned(), typed(name, value)?))).collect()
}

fn typed(name: &HeaderName, value: &HeaderValue) -> Result<Value, Fault> {
    let text = std::str::from_utf8(value.as_bytes())
        .map_err(|_| Fault::malformed(format!("The header '{name}' is not UTF-8.")))?
        .trim();
    if text.starts_with('"') {
        let quoted: Result<String, _> = serde_json::from_str(text);
        return quoted
            .map(Value::from)
            .map_err(|_| Fault::malformed(format!("The header '{name}' has a quoted text without an end.")));
    }
    if let Ok(flag) = text.parse::<bool>() {
        return Ok(Value::from(flag));
    }
    if let Ok(number) = text.parse::<i64>() {
        return Ok(i32::try_from(number).map_or(Value::from(number), Value::from));
    }
    let numeric = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    match text.parse::<f64>() {
        Ok(number) if numeric && number.is_finite() => Ok(Value::from(number)),
        _ => Ok(Value::from(text)),
    }
}

/// Headers of an answer. The properties of a message may be ten thousand (64 KiB of them are taken), and clients of HTTP
/// take a few hundred headers: those beyond are left out here, and AMQP receivers get them.
const HEADERS_MAX: usize = 1_000;

/// Adds a property to a response. One whose name cannot be that of a header is left out.
pub(super) fn write(headers: &mut HeaderMap, capitals: &mut Capitals, name: &str, value: &serde_json::Value) {
    let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else { return };
    let fits = headers.len() < HEADERS_MAX || headers.contains_key(&header);
    if !fits || !is_property(header.as_str()) {
        return;
    }
    // JSON escapes what would end a header.
    if let Ok(value) = HeaderValue::from_bytes(value.to_string().as_bytes())
        && headers.try_insert(header, value).is_ok()
    {
        capitals.note(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_type_they_look_like() {
        let cases = [
            ("\"7\"", Value::from("7")),
            ("\"a \\\"b\\\"\"", Value::from("a \"b\"")),
            ("7", Value::from(7_i32)),
            ("-7", Value::from(-7_i32)),
            ("5000000000", Value::from(5_000_000_000_i64)),
            ("2.5", Value::from(2.5_f64)),
            ("1e3", Value::from(1_000.0_f64)),
            ("true", Value::from(true)),
            ("high", Value::from("high")),
            ("nan", Value::from("nan")),
            ("infinity", Value::from("infinity")),
            ("", Value::from("")),
        ];
        for (text, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert("priority", HeaderValue::from_str(text).unwrap());
            headers.insert("host", HeaderValue::from_static("h"));
            headers.insert("x-ms-retrypolicy", HeaderValue::from_static("NoRetry"));
            assert_eq!(
                read(&headers, &Spelling::default()).unwrap(),
                [("priority".to_owned(), expected)],
                "{text}"
            );
        }
    }

    #[test]
    fn a_quoted_text_needs_its_end() {
        let mut headers = HeaderMap::new();
        headers.insert("a", HeaderValue::from_static("\"open"));
        assert!(read(&headers, &Spelling::default()).unwrap_err().text.contains("'a'"));
    }

    #[test]
    fn a_message_with_more_properties_than_there_can_be_headers_has_the_first() {
        let (mut headers, mut capitals) = (HeaderMap::new(), Capitals::default());
        for number in 0..40_000 {
            write(&mut headers, &mut capitals, &format!("P{number}"), &serde_json::Value::from(number));
        }
        assert_eq!(headers.len(), HEADERS_MAX);
        write(&mut headers, &mut capitals, "p0", &serde_json::Value::from("again"));
        assert_eq!((headers.len(), headers.get("P0").unwrap().to_str().unwrap()), (HEADERS_MAX, "\"again\""));
    }

    #[test]
    fn a_property_cannot_become_a_header_of_http() {
        let mut headers = HeaderMap::new();
        let text = serde_json::Value::from("a\r\nSet-Cookie: b");
        for name in ["Content-Length", "Transfer-Encoding", "Set-Cookie", "a b", "a\r\nb", "", "größe"] {
            write(&mut headers, &mut Capitals::default(), name, &text);
        }
        assert!(headers.is_empty());
        write(&mut headers, &mut Capitals::default(), "Color", &text);
        assert_eq!(headers.get("color").unwrap(), "\"a\\r\\nSet-Cookie: b\"");
    }
}
