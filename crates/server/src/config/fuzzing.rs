//! What the fuzzers call; the tests call the same.

use std::path::Path;

use super::{Config, FILE_NAME, show};

/// Reads bytes as a configuration file: whatever they are, the answer is mistakes of one safe line each, or
/// settings that are shown as a file which says the same.
pub fn check_toml(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // A file that names files would have them read.
    if text.contains("_file") {
        return;
    }
    let Some(config) = read(text) else { return };
    let shown = show::config(&config);
    let again = read(&shown).expect("what is shown can be read again");
    assert_eq!(
        show::definitions(&again.settings.definitions),
        show::definitions(&config.settings.definitions),
        "what is shown says the same"
    );
}

fn read(text: &str) -> Option<Config> {
    let mut config = Config::default();
    let problems = config.read(Path::new(FILE_NAME), text);
    for problem in &problems {
        let line = problem.to_string();
        assert!(!line.contains(char::is_control), "a mistake is told on one line: {line:?}");
    }
    problems.is_empty().then_some(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::corpus;

    #[test]
    fn the_corpus_holds() {
        for input in corpus("config") {
            check_toml(&input);
        }
    }
}
