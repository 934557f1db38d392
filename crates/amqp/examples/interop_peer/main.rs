//! A peer for other AMQP stacks to talk to: the connection engine on a blocking socket, in either role.
//!
//! ```text
//! interop_peer serve                      prints "listening PORT" and serves until its input ends
//! interop_peer call PORT [USER PASSWORD]  walks through a conversation with a server and prints each step
//! ```
//!
//! Both sides announce frames of 4096 bytes, so that every larger message travels in several. The server ends with
//! its standard input, so it never outlives the test that started it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the peer reports to the test that started it")]
#![allow(clippy::disallowed_methods, reason = "the shell around the engine is where the clock is read")]

mod call;
mod serve;
mod shell;

use std::process::ExitCode;

use vorrang_amqp::connection::{FrameLimit, Limits};

/// The largest frame either side of a conversation may send.
const FRAME_BYTES_MAX: u32 = 4096;

/// Whatever goes wrong ends the conversation with a message.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["serve"] => serve::run(),
        ["call", port] => call::run(port, None),
        ["call", port, user, password] => call::run(port, Some((user, password))),
        _ => Err("usage: interop_peer serve | interop_peer call PORT [USER PASSWORD]".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("interop_peer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.authenticated.frame = FrameLimit::new(FRAME_BYTES_MAX);
    limits
}
