//! The Service Bus conformance checklist on raw frames, where no SDK reaches: one module for each group, one
//! test for each number. `docs/conformance.md` lists all numbers, and [`table`] holds it to what is here.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test that meets the unexpected shall stop, and tests read the clock"
)]

mod client;
mod http;
mod links;
mod message;
mod nodes;
mod server;
mod tunnel;

mod a_connection;
mod b_cbs;
mod c_links;
mod d_sending;
mod developers;
mod e_receiving;
mod f_settlement;
mod g_management;
mod h_sessions;
mod i_transactions;
mod j_entities;
mod k_rules;
mod matrix;
mod operators;
mod revocation;
mod stuck;
mod table;
mod unreadable;
