//! The JSON API under `/api/`: everything the command line and a console need.
//!
//! Entity names may contain `/`; in a path each name is one segment, percent-encoded. `{entity}` below is
//! `queues/{queue}` or `topics/{topic}/subscriptions/{subscription}`; `{mailbox}` is `main`, `deadletter`
//! or `transferdeadletter`. Bodies and answers are the types of [`model`].
//!
//! | method and path | body → answer |
//! |---|---|
//! | `GET /api/openapi.json` | this table for programs |
//! | `GET /api/namespace` | [`Namespace`](model::Namespace) |
//! | `GET /api/queues?skip&top`, `/api/topics`, `/api/topics/{topic}/subscriptions` | [`Page`](model::Page) of [`Entity`](model::Entity) |
//! | `GET /api/queues/{queue}`, `/api/topics/{topic}`, `…/subscriptions/{subscription}` | [`Entity`](model::Entity) |
//! | `PUT` the same, `?ifMissing=true` | [`Properties`](model::Properties) → 201 [`Entity`](model::Entity); 409 if it exists, or 200 as it is with `ifMissing` |
//! | `PATCH` the same | [`Properties`](model::Properties) → [`Entity`](model::Entity) |
//! | `DELETE` the same | 204 |
//! | `GET …/subscriptions/{subscription}/rules` | [`Page`](model::Page) of [`Rule`](model::Rule) |
//! | `GET`, `PUT ?ifMissing`, `PATCH`, `DELETE …/rules/{rule}` | [`RuleDefinition`](model::RuleDefinition) → [`Rule`](model::Rule) |
//! | `POST /api/{entity}/pause`, `POST /api/{entity}/resume` | [`Entity`](model::Entity) |
//! | `GET /api/{entity}/live` | [`Live`](model::Live) |
//! | `GET /api/{entity}/sessions?after&top` | [`Page`](model::Page) of [`Session`](model::Session) |
//! | `POST /api/queues/{queue}/messages`, `POST /api/topics/{topic}/messages` | list of [`NewMessage`](model::NewMessage) → [`Sent`](model::Sent) |
//! | `GET /api/{entity}/mailboxes/{mailbox}/messages?from&top&filter&state&level&session&body` | [`Page`](model::Page) of [`Message`](model::Message) |
//! | `GET …/messages/{sequence}` | [`Message`](model::Message) with its body |
//! | `GET …/messages/{sequence}/explanation` | [`Explanation`](model::Explanation) |
//! | `GET /api/{entity}/mailboxes/{mailbox}/groups` | [`Groups`](model::Groups) |
//! | `POST …/{mailbox}/replay` | [`ReplayRequest`](model::ReplayRequest) → lines of [`WorkReport`](model::WorkReport) |
//! | `POST …/{mailbox}/purge` | [`PurgeRequest`](model::PurgeRequest) → lines of [`WorkReport`](model::WorkReport) |
//! | `POST …/{mailbox}/reprioritise` | [`ReprioritiseRequest`](model::ReprioritiseRequest) → [`ReprioritiseReport`](model::ReprioritiseReport) |
//! | `GET /api/connections`, `GET /api/connections/{id}` | [`Connection`](model::Connection) |
//! | `DELETE /api/connections/{id}`, `DELETE /api/connections/{id}/links/{link}` | 204 |
//! | `GET /api/targets` | [`Page`](model::Page) of [`Target`](model::Target) |
//! | `GET /api/definitions` | [`Definitions`](model::Definitions) |
//! | `POST /api/definitions?prune&dryRun` | [`Definitions`](model::Definitions) → [`ApplyReport`](model::ApplyReport) |
//! | `GET /api/$events` | server-sent [`Event`](model::Event)s |
//!
//! Every error is a [`Problem`](model::Problem) as `application/problem+json`.

pub mod model;
