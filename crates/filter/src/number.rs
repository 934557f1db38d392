//! Numbers of three types under one roof: how they promote, compare and calculate.
//!
//! int64 with decimal is decimal, anything with double is double, as in C#. Comparing promotes in
//! the same way, so an int64 and a double are equal when they are equal as doubles.

use std::cmp::Ordering;

use crate::decimal::{Decimal, approximate};
use crate::error::FilterError;
use crate::value::ValueRef;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Int(i64),
    Double(f64),
    Decimal(Decimal),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

impl Number {
    pub(crate) fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Int(number) => Some(Self::Int(number)),
            ValueRef::Double(number) => Some(Self::Double(number)),
            ValueRef::Decimal(number) => Some(Self::Decimal(number)),
            _ => None,
        }
    }

    pub(crate) fn into_value(self) -> ValueRef<'static> {
        match self {
            Self::Int(number) => ValueRef::Int(number),
            Self::Double(number) => ValueRef::Double(number),
            Self::Decimal(number) => ValueRef::Decimal(number),
        }
    }

    /// Numbers that compare as equal give equal doubles, whatever their types: a hash may build on it.
    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Self::Int(number) => approximate(i128::from(number)),
            Self::Double(number) => number,
            Self::Decimal(number) => number.to_f64(),
        }
    }

    /// None if one of them is not a number (NaN).
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(left), Self::Int(right)) => Some(left.cmp(&right)),
            _ => match (self.exact(), other.exact()) {
                (Some(left), Some(right)) => Some(left.cmp(&right)),
                _ => self.to_f64().partial_cmp(&other.to_f64()),
            },
        }
    }

    pub(crate) fn calculate(self, operator: Operator, other: Self) -> Result<Self, FilterError> {
        if let (Self::Int(left), Self::Int(right)) = (self, other) {
            return calculate_int(left, operator, right).map(Self::Int);
        }
        match (self.exact(), other.exact()) {
            (Some(left), Some(right)) => calculate_decimal(left, operator, right).map(Self::Decimal),
            _ => Ok(Self::Double(calculate_double(self.to_f64(), operator, other.to_f64()))),
        }
    }

    pub(crate) fn negate(self) -> Result<Self, FilterError> {
        let negated = match self {
            Self::Int(number) => number.checked_neg().map(Self::Int),
            Self::Double(number) => Some(Self::Double(-number)),
            Self::Decimal(number) => number.checked_neg().map(Self::Decimal),
        };
        negated.ok_or(FilterError::Overflow { operator: "-" })
    }

    fn exact(self) -> Option<Decimal> {
        match self {
            Self::Int(number) => Some(number.into()),
            Self::Decimal(number) => Some(number),
            Self::Double(_) => None,
        }
    }
}

fn calculate_int(left: i64, operator: Operator, right: i64) -> Result<i64, FilterError> {
    let result = match operator {
        Operator::Divide | Operator::Remainder if right == 0 => return Err(FilterError::DivisionByZero),
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
    };
    result.ok_or(FilterError::Overflow { operator: operator.symbol() })
}

fn calculate_decimal(left: Decimal, operator: Operator, right: Decimal) -> Result<Decimal, FilterError> {
    let result = match operator {
        Operator::Divide | Operator::Remainder if right.unscaled() == 0 => {
            return Err(FilterError::DivisionByZero);
        }
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
    };
    result.ok_or(FilterError::Overflow { operator: operator.symbol() })
}

fn calculate_double(left: f64, operator: Operator, right: f64) -> f64 {
    match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        Operator::Remainder => left % right,
    }
}
