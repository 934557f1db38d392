//! Who may attach what before it has proven who it is.
//!
//! A link of the peer's can only be made with a [`Permit`], and only [`Admission`] makes permits. While the peer is
//! unauthenticated it gives them for the configured addresses alone, so no other link exists, and without a link
//! there is nothing that could raise an event about deliveries, credit or outcomes.

use crate::performative::{Attach, Role, TargetNode};
use crate::text::Text;

/// Whether the peer is known.
#[derive(Debug)]
pub(super) enum Admission {
    /// Only these addresses can be attached, compared without regard to ASCII case.
    Unauthenticated { addresses: Vec<Text> },
    /// Everything can be attached; what is allowed is decided above.
    Authenticated,
}

/// Proof that a link may exist. Not cloneable and made nowhere else.
#[derive(Debug)]
pub(super) struct Permit(());

impl Admission {
    pub(super) fn is_authenticated(&self) -> bool {
        matches!(self, Self::Authenticated)
    }

    /// Permits a link the peer asks for, or not.
    pub(super) fn admit(&self, attach: &Attach) -> Option<Permit> {
        match self {
            Self::Authenticated => Some(Permit(())),
            Self::Unauthenticated { addresses } => {
                let wanted = node_address(attach)?.as_bytes();
                let open = addresses.iter().any(|address| address.as_bytes().eq_ignore_ascii_case(wanted));
                open.then_some(Permit(()))
            }
        }
    }

    /// Permits a link we ask for ourselves.
    pub(super) fn own() -> Permit {
        Permit(())
    }
}

/// The address of the node a peer wants to reach: the target it sends to or the source it receives from.
fn node_address(attach: &Attach) -> Option<&Text> {
    match (attach.role, &attach.source, &attach.target) {
        (Role::Sender, _, Some(TargetNode::Node(target))) => target.address.as_ref(),
        (Role::Receiver, Some(source), _) => source.address.as_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::performative::{Coordinator, Source, Target};

    fn attach(role: Role, source: Option<&str>, target: Option<TargetNode>) -> Attach {
        let mut attach = Attach::new(Text::from("link"), 0, role);
        attach.source = source.map(Source::at);
        attach.target = target;
        attach
    }

    #[test]
    fn a_stranger_reaches_the_open_addresses_and_nothing_else() {
        let node = |address: &str| Some(TargetNode::Node(Target::at(address)));
        let coordinator = Some(TargetNode::Coordinator(Coordinator::default()));
        let cases = [
            ("sender to $cbs", attach(Role::Sender, None, node("$cbs")), true),
            ("other case", attach(Role::Sender, None, node("$CBS")), true),
            ("receiver from $cbs", attach(Role::Receiver, Some("$cbs"), None), true),
            ("sender to a queue with $cbs as source", attach(Role::Sender, Some("$cbs"), node("q")), false),
            (
                "receiver from a queue with $cbs as target",
                attach(Role::Receiver, Some("q"), node("$cbs")),
                false,
            ),
            ("prefix", attach(Role::Sender, None, node("$cb")), false),
            ("longer", attach(Role::Sender, None, node("$cbs/q")), false),
            ("coordinator", attach(Role::Sender, Some("$cbs"), coordinator), false),
            ("nothing", attach(Role::Sender, None, None), false),
            ("no address", attach(Role::Sender, None, Some(TargetNode::Node(Target::default()))), false),
        ];
        let stranger = Admission::Unauthenticated { addresses: vec![Text::from_static("$cbs")] };
        for (case, attach, admitted) in cases {
            assert_eq!(stranger.admit(&attach).is_some(), admitted, "{case}");
            assert!(Admission::Authenticated.admit(&attach).is_some(), "{case}");
        }
    }
}
