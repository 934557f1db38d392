//! One receiver.

use std::sync::Arc;

use smallvec::SmallVec;
use vorrang_filter::Filter;

use crate::command::ReceiveMode;
use crate::id::MailboxId;
use crate::level::Level;
use crate::store::Handle;

/// A receiving link.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    /// Where it receives from, the most important first.
    pub(crate) mailboxes: SmallVec<[MailboxId; 1]>,
    pub(crate) mode: ReceiveMode,
    pub(crate) min_level: Level,
    pub(crate) selector: Option<Arc<Filter>>,
    /// The session it holds, in the slab of sessions.
    pub(crate) session: Handle,
    pub(crate) credit: u32,
    /// The most credit it was ever given at once: what its prefetch share is a share of.
    pub(crate) window: u32,
    pub(crate) drain: bool,
    /// Whether it stands in the lines of its mailboxes.
    pub(crate) queued: bool,
    /// Whether it is in line by itself: to be given messages of its session, or to be drained.
    pub(crate) in_line: bool,
}

impl Receiver {
    pub(crate) fn holds_session(&self) -> bool {
        self.session.is_some()
    }
}
