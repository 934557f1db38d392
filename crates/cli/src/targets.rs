//! `vorrang targets`: which classes keep the wait they promise.

use clap::Args;
use vorrang_server::http::api::model::{Target, TargetState};

use crate::api::Api;
use crate::failure::Outcome;
use crate::messages::seconds;
use crate::output::{self, Cell, Format, Mood, Table};
use crate::watch::{self, Watch};

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    watch: Watch,
}

pub(crate) fn run(options: &Options, api: &Api, format: Format) -> Outcome {
    watch::run(&options.watch, || {
        let targets: Vec<Target> = api.list("/api/targets", None)?;
        if format == Format::Json {
            return output::json(&targets);
        }
        let mut table =
            Table::new(&["entity", "class", "target", "state", "attainment", "burn rate", "missed in"]);
        for target in &targets {
            let each = |value: &dyn Fn(&vorrang_server::http::api::model::TargetWindow) -> Option<String>| {
                let parts = target.windows.iter().map(|window| {
                    format!("{} {}", window.over, value(window).unwrap_or_else(|| "-".to_owned()))
                });
                parts.collect::<Vec<_>>().join(", ")
            };
            table.row(vec![
                target.entity.as_str().into(),
                target.class.as_str().into(),
                target.target_wait.as_str().into(),
                state(target.state),
                each(&|window| window.attainment.map(|part| format!("{:.1} %", part * 100.0))).into(),
                each(&|window| window.burn_rate.map(|rate| format!("{rate:.1}"))).into(),
                target.breach_in_seconds.map_or_else(|| "-".to_owned(), seconds).into(),
            ]);
        }
        table.print()
    })
}

/// The state as a word in its colour.
pub(crate) fn state(state: TargetState) -> Cell {
    match state {
        TargetState::Ok => Cell::from("ok").in_mood(Mood::Good),
        TargetState::AtRisk => Cell::from("at risk").in_mood(Mood::Warning),
        TargetState::Breached => Cell::from("breached").in_mood(Mood::Bad),
    }
}
