//! From tokens to the tree, one function per level of precedence.
//!
//! Conditions and values share one grammar, because what an opening parenthesis starts is known
//! only later. Each operator then checks that its operands are of the right sort.

use super::ast::{Comparison, Like, Node, Parameter, Property};
use super::error::ParseError;
use super::lexer::{Kind, Token, tokens};
use super::like::Pattern;
use super::{Parameters, TEXT_CHARACTERS_MAX};
use crate::error::FilterError;
use crate::number::Operator;
use crate::system::SystemProperty;
use crate::value::{Value, ValueRef};

/// How deeply parentheses, signs, NOTs and function arguments may nest; deeper text is refused.
pub const DEPTH_MAX: usize = 32;

const KEYWORDS: [&str; 11] =
    ["AND", "OR", "NOT", "IN", "LIKE", "ESCAPE", "IS", "NULL", "EXISTS", "TRUE", "FALSE"];
const ACTION_KEYWORDS: [&str; 2] = ["SET", "REMOVE"];

/// Which words cannot be names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Filter,
    Action,
}

pub(crate) struct Parser<'t> {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token<'t>>>,
    end: Token<'t>,
    dialect: Dialect,
    parameters: &'t Parameters,
    depth: usize,
}

/// A node and where its text starts.
struct Parsed {
    node: Node,
    position: usize,
}

impl<'t> Parser<'t> {
    pub(crate) fn new(
        text: &'t str,
        dialect: Dialect,
        parameters: &'t Parameters,
    ) -> Result<Self, ParseError> {
        let length = text.chars().count();
        if length > TEXT_CHARACTERS_MAX {
            return Err(ParseError::TooLong { length, limit: TEXT_CHARACTERS_MAX });
        }
        let tokens = tokens(text)?.into_iter().peekable();
        let end = Token { kind: Kind::End, text: "", position: length + 1 };
        Ok(Self { tokens, end, dialect, parameters, depth: 0 })
    }

    /// A whole filter.
    pub(crate) fn filter(mut self) -> Result<Node, ParseError> {
        let condition = self.or()?;
        let root = condition.condition()?;
        self.expect_end("an operator or the end")?;
        Ok(root)
    }

    /// An expression that must be a value, not a condition.
    pub(crate) fn value(&mut self) -> Result<Node, ParseError> {
        self.additive()?.value()
    }

    pub(crate) fn peek(&mut self) -> &Token<'t> {
        self.tokens.peek().unwrap_or(&self.end)
    }

    pub(crate) fn at_end(&mut self) -> bool {
        self.peek().kind == Kind::End
    }

    pub(crate) fn expect_end(&mut self, expected: &'static str) -> Result<(), ParseError> {
        if self.at_end() { Ok(()) } else { self.expected(expected) }
    }

    pub(crate) fn expected<T>(&mut self, expected: &'static str) -> Result<T, ParseError> {
        let token = self.peek();
        let found = if token.kind == Kind::End {
            "end of text".to_owned()
        } else {
            format!("{:?}", shortened(token.text))
        };
        Err(ParseError::Expected { expected, found, position: token.position })
    }

    pub(crate) fn take_keyword(&mut self, keyword: &str) -> bool {
        let token = self.peek();
        let taken = token.kind == Kind::Word && token.text.eq_ignore_ascii_case(keyword);
        if taken {
            self.tokens.next();
        }
        taken
    }

    pub(crate) fn take_symbol(&mut self, symbol: &str) -> bool {
        let token = self.peek();
        let taken = token.kind == Kind::Symbol && token.text == symbol;
        if taken {
            self.tokens.next();
        }
        taken
    }

    pub(crate) fn expect_symbol(&mut self, symbol: &str, expected: &'static str) -> Result<(), ParseError> {
        if self.take_symbol(symbol) { Ok(()) } else { self.expected(expected) }
    }

    /// `[sys.|user.]name`, and where it starts.
    pub(crate) fn property(&mut self) -> Result<(Property, usize), ParseError> {
        let position = self.peek().position;
        let word = self.peek().kind == Kind::Word;
        let first = self.name()?;
        let scoped = word && self.take_symbol(".");
        if !scoped {
            return Ok((Property::User(first), position));
        }
        if first.eq_ignore_ascii_case("user") {
            return Ok((Property::User(self.name()?), position));
        }
        if !first.eq_ignore_ascii_case("sys") {
            let found = format!("{:?}", shortened(&first));
            return Err(ParseError::Expected { expected: "scope sys or user before '.'", found, position });
        }
        let name_position = self.peek().position;
        let name = self.name()?;
        SystemProperty::parse(&name).map(|property| (Property::System(property), position)).ok_or_else(|| {
            ParseError::UnknownSystemProperty { name: shortened(&name).to_owned(), position: name_position }
        })
    }

    fn is_keyword(&self, word: &str) -> bool {
        let among = |keywords: &[&str]| keywords.iter().any(|keyword| keyword.eq_ignore_ascii_case(word));
        among(&KEYWORDS) || (self.dialect == Dialect::Action && among(&ACTION_KEYWORDS))
    }

    fn name(&mut self) -> Result<Box<str>, ParseError> {
        let name = match self.peek() {
            Token { kind: Kind::Name(name), .. } if !name.is_empty() => name.clone(),
            Token { kind: Kind::Word, text, .. } => {
                let text = *text;
                if self.is_keyword(text) {
                    return self.expected("a property name");
                }
                text.into()
            }
            _ => return self.expected("a property name"),
        };
        self.tokens.next();
        Ok(name)
    }

    /// Runs `parse` one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, ParseError>) -> Result<T, ParseError> {
        if self.depth == DEPTH_MAX {
            return Err(ParseError::TooDeep { position: self.peek().position, limit: DEPTH_MAX });
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn or(&mut self) -> Result<Parsed, ParseError> {
        self.connected("OR", Self::and, Node::Or)
    }

    fn and(&mut self) -> Result<Parsed, ParseError> {
        self.connected("AND", Self::not, Node::And)
    }

    fn connected(
        &mut self,
        keyword: &str,
        operand: fn(&mut Self) -> Result<Parsed, ParseError>,
        connect: fn(Box<[Node]>) -> Node,
    ) -> Result<Parsed, ParseError> {
        let first = operand(self)?;
        if !self.take_keyword(keyword) {
            return Ok(first);
        }
        let position = first.position;
        let mut operands = vec![first.condition()?];
        loop {
            operands.push(operand(self)?.condition()?);
            if !self.take_keyword(keyword) {
                return Ok(Parsed { node: connect(operands.into()), position });
            }
        }
    }

    fn not(&mut self) -> Result<Parsed, ParseError> {
        let position = self.peek().position;
        if !self.take_keyword("NOT") {
            return self.test();
        }
        let operand = self.nested(Self::not)?.condition()?;
        Ok(Parsed { node: Node::Not(operand.into()), position })
    }

    fn test(&mut self) -> Result<Parsed, ParseError> {
        let position = self.peek().position;
        if self.take_keyword("EXISTS") {
            self.expect_symbol("(", "'(' after EXISTS")?;
            let (property, _) = self.property()?;
            self.expect_symbol(")", "')' after the property")?;
            return Ok(Parsed { node: Node::Exists(property), position });
        }
        let subject = self.additive()?;
        let node = if let Some(comparison) = self.take_comparison() {
            let operands = [subject.value()?, self.value()?];
            Node::Compare { comparison, operands: operands.into() }
        } else if self.take_keyword("IS") {
            let negated = self.take_keyword("NOT");
            if !self.take_keyword("NULL") {
                return self.expected("NULL");
            }
            Node::IsNull { negated, subject: subject.value()?.into() }
        } else if self.take_keyword("NOT") {
            if self.take_keyword("IN") {
                self.list(true, subject.value()?)?
            } else if self.take_keyword("LIKE") {
                self.like(true, subject.value()?)?
            } else {
                return self.expected("IN or LIKE after NOT");
            }
        } else if self.take_keyword("IN") {
            self.list(false, subject.value()?)?
        } else if self.take_keyword("LIKE") {
            self.like(false, subject.value()?)?
        } else {
            return Ok(subject);
        };
        Ok(Parsed { node, position })
    }

    fn take_comparison(&mut self) -> Option<Comparison> {
        let token = self.peek();
        if token.kind != Kind::Symbol {
            return None;
        }
        let comparison = match token.text {
            "=" => Comparison::Equal,
            "<>" | "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            _ => return None,
        };
        self.tokens.next();
        Some(comparison)
    }

    fn list(&mut self, negated: bool, subject: Node) -> Result<Node, ParseError> {
        self.expect_symbol("(", "'(' after IN")?;
        let mut list = vec![self.value()?];
        while self.take_symbol(",") {
            list.push(self.value()?);
        }
        self.expect_symbol(")", "',' or ')' in the list")?;
        Ok(Node::In { negated, subject: subject.into(), list: list.into() })
    }

    fn like(&mut self, negated: bool, subject: Node) -> Result<Node, ParseError> {
        let position = self.peek().position;
        let pattern = self.value()?;
        let escape = if self.take_keyword("ESCAPE") { Some(self.value()?) } else { None };
        let compiled =
            compile(&pattern, escape.as_ref()).map_err(|error| ParseError::Like { error, position })?;
        Ok(Node::Like(Like { negated, subject, pattern, escape, compiled }.into()))
    }

    fn additive(&mut self) -> Result<Parsed, ParseError> {
        self.calculated(&[("+", Operator::Add), ("-", Operator::Subtract)], Self::multiplicative)
    }

    fn multiplicative(&mut self) -> Result<Parsed, ParseError> {
        let operators = [("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Remainder)];
        self.calculated(&operators, Self::unary)
    }

    fn calculated(
        &mut self,
        operators: &[(&str, Operator)],
        operand: fn(&mut Self) -> Result<Parsed, ParseError>,
    ) -> Result<Parsed, ParseError> {
        let first = operand(self)?;
        let mut rest = Vec::new();
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.take_symbol(symbol)) {
            rest.push((*operator, operand(self)?.value()?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        let position = first.position;
        let first = first.value()?.into();
        Ok(Parsed { node: Node::Arithmetic { first, rest: rest.into() }, position })
    }

    fn unary(&mut self) -> Result<Parsed, ParseError> {
        let position = self.peek().position;
        let negative = self.take_symbol("-");
        if !negative && !self.take_symbol("+") {
            return self.primary();
        }
        // A sign belongs to the number behind it, so that −2^63 can be written.
        if let Some(number) = self.number(negative)? {
            return Ok(Parsed { node: Node::Constant(number), position });
        }
        let operand = self.nested(Self::unary)?.value()?.into();
        Ok(Parsed { node: Node::Signed { negative, operand }, position })
    }

    fn number(&mut self, negative: bool) -> Result<Option<Value>, ParseError> {
        let token = self.peek();
        let position = token.position;
        let number = match token.kind {
            Kind::Integer(magnitude) => {
                let magnitude = i128::from(magnitude);
                let number = i64::try_from(if negative { -magnitude } else { magnitude });
                Value::Int(number.map_err(|_| ParseError::NumberOutOfRange { position })?)
            }
            Kind::Double(magnitude) => Value::Double(if negative { -magnitude } else { magnitude }),
            _ => return Ok(None),
        };
        self.tokens.next();
        Ok(Some(number))
    }

    fn primary(&mut self) -> Result<Parsed, ParseError> {
        let position = self.peek().position;
        if self.take_symbol("(") {
            let inner = self.nested(Self::or)?;
            self.expect_symbol(")", "')'")?;
            return Ok(Parsed { node: inner.node, position });
        }
        if let Some(number) = self.number(false)? {
            return Ok(Parsed { node: Node::Constant(number), position });
        }
        let node = match self.peek().clone() {
            Token { kind: Kind::String(text), .. } => {
                self.tokens.next();
                Node::Constant(Value::String(text))
            }
            Token { kind: Kind::Parameter, text, .. } => {
                self.tokens.next();
                self.parameter(text, position)?
            }
            Token { kind: Kind::Word, .. } => self.word()?,
            Token { kind: Kind::Name(_), .. } => Node::Property(self.property()?.0),
            _ => return self.expected("a property, a constant or '('"),
        };
        Ok(Parsed { node, position })
    }

    fn parameter(&self, name: &str, position: usize) -> Result<Node, ParseError> {
        let value = self.parameters.get(name).cloned();
        let value = value
            .ok_or_else(|| ParseError::UnboundParameter { name: shortened(name).to_owned(), position })?;
        Ok(Node::Parameter(Parameter { name: name.into(), value }.into()))
    }

    /// A constant spelled as a word, a function, or a property.
    fn word(&mut self) -> Result<Node, ParseError> {
        if self.take_keyword("TRUE") {
            return Ok(Node::Constant(Value::Bool(true)));
        }
        if self.take_keyword("FALSE") {
            return Ok(Node::Constant(Value::Bool(false)));
        }
        if self.take_keyword("NULL") {
            return Ok(Node::Null);
        }
        let word = self.peek().text;
        if self.is_keyword(word) {
            return self.expected("a property, a constant or '('");
        }
        let (property, position) = self.property()?;
        let Property::User(name) = &property else { return Ok(Node::Property(property)) };
        // Only a bare word directly before a parenthesis can be a function: `user.p` cannot.
        if **name != *word || !self.take_symbol("(") {
            return Ok(Node::Property(property));
        }
        let called = |function: &str| word.eq_ignore_ascii_case(function);
        let function = if called("newid") {
            Node::NewId
        } else if called("property") || called("p") {
            Node::Named(self.nested(Self::value)?.into())
        } else {
            let found = format!("{:?}", shortened(word));
            return Err(ParseError::Expected { expected: "function newid, property or p", found, position });
        };
        self.expect_symbol(")", "')' after the arguments")?;
        Ok(function)
    }
}

impl Parsed {
    fn condition(self) -> Result<Node, ParseError> {
        if self.node.may_be_condition() { Ok(self.node) } else { self.wrong_sort("a condition", "a value") }
    }

    fn value(self) -> Result<Node, ParseError> {
        if self.node.is_condition() { self.wrong_sort("a value", "a condition") } else { Ok(self.node) }
    }

    fn wrong_sort(&self, expected: &'static str, found: &str) -> Result<Node, ParseError> {
        Err(ParseError::Expected { expected, found: found.to_owned(), position: self.position })
    }
}

/// The pattern of a LIKE, if neither it nor its escape depends on the message.
fn compile(pattern: &Node, escape: Option<&Node>) -> Result<Option<Pattern>, FilterError> {
    let escape = match escape {
        None => None,
        Some(escape) => match escape.constant() {
            None => return Ok(None),
            Some(escape) => Some(escape.as_ref()),
        },
    };
    pattern.constant().map(|pattern| compile_values(pattern.as_ref(), escape)).transpose()
}

/// The pattern of a LIKE from the values of its operands.
pub(crate) fn compile_values(
    pattern: ValueRef<'_>,
    escape: Option<ValueRef<'_>>,
) -> Result<Pattern, FilterError> {
    let ValueRef::String(pattern) = pattern else {
        return Err(FilterError::Like { role: "pattern", found: pattern.type_name() });
    };
    let escape = match escape {
        None => None,
        Some(ValueRef::String(escape)) => {
            let mut characters = escape.chars();
            match (characters.next(), characters.next()) {
                (Some(single), None) => Some(single),
                _ => return Err(FilterError::Escape { length: escape.chars().count() }),
            }
        }
        Some(other) => return Err(FilterError::Like { role: "escape", found: other.type_name() }),
    };
    Pattern::compile(pattern, escape)
}

/// The start of a text, for an error message.
pub(crate) fn shortened(text: &str) -> &str {
    const CHARACTERS_MAX: usize = 40;
    text.char_indices().nth(CHARACTERS_MAX).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}
