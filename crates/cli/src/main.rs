//! `vorrang`: the one binary.
//!
//! This file reads the command line and calls one command; each command has its own file.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks on its terminal")]
#![allow(clippy::disallowed_methods, reason = "tokens, progress and the live view need the clock")]

mod api;
mod bench;
mod completion;
mod config;
mod connection;
mod connections;
mod dead_letters;
mod definitions;
mod demo;
mod dev;
mod doctor;
mod entity;
mod failure;
mod line;
mod logging;
mod messages;
mod output;
mod percent;
mod properties;
mod rule;
mod serve;
mod settings;
mod shown;
mod targets;
mod top;
mod transfer;
mod trust;
mod watch;
mod work;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use api::Api;
use failure::Outcome;
use output::Format;

/// A durable message broker with native priorities, for every Azure Service Bus SDK.
#[derive(Debug, Parser)]
#[command(name = "vorrang", version, arg_required_else_help = true)]
struct Arguments {
    /// How answers are shown
    #[arg(long, value_enum, global = true, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    connection: connection::Options,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the broker
    Serve(Box<settings::Given>),
    /// Create, list, show, update and delete queues
    #[command(subcommand)]
    Queue(entity::QueueCommand),
    /// Create, list, show, update and delete topics
    #[command(subcommand)]
    Topic(entity::TopicCommand),
    /// Create, list, show, update and delete subscriptions
    #[command(subcommand)]
    Subscription(entity::SubscriptionCommand),
    /// Create, list, show, update and delete rules of subscriptions
    #[command(subcommand)]
    Rule(rule::Command),
    /// Send a message, or every line of a file
    Send(transfer::Send),
    /// Receive messages as lines of JSON
    Receive(transfer::Receive),
    /// Send a request and wait for its reply
    Call(transfer::Call),
    /// Look at messages without receiving them
    Peek(messages::Peek),
    /// Say why a message waits and what is ahead of it
    Explain(messages::Explain),
    /// Give waiting messages another level
    Reprioritise(messages::Reprioritise),
    /// List, replay and purge dead letters
    #[command(subcommand)]
    Dlq(dead_letters::Command),
    /// List sessions
    #[command(subcommand)]
    Session(messages::SessionCommand),
    /// List and close connections
    #[command(subcommand)]
    Connection(connections::Command),
    /// Hold the deliveries of a queue or subscription back
    Pause(messages::Pause),
    /// Let the deliveries of a queue or subscription go on
    Resume(messages::Pause),
    /// Export and apply all definitions as one file
    #[command(subcommand)]
    Definitions(definitions::Command),
    /// Show which classes keep the wait they promise
    Targets(targets::Options),
    /// Watch entities and classes live, with waits against targets
    Top(top::Options),
    /// Handle messages with a command, a long-lived child per slot, or an HTTP endpoint
    Work(Box<work::Options>),
    /// Measure how fast a running broker is from here, on a queue of its own
    Bench(bench::Options),
    /// See priorities at work: a broker, two tenants, four classes and an overload
    Demo(demo::Options),
    /// Reset, snapshots, a clock to set ahead and faults, for a broker that runs with --dev
    #[command(subcommand)]
    Dev(dev::Command),
    /// Look at the configuration without starting anything
    #[command(subcommand)]
    Config(Box<config::Command>),
    /// Check the configuration, the data directory, the disk, ports, the clock and a running broker
    Doctor(Box<doctor::Options>),
    /// Print a completion script for a shell
    Completion(completion::Options),
    /// Print the man page
    Man,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("vorrang: {failure}");
            failure.code()
        }
    }
}

fn run(arguments: Arguments) -> Outcome {
    let Arguments { output: format, connection, command } = arguments;
    let api = || connection.connection().map(Api::new);
    match command {
        Command::Serve(given) => serve::run(&given),
        Command::Queue(command) => entity::queue(command, &api()?, format),
        Command::Topic(command) => entity::topic(command, &api()?, format),
        Command::Subscription(command) => entity::subscription(command, &api()?, format),
        Command::Rule(command) => rule::run(command, &api()?, format),
        Command::Send(send) => transfer::send(&send, &connection.connection()?),
        Command::Receive(receive) => transfer::receive(&receive, &connection.connection()?),
        Command::Call(call) => transfer::call(&call, &connection.connection()?),
        Command::Peek(peek) => messages::peek(&peek, &api()?, format),
        Command::Explain(explain) => messages::explain(&explain, &api()?, format),
        Command::Reprioritise(change) => messages::reprioritise(&change, &api()?, format),
        Command::Dlq(command) => dead_letters::run(command, &api()?, format),
        Command::Session(command) => messages::session(&command, &api()?, format),
        Command::Connection(command) => connections::run(&command, &api()?, format),
        Command::Pause(pause) => messages::pause(&pause, "pause", &api()?, format),
        Command::Resume(pause) => messages::pause(&pause, "resume", &api()?, format),
        Command::Definitions(command) => definitions::run(&command, &api()?, format),
        Command::Targets(options) => targets::run(&options, &api()?, format),
        Command::Top(options) => top::run(&options, &api()?, format),
        Command::Work(options) => work::run(&options, &connection.connection()?),
        Command::Bench(options) => bench::run(&options, &connection.connection()?, format),
        Command::Demo(options) => demo::run(&options),
        Command::Dev(command) => dev::run(command, &api()?, format),
        Command::Config(command) => config::run(&command, format),
        Command::Doctor(options) => doctor::run(&options, &connection, format),
        Command::Completion(options) => completion::run(&options),
        Command::Man => completion::man(),
    }
}
