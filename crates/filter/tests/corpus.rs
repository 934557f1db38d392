//! The corpus of filters and actions, good, odd and hostile, through the checks that fuzzing uses;
//! and texts put together from tokens at random.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use vorrang_filter::{Action, Parameters, Sql, Value, fuzzing};

#[test]
fn every_text_of_the_corpus_passes_the_checks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/sql");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the corpus is part of the crate") {
        let path = entry.expect("the folder can be listed").path();
        let bytes = fs::read(&path).expect("the file can be read");
        fuzzing::check_sql(&bytes);
        let good = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("good-"));
        assert!(!good || parses(&bytes), "{} should parse", path.display());
        count += 1;
    }
    assert!(count >= 40, "{count} files");
}

fn parses(bytes: &[u8]) -> bool {
    let parameters = Parameters::from([("@x".to_owned(), Value::Int(1)), ("@s".to_owned(), "a%".into())]);
    let text = String::from_utf8_lossy(bytes);
    Sql::parse(&text, parameters.clone()).is_ok() || Action::parse(&text, parameters).is_ok()
}

const TOKENS: [&str; 60] = [
    "a",
    "A",
    "s",
    "flag",
    "guid",
    "at",
    "missing",
    "nothing",
    "[a]",
    "[a b]",
    "\"s\"",
    "sys.",
    "user.",
    "sys.Label",
    "sys.Priority",
    "sys.TimeToLive",
    "1",
    "0",
    "2.5",
    "1e3",
    "9223372036854775808",
    "'a'",
    "'a%'",
    "'_'",
    "''",
    "'00000000-0000-0000-0000-000000000005'",
    "'1970-01-01'",
    "@x",
    "@s",
    "@none",
    "(",
    ")",
    ")",
    ",",
    ";",
    ".",
    "=",
    "=",
    "<>",
    "<",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    " AND ",
    " OR ",
    " NOT ",
    " IN ",
    " LIKE ",
    " ESCAPE ",
    " IS ",
    " NULL ",
    " EXISTS(",
    " TRUE ",
    " property(",
    " newid() ",
    " SET ",
    " REMOVE ",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn any_row_of_tokens_passes_the_checks(tokens in prop::collection::vec(prop::sample::select(TOKENS.to_vec()), 0..25)) {
        fuzzing::check_sql(tokens.concat().as_bytes());
    }

    #[test]
    fn any_bytes_pass_the_checks(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        fuzzing::check_sql(&bytes);
    }

    /// Statements that parse, in any order, for the view of changes against changing the message.
    #[test]
    fn any_row_of_statements_passes_the_checks(
        statements in prop::collection::vec(
            (
                prop::sample::select(vec!["a", "A", "s", "S", "flag", "at", "missing", "nothing", "sys.Label", "sys.Priority"]),
                prop::option::weighted(0.7, prop::sample::select(vec![
                    "a", "A", "s + 'x'", "1", "'2'", "1.5", "NULL", "missing", "newid()", "TRUE", "sys.Label", "-sys.Priority",
                    "0.0 / 0.0", "S",
                ])),
            ),
            1..8,
        ),
    ) {
        let statements: Vec<String> = statements
            .into_iter()
            .map(|(target, value)| match value {
                Some(value) => format!("SET {target} = {value}"),
                None => format!("REMOVE {target}"),
            })
            .collect();
        fuzzing::check_sql(statements.join(";").as_bytes());
    }
}
