//! The plain evaluator: slow, allocating, one line per rule.

use std::cmp::Ordering;

use vorrang_filter::{Lookup, MapMessage, Message, Value};

use crate::expression::{Condition, GUID_TEXT, TIME_TEXT, Term};

/// The evaluation fails.
pub(crate) struct Failure;

/// A mistake made on purpose, to see that the comparison notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    NotUnknownIsTrue,
    UnknownIsFalse,
    DivisionRoundsDown,
    UnderscoreMatchesNothing,
}

struct Reference<'m> {
    message: &'m MapMessage,
    flaw: Option<Flaw>,
}

pub(crate) fn holds(
    condition: &Condition,
    message: &MapMessage,
    flaw: Option<Flaw>,
) -> Result<bool, Failure> {
    Reference { message, flaw }.holds(condition)
}

impl Reference<'_> {
    fn holds(&self, condition: &Condition) -> Result<bool, Failure> {
        match condition {
            Condition::And(left, right) => Ok(self.holds(left)? && self.holds(right)?),
            Condition::Or(left, right) => Ok(self.holds(left)? || self.holds(right)?),
            other => Ok(self.truth(other)? == Some(true)),
        }
    }

    /// None is unknown.
    fn truth(&self, condition: &Condition) -> Result<Option<bool>, Failure> {
        Ok(match condition {
            Condition::And(left, right) => match self.truth(left)? {
                Some(false) => Some(false),
                Some(true) => self.truth(right)?,
                None => self.truth(right)?.filter(|right| !right),
            },
            Condition::Or(left, right) => match self.truth(left)? {
                Some(true) => Some(true),
                Some(false) => self.truth(right)?,
                None => self.truth(right)?.filter(|right| *right),
            },
            Condition::Not(operand) => match self.truth(operand)? {
                None if self.flaw == Some(Flaw::NotUnknownIsTrue) => Some(true),
                other => other.map(|flag| !flag),
            },
            Condition::Compare(symbol, left, right) => match (self.value(left)?, self.value(right)?) {
                (Some(left), Some(right)) => compare(symbol, &left, &right),
                _ if self.flaw == Some(Flaw::UnknownIsFalse) => Some(false),
                _ => None,
            },
            Condition::In(negated, subject, list) => {
                let Some(subject) = self.value(subject)? else { return Ok(None) };
                let mut contained = false;
                for element in list {
                    if self.value(element)?.is_some_and(|element| equal(&subject, &element)) {
                        contained = true;
                        break;
                    }
                }
                Some(contained != *negated)
            }
            Condition::Like(negated, subject, pattern, escape) => {
                let (subject, pattern) = (self.value(subject)?, self.value(pattern)?);
                let escape = escape.as_ref().map(|escape| self.value(escape)).transpose()?;
                match (subject, pattern, escape) {
                    (None, _, _) | (_, None, _) | (_, _, Some(None)) => None,
                    (Some(subject), Some(pattern), escape) => {
                        let escape = match escape.flatten() {
                            None => None,
                            Some(escape) => Some(single(&characters(&escape)?)?),
                        };
                        let pattern = steps(&characters(&pattern)?, escape)?;
                        Some(self.like(&characters(&subject)?, &pattern) != *negated)
                    }
                }
            }
            Condition::IsNull(negated, subject) => Some(self.value(subject)?.is_none() != *negated),
            Condition::Exists(name) => Some(self.message.user(name) != Lookup::Missing),
            Condition::Bare(term) => match self.value(term)? {
                None => None,
                Some(Value::Bool(flag)) => Some(flag),
                Some(_) => return Err(Failure),
            },
        })
    }

    fn value(&self, term: &Term) -> Result<Option<Value>, Failure> {
        Ok(match term {
            Term::Constant(value) => Some(value.clone()),
            Term::Null => None,
            Term::Property(name) => self.property(name),
            Term::Named(name) => match self.value(name)? {
                None => None,
                Some(Value::String(name)) => self.property(name.strip_prefix("user.").unwrap_or(&name)),
                Some(_) => return Err(Failure),
            },
            Term::Binary(symbol, left, right) => match (self.value(left)?, self.value(right)?) {
                (Some(left), Some(right)) => Some(self.calculate(*symbol, &left, &right)?),
                _ => None,
            },
            Term::Sign(symbol, operand) => match (symbol, self.value(operand)?) {
                (_, None) => None,
                ('-', Some(Value::Int(number))) => Some(number.checked_neg().ok_or(Failure)?.into()),
                ('-', Some(Value::Double(number))) => Some((-number).into()),
                ('+', Some(number @ (Value::Int(_) | Value::Double(_)))) => Some(number),
                _ => return Err(Failure),
            },
        })
    }

    fn property(&self, name: &str) -> Option<Value> {
        let mut found =
            self.message.user_properties().filter(|(own, _)| own.to_lowercase() == name.to_lowercase());
        found.next().and_then(|(_, value)| value.cloned())
    }

    fn calculate(&self, symbol: char, left: &Value, right: &Value) -> Result<Value, Failure> {
        Ok(match (symbol, left, right) {
            ('+', Value::String(left), Value::String(right)) => format!("{left}{right}").into(),
            ('/' | '%', Value::Int(_), Value::Int(0)) => return Err(Failure),
            ('/', Value::Int(left), Value::Int(right)) if self.flaw == Some(Flaw::DivisionRoundsDown) => {
                left.checked_div_euclid(*right).ok_or(Failure)?.into()
            }
            (_, Value::Int(left), Value::Int(right)) => {
                let (left, right) = (i128::from(*left), i128::from(*right));
                let exact = match symbol {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    '/' => left / right,
                    // As in C#, the remainder is out of range where the quotient is.
                    _ if i64::try_from(left / right).is_err() => return Err(Failure),
                    _ => left % right,
                };
                i64::try_from(exact).map_err(|_| Failure)?.into()
            }
            _ => {
                let (left, right) = (number(left).ok_or(Failure)?, number(right).ok_or(Failure)?);
                let result = match symbol {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    '/' => left / right,
                    _ => left % right,
                };
                result.into()
            }
        })
    }

    fn like(&self, text: &[char], pattern: &[Step]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [Step::Many, rest @ ..] => {
                (0..=text.len()).any(|skipped| text.get(skipped..).is_some_and(|text| self.like(text, rest)))
            }
            [Step::One, rest @ ..] if self.flaw == Some(Flaw::UnderscoreMatchesNothing) => {
                self.like(text, rest)
            }
            [step, rest @ ..] => match text.split_first() {
                Some((first, text)) => {
                    (*step == Step::One || *step == Step::Exactly(*first)) && self.like(text, rest)
                }
                None => false,
            },
        }
    }
}

#[derive(PartialEq)]
enum Step {
    Many,
    One,
    Exactly(char),
}

fn steps(pattern: &[char], escape: Option<char>) -> Result<Vec<Step>, Failure> {
    let mut steps = Vec::new();
    let mut pattern = pattern.iter();
    while let Some(character) = pattern.next() {
        steps.push(match character {
            escaped if escape == Some(*escaped) => Step::Exactly(*pattern.next().ok_or(Failure)?),
            '%' => Step::Many,
            '_' => Step::One,
            other => Step::Exactly(*other),
        });
    }
    Ok(steps)
}

fn characters(value: &Value) -> Result<Vec<char>, Failure> {
    match value {
        Value::String(text) => Ok(text.chars().collect()),
        _ => Err(Failure),
    }
}

fn single(characters: &[char]) -> Result<char, Failure> {
    match characters {
        [single] => Ok(*single),
        _ => Err(Failure),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => number.to_string().parse().ok(),
        Value::Double(number) => Some(*number),
        _ => None,
    }
}

fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::Guid(guid), Value::String(text)) | (Value::String(text), Value::Guid(guid)) => {
            *guid == 1 && **text == *GUID_TEXT
        }
        (Value::Timestamp(at), Value::String(text)) | (Value::String(text), Value::Timestamp(at)) => {
            *at == 1000 && **text == *TIME_TEXT
        }
        _ => match (number(left), number(right)) {
            (Some(left), Some(right)) => left.partial_cmp(&right).is_some_and(Ordering::is_eq),
            _ => left == right,
        },
    }
}

fn compare(symbol: &str, left: &Value, right: &Value) -> Option<bool> {
    match symbol {
        "=" => return Some(equal(left, right)),
        "<>" | "!=" => return Some(!equal(left, right)),
        _ => {}
    }
    let ordered = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Int(left), Value::Int(right)) | (Value::Timestamp(left), Value::Timestamp(right)) => {
            Some(left.cmp(right))
        }
        (Value::Timestamp(left), Value::String(right)) if **right == *TIME_TEXT => Some(left.cmp(&1000)),
        (Value::String(left), Value::Timestamp(right)) if **left == *TIME_TEXT => Some(1000.cmp(right)),
        _ => match (number(left), number(right)) {
            (Some(left), Some(right)) => match left.partial_cmp(&right) {
                Some(ordered) => Some(ordered),
                None => return Some(false),
            },
            _ => None,
        },
    }?;
    Some(match symbol {
        "<" => ordered.is_lt(),
        "<=" => ordered.is_le(),
        ">" => ordered.is_gt(),
        _ => ordered.is_ge(),
    })
}
