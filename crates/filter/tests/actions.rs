//! Actions, rule by rule: what they change, in which order, what fails, what is refused.

use vorrang_filter::{
    Action, Change, Changed, Environment, FilterError, MapMessage, Message, Parameters, STATEMENTS_MAX,
    SystemProperty, Value,
};

fn run(text: &str, message: &MapMessage) -> Result<MapMessage, FilterError> {
    let action = parse(text).unwrap_or_else(|error| unreachable!("{text}: {error}"));
    let mut next = 0;
    let mut new_id = || {
        next += 1;
        next
    };
    let before = message.clone();
    let changes = action.apply(message, &mut Environment::new(&mut new_id))?;
    assert_eq!(*message, before, "{text}: the message itself stays as it is");
    let mut changed = message.clone();
    changed.apply(&changes);
    for (name, _) in message.user_properties().chain(changed.user_properties()) {
        let view = Changed::new(message, &changes);
        assert_eq!(view.user(name), changed.user(name), "{text}: the view shows what applying does");
    }
    Ok(changed)
}

fn parse(text: &str) -> Result<Action, String> {
    let parameters = Parameters::from([("@v".to_owned(), Value::Int(9))]);
    Action::parse(text, parameters).map_err(|error| error.to_string())
}

fn message() -> MapMessage {
    MapMessage::new()
        .with("x", 1_i64)
        .with("y", "why")
        .with_null("nothing")
        .with_system(SystemProperty::Label, "old")
        .with_system(SystemProperty::ReplyTo, "back")
}

#[test]
fn statements_set_and_remove_application_properties() {
    let cases = [
        ("SET z = 'v'", message().with("z", "v")),
        ("set z = 1.5;", message().with("z", 1.5)),
        ("SET user.z = TRUE", message().with("z", true)),
        ("SET [a b] = 2; SET \"c\" = -2", message().with("a b", 2_i64).with("c", -2_i64)),
        ("SET z = newid()", message().with("z", Value::Guid(1))),
        ("SET z = @v", message().with("z", 9_i64)),
        // An existing property keeps the spelling of its name.
        ("SET X = 2", message().with("x", 2_i64)),
        // ... and its type, where the value converts.
        ("SET x = '2'", message().with("x", 2_i64)),
        ("SET x = 'two'", message().with("x", "two")),
        ("SET y = 5", message().with("y", "5")),
        ("SET nothing = 5", message().with("nothing", 5_i64)),
        // Unknown values change nothing.
        ("SET z = missing", message()),
        ("SET x = missing + 1", message()),
        ("SET x = NULL", message()),
        ("SET x = nothing", message()),
        // Removing what is not there is fine.
        ("REMOVE missing", message()),
        (
            "REMOVE X",
            MapMessage::new()
                .with("y", "why")
                .with_null("nothing")
                .with_system(SystemProperty::Label, "old")
                .with_system(SystemProperty::ReplyTo, "back"),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(run(text, &message()), Ok(expected), "{text}");
    }
}

#[test]
fn every_statement_sees_what_the_earlier_ones_did() {
    let cases = [
        ("SET x = x + 1; SET x = x * 10", message().with("x", 20_i64)),
        ("SET x = x + 1, SET x = x * 10;", message().with("x", 20_i64)),
        ("SET x = x + 1 SET x = x * 10", message().with("x", 20_i64)),
        ("SET z = x; SET x = 5", message().with("z", 1_i64).with("x", 5_i64)),
        ("SET sys.Label = 'new' + y; SET z = sys.Label", {
            message().with("z", "newwhy").with_system(SystemProperty::Label, "newwhy")
        }),
        ("SET z = 1; REMOVE z", message()),
        ("REMOVE missing; SET x = missing", message()),
        // Once removed, a property has no type to keep.
        ("SET z = 'text'; REMOVE Z; SET z = 1", message().with("z", 1_i64)),
    ];
    for (text, expected) in cases {
        assert_eq!(run(text, &message()), Ok(expected), "{text}");
    }
    // The value of a removed property is unknown.
    assert_eq!(run("REMOVE y; SET z = y", &message()), run("REMOVE y", &message()));
}

#[test]
fn names_that_differ_in_case_only_are_one_property_to_an_action() {
    let twins = MapMessage::new().with("A", 1_i64).with("a", 2_i64);
    assert_eq!(run("SET a = 3", &twins), Ok(MapMessage::new().with("a", 3_i64)));
    assert_eq!(run("SET A = 3", &twins), Ok(MapMessage::new().with("A", 3_i64)));
    assert_eq!(run("REMOVE a", &twins), Ok(MapMessage::new()));
}

#[test]
fn system_properties_are_set_in_their_own_types() {
    use SystemProperty::{Label, MessageId, Priority, ReplyTo, SessionId, TimeToLive};
    let set = |text: &str| {
        let action = parse(text).unwrap_or_else(|error| unreachable!("{text}: {error}"));
        let mut new_id = || 10;
        let changes = action.apply(&message(), &mut Environment::new(&mut new_id));
        changes.map(|changes| changes.iter().cloned().collect::<Vec<Change>>())
    };
    let to = |property, value: Value| Ok(vec![Change::SetSystem { property, value }]);
    assert_eq!(set("SET sys.Subject = 'l'"), to(Label, "l".into()));
    assert_eq!(
        set("SET sys.MessageId = newid()"),
        to(MessageId, "00000000-0000-0000-0000-00000000000a".into())
    );
    assert_eq!(set("SET sys.SessionId = x"), to(SessionId, "1".into()));
    assert_eq!(set("SET sys.TimeToLive = '00:01:00'"), to(TimeToLive, Value::Timespan(600_000_000)));
    assert_eq!(set("SET sys.Priority = 0"), to(Priority, 0_i64.into()));
    assert_eq!(set("SET sys.Priority = 255"), to(Priority, 255_i64.into()));
    assert_eq!(set("REMOVE sys.ReplyTo"), Ok(vec![Change::RemoveSystem { property: ReplyTo }]));
    assert_eq!(set("SET sys.ScheduledEnqueueTimeUtc = '2030-01-01'"), Ok(vec![]));
    assert_eq!(set("REMOVE sys.ScheduledEnqueueTimeUtc"), Ok(vec![]));

    let fails = |text: &str| set(text).map_err(|error| error.to_string());
    for (text, error) in [
        ("SET sys.Priority = 256", "sys.Priority cannot be set to 256, a level is 0 to 255"),
        ("SET sys.Priority = -1", "sys.Priority cannot be set to -1, a level is 0 to 255"),
        ("SET sys.Priority = 'high'", "sys.Priority cannot be set to a string"),
        ("SET sys.TimeToLive = 5", "sys.TimeToLive cannot be set to this int64"),
        ("SET sys.TimeToLive = 'soon'", "sys.TimeToLive cannot be set to this string"),
        ("SET z = x / 0; SET y = 'kept'", "division by zero"),
        ("SET z = y + 1", "operator '+' is not defined for string and int64"),
    ] {
        assert_eq!(fails(text), Err(error.to_owned()), "{text}");
    }
}

#[test]
fn exactly_the_settable_system_properties_are_accepted() {
    for property in SystemProperty::all() {
        let name = property.name();
        for text in [format!("SET sys.{name} = 'v'"), format!("REMOVE sys.{name}")] {
            assert_eq!(parse(&text).is_ok(), property.settable(), "{text}");
        }
    }
}

#[test]
fn texts_that_are_no_action_are_refused_where_they_go_wrong() {
    let cases = [
        ("", "expected SET or REMOVE, found end of text at position 1"),
        ("a = 1", "expected SET or REMOVE, found \"a\" at position 1"),
        ("SET", "expected a property name, found end of text at position 4"),
        ("SET x", "expected '=' after the property, found end of text at position 6"),
        ("SET x =", "expected a property, a constant or '(', found end of text at position 8"),
        ("SET x <> 1", "expected '=' after the property, found \"<>\" at position 7"),
        ("SET x = 1;;", "expected SET or REMOVE, found \";\" at position 11"),
        ("SET x = 1,", "expected SET or REMOVE, found end of text at position 11"),
        ("; SET x = 1", "expected SET or REMOVE, found \";\" at position 1"),
        ("SET x = 1 2", "expected SET or REMOVE, found \"2\" at position 11"),
        ("SET x = a = 1", "expected SET or REMOVE, found \"=\" at position 11"),
        ("SET x = (a = 1)", "expected a value, found a condition at position 9"),
        ("SET set = 1", "expected a property name, found \"set\" at position 5"),
        ("SET x = remove", "expected a property, a constant or '(', found \"remove\" at position 9"),
        ("REMOVE 1", "expected a property name, found \"1\" at position 8"),
        ("REMOVE x = 1", "expected SET or REMOVE, found \"=\" at position 10"),
        ("SET sys.Body = 1", "no system property is called \"Body\" at position 9"),
        ("SET sys.Size = 1", "sys.Size at position 5 cannot be changed"),
        ("REMOVE sys.SequenceNumber", "sys.SequenceNumber at position 8 cannot be changed"),
        ("SET x = @w", "parameter @w at position 9 has no value"),
    ];
    for (text, error) in cases {
        assert_eq!(parse(text).map(|action| action.to_string()), Err(error.to_owned()), "{text}");
    }
}

#[test]
fn length_and_number_of_statements_are_bounded() {
    let statements = |count: usize| vec!["SET x = 1"; count].join(";");
    assert!(parse(&statements(STATEMENTS_MAX)).is_ok());
    assert_eq!(
        parse(&statements(STATEMENTS_MAX + 1)).map(|_| ()),
        Err("action has more than 32 statements".to_owned())
    );
    let padded = |length: usize| format!("{:<length$}", "SET x = 1");
    assert!(parse(&padded(1024)).is_ok());
    assert_eq!(
        parse(&padded(1025)).map(|_| ()),
        Err("text has 1025 characters, the limit is 1024".to_owned())
    );
}

#[test]
fn one_step_budget_covers_all_statements_so_that_nothing_grows_without_bound() {
    let doubling = vec!["SET s = s + s"; STATEMENTS_MAX].join(";");
    let action = parse(&doubling).unwrap_or_else(|error| unreachable!("{error}"));
    let mut new_id = || 0;
    let mut environment = Environment::new(&mut new_id);
    let outcome = action.apply(&MapMessage::new().with("s", "ab"), &mut environment);
    assert_eq!(outcome, Err(FilterError::Budget { limit: vorrang_filter::STEPS_MAX }));
}

#[test]
fn set_label_and_remove_change_only_what_they_name() {
    let changed = run(
        "SET x = 'v'; SET sys.Label = 'l'; REMOVE y",
        &MapMessage::new().with("y", 1_i64).with("k", 2_i64),
    );
    let expected = MapMessage::new().with("k", 2_i64).with("x", "v").with_system(SystemProperty::Label, "l");
    assert_eq!(changed, Ok(expected));
}
