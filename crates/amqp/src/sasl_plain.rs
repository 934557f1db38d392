//! The one message of SASL `PLAIN` (RFC 4616): `[authorization identity] NUL user NUL password`.

use std::fmt;

use bytes::Bytes;

use crate::text::Text;

/// A user and what they claim to know.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainCredentials {
    /// On whose behalf; usually empty.
    pub authorization_identity: Text,
    /// Who.
    pub user: Text,
    /// The secret.
    pub password: Text,
}

/// Why a `PLAIN` response is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlainError {
    /// Not two separators.
    #[error("plain response has {separators} separators instead of 2")]
    Separators {
        /// How many zero bytes there are.
        separators: usize,
    },
    /// Nobody.
    #[error("plain response names no user")]
    EmptyUser,
    /// RFC 4616 asks for UTF-8.
    #[error("plain response is not valid utf-8")]
    InvalidText,
}

impl PlainCredentials {
    /// Reads an initial response.
    pub fn parse(response: &Bytes) -> Result<Self, PlainError> {
        let mut parts = response.split(|byte| *byte == 0);
        let (Some(identity), Some(user), Some(password), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            let separators = response.split(|byte| *byte == 0).count().saturating_sub(1);
            return Err(PlainError::Separators { separators });
        };
        if user.is_empty() {
            return Err(PlainError::EmptyUser);
        }
        let text = |part| Text::from_utf8(response.slice_ref(part)).map_err(|_| PlainError::InvalidText);
        Ok(Self { authorization_identity: text(identity)?, user: text(user)?, password: text(password)? })
    }

    /// The initial response with these credentials.
    pub fn to_response(&self) -> Bytes {
        let parts = [self.authorization_identity.as_bytes(), self.user.as_bytes(), self.password.as_bytes()];
        Bytes::from(parts.join(&0))
    }
}

impl fmt::Debug for PlainCredentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PlainCredentials")
            .field("authorization_identity", &self.authorization_identity)
            .field("user", &self.user)
            .field("password", &"***")
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_response_ends_in_credentials_or_in_a_named_mistake() {
        type Parts = Result<(&'static str, &'static str, &'static str), PlainError>;
        let separators = |separators| Err(PlainError::Separators { separators });
        let cases: [(&[u8], Parts); 9] = [
            (b"\0user\0secret", Ok(("", "user", "secret"))),
            (b"other\0user\0secret", Ok(("other", "user", "secret"))),
            (b"\0user\0", Ok(("", "user", ""))),
            (b"", separators(0)),
            (b"user", separators(0)),
            (b"\0user", separators(1)),
            (b"\0user\0sec\0ret", separators(3)),
            (b"\0\0secret", Err(PlainError::EmptyUser)),
            (b"\0user\0\xff", Err(PlainError::InvalidText)),
        ];
        for (response, expected) in cases {
            let parsed = PlainCredentials::parse(&Bytes::from_static(response));
            let parts = parsed.as_ref().map(|credentials| {
                (
                    credentials.authorization_identity.as_str(),
                    credentials.user.as_str(),
                    credentials.password.as_str(),
                )
            });
            assert_eq!(parts, expected.as_ref().map(|parts| *parts), "{response:?}");
            if let Ok(credentials) = &parsed {
                assert_eq!(credentials.to_response(), response);
            }
        }
    }

    #[test]
    fn a_password_never_shows_in_debug_output() {
        let credentials = PlainCredentials::parse(&Bytes::from_static(b"\0user\0secret"));
        assert!(!format!("{credentials:?}").contains("secret"));
    }
}
