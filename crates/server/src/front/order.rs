//! Attaches are answered in the order they were asked in, session by session.
//!
//! Some links take one question to the broker and some take two; clients that write ahead expect the
//! answers in the order of their attaches all the same. Only those who wait for the next session to come
//! step out of line: that may take minutes.

use std::collections::VecDeque;

/// Attaches without an answer, oldest first: by session `S` and link `L`, with answers `T`. Bounded by the links a
/// connection may have.
#[derive(Debug)]
pub(super) struct Order<S, L, T> {
    waiting: VecDeque<Asked<S, L, T>>,
}

#[derive(Debug)]
struct Asked<S, L, T> {
    session: S,
    link: L,
    /// The answer, if it had to wait for an earlier one.
    answer: Option<T>,
}

impl<S: Copy + PartialEq, L: Copy + PartialEq, T> Order<S, L, T> {
    pub(super) fn new() -> Self {
        Order { waiting: VecDeque::new() }
    }

    /// A link was asked for.
    pub(super) fn ask(&mut self, session: S, link: L) {
        self.waiting.push_back(Asked { session, link, answer: None });
    }

    /// There is an answer. Returns all that can leave now, in order.
    pub(super) fn answer(&mut self, link: L, answer: T) -> Vec<(L, T)> {
        match self.waiting.iter_mut().find(|asked| asked.link == link) {
            // It stepped out of line before.
            None => vec![(link, answer)],
            Some(asked) => {
                asked.answer = Some(answer);
                let session = asked.session;
                self.leaving(session)
            }
        }
    }

    /// A link no longer holds up those behind it. Returns what can leave now.
    pub(super) fn step_out(&mut self, link: L) -> Vec<(L, T)> {
        let Some(place) = self.waiting.iter().position(|asked| asked.link == link) else { return Vec::new() };
        match self.waiting.remove(place) {
            Some(asked) => self.leaving(asked.session),
            None => Vec::new(),
        }
    }

    /// Whether a link's answer waits for an earlier one.
    pub(super) fn holds(&self, link: L) -> bool {
        self.waiting.iter().any(|asked| asked.link == link && asked.answer.is_some())
    }

    fn leaving(&mut self, session: S) -> Vec<(L, T)> {
        let mut leaving = Vec::new();
        let mut place = 0;
        while let Some(asked) = self.waiting.get_mut(place) {
            if asked.session != session {
                place += 1;
                continue;
            }
            let Some(answer) = asked.answer.take() else { break };
            leaving.push((asked.link, answer));
            self.waiting.remove(place);
        }
        leaving
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(links: &[(u8, u8)]) -> Order<u8, u8, &'static str> {
        let mut order = Order::new();
        for (session, link) in links {
            order.ask(*session, *link);
        }
        order
    }

    #[test]
    fn an_answer_waits_for_the_earlier_ones_of_its_session() {
        let mut order = asked(&[(0, 1), (1, 2), (0, 3), (0, 4)]);
        assert_eq!(order.answer(3, "three"), []);
        assert!(order.holds(3) && !order.holds(1));
        assert_eq!(order.answer(2, "two"), [(2, "two")], "another session");
        assert_eq!(order.answer(1, "one"), [(1, "one"), (3, "three")]);
        assert_eq!(order.answer(4, "four"), [(4, "four")]);
    }

    #[test]
    fn who_steps_out_holds_nobody_up_and_is_answered_at_once_later() {
        let mut order = asked(&[(0, 1), (0, 2)]);
        assert_eq!(order.answer(2, "two"), []);
        assert_eq!(order.step_out(1), [(2, "two")]);
        assert_eq!(order.answer(1, "one"), [(1, "one")]);
        assert_eq!(order.step_out(1), []);
    }

    #[test]
    fn an_answer_that_waits_can_be_taken_back() {
        let mut order = asked(&[(0, 1), (0, 2)]);
        order.answer(2, "attached");
        order.answer(2, "refused");
        assert_eq!(order.answer(1, "one"), [(1, "one"), (2, "refused")]);
    }
}
