//! Where messages come from: a queue, a subscription, one of their sub-queues, or several of them in order.

use std::fmt;

/// What a receiver receives from.
///
/// Anything that can be a queue's name is a source; [`Source::subscription`] and [`Source::ordered`] make the others.
///
/// ```
/// use vorrang_client::{Source, SubQueue};
///
/// assert_eq!(Source::from("orders").to_string(), "orders");
/// assert_eq!(Source::subscription("topic", "sub").to_string(), "topic/Subscriptions/sub");
/// assert_eq!(Source::ordered(["high", "low"]).to_string(), "high|low");
/// let dead = Source::from("orders").sub_queue(SubQueue::DeadLetter);
/// assert_eq!(dead.to_string(), "orders/$DeadLetterQueue");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    paths: Vec<String>,
}

/// A queue that comes with every queue and subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubQueue {
    /// Messages nobody could handle.
    DeadLetter,
    /// Messages that could not be handed on.
    TransferDeadLetter,
}

impl SubQueue {
    fn suffix(self) -> &'static str {
        match self {
            SubQueue::DeadLetter => "/$DeadLetterQueue",
            SubQueue::TransferDeadLetter => "/$Transfer/$DeadLetterQueue",
        }
    }
}

impl Source {
    /// A subscription of a topic.
    pub fn subscription(topic: impl AsRef<str>, subscription: impl AsRef<str>) -> Self {
        Source { paths: vec![format!("{}/Subscriptions/{}", topic.as_ref(), subscription.as_ref())] }
    }

    /// Several sources, the most important first: one link, one wait, and at every moment the first that has a
    /// message. An extension of Vorrang.
    pub fn ordered<S: Into<Source>>(sources: impl IntoIterator<Item = S>) -> Self {
        Source { paths: sources.into_iter().flat_map(|source| source.into().paths).collect() }
    }

    /// The same source, but its sub-queue.
    #[must_use]
    pub fn sub_queue(mut self, sub_queue: SubQueue) -> Self {
        for path in &mut self.paths {
            path.push_str(sub_queue.suffix());
        }
        self
    }

    /// The paths of the entities, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// The first path, which stands for the source where only one entity can be named.
    pub(crate) fn first(&self) -> &str {
        self.paths.first().map_or("", String::as_str)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.paths.join("|"))
    }
}

impl From<&str> for Source {
    fn from(path: &str) -> Self {
        Source { paths: vec![path.to_owned()] }
    }
}

impl From<String> for Source {
    fn from(path: String) -> Self {
        Source { paths: vec![path] }
    }
}

impl From<&String> for Source {
    fn from(path: &String) -> Self {
        Source::from(path.as_str())
    }
}

impl From<&Source> for Source {
    fn from(source: &Source) -> Self {
        source.clone()
    }
}
