//! Connections, sessions, links and credit as state machines over the codec's types.
