//! SQL filters, rule by rule: what they match, what is unknown, what fails, what is refused.

use vorrang_filter::{
    Decimal, Environment, FilterError, MapMessage, Parameters, Sql, SystemProperty, TEXT_CHARACTERS_MAX,
    Value,
};

fn evaluate(text: &str, message: &MapMessage) -> Result<bool, FilterError> {
    let filter = Sql::parse(text, parameters()).unwrap_or_else(|error| unreachable!("{text}: {error}"));
    let mut next = 0;
    let mut new_id = || {
        next += 1;
        next
    };
    filter.matches(message, &mut Environment::new(&mut new_id))
}

fn refusal(text: &str) -> String {
    Sql::parse(text, parameters()).map_or_else(|error| error.to_string(), |filter| format!("parsed {filter}"))
}

fn parameters() -> Parameters {
    Parameters::from([
        ("@one".to_owned(), Value::Int(1)),
        ("@pattern".to_owned(), "ab%".into()),
        ("@yes".to_owned(), true.into()),
    ])
}

fn message() -> MapMessage {
    MapMessage::new()
        .with("a", 1_i64)
        .with("two", 2_i64)
        .with("neg", -7_i64)
        .with("max", i64::MAX)
        .with("min", i64::MIN)
        .with("d", 1.5)
        .with("nan", f64::NAN)
        .with("price", Decimal::new(1999, 2).expect("19.99 is a decimal"))
        .with("big", u64::MAX)
        .with("s", "abc")
        .with("esc", "a_c")
        .with("empty", "")
        .with("flag", true)
        .with("off", false)
        .with("guid", Value::Guid(10))
        .with("at", Value::Timestamp(0))
        .with("span", Value::Timespan(10))
        .with("ch", Value::Char('x'))
        .with("bin", Value::Binary([1].into()))
        .with("my-prop", "v")
        .with("q", 1_i64)
        .with("which", "s")
        .with("like", "keyword")
        .with_null("nothing")
        .with_system(SystemProperty::Label, "x")
        .with_system(SystemProperty::Priority, 7_i64)
        .with_system(SystemProperty::EnqueuedTimeUtc, Value::Timestamp(1_700_000_000_000))
}

#[test]
fn filters_match_or_do_not() {
    let cases = [
        // Each operator once, on values that are there.
        ("a=1", true),
        ("a<>2", true),
        ("a != 2", true),
        ("a <> 1", false),
        ("a > 0 AND a >= 1 AND a < 2 AND a <= 1", true),
        ("a > 1 OR a < 1", false),
        ("s LIKE 'ab%'", true),
        ("s NOT LIKE 'ab%'", false),
        ("s LIKE 'AB%'", false),
        ("esc LIKE 'a!_%' ESCAPE '!'", true),
        ("s LIKE 'a!_%' ESCAPE '!'", false),
        ("s LIKE @pattern", true),
        ("s LIKE which + '%'", false),
        ("s LIKE 'a' + '%'", true),
        ("s IN ('x','abc')", true),
        ("s IN ('x','y')", false),
        ("s NOT IN ('x','y')", true),
        ("a IN (2, 1.0)", true),
        ("missing IS NULL", true),
        ("nothing IS NULL", true),
        ("a IS NULL", false),
        ("a IS NOT NULL", true),
        ("missing IS NOT NULL", false),
        ("a + missing IS NULL", true),
        ("NULL IS NULL", true),
        ("sys.ReplyTo IS NULL", true),
        ("EXISTS(a)", true),
        ("EXISTS(A)", true),
        ("EXISTS(nothing)", true),
        ("EXISTS(missing)", false),
        ("EXISTS(sys.Label)", true),
        ("EXISTS ( sys.ReplyTo )", false),
        ("NOT EXISTS(missing)", true),
        ("NOT (a=1)", false),
        ("NOT a = 2", true),
        // Names.
        ("sys.Label='x'", true),
        ("SYS.label='x'", true),
        ("sys.Subject = 'x'", true),
        ("sys.[Label] = 'x'", true),
        ("[my-prop] = 'v'", true),
        ("user.[my-prop] = 'v'", true),
        ("USER.a = 1", true),
        ("\"q\" = 1", true),
        ("A = 1", true),
        ("[like] = 'keyword'", true),
        ("sys.Priority >= 7", true),
        ("sys.EnqueuedTimeUtc > '2023-11-14'", true),
        ("sys.EnqueuedTimeUtc > '2023-11-15'", false),
        // Functions and parameters.
        ("property('a') = 1", true),
        ("p('A') = 1", true),
        ("property('user.a') = 1", true),
        ("property('SYS.Label') = 'x'", true),
        ("property(which) = 'abc'", true),
        ("p(p('which')) = 'abc'", true),
        ("property(missing) IS NULL", true),
        ("newid() <> newid()", true),
        ("newid() = '00000000-0000-0000-0000-000000000001'", true),
        ("a = @one", true),
        ("@yes", true),
        // Precedence.
        ("a = 2 AND a = 2 OR a = 1", true),
        ("a = 1 OR a = 1 AND a = 2", true),
        ("(a = 1 OR a = 1) AND a = 2", false),
        ("NOT a = 2 AND a = 1", true),
        ("2 + 3 * 4 = 14", true),
        ("(2 + 3) * 4 = 20", true),
        ("10 - 3 - 2 = 5", true),
        ("100 / 10 / 2 = 5", true),
        ("2 * -3 = -6", true),
        ("- -a = 1", true),
        ("+a = 1", true),
        ("-(a) = -1", true),
        ("((a)) = (1)", true),
        ("((a + 1) > 1) AND (flag)", true),
        // Bare booleans.
        ("flag", true),
        ("off", false),
        ("TRUE", true),
        ("false", false),
        ("NOT off", true),
        ("flag AND NOT off OR missing", true),
        // Arithmetic.
        ("a + 1 > 1", true),
        ("two % 2 = 0", true),
        ("7 / 2 = 3", true),
        ("neg / 2 = -3", true),
        ("neg % 3 = -1", true),
        ("7 % -3 = 1", true),
        ("7 / 2.0 = 3.5", true),
        ("1 / 0.0 > max", true),
        ("-1 / 0.0 < min", true),
        ("-9223372036854775808 = min", true),
        ("9223372036854775807 = max", true),
        ("1.5E3 = 1500", true),
        ("5E-2 = 0.05", true),
        ("price * 2 = 39.98", true),
        ("price + 1 > 20", true),
        ("big > max", true),
        ("big - 1 < big", true),
        ("s + 'd' = 'abcd'", true),
        ("s + '-' + s + '-' = 'abc-abc-'", true),
        ("'it''s' = 'it' + '''s'", true),
        // Types that do not go together: = is false, <> true, order unknown.
        ("s = 1", false),
        ("s <> 1", true),
        ("s > 1", false),
        ("NOT (s > 1)", false),
        ("flag = 1", false),
        ("flag = TRUE", true),
        ("flag <> FALSE", true),
        ("flag > FALSE", false),
        ("NOT (flag > FALSE)", false),
        ("guid = '00000000-0000-0000-0000-00000000000A'", true),
        ("'{00000000-0000-0000-0000-00000000000a}' = guid", true),
        ("guid <> 'x'", true),
        ("guid < 'x'", false),
        ("at = '1970-01-01T00:00:00Z'", true),
        ("at < '1970-01-02'", true),
        ("at < 'soon'", false),
        ("NOT (at < 'soon')", false),
        ("at <> 'soon'", true),
        ("span = span", true),
        ("span = 10", false),
        ("ch = 'x'", false),
        ("bin = bin", true),
        ("s < 'abd'", true),
        ("s < 'B'", false),
        ("empty = ''", true),
        ("empty IS NULL", false),
        ("nan = nan", false),
        ("nan <> nan", true),
        ("NOT (nan > 1)", true),
    ];
    let message = message();
    for (text, matches) in cases {
        assert_eq!(evaluate(text, &message), Ok(matches), "{text}");
    }
}

#[test]
fn what_is_unknown_does_not_match_nor_does_its_negation() {
    let unknown = [
        "b = 1",
        "b <> 1",
        "b > 1",
        "b LIKE '%'",
        "s LIKE b",
        "s LIKE 'a' ESCAPE b",
        "b IN (1)",
        "b + 1 = 2",
        "-b = 1",
        "b * 'text' = 1",
        "a = NULL",
        "a <> NULL",
        "NULL = NULL",
        "NULL IN (NULL)",
        "nothing = 1",
        "b",
        "b = 1 OR a = 2",
        "b = 1 AND a = 1",
        "sys.ReplyTo = 'x'",
        "s > 1",
    ];
    let message = message();
    for text in unknown {
        assert_eq!(evaluate(text, &message), Ok(false), "{text}");
        assert_eq!(evaluate(&format!("NOT ({text})"), &message), Ok(false), "NOT ({text})");
        assert_eq!(evaluate(&format!("({text}) OR a = 1"), &message), Ok(true), "({text}) OR a = 1");
        let false_dominates = format!("NOT (({text}) AND a = 2)");
        assert_eq!(evaluate(&false_dominates, &message), Ok(true), "{false_dominates}");
    }
    // An unknown element of a list is skipped; negated, only the known ones count.
    assert_eq!(evaluate("a IN (b, 1)", &message), Ok(true));
    assert_eq!(evaluate("a NOT IN (b, 2)", &message), Ok(true));
    assert_eq!(evaluate("b NOT IN (1)", &message), Ok(false));
    assert_eq!(evaluate("b NOT LIKE 'x'", &message), Ok(false));
}

#[test]
fn what_cannot_be_computed_is_an_error() {
    let cases = [
        ("a / 0 = 1", "division by zero"),
        ("a % 0 = 1", "division by zero"),
        ("price / 0 = 1", "division by zero"),
        ("max + 1 = 0", "result of '+' is out of range"),
        ("min - 1 = 0", "result of '-' is out of range"),
        ("max * 2 = 0", "result of '*' is out of range"),
        ("min / -1 = 0", "result of '/' is out of range"),
        ("min % -1 = 0", "result of '%' is out of range"),
        ("-min = 0", "result of '-' is out of range"),
        ("s + 1 = 1", "operator '+' is not defined for string and int64"),
        ("1 + s = 1", "operator '+' is not defined for int64 and string"),
        ("s - s = 1", "operator '-' is not defined for string and string"),
        ("s + s * 1 = 1", "operator '*' is not defined for string and int64"),
        ("flag + 1 = 1", "operator '+' is not defined for boolean and int64"),
        ("at - at = 1", "operator '-' is not defined for datetime and datetime"),
        ("-s = 1", "sign '-' is not defined for string"),
        ("+s = 1", "sign '+' is not defined for string"),
        ("a LIKE '1'", "left side of LIKE must be a string, found int64"),
        ("s LIKE a", "pattern of LIKE must be a string, found int64"),
        ("s LIKE 'a' ESCAPE a", "escape of LIKE must be a string, found int64"),
        ("s LIKE 'a' ESCAPE s", "ESCAPE needs a string of one character, found 3"),
        ("s LIKE 'a' ESCAPE empty", "ESCAPE needs a string of one character, found 0"),
        ("s LIKE s + '!' ESCAPE '!'", "LIKE pattern ends with its escape character"),
        ("a", "condition must be a boolean, found int64"),
        ("s OR flag", "condition must be a boolean, found string"),
        ("property(a) = 1", "property name must be a string, found int64"),
        ("property('sys.Body') = 1", "no system property is called \"Body\""),
    ];
    let message = message();
    for (text, error) in cases {
        assert_eq!(
            evaluate(text, &message).map_err(|error| error.to_string()),
            Err(error.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn what_no_longer_matters_is_not_evaluated() {
    let cases = [
        ("a = 2 AND a / 0 = 1", false),
        ("b = 1 AND a / 0 = 1", false),
        ("a = 1 OR a / 0 = 1", true),
        ("a IN (1, a / 0)", true),
        ("b IN (a / 0)", false),
        ("NOT (a = 1 OR a / 0 = 1)", false),
    ];
    for (text, matches) in cases {
        assert_eq!(evaluate(text, &message()), Ok(matches), "{text}");
    }
    // Below a NOT an unknown left side settles nothing.
    assert_eq!(evaluate("NOT (b = 1 AND a / 0 = 1)", &message()), Err(FilterError::DivisionByZero));
}

#[test]
fn texts_that_are_no_filter_are_refused_where_they_go_wrong() {
    let cases = [
        ("", "expected a property, a constant or '(', found end of text at position 1"),
        ("   ", "expected a property, a constant or '(', found end of text at position 4"),
        ("a =", "expected a property, a constant or '(', found end of text at position 4"),
        ("a = 1 b", "expected an operator or the end, found \"b\" at position 7"),
        ("a = 1 = 1", "expected an operator or the end, found \"=\" at position 7"),
        ("a == 1", "expected a property, a constant or '(', found \"=\" at position 4"),
        ("(a = 1", "expected ')', found end of text at position 7"),
        ("a = 1)", "expected an operator or the end, found \")\" at position 6"),
        ("ä = 1 AND", "expected a property, a constant or '(', found end of text at position 10"),
        ("AND = 1", "expected a property, a constant or '(', found \"AND\" at position 1"),
        ("user.in = 1", "expected a property name, found \"in\" at position 6"),
        ("[] = 1", "expected a property name, found \"[]\" at position 1"),
        ("a IS 1", "expected NULL, found \"1\" at position 6"),
        ("a NOT 1", "expected IN or LIKE after NOT, found \"1\" at position 7"),
        ("a = NOT b", "expected a property, a constant or '(', found \"NOT\" at position 5"),
        ("a IN ()", "expected a property, a constant or '(', found \")\" at position 7"),
        ("a IN 1", "expected '(' after IN, found \"1\" at position 6"),
        ("a IN (1, 2", "expected ',' or ')' in the list, found end of text at position 11"),
        ("EXISTS a", "expected '(' after EXISTS, found \"a\" at position 8"),
        ("EXISTS(1)", "expected a property name, found \"1\" at position 8"),
        ("EXISTS(a", "expected ')' after the property, found end of text at position 9"),
        ("1", "expected a condition, found a value at position 1"),
        ("'x' OR a = 1", "expected a condition, found a value at position 1"),
        ("a = 1 AND b + 1", "expected a condition, found a value at position 11"),
        ("NOT 5", "expected a condition, found a value at position 5"),
        ("NULL", "expected a condition, found a value at position 1"),
        ("@one", "expected a condition, found a value at position 1"),
        ("(a > 1) + 2 = 3", "expected a value, found a condition at position 1"),
        ("2 * (a > 1) = 3", "expected a value, found a condition at position 5"),
        ("(a > 1) = TRUE", "expected a value, found a condition at position 1"),
        ("-(a = 1) = 1", "expected a value, found a condition at position 2"),
        ("(a = 1) IS NULL", "expected a value, found a condition at position 1"),
        ("(a = 1) LIKE 'x'", "expected a value, found a condition at position 1"),
        ("a IN ((b = 1))", "expected a value, found a condition at position 7"),
        ("property((a = 1)) = 1", "expected a value, found a condition at position 10"),
        ("sys.Body = 1", "no system property is called \"Body\" at position 5"),
        ("a = 1 AND sys.x = 1", "no system property is called \"x\" at position 15"),
        ("foo.a = 1", "expected scope sys or user before '.', found \"foo\" at position 1"),
        ("user.a.b = 1", "expected an operator or the end, found \".\" at position 7"),
        ("lower(a) = 'x'", "expected function newid, property or p, found \"lower\" at position 1"),
        ("user.p('a') = 1", "expected an operator or the end, found \"(\" at position 7"),
        ("newid(1) = 1", "expected ')' after the arguments, found \"1\" at position 7"),
        ("a = @two", "parameter @two at position 5 has no value"),
        ("a = @ONE", "parameter @ONE at position 5 has no value"),
        ("a = 9223372036854775808", "number at position 5 is out of range"),
        ("a = -9223372036854775809", "number at position 6 is out of range"),
        ("a = 1e999", "number at position 5 is out of range"),
        ("a = .5", "expected a property, a constant or '(', found \".\" at position 5"),
        ("a = 0x10", "expected an operator after the number, found 'x' at position 6"),
        ("a LIKE 5", "pattern of LIKE must be a string, found int64 at position 8"),
        ("a LIKE 'x' ESCAPE 'ab'", "ESCAPE needs a string of one character, found 2 at position 8"),
        ("a LIKE 'x!' ESCAPE '!'", "LIKE pattern ends with its escape character at position 8"),
        ("a = 1 -- two words", "expected an operator or the end, found \"words\" at position 14"),
        ("a = 1 /* b */", "expected a property, a constant or '(', found \"*\" at position 8"),
        ("a = 1; b = 2", "expected an operator or the end, found \";\" at position 6"),
    ];
    for (text, error) in cases {
        assert_eq!(refusal(text), error, "{text}");
    }
}

#[test]
fn text_length_and_nesting_are_bounded() {
    type Build = fn(usize) -> String;
    let padded = |length: usize| format!("{:<length$}", "ä = 1");
    assert!(Sql::parse(&padded(TEXT_CHARACTERS_MAX), Parameters::new()).is_ok());
    assert_eq!(refusal(&padded(TEXT_CHARACTERS_MAX + 1)), "text has 1025 characters, the limit is 1024");

    let nested: [(&str, Build); 5] = [
        ("parentheses", |depth| format!("{}a = 1{}", "(".repeat(depth), ")".repeat(depth))),
        ("value parentheses", |depth| format!("{}a{} = 1", "(".repeat(depth), ")".repeat(depth))),
        ("NOT", |depth| format!("{}a = 1", "NOT ".repeat(depth))),
        ("signs", |depth| format!("{}a = 1", "- ".repeat(depth))),
        ("functions", |depth| format!("{}'a'{} = 1", "p(".repeat(depth), ")".repeat(depth))),
    ];
    for (name, build) in nested {
        assert!(Sql::parse(&build(32), Parameters::new()).is_ok(), "{name}");
        assert!(
            refusal(&build(33)).ends_with("exceeds the limit of 32 levels"),
            "{name}: {}",
            refusal(&build(33))
        );
    }

    // Chains do not nest.
    let chain = vec!["a = 1"; 100].join(" OR ");
    assert!(Sql::parse(&chain, Parameters::new()).is_ok());
    let sum = format!("{} > 0", vec!["a"; 200].join(" + "));
    assert_eq!(evaluate(&sum, &message()), Ok(true));
}

#[test]
fn exact_spelling_wins_among_names_that_differ_in_case() {
    let message = MapMessage::new().with("A", 1_i64).with("a", 2_i64).with("B", 3_i64);
    for (text, matches) in [("A = 1", true), ("a = 2", true), ("a = 1", false), ("b = 3", true)] {
        assert_eq!(evaluate(text, &message), Ok(matches), "{text}");
    }
}

#[test]
fn a_filter_keeps_its_text_and_has_one_canonical_form() {
    let text = "  a=1 and(  NOT b LIKE 'x%' or C+1*(2-d)<=- 5 ) AND SYS.subject != \"q\"";
    let filter = Sql::parse(text, Parameters::new()).expect("the text is a filter");
    assert_eq!(filter.text(), text);
    assert_eq!(
        filter.canonical(),
        "[a] = 1 AND (NOT [b] LIKE 'x%' OR [C] + 1 * (2 - [d]) <= -5) AND sys.Label <> [q]"
    );
}

#[test]
fn evaluation_ends_at_the_step_budget() {
    let long = MapMessage::new().with("s", "a".repeat(10_000)).with("a", 1_i64);
    let cases = [
        ("a = 1", 3, true),
        ("a = 1 AND a = 1", 7, true),
        ("s LIKE '%b%'", 10_000, false),
        ("s + s + s = ''", 30_000, false),
        ("s < s + 'x'", 10_000, true),
    ];
    for (text, at_least, matches) in cases {
        let filter = Sql::parse(text, Parameters::new()).expect("the text is a filter");
        let mut new_id = || 0;
        let mut environment = Environment::new(&mut new_id);
        assert_eq!(filter.matches(&long, &mut environment), Ok(matches), "{text}");
        let steps = u32::try_from(environment.steps_taken()).expect("few steps");
        assert!((at_least..at_least + at_least / 10 + 10).contains(&steps), "{text} took {steps}");

        let mut enough = Environment::new(&mut new_id).with_steps_max(steps);
        assert_eq!(filter.matches(&long, &mut enough), Ok(matches), "{text} with exactly its steps");
        let mut one_less = Environment::new(&mut new_id).with_steps_max(steps - 1);
        let outcome = filter.matches(&long, &mut one_less);
        assert_eq!(outcome, Err(FilterError::Budget { limit: steps - 1 }), "{text} with one step less");
        assert!(one_less.steps_taken() < u64::from(steps), "{text}");
    }
}

#[test]
fn every_evaluation_has_a_budget_of_its_own() {
    let costly = Sql::parse("s LIKE '%b%'", Parameters::new()).expect("the text is a filter");
    let message = MapMessage::new().with("s", "a".repeat(1000));
    let mut new_id = || 0;
    let mut environment = Environment::new(&mut new_id).with_steps_max(1500);
    for evaluations in 1..=10_u64 {
        assert_eq!(costly.matches(&message, &mut environment), Ok(false));
        assert!(environment.steps_taken() >= evaluations * 1000, "steps are counted over all evaluations");
    }
    let too_costly = Sql::parse("s + s = s", Parameters::new()).expect("the text is a filter");
    assert_eq!(too_costly.matches(&message, &mut environment), Err(FilterError::Budget { limit: 1500 }));
    assert_eq!(
        costly.matches(&message, &mut environment),
        Ok(false),
        "one rule's cost is not another's error"
    );
}

#[test]
fn ten_times_the_input_takes_at_most_twelve_times_the_steps() {
    let filters =
        ["s LIKE '%aab%'", "s LIKE '%a%a%a_a%b'", "s + s = s", "s IN (s + 'x', 'y')", "s < s + 'x'"];
    let steps = |text: &str, length: usize| {
        let filter = Sql::parse(text, Parameters::new()).expect("the text is a filter");
        let mut new_id = || 0;
        let mut environment = Environment::new(&mut new_id);
        let outcome = filter.matches(&MapMessage::new().with("s", "a".repeat(length)), &mut environment);
        assert!(outcome.is_ok(), "{text}");
        environment.steps_taken()
    };
    for text in filters {
        let (short, long) = (steps(text, 5000), steps(text, 50_000));
        assert!(long <= short * 12, "{text}: {short} steps became {long}");
    }
    let shorter = steps(&vec!["a=1"; 14].join(" OR "), 1);
    let longer = steps(&vec!["a=1"; 140].join(" OR "), 1);
    assert!(longer <= shorter * 12, "{shorter} steps became {longer}");
}
