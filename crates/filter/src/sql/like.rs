//! LIKE: a pattern cut into the runs between its `%`, matched without backtracking.
//!
//! The first run must stand at the start of the text, the last at its end, and each run between
//! wherever it occurs first after the one before: a later place could only leave less room for the
//! rest. So a run once placed is never moved, and the text is read once. A run is found with the
//! standard library's linear search; only a run with `_` between literal characters is tried place
//! by place, and the step budget bounds that.

use crate::environment::Environment;
use crate::error::FilterError;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pattern {
    head: Run,
    middle: Box<[Run]>,
    /// What must stand at the end; none if the pattern has no `%`, and then the head is everything.
    tail: Option<Run>,
}

type Run = Box<[Piece]>;

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Literal(Box<str>),
    /// That many characters, whichever they are.
    Any(usize),
}

impl Pattern {
    pub(crate) fn compile(pattern: &str, escape: Option<char>) -> Result<Self, FilterError> {
        let mut runs = vec![Vec::new()];
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let run = runs.last_mut().expect("there is a run from the start and none is removed");
            if escape == Some(character) {
                push_literal(run, characters.next().ok_or(FilterError::DanglingEscape)?);
            } else if character == '%' {
                runs.push(Vec::new());
            } else if character == '_' {
                push_any(run);
            } else {
                push_literal(run, character);
            }
        }
        let mut runs = runs.into_iter().map(Vec::into_boxed_slice);
        let head = runs.next().unwrap_or_default();
        let tail = runs.next_back();
        let middle = runs.filter(|run| !run.is_empty()).collect();
        Ok(Self { head, middle, tail })
    }

    pub(crate) fn matches(&self, text: &str, environment: &mut Environment<'_>) -> Result<bool, FilterError> {
        let Some(mut rest) = strip_start(&self.head, text, environment)? else { return Ok(false) };
        let Some(tail) = &self.tail else { return Ok(rest.is_empty()) };
        rest = match strip_end(tail, rest, environment)? {
            Some(rest) => rest,
            None => return Ok(false),
        };
        for run in &self.middle {
            rest = match strip_through(run, rest, environment)? {
                Some(rest) => rest,
                None => return Ok(false),
            };
        }
        Ok(true)
    }
}

fn push_literal(run: &mut Vec<Piece>, character: char) {
    if let Some(Piece::Literal(text)) = run.last_mut() {
        let mut longer = String::from(std::mem::take(text));
        longer.push(character);
        *text = longer.into();
    } else {
        run.push(Piece::Literal(character.to_string().into()));
    }
}

fn push_any(run: &mut Vec<Piece>) {
    if let Some(Piece::Any(count)) = run.last_mut() {
        *count += 1;
    } else {
        run.push(Piece::Any(1));
    }
}

/// The text behind `run`, if it starts with it.
fn strip_start<'t>(
    run: &[Piece],
    text: &'t str,
    environment: &mut Environment<'_>,
) -> Result<Option<&'t str>, FilterError> {
    let mut rest = text;
    for piece in run {
        environment.charge(piece.steps())?;
        let stripped = match piece {
            Piece::Literal(literal) => rest.strip_prefix(&**literal),
            Piece::Any(count) => skip(rest, *count),
        };
        rest = match stripped {
            Some(rest) => rest,
            None => return Ok(None),
        };
    }
    Ok(Some(rest))
}

/// The text before `run`, if it ends with it.
fn strip_end<'t>(
    run: &[Piece],
    text: &'t str,
    environment: &mut Environment<'_>,
) -> Result<Option<&'t str>, FilterError> {
    let mut rest = text;
    for piece in run.iter().rev() {
        environment.charge(piece.steps())?;
        let stripped = match piece {
            Piece::Literal(literal) => rest.strip_suffix(&**literal),
            Piece::Any(count) => {
                rest.char_indices().rev().nth(count - 1).and_then(|(start, _)| rest.get(..start))
            }
        };
        rest = match stripped {
            Some(rest) => rest,
            None => return Ok(None),
        };
    }
    Ok(Some(rest))
}

/// The text behind the first place where `run` occurs.
///
/// Searching is charged after the fact, because how far it goes is not known before; it goes at
/// most once through the text.
fn strip_through<'t>(
    run: &[Piece],
    text: &'t str,
    environment: &mut Environment<'_>,
) -> Result<Option<&'t str>, FilterError> {
    let (leading, rest_of_run) = match run {
        [Piece::Any(count), rest @ ..] => (*count, rest),
        _ => (0, run),
    };
    environment.charge(leading)?;
    let Some(mut text) = skip(text, leading) else { return Ok(None) };
    let [Piece::Literal(first), following @ ..] = rest_of_run else { return Ok(Some(text)) };
    loop {
        let found = text.find(&**first);
        environment.charge(found.unwrap_or(text.len()).saturating_add(first.len()))?;
        let Some((from_first, behind_first)) =
            found.and_then(|start| Some((text.get(start..)?, text.get(start + first.len()..)?)))
        else {
            return Ok(None);
        };
        if let Some(rest) = strip_start(following, behind_first, environment)? {
            return Ok(Some(rest));
        }
        if let [] | [Piece::Any(_)] = following {
            // Too little text is left, and any later place leaves even less.
            return Ok(None);
        }
        text = skip(from_first, 1).unwrap_or_default();
    }
}

impl Piece {
    fn steps(&self) -> usize {
        match self {
            Self::Literal(text) => text.len(),
            Self::Any(count) => *count,
        }
    }
}

/// The text behind its first `count` characters, if it has so many.
fn skip(text: &str, count: usize) -> Option<&str> {
    let mut characters = text.chars();
    for _ in 0..count {
        characters.next()?;
    }
    Some(characters.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn like(text: &str, pattern: &str, escape: Option<char>) -> bool {
        let mut no_ids = || 0;
        let mut environment = Environment::new(&mut no_ids);
        Pattern::compile(pattern, escape).unwrap().matches(text, &mut environment).unwrap()
    }

    fn steps(text: &str, pattern: &str) -> u64 {
        let mut no_ids = || 0;
        let mut environment = Environment::new(&mut no_ids).with_steps_max(u32::MAX);
        Pattern::compile(pattern, None).unwrap().matches(text, &mut environment).unwrap();
        environment.steps_taken()
    }

    /// Tries everything.
    fn oracle(text: &[char], pattern: &[char], escape: Option<char>) -> bool {
        match pattern {
            [] => text.is_empty(),
            [mark, literal, rest @ ..] if escape == Some(*mark) => {
                text.first() == Some(literal) && oracle(&text[1..], rest, escape)
            }
            ['%', rest @ ..] => (0..=text.len()).any(|skipped| oracle(&text[skipped..], rest, escape)),
            ['_', rest @ ..] => !text.is_empty() && oracle(&text[1..], rest, escape),
            [literal, rest @ ..] => text.first() == Some(literal) && oracle(&text[1..], rest, escape),
        }
    }

    #[test]
    fn patterns_match_the_whole_text() {
        let cases = [
            ("", "", true),
            ("", "%", true),
            ("", "%%", true),
            ("", "_", false),
            ("abc", "abc", true),
            ("abc", "ABC", false),
            ("abc", "ab", false),
            ("abc", "ab%", true),
            ("ab", "ab%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "a_c", true),
            ("abc", "___", true),
            ("abc", "__", false),
            ("abc", "____", false),
            ("abc", "%_%_%_%", true),
            ("abc", "%_%_%_%_%", false),
            ("a\nc", "a_c", true),
            ("äöü", "_ö_", true),
            ("äöü", "%_ü", true),
            ("aXbXc", "%X%X%", true),
            ("aXbc", "%X%X%", false),
            ("aba", "ab%ba", false),
            ("abba", "ab%ba", true),
            ("xaab", "%a_b", true),
            ("aaab", "%a_b%", true),
            ("a.c", "a.c", true),
            ("abc", "a.c", false),
            ("%", "[%]", false),
        ];
        for (text, pattern, matches) in cases {
            assert_eq!(like(text, pattern, None), matches, "{text:?} LIKE {pattern:?}");
        }
    }

    #[test]
    fn the_escape_character_makes_the_next_one_literal() {
        let cases = [
            ("a_b", "a!_b", true),
            ("axb", "a!_b", false),
            ("50%", "50!%", true),
            ("500", "50!%", false),
            ("a!b", "a!!b", true),
            ("ab", "a!b", true),
        ];
        for (text, pattern, matches) in cases {
            assert_eq!(like(text, pattern, Some('!')), matches, "{text:?} LIKE {pattern:?}");
        }
        assert!(like("a%", "a%%", Some('%')));
        assert!(!like("ab", "a%%", Some('%')));
        assert_eq!(Pattern::compile("a!", Some('!')), Err(FilterError::DanglingEscape));
    }

    #[test]
    fn a_thousand_wildcards_on_a_hundred_kilobytes_read_the_text_about_once() {
        let pattern = "%a".repeat(1000);
        for text in ["a".repeat(100_000), "ab".repeat(50_000), "b".repeat(100_000)] {
            let steps = steps(&text, &pattern);
            assert!(steps <= 110_000, "{steps} steps");
        }
    }

    #[test]
    fn ten_times_the_input_takes_at_most_twelve_times_the_steps() {
        type Build = fn(usize) -> (String, String);
        let hostile: [Build; 5] = [
            |n| ("a".repeat(n), format!("%{}b%", "a".repeat(n / 10))),
            |n| ("a".repeat(n), "%a".repeat(n / 10)),
            |n| ("ab".repeat(n), "%a%b_".repeat(n / 10)),
            |n| ("a".repeat(n), "%_".repeat(n / 10)),
            |n| ("aab".repeat(n), "%aa_a%a_b%".to_owned()),
        ];
        for (index, build) in hostile.into_iter().enumerate() {
            let (text, pattern) = build(1000);
            let (long_text, long_pattern) = build(10_000);
            let (short, long) = (steps(&text, &pattern), steps(&long_text, &long_pattern));
            assert!(long <= short * 12, "case {index}: {short} steps became {long}");
        }
    }

    #[test]
    fn the_one_quadratic_kind_of_pattern_ends_at_the_budget() {
        let text = "a".repeat(50_000);
        let pattern = Pattern::compile(&format!("%{}b%", "a_".repeat(400)), None).unwrap();
        let mut no_ids = || 0;
        let mut environment = Environment::new(&mut no_ids);
        let outcome = pattern.matches(&text, &mut environment);
        assert_eq!(outcome, Err(FilterError::Budget { limit: crate::STEPS_MAX }));
        assert_eq!(environment.steps_taken(), u64::from(crate::STEPS_MAX));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn matching_agrees_with_trying_everything(
            text in prop_oneof!["[ab]{0,12}", "[abä]{0,9}"],
            pattern in prop_oneof!["[ab%_]{0,8}", "%[ab]_[ab]%[ab_%]{0,3}", "[abä%_!]{0,8}"],
            escape in prop::option::of(prop::sample::select(vec!['!', 'a', '%', '_'])),
        ) {
            if let Ok(compiled) = Pattern::compile(&pattern, escape) {
                let mut no_ids = || 0;
                let matches = compiled.matches(&text, &mut Environment::new(&mut no_ids)).unwrap();
                let text: Vec<char> = text.chars().collect();
                let pattern: Vec<char> = pattern.chars().collect();
                prop_assert_eq!(matches, oracle(&text, &pattern, escape));
            }
        }
    }
}
