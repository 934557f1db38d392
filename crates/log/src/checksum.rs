//! The checksum of two stretches of bytes from the checksums of each.
//!
//! CRC-32C is arithmetic with polynomials over two elements, modulo one of degree 32: bytes that follow multiply what
//! came before by x⁸ each. Appending a stretch of known checksum is one multiplication by a power of x, which is put
//! together from its squares. These are computed once, when the program is compiled; `crc32c_combine` computes them at
//! every call, which took two percent of the broker's time under a load of sends.

/// The polynomial of CRC-32C, its lowest power in the highest bit, as the checksum itself is written.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// The polynomial 1.
const ONE: u32 = 1 << 31;
/// How many squares there are: enough for any length in memory.
const SQUARES: usize = 64;

/// x⁸ squared so many times: bytes, in powers of two.
static BYTES: [u32; SQUARES] = squares();

/// The checksum of `first` bytes followed by `second_bytes` others with the checksum `second`.
pub(crate) fn combine(first: u32, second: u32, second_bytes: usize) -> u32 {
    let (mut shifted, mut left) = (first, second_bytes);
    for power in &BYTES {
        if left & 1 == 1 {
            shifted = multiply(shifted, *power);
        }
        left >>= 1;
        if left == 0 {
            break;
        }
    }
    shifted ^ second
}

/// The product of two polynomials.
const fn multiply(mut left: u32, right: u32) -> u32 {
    let (mut product, mut bit) = (0, ONE);
    while bit != 0 {
        if right & bit != 0 {
            product ^= left;
        }
        left = if left & 1 == 1 { (left >> 1) ^ POLYNOMIAL } else { left >> 1 };
        bit >>= 1;
    }
    product
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which would say so")]
const fn squares() -> [u32; SQUARES] {
    let mut squares = [ONE >> 8; SQUARES];
    let mut index = 1;
    while index < SQUARES {
        squares[index] = multiply(squares[index - 1], squares[index - 1]);
        index += 1;
    }
    squares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn two_checksums_make_that_of_the_whole(
            first in prop::collection::vec(any::<u8>(), 0..2_000),
            second in prop::collection::vec(any::<u8>(), 0..70_000),
        ) {
            let whole = crc32c::crc32c(&[first.as_slice(), &second].concat());
            prop_assert_eq!(combine(crc32c::crc32c(&first), crc32c::crc32c(&second), second.len()), whole);
        }

        #[test]
        fn lengths_beyond_what_is_at_hand_are_as_the_crate_has_them(
            first in any::<u32>(), second in any::<u32>(), bytes in 0_usize..1 << 40,
        ) {
            prop_assert_eq!(combine(first, second, bytes), crc32c::crc32c_combine(first, second, bytes));
        }
    }
}
