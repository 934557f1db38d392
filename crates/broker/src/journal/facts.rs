//! The table of kinds: which number each fact has, and its fields in order.

use super::field::{Error, Field, Reader};
use vorrang_engine::fact::{Fact, Payload};

macro_rules! facts {
    (
        written { $($kind:literal => $name:ident { $($field:ident),* },)* }
        boxed { $($boxed_kind:literal => $boxed:ident,)* }
        volatile { $($volatile:ident,)* }
    ) => {
        /// Appends a fact's fields to `out` and says its kind; none for a fact that is not written.
        pub fn encode(fact: &Fact, out: &mut Vec<u8>) -> Option<u8> {
            match fact {
                $(Fact::$name { $($field),* } => {
                    $($field.write(out);)*
                    Some($kind)
                })*
                $(Fact::$boxed(inner) => {
                    inner.write(out);
                    Some($boxed_kind)
                })*
                $(Fact::$volatile { .. } => None,)*
            }
        }

        /// Reads a fact of this kind, with the payload that lies beside its fields, if one does.
        pub fn decode(kind: u8, fields: &[u8], payload: Option<Payload>) -> Result<Fact, Error> {
            let mut from = Reader::new(fields, payload);
            let fact = match kind {
                $($kind => Fact::$name { $($field: Field::read(&mut from)?),* },)*
                $($boxed_kind => Fact::$boxed(Field::read(&mut from)?),)*
                other => return Err(Error::Kind(other)),
            };
            from.finish()?;
            Ok(fact)
        }

        /// Every kind there is.
        pub const KINDS: &[u8] = &[$($kind,)* $($boxed_kind,)*];
    };
}

facts! {
    written {
        1 => Created { seed, at },
        2 => Recovered { generation, at },
        3 => Administered { change, at },
        4 => Enqueued { payload, arrival },
        5 => Published { topic, sequence, at, payload, copies },
        6 => Scheduled { payload, arrival, due },
        7 => Reserved { mailbox, next },
        8 => IdSeen { entity, key, at },
        9 => Relayed { mailbox, sequence, cause, at, copies },
        10 => Locked { mailbox, sequence, token, at, until, receiver, rescue },
        11 => Taken { mailbox, sequence, at, receiver, rescue },
        12 => Renewed { mailbox, sequence, at, until },
        13 => Removed { mailbox, sequence, cause, at },
        14 => Returned { mailbox, sequence, cause, at, counted, overlay, not_before },
        15 => Deferred { mailbox, sequence, at, overlay },
        16 => DeadLettered { mailbox, sequence, to, cause, at, counted, source, overlay },
        17 => Reprioritised { mailbox, sequence, level },
        18 => SessionLocked { mailbox, session, receiver, mode, at, until, rescue },
        19 => SessionRenewed { mailbox, session, until },
        20 => SessionUnlocked { mailbox, session, at },
        21 => SessionStateSet { mailbox, session, state, at },
        22 => Moved { moves },
        23 => Chilled { mailbox, level, run, records },
        24 => Warmed { run, records },
        25 => RestoredNamespace { seed, generation, tokens, next_entity, next_rule, now },
        26 => RestoredEntity { entity, accessed },
        31 => Plucked { run, records, soonest },
        33 => Rehoused { run, to, region },
        34 => Cleared { at },
        35 => ClockAdvanced { ahead },
    }
    boxed {
        27 => RestoredMailbox,
        28 => RestoredSession,
        29 => RestoredMessage,
        30 => RestoredRun,
        32 => RestoredGaps,
    }
    volatile {
        EntityUsed,
        ClassUnknown,
        ReceiverAttached,
        CreditSet,
        CreditDrained,
        ReceiverDetached,
        SelectorIdle,
        ForwardStalled,
        ForwardResumed,
        SelectorLooked,
        SelectorReset,
        AcceptWaiting,
        AcceptEnded,
        Pumped,
        WarmAsked,
        TransactionDeclared,
        SendEnlisted,
        SettlementEnlisted,
        TransactionPoisoned,
        TransactionEnded,
    }
}
