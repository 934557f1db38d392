//! Ready messages in the order they came, across lanes and sessions.

use std::iter::Peekable;

use crate::lane::{Lane, Run};
use crate::level::Level;
use crate::mailbox::Mailbox;
use crate::session::Session;
use crate::state::State;
use crate::store::Record;
use crate::store::record::Key;

/// What comes next among ready messages.
#[derive(Debug, Clone, Copy)]
pub(super) enum Next<'a> {
    /// This message.
    Message(&'a Record),
    /// Something on disk, which must be read first.
    Cold(Level, &'a Run),
}

/// Messages of one lane or session, and the disk they end at.
struct Source<'a> {
    records: Peekable<Box<dyn Iterator<Item = &'a Record> + 'a>>,
    cold: Option<(Level, &'a Run)>,
}

impl<'a> Source<'a> {
    fn new(records: impl Iterator<Item = &'a Record> + 'a, cold: Option<(Level, &'a Run)>) -> Source<'a> {
        let records: Box<dyn Iterator<Item = &'a Record> + 'a> = Box::new(records);
        Source { records: records.peekable(), cold }
    }

    fn peek(&mut self) -> Option<Key> {
        let hot = self.records.peek().map(|record| record.key());
        match (hot, self.cold) {
            (Some(hot), Some((_, run))) => Some(hot.min(run.from)),
            (hot, cold) => hot.or(cold.map(|(_, run)| run.from)),
        }
    }

    fn next(&mut self) -> Option<Next<'a>> {
        let hot = self.records.peek().map(|record| record.key());
        match self.cold {
            // What follows a message on disk is not seen before that has been read.
            Some((level, run)) if hot.is_none_or(|hot| hot > run.from) => {
                self.cold = None;
                self.records = Source::new(std::iter::empty(), None).records;
                Some(Next::Cold(level, run))
            }
            _ => self.records.next().map(Next::Message),
        }
    }
}

impl State {
    /// The ready messages of a mailbox: oldest first across lanes, and session after session.
    pub(super) fn ready<'a>(&'a self, mailbox: &'a Mailbox) -> impl Iterator<Item = Next<'a>> {
        let lanes = mailbox.lanes.iter().map(|(level, lane)| self.lane_source(level, lane));
        let dated = mailbox.dated.values().filter_map(|(handle, _)| self.records.get(*handle));
        let mut sources: Vec<_> = lanes.chain([Source::new(dated, None)]).collect();
        let outside = std::iter::from_fn(move || {
            let first = sources.iter_mut().filter_map(Source::peek).min()?;
            let mut chosen =
                sources.iter_mut().filter_map(|source| (source.peek() == Some(first)).then_some(source));
            chosen.next()?.next()
        });
        let sessions = mailbox.sessions.iter().flat_map(|table| table.names.values());
        let sessions = sessions.filter_map(|handle| self.sessions.get(*handle));
        outside.chain(sessions.flat_map(|session| self.ready_in(session)))
    }

    /// The ready messages of a session, in order.
    pub(super) fn ready_in<'a>(&'a self, session: &'a Session) -> impl Iterator<Item = Next<'a>> {
        session.iter(&self.records).map(|(_, record)| Next::Message(record))
    }

    fn lane_source<'a>(&'a self, level: Level, lane: &'a Lane) -> Source<'a> {
        let cold = lane.before_first_run().map(|(_, run)| (level, run));
        Source::new(lane.iter(&self.records).map(|(_, record)| record), cold)
    }
}
