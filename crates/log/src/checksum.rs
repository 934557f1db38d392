//! Checksums from checksums, without touching the bytes again.
//!
//! CRC-32C is arithmetic with polynomials over two elements, modulo one of degree 32: bytes that follow multiply what
//! came before by x⁸ each. Appending a stretch of known checksum is one multiplication by a power of x. That is put
//! together from the powers for each digit of the length, in base sixteen; what a product comes to is looked up for
//! each four bits of the other factor. All of it is computed once, when the program is compiled. For a message of a
//! kilobyte that takes a third of what its bytes would, and these need not come back into the processor's cache.

/// The polynomial of CRC-32C, its lowest power in the highest bit, as the checksum itself is written.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// The polynomial 1.
const ONE: u32 = 1 << 31;
/// How many squares there are: enough for any length in memory.
const SQUARES: usize = 64;
/// Digits of a length whose powers are at hand: up to 16 MiB. Nothing here is longer, but it would be right.
const DIGITS: usize = 6;

/// What a factor comes to times a power, for each four bits of it.
type Products = [[u32; 16]; 8];

/// x⁸ squared so many times: bytes, in powers of two.
static BYTES: [u32; SQUARES] = squares();
/// For each digit of a length, and each value it can have.
static LENGTHS: [[Products; 16]; DIGITS] = lengths();

/// The checksum of `first` bytes followed by `second_bytes` others with the checksum `second`.
pub(crate) fn combine(first: u32, second: u32, second_bytes: usize) -> u32 {
    shift(first, second_bytes) ^ second
}

/// The checksum of bytes that follow others with the checksum `first`, given that behind `other` it is `checksum`.
pub(crate) fn behind(first: u32, (other, checksum): (u32, u32), bytes: usize) -> u32 {
    checksum ^ shift(first ^ other, bytes)
}

/// What is left of a checksum when so many bytes follow.
fn shift(checksum: u32, bytes: usize) -> u32 {
    let (mut shifted, mut left) = (checksum, bytes);
    for values in &LENGTHS {
        if left == 0 {
            return shifted;
        }
        if let Some(products) = values.get(left & 15).filter(|_| left & 15 != 0) {
            shifted = look_up(products, shifted);
        }
        left >>= 4;
    }
    for power in BYTES.iter().skip(4 * DIGITS) {
        if left & 1 == 1 {
            shifted = multiply(shifted, *power);
        }
        left >>= 1;
        if left == 0 {
            break;
        }
    }
    shifted
}

fn look_up(products: &Products, mut factor: u32) -> u32 {
    let mut sum = 0;
    for row in products {
        let bits = usize::try_from(factor & 15).unwrap_or(0);
        sum ^= row.get(bits).copied().unwrap_or(0);
        factor >>= 4;
    }
    sum
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

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which would say so")]
#[expect(clippy::large_stack_arrays, reason = "evaluated by the compiler, which has the room")]
const fn lengths() -> [[Products; 16]; DIGITS] {
    let mut lengths = [[[[0; 16]; 8]; 16]; DIGITS];
    let squares = squares();
    let mut digit = 0;
    while digit < DIGITS {
        let (mut power, mut value) = (ONE, 0);
        while value < 16 {
            lengths[digit][value] = products(power);
            power = multiply(power, squares[4 * digit]);
            value += 1;
        }
        digit += 1;
    }
    lengths
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which would say so")]
const fn products(power: u32) -> Products {
    let mut products = [[0; 16]; 8];
    let (mut place, mut row) = (0, 0);
    while row < 8 {
        let mut bit = 1;
        while bit < 16 {
            let product = multiply(1 << place, power);
            // All that are known already, with this bit too.
            let mut known = 0;
            while known < bit {
                products[row][bit + known] = products[row][known] ^ product;
                known += 1;
            }
            (bit, place) = (bit * 2, place + 1);
        }
        row += 1;
    }
    products
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
        fn a_checksum_behind_something_makes_that_behind_something_else(
            (first, other) in any::<(u32, u32)>(),
            bytes in prop::collection::vec(any::<u8>(), 0..5_000),
        ) {
            let known = (other, crc32c::crc32c_append(other, &bytes));
            prop_assert_eq!(behind(first, known, bytes.len()), crc32c::crc32c_append(first, &bytes));
        }

        #[test]
        fn lengths_beyond_what_is_at_hand_are_as_the_crate_has_them(
            first in any::<u32>(), second in any::<u32>(), bytes in 0_usize..1 << 40,
        ) {
            prop_assert_eq!(combine(first, second, bytes), crc32c::crc32c_combine(first, second, bytes));
        }
    }
}
