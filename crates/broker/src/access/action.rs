//! Everything anybody can ask of the broker, and the right each asks for.

use vorrang_engine::entity::authorization::Rights;

/// The permission an action needs at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// `Send`.
    Send,
    /// `Listen`.
    Listen,
    /// `Manage`, which includes the others.
    Manage,
    /// Any of them.
    AnyHere,
    /// One that still holds, of any kind, anywhere: the peer is known.
    AnyWhere,
}

impl Need {
    /// Whether these rights are enough.
    #[must_use]
    pub fn is_met_by(self, rights: Rights) -> bool {
        match self {
            Need::Send => rights.send || rights.manage,
            Need::Listen => rights.listen || rights.manage,
            Need::Manage => rights.manage,
            Need::AnyHere | Need::AnyWhere => rights.send || rights.listen || rights.manage,
        }
    }

    /// The word Service Bus uses for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Need::Send => "Send",
            Need::Listen => "Listen",
            Need::Manage => "Manage",
            Need::AnyHere | Need::AnyWhere => "Send, Listen or Manage",
        }
    }
}

macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident => $need:ident,)*) => {
        /// One kind of operation. A request cannot be made without saying which it is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Action {
            $($(#[$doc])* $name,)*
        }

        impl Action {
            /// Every action there is.
            pub const ALL: &'static [Action] = &[$(Action::$name,)*];

            /// What the asker must hold.
            #[must_use]
            pub fn need(self) -> Need {
                match self {
                    $(Action::$name => Need::$need,)*
                }
            }
        }
    };
}

actions! {
    /// Sending messages, now or scheduled, alone or in batches.
    Send => Send,
    /// Cancelling scheduled messages.
    CancelScheduled => Send,
    /// Receiving messages: a link and its credit, deferred messages by number.
    Receive => Listen,
    /// Completing, abandoning, deferring, dead-lettering; renewing message locks.
    Settle => Listen,
    /// Looking at messages without taking them.
    Peek => Listen,
    /// Accepting a session, its state and its lock.
    UseSession => Listen,
    /// Listing sessions.
    ListSessions => Listen,
    /// Deleting messages in bulk.
    DeleteMessages => Listen,
    /// Declaring, committing and rolling back transactions. What is done in them is asked for by itself.
    Transact => AnyWhere,
    /// Looking up an entity to ask about it later, as `$management` links do.
    Inquire => AnyHere,
    /// Reading a subscription's rules.
    ListRules => Listen,
    /// Adding, changing and removing rules.
    ChangeRules => Manage,
    /// Creating an entity.
    CreateEntity => Manage,
    /// Changing an entity.
    UpdateEntity => Manage,
    /// Deleting an entity.
    DeleteEntity => Manage,
    /// Reading an entity's description and counts.
    ReadEntity => Manage,
    /// Listing entities.
    ListEntities => Manage,
    /// Reading how the broker itself is doing: its log, its connections, its limits.
    Observe => Manage,
    /// Resetting, capturing and restoring the namespace, setting its clock ahead, making things go wrong: in
    /// development alone.
    Develop => Manage,
    /// Moving queued messages to other levels.
    Reprioritise => Manage,
    /// Moving dead letters elsewhere; the right to send there is asked for by itself.
    Replay => Listen,
    /// Asking why a message waits.
    Explain => Listen,
}
