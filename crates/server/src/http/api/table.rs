//! Every request the API answers.

use axum::http::{Method, StatusCode};

use super::endpoint::{Endpoint, Shape, named, page};
use super::model::{
    AdvanceRequest, ApplyReport, Clock, Connection, Definitions, DropRequest, Dropped, Entity, Explanation,
    Fault, Groups, Live, Message, Namespace, NewFault, NewMessage, Properties, PurgeRequest, ReplayRequest,
    ReprioritiseReport, ReprioritiseRequest, ResetRequest, Rule, RuleDefinition, Sent, Session, Snapshot,
    StallRequest, Target, WorkReport,
};
use super::query::{Kind, Parameter};
use super::workbench::{groups, purge, replay, reprioritise};
use super::{connections, definitions, dev, entities, events, messages, openapi, rules, sessions, targets};

const fn parameter(name: &'static str, kind: Kind, help: &'static str) -> Parameter {
    Parameter { name, kind, help }
}

const SKIP: Parameter = parameter("skip", Kind::Number(0, u64::MAX), "how many to pass over");
const TOP: Parameter = parameter("top", Kind::Number(1, 999), "at most so many on a page; 100 unless told");
const IF_MISSING: Parameter =
    parameter("ifMissing", Kind::Flag, "if it exists, leave it as it is and answer 200");
const BROWSE: [Parameter; 7] = [
    parameter("from", Kind::Number(0, u64::MAX), "from this sequence number on"),
    parameter("top", Kind::Number(1, 500), "at most so many on a page; 50 unless told"),
    parameter("filter", Kind::Text, "only those for which this Service Bus SQL condition holds"),
    parameter("state", Kind::Word(&["active", "deferred", "scheduled"]), "only those in this state"),
    parameter("level", Kind::Number(0, 255), "only those of this level"),
    parameter("session", Kind::Text, "only those of this session"),
    parameter("body", Kind::Flag, "with their bodies"),
];
const SESSIONS: [Parameter; 2] = [
    parameter("after", Kind::Text, "only sessions whose names come after this one"),
    parameter("top", Kind::Number(1, 999), "at most so many on a page; 100 unless told"),
];
const CONNECTIONS: [Parameter; 2] = [
    parameter("after", Kind::Number(0, u64::MAX), "only connections that came after this one"),
    parameter("top", Kind::Number(1, 999), "at most so many on a page; 100 unless told"),
];
const APPLY: [Parameter; 2] = [
    parameter("prune", Kind::Flag, "delete what the definitions do not have"),
    parameter("dryRun", Kind::Flag, "only say what would be done"),
];

const QUEUE: &str = "/api/queues/{queue}";
const TOPIC: &str = "/api/topics/{topic}";
const SUBSCRIPTION: &str = "/api/topics/{topic}/subscriptions/{subscription}";

/// A handler in the shape the table wants.
macro_rules! by {
    ($handler:path) => {
        |call| Box::pin($handler(call))
    };
}

/// The whole table.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let mut all = vec![
        Endpoint::new(Method::GET, "/api/openapi.json", "this API for programs", by!(openapi::document))
            .answers(StatusCode::OK, "application/json", None)
            .open(),
        Endpoint::new(Method::GET, "/api/namespace", "the namespace as a whole", by!(entities::namespace))
            .ok(named::<Namespace>),
        Endpoint::new(
            Method::GET,
            "/api/$events",
            "what happens, as server-sent events whose data is an Event",
            by!(events::listen),
        )
        .answers(StatusCode::OK, "text/event-stream", None),
        Endpoint::new(Method::GET, "/api/connections", "who is connected", by!(connections::list))
            .query(&CONNECTIONS)
            .ok(page::<Connection>),
        Endpoint::new(Method::GET, "/api/connections/{id}", "one connection", by!(connections::show))
            .ok(named::<Connection>),
        Endpoint::new(Method::DELETE, "/api/connections/{id}", "closes it", by!(connections::close)).done(),
        Endpoint::new(
            Method::DELETE,
            "/api/connections/{id}/links/{link}",
            "closes one of its links; the connection lives on",
            by!(connections::close_link),
        )
        .done(),
        Endpoint::new(
            Method::GET,
            "/api/targets",
            "how classes stand against their targets",
            by!(targets::list),
        )
        .query(&[SKIP, TOP])
        .ok(page::<Target>),
        list("/api/queues", "queues in the order of their names", by!(entities::queues)),
        list("/api/topics", "topics in the order of their names", by!(entities::topics)),
        list("/api/topics/{topic}/subscriptions", "a topic's subscriptions", by!(entities::subscriptions)),
        Endpoint::new(
            Method::GET,
            "/api/definitions",
            "all definitions, without keys",
            by!(definitions::export),
        )
        .ok(named::<Definitions>),
        Endpoint::new(
            Method::POST,
            "/api/definitions",
            "brings the namespace to these definitions",
            by!(definitions::apply),
        )
        .query(&APPLY)
        .body(named::<Definitions>)
        .ok(named::<ApplyReport>),
    ];
    for path in [QUEUE, TOPIC, SUBSCRIPTION] {
        all.extend(entity(path));
    }
    all.extend(rule_endpoints());
    for path in [QUEUE, TOPIC] {
        all.push(
            Endpoint::new(
                Method::POST,
                format!("{path}/messages"),
                "sends one message or a list of them, all or none",
                by!(messages::send),
            )
            .body(one_or_many)
            .created(named::<Sent>),
        );
    }
    for path in [QUEUE, SUBSCRIPTION] {
        all.extend(outlet(path));
        all.extend(mailbox(path));
    }
    all.extend(developers());
    all
}

/// What is there in development mode alone.
fn developers() -> [Endpoint; 13] {
    let shown: Shape = named::<Clock>;
    let name = "/dev/snapshots/{name}";
    [
        Endpoint::new(
            Method::GET,
            "/dev/clock",
            "the broker's time, and how far it runs ahead",
            by!(dev::clock::show),
        )
        .ok(shown),
        Endpoint::new(Method::POST, "/dev/clock/advance", "sets the clock ahead", by!(dev::clock::advance))
            .body(named::<AdvanceRequest>)
            .ok(shown),
        Endpoint::new(Method::POST, "/dev/reset", "takes every message away", by!(dev::clock::reset))
            .body(named::<ResetRequest>)
            .done(),
        Endpoint::new(Method::GET, "/dev/snapshots", "namespaces kept by name", by!(dev::snapshots::list))
            .ok(page::<Snapshot>),
        Endpoint::new(Method::PUT, name, "keeps the namespace with its messages", by!(dev::snapshots::save))
            .created(named::<Snapshot>),
        Endpoint::new(Method::DELETE, name, "forgets it", by!(dev::snapshots::delete)).done(),
        Endpoint::new(
            Method::POST,
            format!("{name}/restore"),
            "puts it in the place of what is there, all or nothing",
            by!(dev::snapshots::restore),
        )
        .done(),
        Endpoint::new(Method::GET, "/dev/faults", "what goes wrong on purpose", by!(dev::faults::list))
            .ok(page::<Fault>),
        Endpoint::new(Method::POST, "/dev/faults", "makes something go wrong", by!(dev::faults::inject))
            .body(named::<NewFault>)
            .created(named::<Fault>),
        Endpoint::new(Method::DELETE, "/dev/faults", "ends all faults", by!(dev::faults::clear)).done(),
        Endpoint::new(Method::POST, "/dev/stall", "takes no request for a while", by!(dev::faults::stall))
            .body(named::<StallRequest>)
            .done(),
        Endpoint::new(Method::DELETE, "/dev/faults/{id}", "ends one fault", by!(dev::faults::end)).done(),
        Endpoint::new(
            Method::POST,
            "/dev/drop",
            "ends links or connections at once",
            by!(dev::faults::drop_links),
        )
        .body(named::<DropRequest>)
        .ok(named::<Dropped>),
    ]
}

/// One message, or a list of them.
fn one_or_many(schemas: &mut super::endpoint::Schemas) -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
    let one = named::<NewMessage>(schemas);
    let many = utoipa::openapi::ArrayBuilder::new().items(one.clone()).min_items(Some(1));
    utoipa::openapi::OneOfBuilder::new().item(one).item(many).into()
}

fn list(path: &str, summary: &'static str, handler: super::endpoint::Handler) -> Endpoint {
    Endpoint::new(Method::GET, path, summary, handler).query(&[SKIP, TOP]).ok(page::<Entity>)
}

/// What every entity has.
fn entity(path: &str) -> [Endpoint; 4] {
    let shown: Shape = named::<Entity>;
    let properties: Shape = named::<Properties>;
    [
        Endpoint::new(Method::GET, path, "one entity", by!(entities::show)).ok(shown),
        Endpoint::new(Method::PUT, path, "creates it", by!(entities::create))
            .query(&[IF_MISSING])
            .body(properties)
            .created(shown)
            .ok(shown),
        Endpoint::new(Method::PATCH, path, "changes what the body says", by!(entities::update))
            .body(properties)
            .ok(shown),
        Endpoint::new(Method::DELETE, path, "deletes it with everything in it", by!(entities::delete)).done(),
    ]
}

fn rule_endpoints() -> [Endpoint; 5] {
    let list = format!("{SUBSCRIPTION}/rules");
    let path = format!("{SUBSCRIPTION}/rules/{{rule}}");
    let shown: Shape = named::<Rule>;
    let definition: Shape = named::<RuleDefinition>;
    [
        Endpoint::new(Method::GET, list, "its rules in the order of their creation", by!(rules::list))
            .query(&[SKIP, TOP])
            .ok(page::<Rule>),
        Endpoint::new(Method::GET, path.clone(), "one rule", by!(rules::show)).ok(shown),
        Endpoint::new(Method::PUT, path.clone(), "creates it", by!(rules::create))
            .query(&[IF_MISSING])
            .body(definition)
            .created(shown)
            .ok(shown),
        Endpoint::new(Method::PATCH, path.clone(), "gives it another filter and action", by!(rules::update))
            .body(definition)
            .ok(shown),
        Endpoint::new(Method::DELETE, path, "deletes it", by!(rules::delete)).done(),
    ]
}

/// What gives messages out.
fn outlet(path: &str) -> [Endpoint; 4] {
    let at = |suffix: &str| format!("{path}/{suffix}");
    [
        Endpoint::new(
            Method::POST,
            at("pause"),
            "holds deliveries back; sending goes on",
            by!(entities::pause),
        )
        .ok(named::<Entity>),
        Endpoint::new(Method::POST, at("resume"), "lets deliveries go on", by!(entities::resume))
            .ok(named::<Entity>),
        Endpoint::new(Method::GET, at("live"), "counts, rates and histograms by class", by!(entities::live))
            .ok(named::<Live>),
        Endpoint::new(Method::GET, at("sessions"), "sessions with messages or a state", by!(sessions::list))
            .query(&SESSIONS)
            .ok(page::<Session>),
    ]
}

/// What can be done with the messages of a mailbox.
fn mailbox(path: &str) -> [Endpoint; 7] {
    let at = |suffix: &str| format!("{path}/mailboxes/{{mailbox}}/{suffix}");
    let lines = |endpoint: Endpoint| {
        endpoint.answers(StatusCode::OK, "application/x-ndjson", Some(named::<WorkReport>))
    };
    [
        Endpoint::new(Method::GET, at("messages"), "messages by number, taking none", by!(messages::browse))
            .query(&BROWSE)
            .ok(page::<Message>),
        Endpoint::new(
            Method::GET,
            at("messages/{sequence}"),
            "one message with its body",
            by!(messages::show),
        )
        .ok(named::<Message>),
        Endpoint::new(
            Method::GET,
            at("messages/{sequence}/explanation"),
            "why it waits, and what is ahead of it",
            by!(messages::explain),
        )
        .ok(named::<Explanation>),
        Endpoint::new(
            Method::GET,
            at("groups"),
            "messages by why they were dead-lettered",
            by!(groups::groups),
        )
        .ok(named::<Groups>),
        lines(
            Endpoint::new(
                Method::POST,
                at("replay"),
                "sends messages again; one line of JSON for each step, closing the connection stops it",
                by!(replay::replay),
            )
            .body(named::<ReplayRequest>),
        ),
        lines(
            Endpoint::new(
                Method::POST,
                at("purge"),
                "deletes messages; one line of JSON for each step, closing the connection stops it",
                by!(purge::purge),
            )
            .body(named::<PurgeRequest>),
        ),
        Endpoint::new(
            Method::POST,
            at("reprioritise"),
            "gives messages another level",
            by!(reprioritise::reprioritise),
        )
        .body(named::<ReprioritiseRequest>)
        .ok(named::<ReprioritiseReport>),
    ]
}
