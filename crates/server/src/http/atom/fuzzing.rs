//! What the fuzzers call; the tests call the same.

use vorrang_engine::entity::RuleName;

use super::description::{self, Intent, Root};
use super::{rule, xml};

/// Reads bytes as the body of an administrative request: whatever they are, the answer is a tree within
/// its bounds or an error, and reading a description out of the tree ends.
pub fn check_document(bytes: &[u8]) {
    let Ok(document) = xml::parse(bytes) else { return };
    assert!(bytes.len() <= xml::DOCUMENT_BYTES_MAX, "a document is bounded");
    assert!(text_bytes(&document) <= bytes.len(), "nothing in a document expands");
    let Some((root, description)) = description::find(&document) else { return };
    let mut problems = Vec::new();
    if root == Root::Rule {
        let read = rule::read(RuleName::first(), description, &mut problems);
        assert!(read.is_some() || !problems.is_empty(), "what is not read is explained");
        return;
    }
    for intent in [Intent::Create, Intent::Update] {
        let _ = description::read_settings(root, description, intent, &mut problems);
    }
}

/// The bytes of all text and names in a tree.
fn text_bytes(element: &xml::Element) -> usize {
    let own = element.text.len() + element.kind.as_ref().map_or(0, String::len);
    own + element.children.iter().map(text_bytes).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::trial::corpus;

    #[test]
    fn the_corpus_holds() {
        for input in corpus("atom") {
            check_document(&input);
        }
    }

    proptest! {
        #[test]
        fn documents_with_holes_and_noise_hold(
            which in any::<proptest::sample::Index>(),
            at in any::<proptest::sample::Index>(),
            cut in 0..64_usize,
            noise in proptest::collection::vec(any::<u8>(), 0..8),
        ) {
            let inputs = corpus("atom");
            let mut input = inputs[which.index(inputs.len())].clone();
            let at = at.index(input.len());
            let end = at.saturating_add(cut).min(input.len());
            input.splice(at..end, noise);
            check_document(&input);
        }
    }
}
