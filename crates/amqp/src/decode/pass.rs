//! Passing over well-formed values quickly.
//!
//! Checking what a peer sent is most of the work of finding a message's sections, and nearly all values are plain:
//! numbers, text, lists and maps of such. This walks over those without preparing an error for every step. At the
//! first surprise, be it an error, an array or a described value, it answers `None`, and the general reader takes over
//! from the same place. Whatever this passes, the general reader passes too; property tests and fuzz targets hold
//! them together.

use crate::budget::Budget;
use crate::constructor as code;
use crate::text::is_utf8;

/// How the value behind a constructor is passed over.
#[derive(Clone, Copy)]
enum Shape {
    /// So many bytes.
    Fixed(u8),
    /// A length in one byte, then text.
    ShortText,
    /// A length in four bytes, then text.
    LongText,
    /// A length in one byte, then anything.
    ShortBinary,
    /// A length in four bytes, then anything.
    LongBinary,
    /// A list or map.
    Compound,
    /// For the general reader.
    Other,
}

/// The shape of each constructor.
const SHAPES: [Shape; 256] = {
    let mut shapes = [Shape::Other; 256];
    let mut constructor = 0u8;
    loop {
        let shape = match constructor {
            code::NULL | code::TRUE | code::FALSE | code::UINT_0 | code::ULONG_0 | code::LIST_0 => {
                Shape::Fixed(0)
            }
            code::UBYTE..=code::SMALL_LONG => Shape::Fixed(1),
            code::USHORT | code::SHORT => Shape::Fixed(2),
            code::UINT | code::INT | code::FLOAT | code::DECIMAL_32 => Shape::Fixed(4),
            code::ULONG..=code::DECIMAL_64 => Shape::Fixed(8),
            code::DECIMAL_128 | code::UUID => Shape::Fixed(16),
            code::STRING_8 | code::SYMBOL_8 => Shape::ShortText,
            code::STRING_32 | code::SYMBOL_32 => Shape::LongText,
            code::BINARY_8 => Shape::ShortBinary,
            code::BINARY_32 => Shape::LongBinary,
            code::LIST_8 | code::MAP_8 | code::LIST_32 | code::MAP_32 => Shape::Compound,
            _ => Shape::Other,
        };
        #[allow(
            clippy::indexing_slicing,
            clippy::as_conversions,
            reason = "evaluated by the compiler, which cannot convert a u8 otherwise; the table has 256 places"
        )]
        {
            shapes[constructor as usize] = shape;
        }
        match constructor.checked_add(1) {
            Some(next) => constructor = next,
            None => break shapes,
        }
    }
};

/// What follows the value at the start of `bytes`, charged to `budget`.
#[inline]
pub(super) fn pass<'b>(bytes: &'b [u8], budget: &mut Budget) -> Option<&'b [u8]> {
    items(bytes, 1, budget)
}

/// What follows the value at the start of `bytes`, which says its size and is not looked into.
#[inline]
pub(super) fn pass_by_size(bytes: &[u8]) -> Option<&[u8]> {
    let (constructor, rest) = bytes.split_first()?;
    match *constructor {
        code::BINARY_8 | code::LIST_8 | code::MAP_8 => Some(short(rest)?.1),
        code::BINARY_32 | code::LIST_32 | code::MAP_32 => Some(long(rest)?.1),
        _ => None,
    }
}

/// What follows `count` values at the start of `bytes`.
fn items<'b>(mut bytes: &'b [u8], count: u32, budget: &mut Budget) -> Option<&'b [u8]> {
    for _ in 0..count {
        let (constructor, rest) = bytes.split_first()?;
        // Most fields of most sections.
        if *constructor == code::NULL {
            bytes = rest;
            continue;
        }
        bytes = match SHAPES.get(usize::from(*constructor))? {
            Shape::Fixed(width) => rest.get(usize::from(*width)..)?,
            Shape::ShortText => {
                let (text, rest) = short(rest)?;
                is_utf8(text).then_some(rest)?
            }
            Shape::ShortBinary => short(rest)?.1,
            Shape::Compound => compound(*constructor, rest, budget)?,
            Shape::LongText => {
                let (text, rest) = long(rest)?;
                is_utf8(text).then_some(rest)?
            }
            Shape::LongBinary => long(rest)?.1,
            Shape::Other => return None,
        };
    }
    Some(bytes)
}

/// Passes over the items of a list or map.
fn compound<'b>(constructor: u8, bytes: &'b [u8], budget: &mut Budget) -> Option<&'b [u8]> {
    let (count, body, rest) = if matches!(constructor, code::LIST_8 | code::MAP_8) {
        let (whole, rest) = short(bytes)?;
        let (count, body) = whole.split_first()?;
        (u32::from(*count), body, rest)
    } else {
        let (whole, rest) = long(bytes)?;
        let (count, body) = whole.split_first_chunk::<4>()?;
        (u32::from_be_bytes(*count), body, rest)
    };
    if matches!(constructor, code::MAP_8 | code::MAP_32) && !count.is_multiple_of(2) {
        return None;
    }
    budget.try_charge(count)?;
    budget.try_descend()?;
    let behind = items(body, count, budget)?;
    budget.ascend();
    behind.is_empty().then_some(rest)
}

#[inline]
fn short(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

#[inline]
fn long(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}
