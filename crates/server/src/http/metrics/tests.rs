use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use tower::ServiceExt as _;
use vorrang_broker::access::token;
use vorrang_engine::Span;
use vorrang_engine::command::Settlement;
use vorrang_engine::entity::Setting;
use vorrang_engine::entity::authorization::{AuthorizationRule, Rights, Secret};

use super::parser::{Sample, parse};
use super::rows::{CLASSES_MAX, ENTITIES_MAX, OTHER};
use crate::http::{Peer, Site, router};
use crate::targets::sampler::Sampler;
use crate::trial::{KEY, Trial, class};

const LOOPBACK: &str = "127.0.0.1:4000";
const REMOTE: &str = "192.0.2.7:4000";

async fn get(site: &Arc<Site>, peer: &str, token: Option<&str>) -> (StatusCode, String) {
    let mut request = Request::get("/metrics");
    if let Some(token) = token {
        request = request.header("Authorization", token);
    }
    let peer = Peer { address: peer.parse::<SocketAddr>().unwrap(), tls: false };
    let request = request.extension(peer).body(Body::empty()).unwrap();
    let response = router(Arc::clone(site)).oneshot(request).await.unwrap();
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn samples(site: &Arc<Site>) -> Vec<Sample> {
    let (status, text) = get(site, LOOPBACK, None).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    parse(&text).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

/// The value of the one series with this name and these labels, whatever else it has.
fn value(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> f64 {
    let matches = |sample: &&Sample| {
        sample.name == name
            && labels.iter().all(|(label, value)| sample.labels.get(*label).is_some_and(|own| own == value))
    };
    let found: Vec<_> = samples.iter().filter(matches).collect();
    assert_eq!(found.len(), 1, "{name} {labels:?}: {found:?}");
    found[0].value
}

fn is(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-9
}

#[tokio::test]
async fn a_strict_parser_reads_the_text_and_finds_what_happened() {
    let trial = Trial::new();
    let site = trial.site(|_| {});
    let settings =
        vec![Setting::Classes(vec![class("gold", 100, Span::seconds(10))]), Setting::MaxDeliveryCount(1)];
    let (orders, mailbox) = trial.queue("orders", settings).await;
    for level in [100, 100, 1, 42] {
        trial.send(orders, level).await;
    }
    trial.advance(Span::seconds(4));
    let first = trial.receive(mailbox).await;
    trial.advance(Span::seconds(2));
    trial.settle(&first, Settlement::Complete).await;
    let second = trial.receive(mailbox).await;
    trial.settle(&second, Settlement::Abandon { changes: None, delay: None }).await;
    let mut sampler = Sampler::default();
    sampler.look(&trial.operator, trial.now(), &site.watch.targets).await.unwrap();

    let samples = samples(&site).await;
    let expected = [
        ("vorrang_messages", vec![("class", "gold"), ("state", "active")], 0.0),
        ("vorrang_messages", vec![("class", "gold"), ("state", "dead_letter")], 1.0),
        ("vorrang_messages", vec![("class", "low"), ("state", "active")], 1.0),
        ("vorrang_messages", vec![("class", "42"), ("state", "active")], 1.0),
        ("vorrang_oldest_age_seconds", vec![("class", "low")], 6.0),
        ("vorrang_enqueued_total", vec![("class", "gold")], 2.0),
        ("vorrang_completed_total", vec![("class", "gold")], 1.0),
        ("vorrang_deadlettered_total", vec![("class", "gold"), ("reason", "max_deliveries")], 1.0),
        ("vorrang_wait_seconds_count", vec![("class", "gold")], 2.0),
        ("vorrang_wait_seconds_sum", vec![("class", "gold")], 10.0),
        ("vorrang_wait_seconds_bucket", vec![("class", "gold"), ("le", "5")], 1.0),
        ("vorrang_process_seconds_sum", vec![("class", "gold")], 2.0),
        ("vorrang_end_to_end_seconds_sum", vec![("class", "gold")], 6.0),
        ("vorrang_target_wait_seconds", vec![("class", "gold")], 10.0),
        ("vorrang_target_attainment_ratio", vec![("class", "gold"), ("window", "5m")], 1.0),
        ("vorrang_target_state", vec![("class", "gold"), ("state", "ok")], 1.0),
        ("vorrang_target_state", vec![("class", "gold"), ("state", "breached")], 0.0),
        ("vorrang_desired_workers", vec![("entity", "orders")], 1.0),
        ("vorrang_entities", vec![("kind", "queue")], 1.0),
        ("vorrang_log_room", vec![], 1.0),
        ("vorrang_connections", vec![], 0.0),
        ("vorrang_connections_max", vec![], 10.0),
        ("vorrang_links", vec![("kind", "receiver")], 0.0),
        ("vorrang_refused_total", vec![("reason", "token")], 0.0),
    ];
    for (name, labels, expected) in expected {
        let found = value(&samples, name, &labels);
        assert!(is(found, expected), "{name} {labels:?}: {found} instead of {expected}");
    }
    assert!(value(&samples, "vorrang_log_commits_total", &[]) > 0.0);
    assert!(value(&samples, "vorrang_log_ring_bytes", &[]) > 0.0);
}

#[tokio::test]
async fn series_are_bounded_and_what_is_beyond_is_added_up() {
    let trial = Trial::new();
    let site = trial.site(|_| {});
    let beyond = 5;
    for number in 0..ENTITIES_MAX + beyond {
        let (entity, _) = trial.queue(&format!("q{number:05}"), vec![]).await;
        if number >= ENTITIES_MAX {
            trial.send(entity, 4).await;
        }
    }
    let (first, _) = trial.queue("a", vec![]).await;
    for level in 100..130 {
        trial.send(first, level).await;
    }
    let samples = samples(&site).await;
    let labels = |label: &str| {
        let values = samples.iter().filter_map(|sample| sample.labels.get(label));
        values.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(labels("entity"), ENTITIES_MAX + 1);
    let other = [("entity", OTHER), ("class", "normal"), ("state", "active")];
    assert!(is(value(&samples, "vorrang_messages", &other), 5.0));
    let rest = value(&samples, "vorrang_messages", &[("entity", "a"), ("class", OTHER), ("state", "active")]);
    // Four classes are built in; the first twelve of the thirty levels have rows beside them.
    assert_eq!(CLASSES_MAX, 16);
    assert!(is(rest, 18.0), "{rest}");
    let all: f64 =
        samples.iter().filter(|sample| sample.name == "vorrang_messages").map(|sample| sample.value).sum();
    assert!(is(all, 35.0), "{all}");
}

fn token_of(name: &str, key: &str) -> String {
    let expiry = "4000000000";
    let signature = token::sign(&Secret::new(key), "sb%3a%2f%2flocalhost%2f", expiry);
    let signature: String = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    format!("SharedAccessSignature sr=sb%3a%2f%2flocalhost%2f&sig={signature}&se={expiry}&skn={name}")
}

#[tokio::test]
async fn loopback_may_read_and_others_need_a_token_of_the_namespace() {
    let trial = Trial::new();
    let site = trial.site(|_| {});
    let listener = AuthorizationRule {
        key_name: "listener".into(),
        primary_key: Secret::new("x"),
        secondary_key: Secret::new("y"),
        rights: Rights { send: false, listen: true, manage: true },
    };
    trial.queue("orders", vec![Setting::AuthorizationRules(vec![listener])]).await;
    let root = token_of(KEY.0, KEY.1);
    let cases = [
        ("loopback", LOOPBACK, None, 200),
        ("loopback by its other name", "[::ffff:127.0.0.1]:4000", None, 200),
        ("the other loopback", "[::1]:4000", None, 200),
        ("elsewhere", REMOTE, None, 401),
        ("elsewhere with the root key", REMOTE, Some(root.clone()), 200),
        ("elsewhere with a wrong key", REMOTE, Some(token_of(KEY.0, "wrong")), 401),
        ("elsewhere with an entity's key", REMOTE, Some(token_of("listener", "x")), 401),
        ("elsewhere with nonsense", REMOTE, Some("Bearer x".to_owned()), 401),
    ];
    for (case, peer, token, expected) in cases {
        let (status, text) = get(&site, peer, token.as_deref()).await;
        assert_eq!(status.as_u16(), expected, "{case}: {text}");
        assert_eq!(text.contains("vorrang_messages"), expected == 200, "{case}");
        assert!(!text.contains(KEY.1), "{case}");
    }
    let open = trial.site(|watch| watch.metrics_open = true);
    assert_eq!(get(&open, REMOTE, None).await.0, StatusCode::OK);
}
