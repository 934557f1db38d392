//! How many tasks a pool may run at once.

use std::fmt;

/// The largest pool. Beyond that, more processes serve better than more tasks in one.
pub const SIZE_MAX: u32 = 10_000;

/// The size of a pool as somebody configured it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Always so many slots.
    Fixed(u32),
    /// As many as the autoscaler finds right, within these bounds.
    Between {
        /// The fewest; zero lets the pool sleep while there is nothing to do.
        min: u32,
        /// The most.
        max: u32,
    },
    /// None: nothing is received until the pool is resumed.
    Suspended,
}

/// Why a size is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not a number, a range or the word.
    #[error("'{text}' is not a size: write a number (8), a range (2..16) or 'suspended'")]
    Form {
        /// What was written.
        text: String,
    },
    /// Larger than a pool may be.
    #[error("a pool of {size} exceeds the limit of {SIZE_MAX}")]
    TooLarge {
        /// What was asked for.
        size: u32,
    },
    /// A range that ends before it begins, or whose end is zero.
    #[error("the range {min}..{max} is empty: the second number must be at least 1 and not below the first")]
    Empty {
        /// The first number.
        min: u32,
        /// The second.
        max: u32,
    },
}

impl Size {
    /// Reads `8`, `2..16` or `suspended`; zero is the same as suspended.
    pub fn parse(text: &str) -> Result<Size, Error> {
        let form = || Error::Form { text: text.to_owned() };
        let number = |part: &str| part.trim().parse::<u32>().map_err(|_| form());
        let size = match text.split_once("..") {
            _ if text.trim().eq_ignore_ascii_case("suspended") => Size::Suspended,
            None => match number(text)? {
                0 => Size::Suspended,
                size => Size::Fixed(size),
            },
            Some((min, max)) => Size::Between { min: number(min)?, max: number(max)? },
        };
        size.checked()
    }

    /// The same size, if a pool can have it.
    pub fn checked(self) -> Result<Size, Error> {
        match self {
            Size::Between { min, max } if max == 0 || min > max => Err(Error::Empty { min, max }),
            Size::Fixed(size) | Size::Between { max: size, .. } if size > SIZE_MAX => {
                Err(Error::TooLarge { size })
            }
            size => Ok(size),
        }
    }

    /// The fewest slots a pool of this size has.
    pub fn fewest(self) -> usize {
        let fewest = match self {
            Size::Fixed(size) | Size::Between { min: size, .. } => size,
            Size::Suspended => 0,
        };
        usize::try_from(fewest).unwrap_or(usize::MAX)
    }

    /// How many slots there are when the autoscaler wants `desired`.
    ///
    /// Before it has said anything a bounded pool has its fewest, but one: else a pool that may shrink to
    /// nothing would never find out that there is work.
    pub fn slots(self, desired: Option<u32>) -> u32 {
        match self {
            Size::Fixed(size) => size,
            Size::Between { min, max } => desired.unwrap_or(min.max(1)).clamp(min, max),
            Size::Suspended => 0,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Fixed(size) => write!(f, "{size}"),
            Size::Between { min, max } => write!(f, "{min}..{max}"),
            Size::Suspended => f.write_str("suspended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_a_range_or_the_word() {
        let form = |text: &str| Err(Error::Form { text: text.to_owned() });
        let cases = [
            ("8", Ok(Size::Fixed(8))),
            ("0", Ok(Size::Suspended)),
            ("Suspended", Ok(Size::Suspended)),
            ("2..16", Ok(Size::Between { min: 2, max: 16 })),
            ("0..1", Ok(Size::Between { min: 0, max: 1 })),
            (" 3 .. 3 ", Ok(Size::Between { min: 3, max: 3 })),
            ("10000", Ok(Size::Fixed(10_000))),
            ("10001", Err(Error::TooLarge { size: 10_001 })),
            ("1..10001", Err(Error::TooLarge { size: 10_001 })),
            ("4..3", Err(Error::Empty { min: 4, max: 3 })),
            ("0..0", Err(Error::Empty { min: 0, max: 0 })),
            ("", form("")),
            ("many", form("many")),
            ("-1", form("-1")),
            ("1..", form("1..")),
            ("4294967296", form("4294967296")),
        ];
        for (text, expected) in cases {
            assert_eq!(Size::parse(text), expected, "{text}");
            if let Ok(size) = expected {
                assert_eq!(Size::parse(&size.to_string()), Ok(size), "{text} reads back");
            }
        }
    }

    #[test]
    fn the_autoscaler_moves_only_a_pool_with_bounds_and_only_within_them() {
        let cases = [
            (Size::Fixed(8), Some(3), 8),
            (Size::Suspended, Some(3), 0),
            (Size::Between { min: 2, max: 6 }, None, 2),
            (Size::Between { min: 2, max: 6 }, Some(0), 2),
            (Size::Between { min: 2, max: 6 }, Some(5), 5),
            (Size::Between { min: 2, max: 6 }, Some(7), 6),
            (Size::Between { min: 0, max: 6 }, None, 1),
            (Size::Between { min: 0, max: 6 }, Some(0), 0),
        ];
        for (size, desired, slots) in cases {
            assert_eq!(size.slots(desired), slots, "{size} with {desired:?}");
        }
    }
}
