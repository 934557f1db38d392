//! Equalities a filter cannot be true without, for the rule index.
//!
//! The index evaluates a filter only on messages that satisfy them. That must not hide an error:
//! so an equality counts only if nothing evaluated before it can fail.

use super::ast::{Comparison, Node, Property};
use crate::value::Value;

/// The equalities of a property and a constant among the operands of the outermost ANDs.
pub(super) fn of(root: &Node) -> Vec<(&Property, &Value)> {
    let mut found = Vec::new();
    collect(root, &mut found);
    found
}

/// Returns whether what follows in the same AND may be looked at too.
fn collect<'n>(node: &'n Node, found: &mut Vec<(&'n Property, &'n Value)>) -> bool {
    if let Node::And(operands) = node {
        return operands.iter().all(|operand| collect(operand, found));
    }
    if let Node::Compare { comparison: Comparison::Equal, operands } = node {
        let [left, right] = &**operands;
        for (one, other) in [(left, right), (right, left)] {
            if let (Node::Property(property), Some(value)) = (one, other.constant()) {
                found.push((property, value));
            }
        }
    }
    cannot_fail(node)
}

fn cannot_fail(node: &Node) -> bool {
    match node {
        Node::Compare { operands, .. } => operands.iter().all(is_simple),
        Node::In { subject, list, .. } => is_simple(subject) && list.iter().all(is_simple),
        Node::IsNull { subject, .. } => is_simple(subject),
        Node::Exists(_) => true,
        _ => false,
    }
}

fn is_simple(node: &Node) -> bool {
    matches!(node, Node::Property(_) | Node::Constant(_) | Node::Parameter(_) | Node::Null)
}

#[cfg(test)]
mod tests {
    use crate::{Parameters, Sql};

    #[test]
    fn only_equalities_before_anything_that_can_fail_count() {
        let cases = [
            ("a = 1", 1),
            ("1 = a", 1),
            ("a = 1 AND b = 'x' AND sys.Label = 'l'", 3),
            ("(a = 1 AND b = 2) AND (c = 3)", 3),
            ("a > 1 AND b IS NULL AND c IN (1, 2) AND EXISTS(d) AND e = 1", 1),
            ("a = 1 AND b LIKE 'x%'", 1),
            ("b LIKE 'x%' AND a = 1", 0),
            ("c / 2 = 1 AND a = 1", 0),
            ("flag AND a = 1", 0),
            ("(a = 1 AND b LIKE 'x' AND c = 2) AND d = 3", 1),
            ("a = 1 OR b = 2", 0),
            ("NOT (a = 1)", 0),
            ("a <> 1", 0),
            ("a = b", 0),
            ("a = NULL", 0),
            ("a = 1 + 1", 0),
        ];
        for (text, count) in cases {
            let filter = Sql::parse(text, Parameters::new()).unwrap();
            assert_eq!(filter.equalities().len(), count, "{text}");
        }
    }
}
