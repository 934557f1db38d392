//! The text form of a GUID.

use std::fmt;

/// Writes a GUID as 32 lower-case digits in five groups.
pub(crate) fn write(guid: u128, out: &mut impl fmt::Write) -> fmt::Result {
    let groups = [(96, 8), (80, 4), (64, 4), (48, 4), (0, 12)];
    for (index, (shift, digits)) in groups.into_iter().enumerate() {
        if index > 0 {
            out.write_char('-')?;
        }
        let mask = (1_u128 << (digits * 4)) - 1;
        write!(out, "{:0digits$x}", (guid >> shift) & mask)?;
    }
    Ok(())
}

/// Reads a GUID: 32 digits, with hyphens in the usual places or none, optionally in braces or
/// parentheses. Digits of any case.
pub(crate) fn parse(text: &str) -> Option<u128> {
    let bytes = match text.as_bytes() {
        [b'{', inner @ .., b'}'] | [b'(', inner @ .., b')'] if inner.len() == 36 => inner,
        bytes => bytes,
    };
    let hyphens = match bytes.len() {
        36 => true,
        32 => false,
        _ => return None,
    };
    let mut guid = 0_u128;
    for (place, &byte) in bytes.iter().enumerate() {
        if hyphens && matches!(place, 8 | 13 | 18 | 23) {
            if byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = char::from(byte).to_digit(16)?;
        guid = (guid << 4) | u128::from(digit);
    }
    Some(guid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUID: u128 = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff;

    #[test]
    fn a_guid_is_read_in_its_four_spellings() {
        let cases = [
            ("00112233-4455-6677-8899-aabbccddeeff", Some(GUID)),
            ("00112233-4455-6677-8899-AABBCCDDEEFF", Some(GUID)),
            ("00112233445566778899aabbccddeeff", Some(GUID)),
            ("{00112233-4455-6677-8899-aabbccddeeff}", Some(GUID)),
            ("(00112233-4455-6677-8899-aabbccddeeff)", Some(GUID)),
            ("{00112233-4455-6677-8899-aabbccddeeff)", None),
            ("{00112233445566778899aabbccddeeff}", None),
            ("00112233-4455-6677-8899-aabbccddeef", None),
            ("00112233-4455-6677-8899-aabbccddeefg", None),
            ("001122334-455-6677-8899-aabbccddeeff", None),
            ("ä0112233445566778899aabbccddeeff", None),
            ("", None),
        ];
        for (text, guid) in cases {
            assert_eq!(parse(text), guid, "{text}");
        }
    }

    #[test]
    fn a_written_guid_reads_back() {
        for guid in [0, 1, GUID, u128::MAX] {
            let mut text = String::new();
            write(guid, &mut text).unwrap();
            assert_eq!(parse(&text), Some(guid), "{text}");
        }
    }
}
