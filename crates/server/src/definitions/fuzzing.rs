//! What the fuzzers call; the tests call the same.

use super::emulator;

/// Reads bytes as an emulator's `Config.json`: whatever they are, the answer is mistakes of one safe line
/// each, or definitions in which no name stands twice.
pub fn check_emulator(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match emulator::parse(text) {
        Err(problems) => {
            assert!(!problems.0.is_empty(), "what cannot be used is explained");
            for line in &problems.0 {
                assert!(!line.contains(char::is_control), "a mistake is told on one line: {line:?}");
            }
        }
        Ok(definitions) => {
            let queues = definitions.queues.iter().map(|queue| queue.name.key());
            let mut names: Vec<&str> =
                queues.chain(definitions.topics.iter().map(|topic| topic.name.key())).collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair.first() != pair.last()), "no name stands twice");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::corpus;
    use proptest::prelude::*;

    #[test]
    fn the_corpus_holds() {
        for input in corpus("emulator") {
            check_emulator(&input);
        }
    }

    proptest! {
        #[test]
        fn files_with_holes_and_noise_hold(
            which in any::<proptest::sample::Index>(),
            at in any::<proptest::sample::Index>(),
            cut in 0..32_usize,
            noise in "[{}\\[\\]\",:a-z0-9/*.-]{0,8}",
        ) {
            let inputs = corpus("emulator");
            let mut input = inputs[which.index(inputs.len())].clone();
            let at = at.index(input.len());
            let end = at.saturating_add(cut).min(input.len());
            input.splice(at..end, noise.into_bytes());
            check_emulator(&input);
        }
    }
}
