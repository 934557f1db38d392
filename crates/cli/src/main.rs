//! `vorrang`: the one binary.
//!
//! This file reads the command line and calls one command; each command has its own file.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks on its terminal")]

mod doctor;
mod logging;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A durable message broker with native priorities, for every Azure Service Bus SDK.
#[derive(Debug, Parser)]
#[command(name = "vorrang", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the broker
    Serve(serve::Options),
    /// Verify a data directory that no broker is using
    Doctor(doctor::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.command {
        Command::Serve(options) => serve::run(&options),
        Command::Doctor(options) => doctor::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vorrang: {error:#}");
            ExitCode::FAILURE
        }
    }
}
