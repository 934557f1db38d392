//! Node addresses as clients write them: `q`, `/q`, `amqps://host/q`, percent-encoded or not.
//!
//! A source may also name several entities, the most important first, with `|` between them; no
//! entity's name can contain that character.

use std::borrow::Cow;

use vorrang_engine::entity::EntityPath;
use vorrang_engine::entity::name;

/// The longest address worth looking at.
const ADDRESS_BYTES_MAX: usize = 8 * 1024;

/// What an address means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// The node for tokens.
    Cbs,
    /// One entity, or its `$management` node.
    Entity(EntityPath),
    /// Several entities, to be served in this order.
    Ordered(Vec<EntityPath>),
}

/// Why an address means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    #[error("an address of {bytes} bytes exceeds the limit of {ADDRESS_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("the address is not valid percent-encoded text")]
    Encoding,
    #[error(transparent)]
    Name(#[from] name::Error),
}

impl Address {
    /// Reads an address in any of its spellings.
    pub(super) fn parse(text: &str) -> Result<Address, Error> {
        if text.len() > ADDRESS_BYTES_MAX {
            return Err(Error::TooLong { bytes: text.len() });
        }
        let path = match text.split_once("://") {
            Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
            None => text,
        };
        let path = percent_decoded(path).ok_or(Error::Encoding)?;
        let path = path.trim_matches('/');
        if path.eq_ignore_ascii_case("$cbs") {
            return Ok(Address::Cbs);
        }
        if path.contains('|') {
            let paths = path.split('|').map(|one| EntityPath::parse(one.trim_matches('/')));
            return Ok(Address::Ordered(paths.collect::<Result<_, _>>()?));
        }
        Ok(Address::Entity(EntityPath::parse(path)?))
    }
}

/// Decodes `%xx` once; none if that is broken or not UTF-8.
pub(crate) fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            let code = digit()? * 16 + digit()?;
            bytes.push(u8::try_from(code).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_reaches_the_same_entity() {
        for text in ["a/b", "/a/b", "amqps://host/a/b", "sb://host:5671/a/b/", "a%2Fb", "amqp://host/a%2fb"] {
            let Ok(Address::Entity(path)) = Address::parse(text) else { panic!("{text}") };
            assert_eq!(path.to_string(), "a/b", "{text}");
        }
        assert_eq!(Address::parse("$CBS"), Ok(Address::Cbs));
        assert_eq!(Address::parse("amqps://host/$cbs"), Ok(Address::Cbs));
    }

    #[test]
    fn several_entities_keep_their_order() {
        let Ok(Address::Ordered(paths)) = Address::parse("high|t/subscriptions/s|low/$DeadLetterQueue")
        else {
            panic!("three entities")
        };
        let shown: Vec<String> = paths.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["high", "t/Subscriptions/s", "low/$DeadLetterQueue"]);
    }

    #[test]
    fn what_addresses_nothing_is_refused() {
        for text in ["", "/", "amqps://host", "a%2", "a%zz", "%ff", "a||b", "a|", "q?x", &"x".repeat(9_000)] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }
}
