//! Which messages a request means.

use std::collections::VecDeque;
use std::sync::Arc;

use vorrang_engine::Sequence;
use vorrang_filter::Filter;

use crate::http::api::complaint::Complaints;
use crate::http::api::messages::read_filter;
use crate::http::api::model;

/// Numbers that one request may name; the rest goes by filter.
const NUMBERS_MAX: usize = 1_000;

/// Which messages are meant.
#[derive(Debug, Clone)]
pub(crate) enum Chosen {
    /// These, in order.
    Numbers(VecDeque<Sequence>),
    /// Those that match.
    Matching(Arc<Filter>),
}

/// Reads a selection: exactly one of the three ways to say it.
pub(crate) fn read(given: &model::Selection, complaints: &mut Complaints) -> Option<Chosen> {
    match (given.sequence_numbers.as_slice(), &given.filter, given.all) {
        ([], None, true) => Some(Chosen::Matching(Arc::new(Filter::True))),
        ([], Some(text), false) => read_filter(text, "select.filter", complaints).map(Chosen::Matching),
        (numbers @ [_, ..], None, false) if numbers.len() <= NUMBERS_MAX => {
            let mut numbers: Vec<u64> = numbers.to_vec();
            numbers.sort_unstable();
            numbers.dedup();
            Some(Chosen::Numbers(numbers.into_iter().map(Sequence).collect()))
        }
        ([_, ..], None, false) => {
            complaints.add("select.sequenceNumbers", format!("are more than {NUMBERS_MAX}: use a filter"));
            None
        }
        _ => {
            complaints.add("select", "must have exactly one of sequenceNumbers, filter and all: true");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_way_of_choosing_is_taken() {
        let filter = || Some("a = 1".to_owned());
        let cases = [
            ("nothing", vec![], None, false, false),
            ("all", vec![], None, true, true),
            ("a filter", vec![], filter(), false, true),
            ("a filter that cannot be read", vec![], Some("a =".to_owned()), false, false),
            ("numbers", vec![3, 1, 3], None, false, true),
            ("as many numbers as may be", vec![7; 1_000], None, false, true),
            ("one more", vec![7; 1_001], None, false, false),
            ("numbers and a filter", vec![1], filter(), false, false),
            ("a filter and all", vec![], filter(), true, false),
        ];
        for (case, sequence_numbers, filter, all, fine) in cases {
            let mut complaints = Complaints::default();
            let read = read(&model::Selection { sequence_numbers, filter, all }, &mut complaints);
            assert_eq!((read.is_some(), complaints.is_empty()), (fine, fine), "{case}");
        }
    }
}
