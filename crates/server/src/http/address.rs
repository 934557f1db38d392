//! What a URL within the namespace means.
//!
//! Entity names may contain slashes, raw or escaped, so a path is read from its end: rules, then
//! subscriptions, else the whole path is one name. Keywords are known in any case. The verbs of the data plane
//! are read from the end as well, and only where the method fits: an entity may be called `messages`.

use axum::http::{Method, Uri};
use vorrang_broker::access::Scope;
use vorrang_engine::LockToken;
use vorrang_engine::entity::{EntityName, EntityPath, RuleName, SubscriptionName, name};

use super::fault::Fault;
use crate::front::address::percent_decoded;

/// The longest path worth looking at.
const PATH_BYTES_MAX: usize = 8 * 1024;

/// Something a request can be about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// `$namespaceinfo`.
    Namespace,
    /// All queues.
    Queues,
    /// All topics.
    Topics,
    /// The subscriptions of a topic.
    Subscriptions(EntityName),
    /// A queue, topic or subscription.
    Entity(EntityPath),
    /// The rules of a subscription.
    Rules(EntityName, SubscriptionName),
    /// One of them.
    Rule(EntityName, SubscriptionName, RuleName),
    /// Messages, by the data plane.
    Messages(EntityPath, Verb),
}

/// What to do with messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verb {
    /// `POST …/messages`.
    Send,
    /// `POST …/messages/head`: lock the next one.
    PeekLock,
    /// `DELETE …/messages/head`: take the next one.
    ReceiveAndDelete,
    /// `DELETE …/messages/<id>/<lock>`.
    Complete(LockToken),
    /// `PUT …/messages/<id>/<lock>`.
    Unlock(LockToken),
    /// `POST …/messages/<id>/<lock>`.
    Renew(LockToken),
}

impl Address {
    /// Reads a request line.
    pub(crate) fn parse(method: &Method, uri: &Uri) -> Result<Address, Fault> {
        if uri.path().len() > PATH_BYTES_MAX {
            return Err(Fault::malformed(format!("The path exceeds the limit of {PATH_BYTES_MAX} bytes.")));
        }
        let path = percent_decoded(uri.path())
            .ok_or_else(|| Fault::malformed("The path is not valid percent-encoded text."))?;
        let path = path.strip_prefix('/').unwrap_or(&path);
        let path = path.strip_suffix('/').unwrap_or(path);
        let invalid = |error: name::Error| Fault::malformed(format!("'{path}' is no path here: {error}."));
        if let Some((entity, verb)) = messages(method, path) {
            return Ok(Address::Messages(EntityPath::parse(entity).map_err(invalid)?, verb));
        }
        Address::of_path(path).map_err(invalid)
    }

    fn of_path(path: &str) -> Result<Address, name::Error> {
        let segments: Vec<&str> = path.split('/').collect();
        let is = |segment: &str, keyword: &str| segment.eq_ignore_ascii_case(keyword);
        let topic = |behind: usize| {
            let name: Vec<&str> =
                segments.iter().take(segments.len().saturating_sub(behind)).copied().collect();
            EntityName::parse(&name.join("/"))
        };
        match segments.as_slice() {
            [only] if is(only, "$namespaceinfo") => Ok(Address::Namespace),
            [first, second] if is(first, "$resources") && is(second, "queues") => Ok(Address::Queues),
            [first, second] if is(first, "$resources") && is(second, "topics") => Ok(Address::Topics),
            [_, .., keyword, subscription, rules, rule]
                if is(keyword, "subscriptions") && is(rules, "rules") =>
            {
                let (subscription, rule) = (SubscriptionName::parse(subscription)?, RuleName::parse(rule)?);
                Ok(Address::Rule(topic(4)?, subscription, rule))
            }
            [_, .., keyword, subscription, rules] if is(keyword, "subscriptions") && is(rules, "rules") => {
                Ok(Address::Rules(topic(3)?, SubscriptionName::parse(subscription)?))
            }
            [_, .., keyword] if is(keyword, "subscriptions") => Ok(Address::Subscriptions(topic(1)?)),
            _ => EntityPath::parse(path).map(Address::Entity),
        }
    }

    /// The place a token must be for to ask about this, as it is written in the URL.
    pub(crate) fn audience(uri: &Uri) -> Result<Scope, Fault> {
        Scope::of_address(uri.path()).map_err(|error| Fault::malformed(format!("{error}.")))
    }
}

/// The entity and the verb of a data plane request.
fn messages<'p>(method: &Method, path: &'p str) -> Option<(&'p str, Verb)> {
    let strip = |suffix: &str| {
        let at = path.len().checked_sub(suffix.len())?;
        let (rest, end) = path.split_at_checked(at)?;
        (end.eq_ignore_ascii_case(suffix) && !rest.is_empty()).then_some(rest)
    };
    if let Some(entity) = strip("/messages") {
        return (method == Method::POST).then_some((entity, Verb::Send));
    }
    if let Some(entity) = strip("/messages/head") {
        return match *method {
            Method::POST => Some((entity, Verb::PeekLock)),
            Method::DELETE => Some((entity, Verb::ReceiveAndDelete)),
            _ => None,
        };
    }
    let (rest, token) = path.rsplit_once('/')?;
    let token = lock_token(token)?;
    // The id may hold slashes of its own; it says nothing that the lock does not.
    let lower = rest.to_ascii_lowercase();
    let at = lower.rfind("/messages/")?;
    let entity = path.get(..at).filter(|entity| !entity.is_empty())?;
    match *method {
        Method::DELETE => Some((entity, Verb::Complete(token))),
        Method::PUT => Some((entity, Verb::Unlock(token))),
        Method::POST => Some((entity, Verb::Renew(token))),
        _ => None,
    }
}

/// A lock token in the text form of a GUID.
fn lock_token(text: &str) -> Option<LockToken> {
    let groups: Vec<&str> = text.split('-').collect();
    let sound = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    sound.then(|| u128::from_str_radix(&groups.concat(), 16).ok().map(LockToken))?
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "01234567-89ab-cdef-0123-456789abcdef";

    fn parsed(method: &str, path: &str) -> String {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        match Address::parse(&method, &path.parse().unwrap()) {
            Ok(Address::Entity(path)) => format!("entity {path}"),
            Ok(Address::Messages(path, verb)) => format!("{verb:?} {path}"),
            Ok(other) => format!("{other:?}"),
            Err(fault) => fault.status.as_str().to_owned(),
        }
    }

    #[test]
    fn every_spelling_of_a_path_means_what_it_should() {
        let cases = [
            ("/$namespaceinfo", "Namespace"),
            ("/$namespaceInfo/?api-version=2021-05", "Namespace"),
            ("/$Resources/queues", "Queues"),
            ("/%24resources/Topics/", "Topics"),
            ("/orders", "entity orders"),
            ("/orders/", "entity orders"),
            ("/eu/orders.v2", "entity eu/orders.v2"),
            ("/eu%2Forders", "entity eu/orders"),
            ("/gr%C3%B6%C3%9Fe", "entity größe"),
            ("/t/subscriptions/s", "entity t/Subscriptions/s"),
            ("/a/t/Subscriptions/s", "entity a/t/Subscriptions/s"),
            ("/t/subscriptions", "Subscriptions(\"t\")"),
            ("/a/t/SUBSCRIPTIONS/", "Subscriptions(\"a/t\")"),
            ("/t/Subscriptions/s/rules", "Rules(\"t\", \"s\")"),
            ("/a/t/subscriptions/s/Rules/$Default", "Rule(\"a/t\", \"s\", \"$Default\")"),
            ("/messages", "entity messages"),
            ("/q/messages/head", "entity q/messages/head"),
            ("/subscriptions", "entity subscriptions"),
            ("/", "400"),
            ("/a//b", "400"),
            ("/a%00b", "400"),
            ("/a%", "400"),
            ("/a%ff", "400"),
            ("/../etc/passwd", "400"),
            ("/%2e%2e/x", "400"),
            ("/a%0d%0ab", "400"),
            ("/t/subscriptions/s/other", "400"),
            ("/t/subscriptions/s/rules/r/x", "400"),
            ("/$Resources", "400"),
        ];
        for (path, expected) in cases {
            assert_eq!(parsed("GET", path), expected, "{path}");
        }
        assert_eq!(parsed("GET", &format!("/{}", "a".repeat(PATH_BYTES_MAX))), "400");
    }

    #[test]
    fn the_data_plane_is_told_by_path_and_method() {
        let lock = format!("/q/messages/7/{TOKEN}");
        let slashes = format!("/q/messages/a/b/{TOKEN}");
        let cases = [
            ("POST", "/q/messages", "Send q"),
            ("POST", "/q/Messages/", "Send q"),
            ("PUT", "/q/messages", "entity q/messages"),
            ("POST", "/q/messages/head?timeout=5", "PeekLock q"),
            ("DELETE", "/t/subscriptions/s/messages/head", "ReceiveAndDelete t/Subscriptions/s"),
            ("POST", "/q/$DeadLetterQueue/messages/HEAD", "PeekLock q/$DeadLetterQueue"),
            ("DELETE", &lock, "Complete"),
            ("PUT", &lock, "Unlock"),
            ("POST", &slashes, "Renew"),
            ("GET", &lock, "entity"),
            ("DELETE", "/q/messages/7/no-guid", "entity q/messages/7/no-guid"),
        ];
        for (method, path, expected) in cases {
            assert!(parsed(method, path).starts_with(expected), "{method} {path}: {}", parsed(method, path));
        }
        assert!(parsed("PUT", &slashes).ends_with(" q"));
    }
}
