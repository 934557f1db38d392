//! Decimal numbers: a whole number and how many of its digits stand after the point.
//!
//! Holds every .NET `decimal` exactly and the decimal128 values an application meets in practice:
//! up to 34 digits, up to 28 of them after the point. Values outside are for the caller to turn
//! into a double. Sums and differences are exact or refused; products and quotients that need more
//! digits are cut off, not rounded. Comparison is always exact.

use std::cmp::Ordering;
use std::fmt;

const SCALE_MAX: u8 = 28;
const UNSCALED_MAX: i128 = 10_i128.pow(34) - 1;

/// How far the whole number is shifted to make room for the scale. 34 digits take 113 bits.
const SCALE_BITS: u32 = 5;

/// A decimal number, `unscaled / 10^scale`, kept without trailing zeros after the point, so that
/// equal numbers are represented equally.
///
/// Both parts share one i128: any value is moved around a lot during evaluation, and this is its
/// largest variant.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal(i128);

impl Decimal {
    /// The number `unscaled / 10^scale`; none if it needs more than 34 digits or 28 after the point.
    pub fn new(unscaled: i128, scale: u8) -> Option<Self> {
        let (mut unscaled, mut scale) = (unscaled, scale);
        while scale > 0 && unscaled % 10 == 0 {
            unscaled /= 10;
            scale -= 1;
        }
        (scale <= SCALE_MAX && unscaled.unsigned_abs() <= UNSCALED_MAX.unsigned_abs())
            .then_some(Self::pack(unscaled, scale))
    }

    fn pack(unscaled: i128, scale: u8) -> Self {
        Self((unscaled << SCALE_BITS) | i128::from(scale))
    }

    /// All digits of the number, without the point.
    pub fn unscaled(self) -> i128 {
        self.0 >> SCALE_BITS
    }

    /// How many digits stand after the point.
    pub fn scale(self) -> u8 {
        let [lowest, ..] = self.0.to_le_bytes();
        lowest & ((1 << SCALE_BITS) - 1)
    }

    /// The nearest double, save for the last bit of numbers with digits after the point.
    pub fn to_f64(self) -> f64 {
        approximate(self.unscaled()) / approximate(power_of_ten(self.scale()))
    }

    pub(crate) fn checked_neg(self) -> Option<Self> {
        Self::new(self.unscaled().checked_neg()?, self.scale())
    }

    pub(crate) fn checked_add(self, other: Self) -> Option<Self> {
        let (left, right, scale) = self.aligned(other)?;
        Self::new(left.checked_add(right)?, scale)
    }

    pub(crate) fn checked_sub(self, other: Self) -> Option<Self> {
        let (left, right, scale) = self.aligned(other)?;
        Self::new(left.checked_sub(right)?, scale)
    }

    pub(crate) fn checked_mul(self, other: Self) -> Option<Self> {
        let (mut left, mut left_scale) = (self.unscaled(), self.scale());
        let (mut right, mut right_scale) = (other.unscaled(), other.scale());
        loop {
            let product = left.checked_mul(right);
            if let Some(product) =
                product.and_then(|product| Self::shortened(product, left_scale + right_scale))
            {
                return Some(product);
            }
            let (longer, scale) = if left_scale >= right_scale {
                (&mut left, &mut left_scale)
            } else {
                (&mut right, &mut right_scale)
            };
            *scale = scale.checked_sub(1)?;
            *longer /= 10;
        }
    }

    /// The quotient, cut off after as many digits as there is room for; none for division by zero.
    pub(crate) fn checked_div(self, other: Self) -> Option<Self> {
        if other.unscaled() == 0 {
            return None;
        }
        let mut dividend = self.unscaled();
        let mut scale = i32::from(self.scale()) - i32::from(other.scale());
        while scale < i32::from(SCALE_MAX) && dividend % other.unscaled() != 0 {
            let Some(longer) = dividend.checked_mul(10) else { break };
            dividend = longer;
            scale += 1;
        }
        let mut quotient = dividend / other.unscaled();
        while scale < 0 {
            quotient = quotient.checked_mul(10)?;
            scale += 1;
        }
        Self::shortened(quotient, u8::try_from(scale).ok()?)
    }

    /// The rest of the division, with the sign of the dividend; none for division by zero.
    pub(crate) fn checked_rem(self, other: Self) -> Option<Self> {
        let (left, right, scale) = self.aligned(other)?;
        Self::new(left.checked_rem(right)?, scale)
    }

    fn aligned(self, other: Self) -> Option<(i128, i128, u8)> {
        let scale = self.scale().max(other.scale());
        let left = self.unscaled().checked_mul(power_of_ten(scale - self.scale()))?;
        let right = other.unscaled().checked_mul(power_of_ten(scale - other.scale()))?;
        Some((left, right, scale))
    }

    /// Drops digits after the point until the number has a representation.
    fn shortened(unscaled: i128, scale: u8) -> Option<Self> {
        let (mut unscaled, mut scale) = (unscaled, scale);
        loop {
            if let Some(decimal) = Self::new(unscaled, scale) {
                return Some(decimal);
            }
            scale = scale.checked_sub(1)?;
            unscaled /= 10;
        }
    }

    fn whole_and_rest(self) -> (i128, i128) {
        let unit = power_of_ten(self.scale());
        (self.unscaled() / unit, self.unscaled() % unit * power_of_ten(SCALE_MAX - self.scale()))
    }
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Self {
        Self::pack(i128::from(number), 0)
    }
}

impl From<u64> for Decimal {
    fn from(number: u64) -> Self {
        Self::pack(i128::from(number), 0)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        self.whole_and_rest().cmp(&other.whole_and_rest())
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Decimal({self})")
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = power_of_ten(self.scale()).unsigned_abs();
        let magnitude = self.unscaled().unsigned_abs();
        let sign = if self.unscaled() < 0 { "-" } else { "" };
        write!(out, "{sign}{}", magnitude / unit)?;
        if self.scale() > 0 {
            write!(out, ".{:0width$}", magnitude % unit, width = usize::from(self.scale()))?;
        }
        Ok(())
    }
}

fn power_of_ten(exponent: u8) -> i128 {
    10_i128.checked_pow(u32::from(exponent)).expect("a scale is at most 28, and 10^38 fits")
}

#[allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "rounding to the nearest double is what is asked for"
)]
pub(crate) fn approximate(number: i128) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        let scale = text.find('.').map_or(0, |dot| text.len() - dot - 1);
        Decimal::new(text.replace('.', "").parse().unwrap(), u8::try_from(scale).unwrap()).unwrap()
    }

    #[test]
    fn decimals_calculate_exactly_and_cut_off_what_has_no_room() {
        let third = format!("0.{}", "3".repeat(28));
        let cases = [
            ("0.1", '+', "0.2", "0.3"),
            ("1.5", '-', "2.25", "-0.75"),
            ("1.5", '*', "1.5", "2.25"),
            ("1", '/', "4", "0.25"),
            ("100", '/', "0.5", "200"),
            ("1", '/', "3", third.as_str()),
            ("-7.5", '%', "2", "-1.5"),
            (third.as_str(), '*', "3000", "999.9999999999999999999999999"),
        ];
        for (left, operator, right, result) in cases {
            let (a, b) = (decimal(left), decimal(right));
            let computed = match operator {
                '+' => a.checked_add(b),
                '-' => a.checked_sub(b),
                '*' => a.checked_mul(b),
                '/' => a.checked_div(b),
                _ => a.checked_rem(b),
            };
            assert_eq!(
                computed.map(|number| number.to_string()).as_deref(),
                Some(result),
                "{left}{operator}{right}"
            );
        }
        assert_eq!(decimal("1").checked_div(decimal("0")), None);
        assert_eq!(decimal("1").checked_rem(decimal("0")), None);
        let largest = Decimal::new(UNSCALED_MAX, 0).unwrap();
        assert_eq!(largest.checked_add(decimal("1")), None);
        assert_eq!(largest.checked_mul(largest), None);
        assert_eq!(Decimal::new(UNSCALED_MAX + 1, 0), None);
        assert_eq!(Decimal::new(1, 29), None);
        assert_eq!(Decimal::new(10, 29), Decimal::new(1, 28));
    }

    #[test]
    fn decimals_compare_by_value_at_any_scale() {
        let ascending =
            ["-2", "-1.5", "-1.4999", "-0.1", "0", "0.0000000000000000000000000001", "0.1", "1", "1.01"];
        for pair in ascending.windows(2) {
            assert!(decimal(pair[0]) < decimal(pair[1]), "{pair:?}");
        }
        assert_eq!(decimal("1.50"), decimal("1.5"));
        assert!(Decimal::new(UNSCALED_MAX, 0).unwrap() > Decimal::new(UNSCALED_MAX, 28).unwrap());
    }
}
