//! Cuts the text of a filter or action into tokens.

use super::error::ParseError;

/// A token and where it starts, counted in characters from 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token<'t> {
    pub(crate) kind: Kind,
    /// The token as written.
    pub(crate) text: &'t str,
    pub(crate) position: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// A regular identifier or a keyword; the parser tells them apart.
    Word,
    /// A name in brackets or double quotes, with its doubled delimiters undone.
    Name(Box<str>),
    /// A parameter; its text includes the `@`.
    Parameter,
    /// A string constant, with its doubled quotes undone.
    String(Box<str>),
    /// Kept unsigned, so that the parser can accept −2^63 behind its sign.
    Integer(u64),
    Double(f64),
    /// An operator or a punctuation mark.
    Symbol,
    End,
}

/// All tokens of `text`, the last of them [`Kind::End`].
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, ParseError> {
    let mut lexer = Lexer { rest: text, position: 1 };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.token()?;
        let last = token.kind == Kind::End;
        tokens.push(token);
        if last {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    rest: &'t str,
    position: usize,
}

impl<'t> Lexer<'t> {
    fn token(&mut self) -> Result<Token<'t>, ParseError> {
        self.take_while(char::is_whitespace);
        let position = self.position;
        let start = self.rest;
        let kind = match start.chars().next() {
            None => Kind::End,
            Some('\'') => Kind::String(self.delimited('\'', "a closing quote")?),
            Some('"') => Kind::Name(self.delimited('"', "a closing double quote")?),
            Some('[') => Kind::Name(self.delimited(']', "a closing bracket")?),
            Some('@') => {
                self.take();
                self.word("a parameter name after '@'")?;
                Kind::Parameter
            }
            Some(first) if first.is_ascii_digit() => self.number()?,
            Some(first) if starts_word(first) => {
                self.word("a name")?;
                Kind::Word
            }
            Some(_) => self.symbol()?,
        };
        let text = start.get(..start.len() - self.rest.len()).unwrap_or_default();
        Ok(Token { kind, text, position })
    }

    fn take(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let first = characters.next()?;
        self.rest = characters.as_str();
        self.position += 1;
        Some(first)
    }

    fn take_if(&mut self, accept: impl Fn(char) -> bool) -> bool {
        let accepted = self.rest.chars().next().is_some_and(accept);
        if accepted {
            self.take();
        }
        accepted
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'t str {
        let start = self.rest;
        while self.take_if(&accept) {}
        start.get(..start.len() - self.rest.len()).unwrap_or_default()
    }

    fn expected<T>(&self, expected: &'static str) -> Result<T, ParseError> {
        let found = self.rest.chars().next().map_or("end of text".to_owned(), |next| format!("'{next}'"));
        Err(ParseError::Expected { expected, found, position: self.position })
    }

    fn word(&mut self, expected: &'static str) -> Result<(), ParseError> {
        if !self.take_if(starts_word) {
            return self.expected(expected);
        }
        self.take_while(|character| character.is_alphanumeric() || character == '_');
        Ok(())
    }

    /// Text between delimiters; the closing one stands for itself when doubled.
    fn delimited(&mut self, closing: char, expected: &'static str) -> Result<Box<str>, ParseError> {
        self.take();
        let mut content = String::new();
        loop {
            match self.take() {
                None => return self.expected(expected),
                Some(character) if character == closing => {
                    if !self.take_if(|next| next == closing) {
                        return Ok(content.into());
                    }
                    content.push(closing);
                }
                Some(character) => content.push(character),
            }
        }
    }

    fn number(&mut self) -> Result<Kind, ParseError> {
        let (start, position) = (self.rest, self.position);
        let digit = |character: char| character.is_ascii_digit();
        let mut whole = true;
        self.take_while(digit);
        if self.take_if(|next| next == '.') {
            whole = false;
            if self.take_while(digit).is_empty() {
                return self.expected("a digit after the decimal point");
            }
        }
        if self.take_if(|next| matches!(next, 'e' | 'E')) {
            whole = false;
            self.take_if(|next| matches!(next, '+' | '-'));
            if self.take_while(digit).is_empty() {
                return self.expected("a digit of the exponent");
            }
        }
        if self.rest.chars().next().is_some_and(starts_word) {
            return self.expected("an operator after the number");
        }
        let text = start.get(..start.len() - self.rest.len()).unwrap_or_default();
        let kind = if whole {
            text.parse().ok().map(Kind::Integer)
        } else {
            text.parse().ok().filter(|number: &f64| number.is_finite()).map(Kind::Double)
        };
        kind.ok_or(ParseError::NumberOutOfRange { position })
    }

    fn symbol(&mut self) -> Result<Kind, ParseError> {
        let two = ["<>", "!=", ">=", "<="];
        if two.iter().any(|symbol| self.rest.starts_with(symbol)) {
            self.take();
            self.take();
            return Ok(Kind::Symbol);
        }
        let one = |next| {
            matches!(next, '=' | '<' | '>' | '+' | '-' | '*' | '/' | '%' | '(' | ')' | ',' | '.' | ';')
        };
        if self.take_if(one) {
            return Ok(Kind::Symbol);
        }
        self.expected("a name, a constant or an operator")
    }
}

fn starts_word(character: char) -> bool {
    character.is_alphabetic() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        tokens(text).unwrap().into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn constants_and_names_are_unwrapped() {
        let cases = [
            ("'it''s'", Kind::String("it's".into())),
            ("''", Kind::String("".into())),
            ("[a]]b]", Kind::Name("a]b".into())),
            ("\"a\"\"b\"", Kind::Name("a\"b".into())),
            ("@x1", Kind::Parameter),
            ("_a", Kind::Word),
            ("größe_2", Kind::Word),
            ("007", Kind::Integer(7)),
            ("18446744073709551615", Kind::Integer(u64::MAX)),
            ("1.50", Kind::Double(1.5)),
            ("1.5E3", Kind::Double(1500.0)),
            ("5e-2", Kind::Double(0.05)),
            ("<>", Kind::Symbol),
        ];
        for (text, kind) in cases {
            assert_eq!(kinds(text), [kind, Kind::End], "{text}");
        }
    }

    #[test]
    fn what_is_no_token_is_refused_where_it_stands() {
        let cases = [
            ("a 'b", "expected a closing quote, found end of text at position 5"),
            ("[a", "expected a closing bracket, found end of text at position 3"),
            ("\"a", "expected a closing double quote, found end of text at position 3"),
            ("ä ?", "expected a name, a constant or an operator, found '?' at position 3"),
            ("@1", "expected a parameter name after '@', found '1' at position 2"),
            ("1.", "expected a digit after the decimal point, found end of text at position 3"),
            ("1e", "expected a digit of the exponent, found end of text at position 3"),
            ("0x1F", "expected an operator after the number, found 'x' at position 2"),
            ("  1e999", "number at position 3 is out of range"),
            ("18446744073709551616", "number at position 1 is out of range"),
            ("!", "expected a name, a constant or an operator, found '!' at position 1"),
        ];
        for (text, error) in cases {
            assert_eq!(tokens(text).unwrap_err().to_string(), error, "{text}");
        }
    }

    #[test]
    fn positions_count_characters() {
        let positions: Vec<usize> =
            tokens("ä = 'öö' AND b").unwrap().iter().map(|token| token.position).collect();
        assert_eq!(positions, [1, 3, 5, 10, 14, 15]);
    }
}
