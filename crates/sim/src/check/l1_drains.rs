//! L1: when the faults are over, every call is answered and everything drains.

use super::Digest;
use crate::history::{History, What};

pub(super) fn check(history: &History, digest: &Digest) -> Vec<String> {
    let begins = history.entries.iter().position(|entry| matches!(entry.what, What::DrainBegins));
    let left = history.entries.iter().find_map(|entry| match entry.what {
        What::DrainEnds { left } => Some(left),
        _ => None,
    });
    let Some(begins) = begins else { return Vec::new() };
    let mut broken = Vec::new();
    match left {
        Some(0) => {}
        Some(left) => broken.push(format!("{left} messages are left after the drain")),
        None => broken.push("the drain did not end".to_owned()),
    }
    let silent = digest.calls.values().filter(|asked| asked.place > begins && asked.answer.is_none()).count();
    if silent > 0 {
        broken.push(format!("{silent} calls were not answered although nothing was wrong any more"));
    }
    broken
}

#[cfg(test)]
mod tests {
    use crate::check::forge::Forge;

    #[test]
    fn messages_are_left() {
        let mut forge = Forge::new();
        forge.drained(1);
        forge.breaks("L1");
    }

    #[test]
    fn a_call_is_not_answered() {
        let mut forge = Forge::new();
        forge.drain_begins();
        forge.send_unanswered(1);
        forge.drained(0);
        forge.breaks("L1");
    }
}
