//! Writes a tree as SQL that parses to the same tree.

use std::fmt::{self, Display, Formatter, Write};

use super::ast::{Like, Node, Property};
use crate::number::Operator;
use crate::value::Value;

impl Display for Node {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Or(operands) => separated(out, operands, " OR ", |operand| matches!(operand, Self::Or(_))),
            Self::And(operands) => {
                separated(out, operands, " AND ", |operand| matches!(operand, Self::Or(_) | Self::And(_)))
            }
            Self::Not(operand) => {
                out.write_str("NOT ")?;
                grouped(out, operand, matches!(**operand, Self::Or(_) | Self::And(_)))
            }
            Self::Compare { comparison, operands } => {
                let [left, right] = &**operands;
                write!(out, "{left} {} {right}", comparison.symbol())
            }
            Self::In { negated, subject, list } => {
                write!(out, "{subject} {}IN (", not(*negated))?;
                separated(out, list, ", ", |_| false)?;
                out.write_char(')')
            }
            Self::Like(like) => like.fmt(out),
            Self::IsNull { negated, subject } => write!(out, "{subject} IS {}NULL", not(*negated)),
            Self::Exists(property) => write!(out, "EXISTS({property})"),
            Self::Arithmetic { first, rest } => {
                let inside_product = rest.iter().any(|(operator, _)| !is_sum(*operator));
                grouped(out, first, needs_group(first, inside_product))?;
                rest.iter().try_for_each(|(operator, operand)| {
                    write!(out, " {} ", operator.symbol())?;
                    grouped(out, operand, needs_group(operand, inside_product))
                })
            }
            Self::Signed { negative, operand } => {
                out.write_char(if *negative { '-' } else { '+' })?;
                grouped(out, operand, matches!(**operand, Self::Arithmetic { .. }) || is_unsigned(operand))
            }
            Self::Constant(value) => constant(out, value),
            Self::Null => out.write_str("NULL"),
            Self::Property(property) => property.fmt(out),
            Self::Named(name) => write!(out, "property({name})"),
            Self::NewId => out.write_str("newid()"),
            Self::Parameter(parameter) => out.write_str(&parameter.name),
        }
    }
}

impl Display for Like {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}LIKE {}", self.subject, not(self.negated), self.pattern)?;
        match &self.escape {
            Some(escape) => write!(out, " ESCAPE {escape}"),
            None => Ok(()),
        }
    }
}

impl Display for Property {
    /// Always in brackets: then no name is taken for a keyword, a scope or a function.
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => quoted(out, '[', name, ']'),
            Self::System(property) => write!(out, "sys.{}", property.name()),
        }
    }
}

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}

fn separated(
    out: &mut Formatter<'_>,
    nodes: &[Node],
    separator: &str,
    group: fn(&Node) -> bool,
) -> fmt::Result {
    for (index, node) in nodes.iter().enumerate() {
        if index > 0 {
            out.write_str(separator)?;
        }
        grouped(out, node, group(node))?;
    }
    Ok(())
}

fn grouped(out: &mut Formatter<'_>, node: &Node, group: bool) -> fmt::Result {
    if group { write!(out, "({node})") } else { write!(out, "{node}") }
}

fn is_sum(operator: Operator) -> bool {
    matches!(operator, Operator::Add | Operator::Subtract)
}

fn needs_group(operand: &Node, inside_product: bool) -> bool {
    match operand {
        Node::Arithmetic { rest, .. } => inside_product || rest.iter().any(|(operator, _)| is_sum(*operator)),
        _ => false,
    }
}

/// A number that a sign in front of it would become part of.
fn is_unsigned(node: &Node) -> bool {
    match node {
        Node::Constant(Value::Int(number)) => *number >= 0,
        Node::Constant(Value::Double(number)) => number.is_sign_positive(),
        _ => false,
    }
}

fn constant(out: &mut Formatter<'_>, value: &Value) -> fmt::Result {
    match value {
        Value::String(text) => quoted(out, '\'', text, '\''),
        Value::Bool(true) => out.write_str("TRUE"),
        Value::Bool(false) => out.write_str("FALSE"),
        Value::Double(number) => write!(out, "{number:?}"),
        // Text makes constants of four types; other values come in through parameters.
        other => write!(out, "{}", other.as_ref()),
    }
}

fn quoted(out: &mut Formatter<'_>, opening: char, text: &str, closing: char) -> fmt::Result {
    out.write_char(opening)?;
    for character in text.chars() {
        out.write_char(character)?;
        if character == closing {
            out.write_char(closing)?;
        }
    }
    out.write_char(closing)
}
