//! Percent-encoding for paths, queries and tokens: everything but letters, digits and `-._~`.

/// The text as one segment of a path, or one value of a query.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0').to_ascii_uppercase();
            out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_plain_letters_passes_unchanged() {
        assert_eq!(encode("orders-1.a_b~c"), "orders-1.a_b~c");
        assert_eq!(encode("a/b c%?#é"), "a%2Fb%20c%25%3F%23%C3%A9");
    }
}
