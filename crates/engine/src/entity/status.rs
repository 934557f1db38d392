//! Whether an entity takes messages in and gives them out.

use std::fmt;

/// An entity's status as an administrator sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Status {
    /// Sends and receives are allowed.
    #[default]
    Active,
    /// Neither is allowed.
    Disabled,
    /// Receives only.
    SendDisabled,
    /// Sends only.
    ReceiveDisabled,
}

impl Status {
    /// Every status there is.
    pub const ALL: [Status; 4] =
        [Status::Active, Status::Disabled, Status::SendDisabled, Status::ReceiveDisabled];

    /// Reads the word Service Bus uses, in any case. The words for passing states, such as
    /// `Deleting`, are the system's own and cannot be set.
    #[must_use]
    pub fn parse(text: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str().eq_ignore_ascii_case(text))
    }

    /// The word Service Bus uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Active => "Active",
            Status::Disabled => "Disabled",
            Status::SendDisabled => "SendDisabled",
            Status::ReceiveDisabled => "ReceiveDisabled",
        }
    }

    /// Whether messages may come in. For a topic `Disabled` means just this.
    #[must_use]
    pub fn allows_send(self) -> bool {
        matches!(self, Status::Active | Status::ReceiveDisabled)
    }

    /// Whether messages may be received.
    #[must_use]
    pub fn allows_receive(self) -> bool {
        matches!(self, Status::Active | Status::SendDisabled)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_says_what_it_allows() {
        let cases = [
            ("active", true, true),
            ("DISABLED", false, false),
            ("SendDisabled", false, true),
            ("receivedisabled", true, false),
        ];
        for (text, send, receive) in cases {
            let status = Status::parse(text).unwrap();
            assert_eq!((status.allows_send(), status.allows_receive()), (send, receive), "{text}");
        }
        for text in ["", "Creating", "Deleting", "Unknown", "active "] {
            assert_eq!(Status::parse(text), None, "{text:?}");
        }
    }
}
