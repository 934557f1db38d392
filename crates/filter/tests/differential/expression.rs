//! Random filters and messages, and the filters' text.

use proptest::prelude::*;
use vorrang_filter::{MapMessage, Value};

pub(crate) const GUID_TEXT: &str = "00000000-0000-0000-0000-000000000001";
pub(crate) const TIME_TEXT: &str = "1970-01-01T00:00:01Z";

#[derive(Debug, Clone)]
pub(crate) enum Condition {
    Or(Box<Condition>, Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
    Compare(&'static str, Term, Term),
    In(bool, Term, Vec<Term>),
    Like(bool, Term, Term, Option<Term>),
    IsNull(bool, Term),
    Exists(&'static str),
    Bare(Term),
}

#[derive(Debug, Clone)]
pub(crate) enum Term {
    Constant(Value),
    Null,
    Property(&'static str),
    Named(Box<Term>),
    Binary(char, Box<Term>, Box<Term>),
    Sign(char, Box<Term>),
}

const NAMES: [&str; 9] = ["i", "j", "d", "s", "t", "flag", "guid", "at", "missing"];
const TEXTS: [&str; 8] = ["", "a", "ab", "a%", "_b", "it's", GUID_TEXT, TIME_TEXT];

pub(crate) fn conditions() -> impl Strategy<Value = Condition> {
    let leaf = prop_oneof![
        4 => (prop::sample::select(vec!["=", "<>", "!=", "<", "<=", ">", ">="]), terms(), terms())
            .prop_map(|(symbol, left, right)| Condition::Compare(symbol, left, right)),
        2 => (any::<bool>(), terms(), prop::collection::vec(terms(), 1..4))
            .prop_map(|(negated, subject, list)| Condition::In(negated, subject, list)),
        3 => (any::<bool>(), texts(), texts(), prop::option::weighted(0.3, escapes()))
            .prop_map(|(negated, subject, pattern, escape)| Condition::Like(negated, subject, pattern, escape)),
        1 => (any::<bool>(), terms()).prop_map(|(negated, subject)| Condition::IsNull(negated, subject)),
        1 => prop::sample::select(NAMES.to_vec()).prop_map(Condition::Exists),
        1 => any::<bool>().prop_map(|flag| Condition::Bare(Term::Constant(flag.into()))),
        1 => Just(Condition::Bare(Term::Property("flag"))),
        1 => prop::sample::select(NAMES.to_vec()).prop_map(|name| Condition::Bare(Term::Property(name))),
    ];
    leaf.prop_recursive(4, 12, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(left, right)| Condition::Or(left.into(), right.into())),
            (inner.clone(), inner.clone())
                .prop_map(|(left, right)| Condition::And(left.into(), right.into())),
            inner.prop_map(|operand| Condition::Not(operand.into())),
        ]
    })
}

fn terms() -> impl Strategy<Value = Term> {
    let leaf = prop_oneof![
        3 => numbers(),
        2 => constants(),
        1 => Just(Term::Null),
        1 => any::<bool>().prop_map(|flag| Term::Constant(flag.into())),
        6 => properties(),
        1 => prop::sample::select(vec!["I", "s", "user.d", "missing"])
            .prop_map(|name| Term::Named(Term::Constant(name.into()).into())),
        1 => properties().prop_map(|name| Term::Named(name.into())),
    ];
    leaf.prop_recursive(3, 6, 2, |inner| {
        prop_oneof![
            4 => (prop::sample::select(vec!['+', '-', '*', '/', '%']), numeric(), numeric())
                .prop_map(|(symbol, left, right)| Term::Binary(symbol, left.into(), right.into())),
            1 => (prop::sample::select(vec!['+', '*', '/']), inner.clone(), inner.clone())
                .prop_map(|(symbol, left, right)| Term::Binary(symbol, left.into(), right.into())),
            1 => (prop::sample::select(vec!['+', '-']), inner)
                .prop_map(|(symbol, operand)| Term::Sign(symbol, operand.into())),
        ]
    })
}

fn numeric() -> impl Strategy<Value = Term> {
    let leaf = prop_oneof![numbers(), prop::sample::select(vec!["i", "j", "d"]).prop_map(Term::Property)];
    leaf.prop_recursive(2, 4, 2, |inner| {
        (prop::sample::select(vec!['+', '-', '*', '/', '%']), inner.clone(), inner)
            .prop_map(|(symbol, left, right)| Term::Binary(symbol, left.into(), right.into()))
    })
}

fn numbers() -> impl Strategy<Value = Term> {
    prop_oneof![
        4 => (-3_i64..8).prop_map(|number| Term::Constant(number.into())),
        1 => prop::sample::select(vec![i64::MIN, i64::MAX]).prop_map(|number| Term::Constant(number.into())),
        2 => prop::sample::select(vec![0.0, 0.5, 2.0, -1.5, 1e300])
            .prop_map(|number| Term::Constant(number.into())),
    ]
}

fn constants() -> impl Strategy<Value = Term> {
    prop::sample::select(TEXTS.to_vec()).prop_map(|text| Term::Constant(text.into()))
}

fn properties() -> impl Strategy<Value = Term> {
    prop::sample::select(NAMES.to_vec()).prop_map(Term::Property)
}

/// Terms that are text most of the time, for LIKE.
fn texts() -> impl Strategy<Value = Term> {
    prop_oneof![
        4 => constants(),
        4 => prop::sample::select(vec!["s", "t"]).prop_map(Term::Property),
        1 => properties(),
        2 => (constants(), prop::sample::select(vec!["s", "t"]))
            .prop_map(|(left, right)| Term::Binary('+', left.into(), Term::Property(right).into())),
    ]
}

fn escapes() -> impl Strategy<Value = Term> {
    prop_oneof![
        3 => prop::sample::select(vec!["a", "%", "!"]).prop_map(|text| Term::Constant(text.into())),
        1 => properties(),
    ]
}

pub(crate) fn messages() -> impl Strategy<Value = MapMessage> {
    let number = prop_oneof![3 => -3_i64..8, 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
    let text = prop_oneof![
        2 => prop::sample::select(TEXTS.to_vec()).prop_map(str::to_owned),
        2 => "[ab%_]{0,6}",
    ];
    let optional = (prop::option::weighted(0.9, number.clone()), prop::option::weighted(0.9, text.clone()));
    (optional, number, text, any::<bool>(), 0_u8..4).prop_map(|((j, t), i, s, flag, kind)| {
        let mut message = MapMessage::new().with("i", i).with("s", s).with("flag", flag);
        message = match j {
            Some(j) => message.with("j", j),
            None => message.with_null("j"),
        };
        if let Some(t) = t {
            message = message.with("t", t);
        }
        message = message.with("d", f64::from(kind) / 2.0);
        message = message.with("guid", Value::Guid(u128::from(kind)));
        message.with("at", Value::Timestamp(i64::from(kind) * 500))
    })
}

/// One message with a property of each type.
pub(crate) fn message() -> MapMessage {
    MapMessage::new()
        .with("i", 1_i64)
        .with("j", 2_i64)
        .with("d", 0.5)
        .with("s", "ab")
        .with("t", "a%")
        .with("flag", true)
        .with("guid", Value::Guid(1))
        .with("at", Value::Timestamp(1000))
}

pub(crate) fn print(condition: &Condition) -> String {
    match condition {
        Condition::Or(left, right) => format!("{} or {}", print_below(left, 1), print_below(right, 2)),
        Condition::And(left, right) => format!("{} AND {}", print_below(left, 2), print_below(right, 3)),
        Condition::Not(operand) => format!("NOT {}", print_below(operand, 3)),
        Condition::Compare(symbol, left, right) => {
            format!("{}{symbol} {}", print_term(left), print_term(right))
        }
        Condition::In(negated, subject, list) => {
            let list: Vec<String> = list.iter().map(print_term).collect();
            format!("{} {}IN({})", print_term(subject), not(*negated), list.join(","))
        }
        Condition::Like(negated, subject, pattern, escape) => {
            let escape =
                escape.as_ref().map_or(String::new(), |escape| format!(" escape {}", print_term(escape)));
            format!("{} {}LIKE {}{escape}", print_term(subject), not(*negated), print_term(pattern))
        }
        Condition::IsNull(negated, subject) => format!("{} IS {}NULL", print_term(subject), not(*negated)),
        Condition::Exists(name) => format!("EXISTS({name})"),
        Condition::Bare(term) => print_term(term),
    }
}

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}

/// Prints with parentheses if the condition binds less tightly than `level`.
fn print_below(condition: &Condition, level: u8) -> String {
    let own = match condition {
        Condition::Or(..) => 1,
        Condition::And(..) => 2,
        _ => 3,
    };
    let text = print(condition);
    if own < level { format!("({text})") } else { text }
}

fn print_term(term: &Term) -> String {
    match term {
        Term::Constant(Value::String(text)) => format!("'{}'", text.replace('\'', "''")),
        Term::Constant(Value::Double(number)) => format!("{number:?}"),
        Term::Constant(other) => other.as_ref().to_string(),
        Term::Null => "NULL".to_owned(),
        Term::Property(name) => (*name).to_owned(),
        Term::Named(name) => format!("property({})", print_term(name)),
        Term::Binary(symbol @ ('+' | '-'), left, right) => {
            format!("{}{symbol}{}", print_term_below(left, 1), print_term_below(right, 2))
        }
        Term::Binary(symbol, left, right) => {
            format!("{} {symbol} {}", print_term_below(left, 2), print_term_below(right, 3))
        }
        Term::Sign(symbol, operand) => format!("{symbol}{}", print_term_below(operand, 3)),
    }
}

fn print_term_below(term: &Term, level: u8) -> String {
    let own = match term {
        Term::Binary('+' | '-', ..) => 1,
        Term::Binary(..) => 2,
        _ => 3,
    };
    let text = print_term(term);
    if own < level { format!("({text})") } else { text }
}
