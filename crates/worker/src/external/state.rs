//! A session's state, for handlers that are not Rust: read before the message, stored after success if it changed.
//!
//! It is stored before the message is completed. A worker that dies between the two leaves a state that knows a message
//! which comes again; a handler that must not count twice keeps the last sequence number in the state.
//!
//! A command finds it in a file, a long-lived child in a field of its line, an HTTP endpoint in a header.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value as Json};
use tempfile::NamedTempFile;
use vorrang_client::Session;

use crate::context::Context;
use crate::outcome::Outcome;

/// The variable with the path of the file a command reads and writes.
pub(super) const VARIABLE: &str = "VORRANG_SESSION_STATE";
/// The header that carries it, in base64.
pub(super) const HEADER: &str = "vorrang-session-state";
/// The most that is taken from a handler; Service Bus stores no more. More fails the message.
const BYTES_MAX: usize = 256 * 1_024;
/// The most a header carries: servers commonly refuse requests with more than 8 KiB of headers. More fails the message.
const HEADER_BYTES_MAX: usize = 4 * 1_024;

/// The state as it was before the message. Without a session there is none, and nothing is stored.
#[derive(Debug)]
pub(super) struct State<'c> {
    session: Option<&'c Session>,
    before: Option<Bytes>,
}

impl<'c> State<'c> {
    /// Asks the broker for the state. That it does not answer is no fault of the message.
    pub(super) async fn read(context: &'c Context) -> Result<State<'c>, Outcome> {
        let Some(session) = context.session() else { return Ok(State { session: None, before: None }) };
        let before = session.state().await;
        let before = before
            .map_err(|error| Outcome::Unavailable(format!("cannot read the session's state: {error}")))?;
        Ok(State { session: Some(session), before: before.filter(|state| !state.is_empty()) })
    }

    /// Stores what a successful handler left, if it is something else. An empty state is none.
    pub(super) async fn store(&self, after: Option<Bytes>) -> Result<(), Outcome> {
        let after = after.filter(|state| !state.is_empty());
        let Some(session) = self.session.filter(|_| after != self.before) else { return Ok(()) };
        let stored = session.set_state(after).await;
        stored.map_err(|error| Outcome::Failed(format!("cannot store the session's state: {error}")))
    }

    /// A file with the state, for a command; none without a session.
    pub(super) async fn file(&self) -> Result<Option<StateFile>, Outcome> {
        if self.session.is_none() {
            return Ok(None);
        }
        let before = self.before.clone().unwrap_or_default();
        let made = blocking(move || {
            let mut file = NamedTempFile::with_prefix("vorrang-session-")?;
            file.write_all(&before)?;
            file.flush()?;
            Ok(StateFile { file })
        });
        made.await
            .map(Some)
            .map_err(|error| Outcome::Unavailable(format!("cannot write the session's state: {error}")))
    }

    /// Adds the state to what a long-lived child is told: as text where it is text, else in base64.
    pub(super) fn tell(&self, line: &mut Json) {
        let (Some(before), Some(line)) = (&self.before, line.as_object_mut()) else { return };
        let (name, text) = match std::str::from_utf8(before) {
            Ok(text) => ("session_state", text.to_owned()),
            Err(_) => ("session_state_base64", STANDARD.encode(before)),
        };
        line.insert(name.to_owned(), Json::String(text));
    }

    /// The state a long-lived child leaves: what it says, or what was there if it says nothing.
    pub(super) fn told(&self, answer: &Json) -> Result<Option<Bytes>, String> {
        let none = Map::new();
        let answer = answer.as_object().unwrap_or(&none);
        let bytes = match (answer.get("session_state"), answer.get("session_state_base64")) {
            (None, None) => return Ok(self.before.clone()),
            (Some(Json::Null), None) | (None, Some(Json::Null)) => return Ok(None),
            (Some(Json::String(text)), None) => Bytes::copy_from_slice(text.as_bytes()),
            (None, Some(Json::String(text))) => decoded(text)?,
            _ => return Err("session_state is text or null, and given once".to_owned()),
        };
        within(bytes, BYTES_MAX)
    }

    /// The state as a header; none if there is none.
    pub(super) fn header(&self) -> Result<Option<String>, String> {
        match &self.before {
            None => Ok(None),
            Some(before) => {
                Ok(within(before.clone(), HEADER_BYTES_MAX)?.map(|before| STANDARD.encode(before)))
            }
        }
    }

    /// The state an endpoint leaves: its header, an empty one for none, or what was there if it has none.
    pub(super) fn headed(&self, header: Option<&str>) -> Result<Option<Bytes>, String> {
        match header {
            None => Ok(self.before.clone()),
            Some(text) => within(decoded(text)?, BYTES_MAX),
        }
    }
}

fn decoded(text: &str) -> Result<Bytes, String> {
    let decoded = STANDARD.decode(text.trim());
    decoded.map(Bytes::from).map_err(|error| format!("the session's state is not base64: {error}"))
}

fn within(state: Bytes, limit: usize) -> Result<Option<Bytes>, String> {
    if state.len() > limit {
        return Err(format!("a session state of {} bytes exceeds the limit of {limit}", state.len()));
    }
    Ok(Some(state))
}

/// A file that only this user can read, gone when it is dropped.
#[derive(Debug)]
pub(super) struct StateFile {
    file: NamedTempFile,
}

impl StateFile {
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// What the command left. It may have replaced the file, or removed it: then there is no state.
    pub(super) async fn left(self) -> Result<Option<Bytes>, String> {
        let read = blocking(move || {
            let file = match File::open(self.file.path()) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Bytes::new()),
                Err(error) => return Err(error),
            };
            let mut bytes = Vec::new();
            let limit = u64::try_from(BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
            file.take(limit).read_to_end(&mut bytes)?;
            Ok(Bytes::from(bytes))
        });
        let state = read.await.map_err(|error| format!("cannot read the session's state: {error}"))?;
        within(state, BYTES_MAX)
    }
}

/// Files are read and written where waiting for a disk holds up nobody.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(before: Option<&'static [u8]>) -> State<'static> {
        State { session: None, before: before.map(Bytes::from_static) }
    }

    #[test]
    fn a_child_is_told_the_state_and_says_the_next() {
        let mut line = json!({});
        state(None).tell(&mut line);
        assert_eq!(line, json!({}), "no state, no field");
        state(Some(b"7")).tell(&mut line);
        state(Some(b"\xff")).tell(&mut line);
        assert_eq!(line, json!({"session_state": "7", "session_state_base64": "/w=="}));
        let cases = [
            (json!({}), Ok(Some("old"))),
            (json!({"session_state": "new"}), Ok(Some("new"))),
            (json!({"session_state": null}), Ok(None)),
            (json!({"session_state_base64": "bmV3"}), Ok(Some("new"))),
            (json!({"session_state": 7}), Err(())),
            (json!({"session_state": "a", "session_state_base64": "YQ=="}), Err(())),
            (json!({"session_state_base64": "?"}), Err(())),
            (json!({"session_state": "x".repeat(BYTES_MAX + 1)}), Err(())),
        ];
        for (answer, expected) in cases {
            let told = state(Some(b"old")).told(&answer).map_err(|_| ());
            assert_eq!(
                told,
                expected.map(|text| text.map(|text| Bytes::from_static(text.as_bytes()))),
                "{answer:.60}"
            );
        }
    }

    #[test]
    fn a_header_carries_what_headers_can() {
        assert_eq!(state(None).header(), Ok(None));
        assert_eq!(state(Some(b"new")).header(), Ok(Some("bmV3".to_owned())));
        assert!(
            state(Some(&[0; HEADER_BYTES_MAX + 1]))
                .header()
                .unwrap_err()
                .contains("exceeds the limit of 4096")
        );
        assert_eq!(state(Some(b"old")).headed(None), Ok(Some(Bytes::from_static(b"old"))));
        assert_eq!(
            state(Some(b"old")).headed(Some("")),
            Ok(Some(Bytes::new())),
            "empty is none when it is stored"
        );
        assert!(state(None).headed(Some("?")).is_err());
    }
}
