//! What a namespace holds: queues, topics, subscriptions and their rules.
