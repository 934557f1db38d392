//! Shared access tokens: `SharedAccessSignature sr=…&sig=…&se=…&skn=…`, read once.
//!
//! The signature covers the resource and the expiry *as they stand in the token*, still encoded, so
//! both texts are kept beside their meaning and never encoded again. Fields come in any order; a field
//! given twice is refused, because two readers could choose differently.

use super::percent::{self, Plus};
use super::scope::{self, Scope};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use vorrang_engine::entity::authorization::Secret;
use vorrang_engine::{Span, Timestamp};

/// Bytes of a token: the longest resource, escaped, and the other fields.
pub const TOKEN_BYTES_MAX: usize = scope::ADDRESS_BYTES_MAX + 1_024;
/// Digits of an expiry in seconds: enough for the year 9999 and far beyond.
const EXPIRY_DIGITS_MAX: usize = 12;
/// How long after its expiry a token still counts: clocks differ.
pub const SKEW: Span = Span::minutes(5);

const PREFIX: &str = "SharedAccessSignature ";

/// A token that is well-formed; whether its signature is right is still to be asked.
#[derive(Clone)]
pub struct Token<'a> {
    signed_resource: &'a str,
    signed_expiry: &'a str,
    signature: Vec<u8>,
    key_name: &'a str,
    resource: Scope,
    expires: Timestamp,
}

/// Why a text is not a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Longer than any token.
    #[error("a token of {bytes} bytes exceeds the limit of {TOKEN_BYTES_MAX}")]
    TooLong {
        /// How many bytes were given.
        bytes: usize,
    },
    /// Some other kind of token.
    #[error("the token does not begin with 'SharedAccessSignature'")]
    OtherKind,
    /// A field that must be there is not.
    #[error("the token has no field '{field}'")]
    Missing {
        /// Which one.
        field: &'static str,
    },
    /// A field is there twice.
    #[error("the token has the field '{field}' more than once")]
    Repeated {
        /// Which one.
        field: &'static str,
    },
    /// A field cannot be read.
    #[error("the token's field '{field}' is malformed")]
    Malformed {
        /// Which one.
        field: &'static str,
    },
}

impl<'a> Token<'a> {
    /// Whether a text claims to be a shared access token, whatever its sender calls it.
    #[must_use]
    pub fn is_shared_access(text: &str) -> bool {
        text.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
    }

    /// Reads a token.
    pub fn parse(text: &'a str) -> Result<Token<'a>, Error> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(Error::TooLong { bytes: text.len() });
        }
        if !Token::is_shared_access(text) {
            return Err(Error::OtherKind);
        }
        let fields = text.get(PREFIX.len()..).unwrap_or_default().trim();
        let (mut resource, mut signature, mut expiry, mut key_name) = (None, None, None, None);
        for pair in fields.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (field, slot) = match name {
                "sr" => ("sr", &mut resource),
                "sig" => ("sig", &mut signature),
                "se" => ("se", &mut expiry),
                "skn" => ("skn", &mut key_name),
                _ => continue,
            };
            if slot.replace(value).is_some() {
                return Err(Error::Repeated { field });
            }
        }
        let signed_resource = resource.ok_or(Error::Missing { field: "sr" })?;
        let signed_expiry = expiry.ok_or(Error::Missing { field: "se" })?;
        Ok(Token {
            signed_resource,
            signed_expiry,
            signature: signature_bytes(signature.ok_or(Error::Missing { field: "sig" })?)?,
            key_name: key_name.filter(|name| !name.is_empty()).ok_or(Error::Missing { field: "skn" })?,
            resource: resource_scope(signed_resource)?,
            expires: expiry_time(signed_expiry)?,
        })
    }

    /// The names the key may go by: as written, decoded once, decoded twice (some clients escape twice).
    #[must_use]
    pub fn key_names(&self) -> Vec<String> {
        let mut names = vec![self.key_name.to_owned()];
        while names.len() < 3
            && let Some(last) = names.last()
            && let Ok(decoded) = percent::decode(last, Plus::Literal)
            && decoded != *last
        {
            names.push(decoded);
        }
        names
    }

    /// Whether the signature was made with this key. Takes the same time whatever the answer.
    #[must_use]
    pub fn is_signed_by(&self, key: &Secret) -> bool {
        signer(key, self.signed_resource, self.signed_expiry).verify_slice(&self.signature).is_ok()
    }

    /// The place the token speaks for.
    #[must_use]
    pub fn resource(&self) -> &Scope {
        &self.resource
    }

    /// When the token ends, as it says itself.
    #[must_use]
    pub fn expires(&self) -> Timestamp {
        self.expires
    }
}

impl std::fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token")
            .field("resource", &self.resource)
            .field("expires", &self.expires)
            .field("key_name", &self.key_name)
            .finish_non_exhaustive()
    }
}

/// Makes a token's signature: base64 of the HMAC over the two texts as they will stand in it.
#[must_use]
pub fn sign(key: &Secret, encoded_resource: &str, expiry: &str) -> String {
    STANDARD.encode(signer(key, encoded_resource, expiry).finalize().into_bytes())
}

fn signer(key: &Secret, resource: &str, expiry: &str) -> Hmac<Sha256> {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key.expose().as_bytes()).expect("HMAC takes keys of every length");
    mac.update(resource.as_bytes());
    mac.update(b"\n");
    mac.update(expiry.as_bytes());
    mac
}

fn signature_bytes(text: &str) -> Result<Vec<u8>, Error> {
    let malformed = Error::Malformed { field: "sig" };
    let text = percent::decode(text, Plus::Literal).map_err(|_| malformed.clone())?;
    STANDARD.decode(text).ok().filter(|bytes| bytes.len() == 32).ok_or(malformed)
}

fn resource_scope(text: &str) -> Result<Scope, Error> {
    let malformed = |_| Error::Malformed { field: "sr" };
    let decoded = percent::decode(text, Plus::Space).map_err(malformed)?;
    Scope::of_resource(&decoded).map_err(|_| Error::Malformed { field: "sr" })
}

fn expiry_time(text: &str) -> Result<Timestamp, Error> {
    let digits =
        !text.is_empty() && text.len() <= EXPIRY_DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = text.parse::<u64>().ok().filter(|_| digits).ok_or(Error::Malformed { field: "se" })?;
    Ok(Timestamp(seconds.saturating_mul(1_000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: &str = "wduqmEEk0Rid871vHtLJ2BpFfGGaRgXGFXFla6QakaY%3D";

    #[test]
    fn the_known_token_verifies_with_its_key_and_no_other() {
        let text = format!(
            "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Fqueue.1&sig={SIGNATURE}&se=1893456000&skn=Root"
        );
        let token = Token::parse(&text).unwrap();
        assert!(token.is_signed_by(&Secret::new("SAS_KEY_VALUE")));
        assert!(!token.is_signed_by(&Secret::new("SAS_KEY_VALUe")));
        assert_eq!(token.resource().as_str(), "queue.1");
        assert_eq!(token.expires(), Timestamp(1_893_456_000_000));
        assert!(!format!("{token:?}").contains("wduq"));
    }

    #[test]
    fn fields_come_in_any_order_and_the_prefix_in_any_case() {
        let text = format!("sharedaccesssignature sig={SIGNATURE}&se=1&skn=k&sr=host");
        assert!(Token::parse(&text).is_ok());
    }

    #[test]
    fn malformed_tokens_say_what_is_wrong() {
        let long = "x".repeat(TOKEN_BYTES_MAX + 1);
        let cases = [
            ("", "does not begin"),
            ("Bearer x", "does not begin"),
            ("SharedAccessSignature", "does not begin"),
            ("SharedAccessSignature ", "no field 'sr'"),
            ("SharedAccessSignature sr=h&se=1&skn=k", "no field 'sig'"),
            ("SharedAccessSignature sr=h&sig=S&skn=k", "no field 'se'"),
            ("SharedAccessSignature sr=h&sig=S&se=1", "no field 'skn'"),
            ("SharedAccessSignature sr=h&sig=S&se=1&skn=", "no field 'skn'"),
            ("SharedAccessSignature sr=h&sr=i&sig=S&se=1&skn=k", "'sr' more than once"),
            ("SharedAccessSignature sr=h&sig=S&se=1&se=2&skn=k", "'se' more than once"),
            ("SharedAccessSignature sr=%zz&sig=S&se=1&skn=k", "'sr' is malformed"),
            ("SharedAccessSignature sr=h&sig=AAAA&se=1&skn=k", "'sig' is malformed"),
            ("SharedAccessSignature sr=h&sig=!!&se=1&skn=k", "'sig' is malformed"),
            ("SharedAccessSignature sr=h&sig=S&se=&skn=k", "'se' is malformed"),
            ("SharedAccessSignature sr=h&sig=S&se=1.5&skn=k", "'se' is malformed"),
            ("SharedAccessSignature sr=h&sig=S&se=1e9&skn=k", "'se' is malformed"),
            ("SharedAccessSignature sr=h&sig=S&se=-1&skn=k", "'se' is malformed"),
            ("SharedAccessSignature sr=h&sig=S&se=+1&skn=k", "'se' is malformed"),
            ("SharedAccessSignature sr=h&sig=S&se= 1&skn=k", "'se' is malformed"),
            ("SharedAccessSignature sr=h&sig=S&se=18446744073709551617&skn=k", "'se' is malformed"),
            (&long, "exceeds the limit"),
        ];
        for (text, expected) in cases {
            let text = text.replace("sig=S", &format!("sig={SIGNATURE}"));
            let error = Token::parse(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn key_names_are_tried_raw_and_decoded_up_to_twice() {
        let cases = [
            ("plain", vec!["plain"]),
            ("a%20b", vec!["a%20b", "a b"]),
            ("a%2520b", vec!["a%2520b", "a%20b", "a b"]),
            ("a%252520b", vec!["a%252520b", "a%2520b", "a%20b"]),
            ("100%", vec!["100%"]),
        ];
        for (name, expected) in cases {
            let text = format!("SharedAccessSignature sr=h&sig={SIGNATURE}&se=1&skn={name}");
            assert_eq!(Token::parse(&text).unwrap().key_names(), expected, "{name}");
        }
    }
}
