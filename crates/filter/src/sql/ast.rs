//! The tree a filter's text becomes.
//!
//! Chains (`a AND b AND c`, `a + b - c`) are one node with many children, so the depth of the tree
//! grows with nesting alone, which the parser bounds; that makes recursion over it safe.

use super::like::Pattern;
use crate::number::Operator;
use crate::system::SystemProperty;
use crate::value::Value;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Or(Box<[Node]>),
    And(Box<[Node]>),
    Not(Box<Node>),
    Compare {
        comparison: Comparison,
        operands: Box<[Node; 2]>,
    },
    In {
        negated: bool,
        subject: Box<Node>,
        list: Box<[Node]>,
    },
    Like(Box<Like>),
    IsNull {
        negated: bool,
        subject: Box<Node>,
    },
    Exists(Property),
    /// Operators of one precedence, applied from the left.
    Arithmetic {
        first: Box<Node>,
        rest: Box<[(Operator, Node)]>,
    },
    Signed {
        negative: bool,
        operand: Box<Node>,
    },
    Constant(Value),
    Null,
    Property(Property),
    /// `property(name)`
    Named(Box<Node>),
    NewId,
    Parameter(Box<Parameter>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Like {
    pub(crate) negated: bool,
    pub(crate) subject: Node,
    pub(crate) pattern: Node,
    pub(crate) escape: Option<Node>,
    /// The pattern, if it does not depend on the message.
    pub(crate) compiled: Option<Pattern>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Property {
    User(Box<str>),
    System(SystemProperty),
}

/// A parameter and the value bound to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameter {
    /// With its `@`.
    pub(crate) name: Box<str>,
    pub(crate) value: Value,
}

impl Node {
    /// Whether the node yields a truth value and so cannot be an operand of an operator on values.
    pub(crate) fn is_condition(&self) -> bool {
        matches!(
            self,
            Self::Or(_)
                | Self::And(_)
                | Self::Not(_)
                | Self::Compare { .. }
                | Self::In { .. }
                | Self::Like(_)
                | Self::IsNull { .. }
                | Self::Exists(_)
        )
    }

    /// Whether the node may stand where a condition is needed: a condition, or something that may
    /// turn out to be a boolean.
    pub(crate) fn may_be_condition(&self) -> bool {
        match self {
            Self::Property(_) | Self::Named(_) => true,
            _ => self.is_condition() || matches!(self.constant(), Some(Value::Bool(_))),
        }
    }

    /// The value of a constant or a parameter.
    pub(crate) fn constant(&self) -> Option<&Value> {
        match self {
            Self::Constant(value) => Some(value),
            Self::Parameter(parameter) => Some(&parameter.value),
            _ => None,
        }
    }
}

impl Comparison {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}
