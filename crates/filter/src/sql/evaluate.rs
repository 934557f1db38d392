//! Evaluates a tree on a message, in three-valued logic.
//!
//! Values are borrowed from the tree and the message; only a concatenated string is built anew.
//! Operands are evaluated from left to right, and what no longer matters for the outcome is not
//! evaluated, so an error there is not met.

use std::cmp::Ordering;

use super::ast::{Comparison, Like, Node, Property};
use super::parser::{compile_values, shortened};
use crate::environment::Environment;
use crate::equality::{Order, compared_bytes, equal, order};
use crate::error::FilterError;
use crate::message::{Lookup, Message};
use crate::number::{Number, Operator};
use crate::system::SystemProperty;
use crate::value::{Value, ValueRef};

/// The outcome of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truth {
    True,
    False,
    Unknown,
}

/// The outcome of a value: borrowed where it exists already, owned where it was put together.
#[derive(Debug)]
pub(crate) enum Operand<'v> {
    Unknown,
    Value(ValueRef<'v>),
    Text(String),
}

impl Operand<'_> {
    fn known(&self) -> Option<ValueRef<'_>> {
        match self {
            Self::Unknown => None,
            Self::Value(value) => Some(*value),
            Self::Text(text) => Some(ValueRef::String(text)),
        }
    }

    pub(crate) fn into_value(self) -> Option<Value> {
        match self {
            Self::Unknown => None,
            Self::Value(value) => Some(value.to_value()),
            Self::Text(text) => Some(text.into()),
        }
    }
}

impl From<bool> for Truth {
    fn from(flag: bool) -> Self {
        if flag { Self::True } else { Self::False }
    }
}

impl Truth {
    fn negated_if(self, negated: bool) -> Self {
        match self {
            Self::True if negated => Self::False,
            Self::False if negated => Self::True,
            other => other,
        }
    }
}

/// Whether a condition is true. Where only that counts, AND is settled by its first operand that is
/// not true, unknown or false.
pub(crate) fn holds(
    node: &Node,
    message: &dyn Message,
    environment: &mut Environment<'_>,
) -> Result<bool, FilterError> {
    match node {
        Node::And(operands) => {
            environment.charge(1)?;
            for operand in operands {
                if !holds(operand, message, environment)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Node::Or(operands) => {
            environment.charge(1)?;
            for operand in operands {
                if holds(operand, message, environment)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => Ok(condition(node, message, environment)? == Truth::True),
    }
}

fn condition(
    node: &Node,
    message: &dyn Message,
    environment: &mut Environment<'_>,
) -> Result<Truth, FilterError> {
    environment.charge(1)?;
    match node {
        Node::Or(operands) => connected(operands, Truth::True, message, environment),
        Node::And(operands) => connected(operands, Truth::False, message, environment),
        Node::Not(operand) => Ok(condition(operand, message, environment)?.negated_if(true)),
        Node::Compare { comparison, operands } => {
            let [left, right] = &**operands;
            let left = value(left, message, environment)?;
            let right = value(right, message, environment)?;
            match (left.known(), right.known()) {
                (Some(left), Some(right)) => compare(*comparison, left, right, environment),
                _ => Ok(Truth::Unknown),
            }
        }
        Node::In { negated, subject, list } => {
            Ok(contained(subject, list, message, environment)?.negated_if(*negated))
        }
        Node::Like(node) => Ok(like(node, message, environment)?.negated_if(node.negated)),
        Node::IsNull { negated, subject } => {
            let known = value(subject, message, environment)?.known().is_some();
            Ok(Truth::from(known == *negated))
        }
        Node::Exists(Property::User(name)) => Ok(Truth::from(message.user(name) != Lookup::Missing)),
        Node::Exists(Property::System(property)) => Ok(Truth::from(message.system(*property).is_some())),
        _ => match value(node, message, environment)?.known() {
            None => Ok(Truth::Unknown),
            Some(ValueRef::Bool(flag)) => Ok(Truth::from(flag)),
            Some(other) => Err(FilterError::Condition { found: other.type_name() }),
        },
    }
}

/// AND and OR: one operand of the dominant truth decides; else one unknown makes it unknown.
fn connected(
    operands: &[Node],
    dominant: Truth,
    message: &dyn Message,
    environment: &mut Environment<'_>,
) -> Result<Truth, FilterError> {
    let mut outcome = dominant.negated_if(true);
    for operand in operands {
        match condition(operand, message, environment)? {
            truth if truth == dominant => return Ok(dominant),
            Truth::Unknown => outcome = Truth::Unknown,
            _ => {}
        }
    }
    Ok(outcome)
}

fn compare(
    comparison: Comparison,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    environment: &mut Environment<'_>,
) -> Result<Truth, FilterError> {
    environment.charge(compared_bytes(left, right) / 64)?;
    let accepts: fn(Ordering) -> bool = match comparison {
        Comparison::Equal => return Ok(Truth::from(equal(left, right))),
        Comparison::NotEqual => return Ok(Truth::from(!equal(left, right))),
        Comparison::Less => Ordering::is_lt,
        Comparison::LessOrEqual => Ordering::is_le,
        Comparison::Greater => Ordering::is_gt,
        Comparison::GreaterOrEqual => Ordering::is_ge,
    };
    Ok(match order(left, right) {
        Order::Known(order) => Truth::from(accepts(order)),
        Order::NotANumber => Truth::False,
        Order::Undefined => Truth::Unknown,
    })
}

fn contained(
    subject: &Node,
    list: &[Node],
    message: &dyn Message,
    environment: &mut Environment<'_>,
) -> Result<Truth, FilterError> {
    let subject = value(subject, message, environment)?;
    let Some(subject) = subject.known() else { return Ok(Truth::Unknown) };
    for element in list {
        let element = value(element, message, environment)?;
        if let Some(element) = element.known()
            && compare(Comparison::Equal, subject, element, environment)? == Truth::True
        {
            return Ok(Truth::True);
        }
    }
    Ok(Truth::False)
}

fn like(node: &Like, message: &dyn Message, environment: &mut Environment<'_>) -> Result<Truth, FilterError> {
    let subject = value(&node.subject, message, environment)?;
    if let Some(pattern) = &node.compiled {
        return match subject.known() {
            None => Ok(Truth::Unknown),
            Some(subject) => Ok(Truth::from(pattern.matches(like_subject(subject)?, environment)?)),
        };
    }
    let pattern = value(&node.pattern, message, environment)?;
    let escape = node.escape.as_ref().map(|escape| value(escape, message, environment)).transpose()?;
    let escape = match &escape {
        None => None,
        Some(escape) => match escape.known() {
            None => return Ok(Truth::Unknown),
            Some(escape) => Some(escape),
        },
    };
    let (Some(subject), Some(pattern)) = (subject.known(), pattern.known()) else {
        return Ok(Truth::Unknown);
    };
    let subject = like_subject(subject)?;
    if let ValueRef::String(pattern) = pattern {
        environment.charge(pattern.len())?;
    }
    let pattern = compile_values(pattern, escape)?;
    Ok(Truth::from(pattern.matches(subject, environment)?))
}

fn like_subject(subject: ValueRef<'_>) -> Result<&str, FilterError> {
    match subject {
        ValueRef::String(text) => Ok(text),
        other => Err(FilterError::Like { role: "left side", found: other.type_name() }),
    }
}

/// The value of a node. A condition never stands where a value is needed: the parser saw to it.
pub(crate) fn value<'v>(
    node: &'v Node,
    message: &'v dyn Message,
    environment: &mut Environment<'_>,
) -> Result<Operand<'v>, FilterError> {
    environment.charge(1)?;
    match node {
        Node::Property(property) => Ok(known_or_unknown(lookup(property, message))),
        Node::Constant(value) => Ok(Operand::Value(value.as_ref())),
        Node::Parameter(parameter) => Ok(Operand::Value(parameter.value.as_ref())),
        Node::Arithmetic { first, rest } => {
            let mut result = value(first, message, environment)?;
            for (operator, operand) in rest {
                let operand = value(operand, message, environment)?;
                result = calculate(result, *operator, &operand, environment)?;
            }
            Ok(result)
        }
        Node::Signed { negative, operand } => {
            let operand = value(operand, message, environment)?;
            let Some(operand) = operand.known() else { return Ok(Operand::Unknown) };
            let sign = if *negative { "-" } else { "+" };
            let number =
                Number::from_value(operand).ok_or(FilterError::Sign { sign, found: operand.type_name() })?;
            let number = if *negative { number.negate()? } else { number };
            Ok(Operand::Value(number.into_value()))
        }
        Node::Named(name) => {
            let name = value(name, message, environment)?;
            match name.known() {
                None => Ok(Operand::Unknown),
                Some(ValueRef::String(name)) => named(name, message),
                Some(other) => Err(FilterError::PropertyName { found: other.type_name() }),
            }
        }
        Node::NewId => Ok(Operand::Value(ValueRef::Guid(environment.new_id()))),
        Node::Null
        | Node::Or(_)
        | Node::And(_)
        | Node::Not(_)
        | Node::Compare { .. }
        | Node::In { .. }
        | Node::Like(_)
        | Node::IsNull { .. }
        | Node::Exists(_) => Ok(Operand::Unknown),
    }
}

fn known_or_unknown(value: Option<ValueRef<'_>>) -> Operand<'_> {
    value.map_or(Operand::Unknown, Operand::Value)
}

fn lookup<'v>(property: &Property, message: &'v dyn Message) -> Option<ValueRef<'v>> {
    match property {
        Property::User(name) => message.user(name).value(),
        Property::System(property) => message.system(*property),
    }
}

/// `property(name)`: the name may carry its scope.
fn named<'v>(name: &str, message: &'v dyn Message) -> Result<Operand<'v>, FilterError> {
    let scoped = |scope: &str| match name.split_at_checked(scope.len()) {
        Some((prefix, rest)) if prefix.eq_ignore_ascii_case(scope) => Some(rest),
        _ => None,
    };
    if let Some(name) = scoped("sys.") {
        let property = SystemProperty::parse(name)
            .ok_or_else(|| FilterError::UnknownSystemProperty { name: shortened(name).to_owned() })?;
        return Ok(known_or_unknown(message.system(property)));
    }
    Ok(known_or_unknown(message.user(scoped("user.").unwrap_or(name)).value()))
}

fn calculate<'v>(
    left: Operand<'v>,
    operator: Operator,
    right: &Operand<'_>,
    environment: &mut Environment<'_>,
) -> Result<Operand<'v>, FilterError> {
    let Some(right) = right.known() else { return Ok(Operand::Unknown) };
    match (left, operator, right) {
        (Operand::Unknown, ..) => Ok(Operand::Unknown),
        (Operand::Value(ValueRef::String(left)), Operator::Add, ValueRef::String(right)) => {
            environment.charge(left.len().saturating_add(right.len()))?;
            Ok(Operand::Text([left, right].concat()))
        }
        (Operand::Text(mut left), Operator::Add, ValueRef::String(right)) => {
            environment.charge(right.len())?;
            left.push_str(right);
            Ok(Operand::Text(left))
        }
        (Operand::Value(left), ..) => numbers(left, operator, right),
        (Operand::Text(left), ..) => numbers(ValueRef::String(&left), operator, right),
    }
}

fn numbers(
    left: ValueRef<'_>,
    operator: Operator,
    right: ValueRef<'_>,
) -> Result<Operand<'static>, FilterError> {
    match (Number::from_value(left), Number::from_value(right)) {
        (Some(left), Some(right)) => Ok(Operand::Value(left.calculate(operator, right)?.into_value())),
        _ => Err(FilterError::Operands {
            operator: operator.symbol(),
            left: left.type_name(),
            right: right.type_name(),
        }),
    }
}
