//! Tokens against a ring: a generated table, and what no token may do.

use super::*;
use crate::access::Need;
use crate::access::principal::{Principal, Standing};
use crate::access::token::sign;
use proptest::prelude::*;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn rights(text: &str) -> Rights {
    Rights { send: text.contains('s'), listen: text.contains('l'), manage: text.contains('m') }
}

fn rule(name: &str, primary: &str, secondary: &str, permitted: &str) -> AuthorizationRule {
    AuthorizationRule {
        key_name: Arc::from(name),
        primary_key: Secret::new(primary),
        secondary_key: Secret::new(secondary),
        rights: rights(permitted),
    }
}

fn scope(path: &str) -> Scope {
    Scope::of_address(path).unwrap()
}

fn ring() -> KeyRing {
    let mut ring = KeyRing::of_namespace(&[
        rule("Root", "root-1", "root-2", "slm"),
        rule("send only", "send-1", "send-2", "s"),
    ]);
    ring.replace(
        &scope("queue1"),
        &[rule("own", "own-1", "own-2", "l"), rule("Root", "local-1", "local-2", "l")],
    );
    ring
}

fn escape(text: &str, upper: bool) -> String {
    let hex = |byte: u8| if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
    text.bytes()
        .map(|byte| {
            let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            if plain { char::from(byte).to_string() } else { hex(byte) }
        })
        .collect()
}

fn token(resource: &str, key: &str, name: &str, expiry: &str) -> String {
    let signature = escape(&sign(&Secret::new(key), resource, expiry), true);
    format!("SharedAccessSignature sr={resource}&sig={signature}&se={expiry}&skn={name}")
}

fn verify(text: &str, audience: &str) -> Result<Grant, String> {
    let token = Token::parse(text).map_err(|error| error.to_string())?;
    ring().verify(&token, &scope(audience), NOW).map_err(|rejected| rejected.to_string())
}

/// Spellings of a resource that all mean `path`.
fn spellings(path: &str) -> Vec<String> {
    let mut all = Vec::new();
    for scheme in ["sb://", "amqp://", "amqps://", "http://", "https://", ""] {
        for host in ["localhost", "ns.servicebus.windows.net", "localhost:5672"] {
            for tail in ["", "/", "?api-version=2021-05"] {
                let plain = format!("{scheme}{host}/{path}{tail}");
                all.push(escape(&plain, true));
                all.push(escape(&plain.to_lowercase(), false));
            }
        }
    }
    all
}

#[test]
fn a_table_of_tokens_grants_what_it_should_and_no_more() {
    let mut checked = 0;
    // Resource path, audience, whether the first covers the second.
    let paths = [
        ("queue1", "amqps://host/queue1", true),
        ("Queue1", "sb://host/QUEUE1/$management", true),
        ("queue1", "queue10", false),
        ("queue10", "queue1", false),
        ("queue1", "queue1/$deadletterqueue", true),
        ("queue1/$deadletterqueue", "queue1", false),
        ("topic", "topic/subscriptions/s", true),
        ("topic/Subscriptions/s", "topic/subscriptions/s2", false),
        ("a%2Fb", "a/b", true),
        ("a%2F..%2Fqueue1", "queue1", false),
        ("a/../queue1", "queue1", false),
        ("queue1%2F..", "queue1", false),
        ("..", "queue1", false),
        ("queue1%00", "queue1", false),
        ("", "anything/at/all", true),
    ];
    for (path, audience, covered) in paths {
        for resource in spellings(path) {
            let outcome = verify(&token(&resource, "root-1", "Root", "1900000000"), audience);
            assert_eq!(outcome.is_ok(), covered, "{resource} for {audience}: {outcome:?}");
            checked += 1;
        }
    }
    assert!(checked >= 200, "{checked} tokens");
}

#[test]
fn expiry_holds_at_its_edge_with_five_minutes_for_differing_clocks() {
    let seconds = NOW.0 / 1_000;
    let cases = [
        (seconds - 301, false),
        (seconds - 300, false),
        (seconds - 299, true),
        (seconds, true),
        (seconds + 1, true),
        (999_999_999_999, true),
        (0, false),
    ];
    for (expiry, valid) in cases {
        let outcome =
            verify(&token("sb%3A%2F%2Fh%2Fqueue1", "root-1", "Root", &expiry.to_string()), "queue1");
        assert_eq!(outcome.is_ok(), valid, "{expiry}: {outcome:?}");
        if let Ok(grant) = outcome {
            assert_eq!(grant.until, Timestamp(expiry * 1_000).after(SKEW), "{expiry}");
        }
    }
}

#[test]
fn key_names_and_keys_must_belong_together() {
    let resource = "sb%3A%2F%2Fh%2Fqueue1";
    let cases = [
        ("Root", "root-1", Some("slm")),
        ("Root", "root-2", Some("slm")),
        ("Root", "local-1", Some("l")),
        ("Root", "send-1", None),
        ("root", "root-1", None),
        ("own", "own-1", Some("l")),
        ("own", "root-1", None),
        ("send only", "send-1", Some("s")),
        ("send%20only", "send-2", Some("s")),
        ("send%2520only", "send-1", Some("s")),
        ("send%252520only", "send-1", None),
        ("nobody", "root-1", None),
    ];
    for (name, key, permitted) in cases {
        let outcome = verify(&token(resource, key, name, "1900000000"), "queue1");
        assert_eq!(outcome.ok().map(|grant| grant.rights), permitted.map(rights), "{name} with {key}");
    }
}

#[test]
fn an_entitys_key_grants_nothing_elsewhere_whatever_the_token_says() {
    for (resource, audience) in
        [("sb%3A%2F%2Fh", "queue2"), ("sb%3A%2F%2Fh", ""), ("sb%3A%2F%2Fh%2Fqueue2", "queue2")]
    {
        let outcome = verify(&token(resource, "own-1", "own", "1900000000"), audience);
        assert!(outcome.unwrap_err().contains("not for the audience"), "{resource} for {audience}");
    }
}

#[test]
fn an_unknown_key_and_a_wrong_signature_read_the_same() {
    let resource = "sb%3A%2F%2Fh%2Fqueue1";
    let unknown = verify(&token(resource, "x", "nobody", "1900000000"), "queue1").unwrap_err();
    let wrong = verify(&token(resource, "x", "Root", "1900000000"), "queue1").unwrap_err();
    let expired_and_wrong = verify(&token(resource, "x", "Root", "1"), "queue1").unwrap_err();
    assert_eq!(unknown, wrong);
    assert_eq!(unknown, expired_and_wrong);
}

#[test]
fn a_signature_covers_resource_and_expiry() {
    let genuine = token("sb%3A%2F%2Fh%2Fqueue1", "root-1", "Root", "1900000000");
    assert!(verify(&genuine, "queue1").is_ok());
    for (what, forged) in [
        ("resource", genuine.replace("%2Fqueue1", "")),
        ("resource's case", genuine.replace("%2Fqueue1", "%2fqueue1")),
        ("expiry", genuine.replace("se=1900000000", "se=1900000001")),
        ("expiry's zeros", genuine.replace("se=19", "se=019")),
    ] {
        assert_eq!(verify(&forged, "queue1").unwrap_err(), Rejected::Signature.to_string(), "{what}");
    }
}

#[test]
fn logging_in_gives_the_whole_rule() {
    let granted = |name, password| ring().log_in(name, password).map(|grants| grants.len());
    assert_eq!(granted("Root", "root-2"), Ok(1));
    assert_eq!(ring().log_in("own", "own-1").unwrap()[0].scope.as_str(), "queue1");
    for (name, password) in
        [("Root", ""), ("Root", "root-"), ("Root", "root-11"), ("", ""), ("own", "root-1")]
    {
        assert_eq!(granted(name, password), Err(Rejected::Password), "{name} {password}");
    }
}

#[test]
fn replacing_a_places_rules_takes_its_old_keys_away() {
    let mut ring = ring();
    ring.replace(&scope("queue1"), &[]);
    assert!(ring.log_in("own", "own-1").is_err());
    assert!(ring.log_in("Root", "local-1").is_err());
    assert!(ring.log_in("Root", "root-1").is_ok());
}

/// What is left of a principal that logged in with `own-1` when the rules of its place become these.
#[test]
fn rights_last_as_long_as_the_key_they_rest_on() {
    let queue = scope("queue1");
    let other = rule("Root", "local-1", "local-2", "l");
    let cases = [
        ("the same rules", vec![rule("own", "own-1", "own-2", "sl"), other.clone()], None),
        ("another rule less", vec![rule("own", "own-1", "own-2", "sl")], None),
        ("the key moved to second place", vec![rule("own", "new", "own-1", "sl"), other.clone()], None),
        ("the rule taken away", vec![other.clone()], Some("")),
        ("the key replaced", vec![rule("own", "new", "own-2", "sl")], Some("")),
        ("the key under another name", vec![rule("named", "own-1", "own-2", "sl")], Some("")),
        ("fewer rights", vec![rule("own", "own-1", "own-2", "l")], Some("l")),
        ("more rights", vec![rule("own", "own-1", "own-2", "slm")], Some("slm")),
    ];
    for (case, rules, left) in cases {
        let mut ring = ring();
        ring.replace(&queue, &[rule("own", "own-1", "own-2", "sl"), other.clone()]);
        let principal = Principal::with_grants(ring.log_in("own", "own-1").unwrap());
        let changed = ring.replace(&queue, &rules);
        assert!(changed || left.is_none(), "{case}: nobody would look");
        let found = principal.left_by(&ring);
        assert_eq!(found.is_some(), left.is_some(), "{case}");
        if let (Some(found), Some(left)) = (found, left) {
            for (need, letter) in [(Need::Send, 's'), (Need::Listen, 'l'), (Need::Manage, 'm')] {
                let holds = matches!(found.standing(need, &queue, NOW), Standing::Holds(_));
                assert_eq!(holds, left.contains([letter, 'm']), "{case}: {need:?}");
            }
        }
    }
}

#[test]
fn keys_go_with_their_place_and_are_not_the_same_when_it_comes_again() {
    let mut ring = ring();
    let principal = Principal::with_grants(ring.log_in("own", "own-1").unwrap());
    assert!(!ring.retain(|place| *place == scope("queue1") || *place == Scope::namespace()));
    assert!(principal.left_by(&ring).is_none());
    assert!(ring.retain(|place| *place == Scope::namespace()));
    assert!(!ring.replace(&scope("queue1"), &[rule("own", "own-1", "own-2", "l")]));
    assert!(principal.left_by(&ring).is_some());
    assert!(ring.log_in("Root", "root-1").is_ok());
}

proptest! {
    #[test]
    fn no_token_grants_outside_its_path(
        resource in "[ab]{1,2}(/[ab.]{1,2}){0,3}",
        audience in "[ab]{1,2}(/[ab.]{1,2}){0,3}",
    ) {
        let text = token(&escape(&format!("sb://h/{resource}"), true), "root-1", "Root", "1900000000");
        let within = audience == resource || audience.starts_with(&format!("{resource}/"));
        match verify(&text, &audience) {
            Ok(grant) => {
                prop_assert!(within);
                prop_assert_eq!(grant.scope.as_str(), audience.as_str());
            }
            Err(_) => prop_assert!(!within),
        }
    }

    #[test]
    fn no_text_is_a_token_by_accident(text in "SharedAccessSignature (s[re]=[a-z0-9%]{0,6}&?|sig=[A-Za-z0-9%=]{0,50}&?|skn=Root&?){0,5}") {
        prop_assert!(verify(&text, "queue1").is_err());
    }
}
