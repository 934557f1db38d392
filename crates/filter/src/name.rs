//! Names of user properties: equal without regard to case, exact spelling preferred.
//!
//! Every holder of properties (a message, a layer of changes over it) must resolve names the same
//! way, or a filter would see another property than an action changes. So the rule lives here and
//! holders call [`position`].

/// Whether two property names are the same name, ignoring case.
///
/// Case is folded one character to one character, and letters of ASCII equal only each other: `ß`
/// does not equal `SS`, nor the Kelvin sign `K`.
pub fn same(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right) || (!left.is_ascii() && same_beyond_ascii(left, right))
}

/// Where in `names` the property called `name` is: the exact spelling if present, otherwise the
/// first that differs in case only.
pub fn position<'n>(names: impl IntoIterator<Item = &'n str>, name: &str) -> Option<usize> {
    let ascii = name.is_ascii();
    let mut ignoring_case = None;
    for (place, candidate) in names.into_iter().enumerate() {
        if candidate == name {
            return Some(place);
        }
        if ignoring_case.is_none()
            && (candidate.eq_ignore_ascii_case(name) || (!ascii && same_beyond_ascii(candidate, name)))
        {
            ignoring_case = Some(place);
        }
    }
    ignoring_case
}

fn same_beyond_ascii(left: &str, right: &str) -> bool {
    left.chars().map(fold).eq(right.chars().map(fold))
}

fn fold(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_uppercase();
    }
    let mut upper = character.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(single), None) if !single.is_ascii() => single,
        _ => character,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_whatever_their_case() {
        let cases = [
            ("", "", true),
            ("a", "A", true),
            ("Color", "cOLOR", true),
            ("color", "colour", false),
            ("größe", "GRÖßE", true),
            ("ß", "SS", false),
            ("ı", "I", false),
            ("\u{212a}", "k", false),
            ("größe_x", "GRÖßE_X", true),
            ("é", "e", false),
            ("a", "ä", false),
        ];
        for (left, right, equal) in cases {
            assert_eq!(same(left, right), equal, "{left} and {right}");
            assert_eq!(same(right, left), equal, "{right} and {left}");
        }
    }

    #[test]
    fn the_exact_spelling_is_preferred_over_an_earlier_one() {
        assert_eq!(position(["A", "a", "b"], "a"), Some(1));
        assert_eq!(position(["A", "Aa", "b"], "a"), Some(0));
        assert_eq!(position(["B", "b"], "a"), None);
    }
}
