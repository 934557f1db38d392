//! Reading a story, line by line.

use vorrang_engine::Span;

/// One line: a verb, words, settings, and what must come of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Step {
    pub(crate) verb: String,
    pub(crate) words: Vec<String>,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) expected: Option<String>,
}

impl Step {
    /// Reads a line; nothing if it is empty or a comment.
    pub(crate) fn parse(line: &str) -> Option<Step> {
        let line = line.split(" #").next()?.trim();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let (told, expected) = match line.split_once("->") {
            Some((told, expected)) => (told, Some(expected.split_whitespace().collect::<Vec<_>>().join(" "))),
            None => (line, None),
        };
        let mut step = Step { expected, ..Step::default() };
        for token in tokens(told) {
            match token.split_once('=') {
                _ if step.verb.is_empty() => step.verb = token,
                Some((key, value)) => {
                    step.settings.push((key.to_owned(), value.trim_matches('"').to_owned()));
                }
                None => step.words.push(token),
            }
        }
        Some(step)
    }

    pub(crate) fn word(&self, place: usize) -> Result<&str, String> {
        self.words.get(place).map(String::as_str).ok_or_else(|| format!("{} needs more words", self.verb))
    }

    /// The word after `marker`, as in `from orders`.
    pub(crate) fn after(&self, marker: &str) -> Option<&str> {
        let place = self.words.iter().position(|word| word == marker)?;
        self.words.get(place + 1).map(String::as_str)
    }

    pub(crate) fn setting(&self, key: &str) -> Option<&str> {
        self.settings.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

/// Words separated by spaces; what stands between quotes stays together.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut current = String::new();
    let mut quoted = false;
    for character in text.chars() {
        match character {
            '"' => {
                quoted = !quoted;
                current.push(character);
            }
            ' ' if !quoted => {
                if !current.is_empty() {
                    tokens.push(std::mem::take(&mut current));
                }
            }
            _ => current.push(character),
        }
    }
    if !current.is_empty() {
        tokens.push(current);
    }
    tokens
}

/// A length of time: `500ms`, `30s`, `5m`, `2h`, `7d`.
pub(crate) fn span(text: &str) -> Result<Span, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| format!("{text:?} is no length of time"))?;
    match unit {
        "ms" => Ok(Span(number)),
        "s" => Ok(Span::seconds(number)),
        "m" => Ok(Span::minutes(number)),
        "h" => Ok(Span::minutes(number * 60)),
        "d" => Ok(Span::days(number)),
        _ => Err(format!("{text:?} is no length of time")),
    }
}
