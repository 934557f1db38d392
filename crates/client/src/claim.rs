//! Who we claim to be towards `$cbs`: tokens made from a key, or one token made elsewhere.

use std::fmt;
use std::time::{Duration, SystemTime};

use crate::sas;

/// Makes the tokens for entities.
#[derive(Clone)]
pub(crate) struct Claimant {
    source: Source,
    host: String,
    lifetime: Duration,
}

#[derive(Clone)]
enum Source {
    Key { name: String, key: String },
    Token(String),
}

/// A token for one entity.
pub(crate) struct Token {
    pub(crate) audience: String,
    pub(crate) text: String,
    pub(crate) expires: Option<SystemTime>,
    /// When to put a newer one; none if there can be none.
    pub(crate) renew_after: Option<Duration>,
}

impl fmt::Debug for Claimant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claimant(***)")
    }
}

impl Claimant {
    pub(crate) fn from_key(host: &str, name: &str, key: &str, lifetime: Duration) -> Self {
        let source = Source::Key { name: name.to_owned(), key: key.to_owned() };
        Claimant { source, host: host.to_owned(), lifetime }
    }

    pub(crate) fn from_token(host: &str, token: &str) -> Self {
        Claimant { source: Source::Token(token.to_owned()), host: host.to_owned(), lifetime: Duration::MAX }
    }

    /// A token for an entity, good from now on.
    pub(crate) fn token(&self, entity: &str) -> Token {
        let audience = format!("sb://{}/{entity}", self.host);
        match &self.source {
            Source::Token(text) => Token { audience, text: text.clone(), expires: None, renew_after: None },
            Source::Key { name, key } => {
                let now = SystemTime::now();
                let expires = now.checked_add(self.lifetime).unwrap_or(now);
                let text = sas::token(name, key, &audience, expires);
                // Early enough for several attempts before the old one ends.
                let renew_after = self.lifetime.mul_f64(0.75);
                Token { audience, text, expires: Some(expires), renew_after: Some(renew_after) }
            }
        }
    }
}
