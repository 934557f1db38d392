//! One or more symbols, as capabilities, locales and mechanisms are given (AMQP 1.0 1.4, `multiple="true"`).

use std::fmt;

use crate::constructor as code;
use crate::decode::Reader;
use crate::encode::{Encode, Output, wire_length};
use crate::error::DecodeError;
use crate::text::Symbol;
use crate::value::{Array, Value};

/// Symbols. A single one may come bare; they always go out as an array, which every client reads.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Symbols(Array);

impl Symbols {
    /// The symbols in order; items of another type are passed over.
    pub fn iter(&self) -> impl Iterator<Item = Symbol> + '_ {
        self.0.iter().filter_map(|item| match item {
            Value::Symbol(symbol) => Some(symbol),
            Value::String(text) => Some(Symbol::from(text)),
            _ => None,
        })
    }

    /// Whether `name` is among them.
    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|symbol| symbol == name)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads an array, or one bare symbol.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.value()? {
            Value::Array(array) => Ok(Self(array)),
            Value::Symbol(symbol) => Ok([symbol].into_iter().collect()),
            Value::String(text) => Ok([Symbol::from(text)].into_iter().collect()),
            other => Err(DecodeError::UnexpectedType {
                expected: "a symbol or an array of symbols",
                code: other.to_encoded().first().copied().unwrap_or(code::NULL),
            }),
        }
    }
}

impl FromIterator<Symbol> for Symbols {
    fn from_iter<I: IntoIterator<Item = Symbol>>(symbols: I) -> Self {
        let symbols: Vec<Symbol> = symbols.into_iter().collect();
        let mut body = vec![code::SYMBOL_8];
        for symbol in &symbols {
            let Ok(length) = u8::try_from(symbol.as_bytes().len()) else { return Self(Array::of(symbols)) };
            body.push(length);
            body.extend_from_slice(symbol.as_bytes());
        }
        Self(Array::from_checked(body.into(), wire_length(symbols.len())))
    }
}

impl Encode for Symbols {
    fn encode<O: Output>(&self, out: &mut O) {
        self.0.encode(out);
    }
}

impl fmt::Debug for Symbols {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}
