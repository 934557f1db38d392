//! `vorrang connection list|close`: who is connected, and sending them away.

use clap::Subcommand;
use vorrang_server::http::api::model::{Connection, LinkRole};

use crate::api::{Api, Json};
use crate::failure::Outcome;
use crate::output::{self, Format, Table};
use crate::watch::{self, Watch};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List connections and their links
    List(Watch),
    /// Close a connection, or one of its links; SDKs reconnect
    Close {
        /// The connection's number
        id: u64,
        /// Only this link of it
        #[arg(long, value_name = "NUMBER")]
        link: Option<u64>,
    },
}

pub(crate) fn run(command: &Command, api: &Api, format: Format) -> Outcome {
    match command {
        Command::List(watch) => watch::run(watch, || list(api, format)),
        Command::Close { id, link: None } => api.delete(&format!("/api/connections/{id}")),
        Command::Close { id, link: Some(link) } => api.delete(&format!("/api/connections/{id}/links/{link}")),
    }
}

fn list(api: &Api, format: Format) -> Outcome {
    let answer: Json = api.get("/api/connections")?;
    // A page, or the plain list.
    let items = answer.get("items").cloned().unwrap_or(answer);
    let connections: Vec<Connection> = serde_json::from_value(items)
        .map_err(|error| anyhow::anyhow!("the broker's answer cannot be read: {error}"))?;
    if format == Format::Json {
        return output::json(&connections);
    }
    let mut table =
        Table::new(&["id", "peer", "transport", "container", "since", "link", "role", "entity", "credit"]);
    for connection in &connections {
        let head = || {
            vec![
                connection.id.into(),
                connection.peer.as_str().into(),
                connection.transport.as_str().into(),
                connection.container.clone().unwrap_or_default().into(),
                connection.connected_at.as_str().into(),
            ]
        };
        if connection.links.is_empty() {
            table.row(head());
        }
        for link in &connection.links {
            let role = match link.role {
                LinkRole::Sender => "sender",
                LinkRole::Receiver => "receiver",
            };
            let credit = link.credit.map_or_else(String::new, |credit| credit.to_string());
            let mut row = head();
            row.extend([link.id.into(), role.into(), link.entity.as_str().into(), credit.into()]);
            table.row(row);
        }
    }
    table.print()
}
