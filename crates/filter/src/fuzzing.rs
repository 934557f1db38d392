//! What must hold for any text a peer can send as a filter or an action.
//!
//! Fuzz targets call these functions with bytes; a test calls them with the corpus under
//! `corpus/sql`. A function returns when everything holds, and panics in words when not.

use crate::{
    Action, Changed, Environment, Filter, MapMessage, Message, Parameters, RuleIndex, Sql, SystemProperty,
    TEXT_CHARACTERS_MAX, Value,
};

/// Steps each evaluation gets: few, so that running out is tried too.
const STEPS: u32 = 5000;

/// Checks a text as a filter and as an action.
///
/// A filter that parses must print to a text that parses to the same filter, must stay within its
/// step budget on every message, must give the same outcome twice, and must match through an index
/// exactly when it matches alone. An action that parses must round trip too, and the changes it
/// decides must look the same on the message and in the view of it.
pub fn check_sql(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(filter) = Sql::parse(text, parameters()) {
        check_filter(text, &filter);
    }
    if let Ok(action) = Action::parse(text, parameters()) {
        check_action(text, &action);
    }
}

fn check_filter(text: &str, filter: &Sql) {
    assert_eq!(filter.to_string(), text, "a filter displays as it was written");
    let canonical = filter.canonical();
    if canonical.chars().count() <= TEXT_CHARACTERS_MAX {
        let again = Sql::parse(&canonical, parameters()).expect("a printed filter parses");
        assert!(again.same_tree(filter), "{text:?} printed as {canonical:?} parses to another filter");
    }
    let filter = Filter::from(filter.clone());
    let mut index = RuleIndex::new();
    index.insert(7, &filter);
    for message in messages() {
        let (alone, steps) = counted(|environment| filter.matches(&message, environment));
        assert!(steps <= u64::from(STEPS), "{steps} steps exceed the budget of {STEPS}");
        let (again, _) = counted(|environment| filter.matches(&message, environment));
        assert_eq!(alone, again, "{text:?} evaluates to the same twice");
        let mut found = Vec::new();
        counted(|environment| index.matches(&message, environment, &mut found));
        let through_index = match found.pop() {
            None => Ok(false),
            Some(found) => found.outcome.map(|()| true),
        };
        assert!(found.is_empty(), "one rule matches once");
        assert_eq!(through_index, alone, "{text:?} matches through an index as it does alone");
    }
}

fn check_action(text: &str, action: &Action) {
    assert_eq!(action.to_string(), text, "an action displays as it was written");
    let canonical = action.canonical();
    if canonical.chars().count() <= TEXT_CHARACTERS_MAX {
        let again = Action::parse(&canonical, parameters()).expect("a printed action parses");
        assert!(again.same_tree(action), "{text:?} printed as {canonical:?} parses to another action");
    }
    for message in messages() {
        let (changes, steps) = counted(|environment| action.apply(&message, environment));
        assert!(steps <= u64::from(STEPS), "{steps} steps exceed the budget of {STEPS}");
        let Ok(changes) = changes else { continue };
        let view = Changed::new(&message, &changes);
        let mut changed = message.clone();
        changed.apply(&changes);
        for name in ["a", "A", "s", "S", "flag", "guid", "at", "missing", "nothing"] {
            same(view.user(name), changed.user(name), text);
        }
        for property in SystemProperty::all() {
            same(view.system(property), changed.system(property), text);
        }
    }
}

/// Compares what is shown, because NaN does not equal itself.
fn same<T: std::fmt::Debug>(view: T, changed: T, text: &str) {
    assert_eq!(
        format!("{view:?}"),
        format!("{changed:?}"),
        "{text:?} seen through the view and on the message"
    );
}

fn counted<T>(run: impl FnOnce(&mut Environment<'_>) -> T) -> (T, u64) {
    let mut next = 0;
    let mut new_id = || {
        next += 1;
        next
    };
    let mut environment = Environment::new(&mut new_id).with_steps_max(STEPS);
    let outcome = run(&mut environment);
    (outcome, environment.steps_taken())
}

fn parameters() -> Parameters {
    Parameters::from([("@x".to_owned(), Value::Int(1)), ("@s".to_owned(), "a%".into())])
}

fn messages() -> [MapMessage; 3] {
    [
        MapMessage::new(),
        MapMessage::new()
            .with("a", 1_i64)
            .with("s", "abc")
            .with("flag", true)
            .with("guid", Value::Guid(5))
            .with("at", Value::Timestamp(0))
            .with_null("nothing")
            .with_system(SystemProperty::Label, "x")
            .with_system(SystemProperty::Priority, 4_i64),
        MapMessage::new()
            .with("A", 1.5)
            .with("a", "a".repeat(2000))
            .with("S", Value::Binary([1, 2].into()))
            .with("flag", "TRUE")
            .with("at", "1970-01-01")
            .with_system(SystemProperty::MessageId, Value::Guid(1)),
    ]
}
