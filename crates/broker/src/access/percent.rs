//! Percent-decoding, once and completely: anything malformed is an error, never passed through.

/// The text is not percent-encoded UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// What a `+` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plus {
    /// Itself, as in paths and in base64.
    Literal,
    /// A space, as form encoders write it.
    Space,
}

/// Decodes every `%xx` of `text`.
pub(super) fn decode(text: &str, plus: Plus) -> Result<String, Malformed> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let high = bytes.next().and_then(hex).ok_or(Malformed)?;
                let low = bytes.next().and_then(hex).ok_or(Malformed)?;
                high << 4 | low
            }
            b'+' if plus == Plus::Space => b' ',
            other => other,
        });
    }
    String::from_utf8(decoded).map_err(|_| Malformed)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_texts_are_decoded_and_others_refused() {
        let cases = [
            ("", Ok("")),
            ("plain", Ok("plain")),
            ("a%2Fb%2fc", Ok("a/b/c")),
            ("%c3%a9", Ok("é")),
            ("a+b", Ok("a+b")),
            ("%252f", Ok("%2f")),
            ("%", Err(Malformed)),
            ("%2", Err(Malformed)),
            ("%zz", Err(Malformed)),
            ("%+2", Err(Malformed)),
            ("%ff", Err(Malformed)),
            ("%é", Err(Malformed)),
        ];
        for (text, expected) in cases {
            assert_eq!(decode(text, Plus::Literal), expected.map(str::to_owned), "{text}");
        }
        assert_eq!(decode("a+b%2B", Plus::Space), Ok("a b+".to_owned()));
    }
}
