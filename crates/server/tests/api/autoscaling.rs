//! What autoscalers are told to read is there, under the names the documentation gives.

use crate::server::Server;

/// The worker's documentation, whose examples are configuration that people copy.
const DOCUMENT: &str = include_str!("../../../../docs/worker.md");

/// The values of a key in the document's YAML.
fn values(key: &str) -> impl Iterator<Item = &str> {
    DOCUMENT.lines().filter_map(move |line| Some(line.trim().strip_prefix(key)?.strip_prefix(": ")?.trim()))
}

#[tokio::test]
async fn the_documented_triggers_find_their_numbers() {
    let server = Server::start().await;
    let classes = r#"{"classes": [{"name": "high", "level": 100, "targetWait": "1s"}]}"#;
    server.fine("PUT", "/api/queues/orders", classes).await;
    let hundred = vec![r#"{"properties": {"Priority": "high"}}"#; 100].join(",");
    server.fine("POST", "/api/queues/orders/messages", &format!("[{hundred}]")).await;

    let metrics = server.ask("GET", "/metrics", "").await;
    let queries: Vec<&str> = values("query").collect();
    assert_eq!(queries.len(), 2, "{queries:?}");
    for query in queries {
        let series = query.trim_start_matches("max(").trim_end_matches(')');
        let (name, labels) = series.trim_end_matches('}').split_once('{').unwrap();
        let told =
            |line: &&str| line.starts_with(name) && labels.split(',').all(|label| line.contains(label));
        assert!(metrics.body.lines().any(|line| told(&line)), "{query} finds nothing in {}", metrics.body);
    }

    let urls: Vec<&str> = values("url").collect();
    let [url] = urls[..] else { panic!("{urls:?}") };
    let path = url.trim_start_matches("http://").split_once('/').unwrap().1;
    let live = server.fine("GET", &format!("/{path}"), "").await;
    let location = values("valueLocation").next().unwrap();
    // A hundred messages that may wait a second, and take half a second each before one was measured.
    let desired = live[location].as_u64().unwrap();
    assert!(desired >= 50, "{desired}");
    let metric = "vorrang_desired_workers{entity=\"orders\"} ";
    let line = metrics.body.lines().find_map(|line| line.strip_prefix(metric)).unwrap();
    assert!(line.parse::<f64>().unwrap() >= 50.0, "{line}");
    server.stop().await;
}
