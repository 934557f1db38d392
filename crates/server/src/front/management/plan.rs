//! From a request to a question for the broker, and from its answer to a response.
//!
//! Everything here is made of plain values: what a request may see of its connection is in
//! [`Context`], and what has to be remembered until the answer comes is a [`Reading`].

use vorrang_broker::api::{Answer, Link, Operation, Refused};
use vorrang_broker::shard::Body;
use vorrang_engine::command::ReceiveMode;
use vorrang_engine::message::Delivery;
use vorrang_engine::{LockToken, Refusal, Reply, SessionId, Timestamp, TransactionId};

use super::arguments::Arguments;
use super::request::Request;
use super::response::Response;
use super::{browse, deferred, locks, rules, schedule, sessions};
use crate::front::Answered;
use crate::front::condition::{self, Told, name};
use crate::front::links::Managed;

/// What a request can know beside its arguments.
pub(super) struct Context<'a> {
    /// Whose `$management` this is.
    pub(super) managed: &'a Managed,
    /// The transaction the request belongs to.
    pub(super) transaction: Option<TransactionId>,
    /// Wall time.
    pub(super) now: Timestamp,
    /// The connection's receiver that holds a session, by its name or else by the link the request names.
    pub(super) holder: &'a dyn Fn(Option<&SessionId>) -> Option<Link>,
}

/// Where stored messages are read from; an error is a text for people.
pub(super) type Bodies<'a> = &'a dyn Fn(&Delivery) -> Result<Body, String>;

/// What to ask the broker, and how to read its answer.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) operation: Operation,
    pub(super) reading: Reading,
}

impl Plan {
    pub(super) fn new(operation: Operation, reading: Reading) -> Plan {
        Plan { operation, reading }
    }
}

/// How an answer becomes a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reading {
    /// Nothing is told but that it was done.
    Nothing,
    /// The same; the client named a session that it may have lost.
    Settled {
        /// Whether this connection does not hold the session named.
        session_gone: bool,
    },
    /// When message locks end.
    Expirations,
    /// When a session lock ends.
    Expiration,
    /// Numbers given to messages.
    Numbers,
    /// Messages that were looked at.
    Peeked {
        /// Whether to leave out their bodies.
        omit_body: bool,
        /// The most bytes to return.
        bytes_max: u64,
    },
    /// Messages that were received by number.
    Received {
        /// How.
        mode: ReceiveMode,
    },
    /// How many messages were deleted.
    Deleted,
    /// A session's state.
    State,
    /// Names of sessions.
    Sessions {
        /// How many were passed over.
        skip: u32,
    },
    /// Rules.
    Rules {
        /// How many to pass over.
        skip: u32,
        /// The most to return.
        top: u32,
    },
    /// The end of a rule.
    RuleRemoved {
        /// Its name.
        rule: Box<str>,
    },
}

/// What to do about an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reaction {
    /// What the client is told.
    pub(super) response: Response,
    /// Locks that were taken for the client but cannot be handed to it.
    pub(super) give_back: Vec<LockToken>,
}

impl From<Response> for Reaction {
    fn from(response: Response) -> Reaction {
        Reaction { response, give_back: Vec::new() }
    }
}

impl From<Told> for Reaction {
    fn from(told: Told) -> Reaction {
        Response::from(told).into()
    }
}

/// Reads a request.
pub(super) fn plan(request: &Request, context: &Context<'_>) -> Result<Plan, Told> {
    let operation = request.operation.as_ref().map_or("", |operation| operation.as_str());
    let read: fn(&Arguments, &Context<'_>) -> Result<Plan, Told> = match operation {
        "com.microsoft:renew-lock" => locks::renew,
        "com.microsoft:update-disposition" => locks::settle,
        "com.microsoft:peek-message" => browse::peek,
        "com.microsoft:batch-delete-messages" => browse::delete,
        "com.microsoft:schedule-message" => schedule::schedule,
        "com.microsoft:cancel-scheduled-message" => schedule::cancel,
        "com.microsoft:receive-by-sequence-number" => deferred::receive,
        "com.microsoft:renew-session-lock" => sessions::renew,
        "com.microsoft:get-session-state" => sessions::state,
        "com.microsoft:set-session-state" => sessions::set_state,
        "com.microsoft:get-message-sessions" => sessions::list,
        "com.microsoft:add-rule" => rules::add,
        "com.microsoft:remove-rule" => rules::remove,
        "com.microsoft:enumerate-rules" => rules::list,
        _ => return Err(not_implemented(operation)),
    };
    read(&request.arguments()?, context)
}

impl Reading {
    /// The response to an answer.
    pub(super) fn react(self, answered: Answered, bodies: Bodies<'_>) -> Reaction {
        match (self, answered) {
            (Reading::Nothing | Reading::Settled { .. } | Reading::RuleRemoved { .. }, _) => {
                Response::done().into()
            }
            (Reading::Expirations, Answered::Reply(Reply::Renewed { until })) => {
                locks::renewed(&until).into()
            }
            (Reading::Expiration, Answered::Reply(Reply::SessionRenewed { until })) => {
                sessions::renewed(until).into()
            }
            (Reading::Numbers, Answered::Reply(Reply::Sent { sequences })) => {
                schedule::scheduled(&sequences).into()
            }
            (Reading::Peeked { omit_body, bytes_max }, Answered::Answer(Answer::Peeked(peeked))) => {
                browse::peeked(&peeked.messages, omit_body, bytes_max, bodies).into()
            }
            (Reading::Received { mode }, Answered::Answer(Answer::Received(messages))) => {
                deferred::received(&messages, mode, bodies)
            }
            (Reading::Deleted, Answered::Reply(Reply::Deleted { count, .. })) => {
                browse::deleted(count).into()
            }
            (Reading::State, Answered::Answer(Answer::SessionState(state))) => {
                sessions::state_is(state).into()
            }
            (Reading::Sessions { skip }, Answered::Answer(Answer::Sessions(found))) => {
                sessions::listed(&found, skip).into()
            }
            (Reading::Rules { skip, top }, Answered::Answer(Answer::Subscription(found))) => {
                rules::listed(&found, skip, top).into()
            }
            (reading, answered) => unexpected(&reading, &answered).into(),
        }
    }

    /// The response to a refusal; `path` is the entity's.
    pub(super) fn refused(&self, refused: &Refused, path: &str) -> Told {
        match (self, refused) {
            (Reading::Settled { session_gone: true }, Refused::Impossible(Refusal::LockLost { .. })) => {
                sessions::lock_lost()
            }
            (Reading::RuleRemoved { rule }, _) => condition::told(refused, &format!("{path}/Rules/{rule}")),
            _ => condition::told(refused, path),
        }
    }
}

fn not_implemented(operation: &str) -> Told {
    // What the client calls its operation may be long; it knows it anyway.
    let shown: String = operation.chars().take(100).collect();
    Told::new(name::NOT_IMPLEMENTED, 501, format!("The operation '{shown}' is not supported."))
}

fn unexpected(reading: &Reading, answered: &Answered) -> Told {
    tracing::error!(?reading, ?answered, "the broker gave another answer than asked for");
    Told::new(name::INTERNAL_ERROR, 500, "The broker gave another answer than asked for.")
}
