//! Rules of subscriptions, over `$management`.

use std::time::Duration;

use vorrang_client::{CorrelationFilter, Error, Message, Rule, RuleFilter, Source, Value};

use crate::broker::Broker;

#[tokio::test(flavor = "multi_thread")]
async fn rules_decide_what_a_subscription_gets() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let rules = client.rules("topic", "sub");
    let before = rules.list().await.unwrap();
    assert_eq!(
        (before.len(), before[0].name.as_str(), &before[0].filter),
        (1, "$Default", &RuleFilter::True)
    );

    let red = Rule::sql("red", "color = 'red'").with_action("SET seen = 'yes'");
    rules.add(&red).await.unwrap();
    assert!(matches!(rules.add(&red).await, Err(Error::AlreadyExists(_))));
    assert!(matches!(rules.add(&Rule::sql("bad", "color =")).await, Err(Error::InvalidArgument(_))));
    let filter = CorrelationFilter {
        subject: Some("urgent".to_owned()),
        properties: vec![("n".to_owned(), Value::Long(1))],
        ..CorrelationFilter::default()
    };
    let urgent = Rule::correlation("urgent", filter);
    rules.add(&urgent).await.unwrap();
    rules.remove("$Default").await.unwrap();
    assert!(matches!(rules.remove("$Default").await, Err(Error::NotFound(_))));
    let mut listed = rules.list().await.unwrap();
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(listed, [red, urgent]);

    let sender = client.sender("topic").await.unwrap();
    sender.send(Message::text("blue").with_property("color", "blue")).await.unwrap();
    sender.send(Message::text("red").with_property("color", "red")).await.unwrap();
    sender.send(Message::text("urgent").with_subject("urgent").with_property("n", 1_i64)).await.unwrap();
    let mut receiver = client.receiver(Source::subscription("topic", "sub")).await.unwrap();
    let mut got = Vec::new();
    while got.len() < 2 {
        got.extend(receiver.recv_batch(10, Duration::from_secs(10)).await.unwrap());
    }
    assert_eq!(got[0].text(), Some("red"));
    assert_eq!(got[0].property("seen"), Some(Value::from("yes")));
    assert_eq!(got[1].text(), Some("urgent"));
    assert!(receiver.recv_timeout(Duration::from_millis(100)).await.unwrap().is_none());
}
