//! Entities and rules over the administration API that every Service Bus has.

use std::time::Duration;

use vorrang_client::admin::{
    Admin, Class, FOREVER, Policy, Priority, QueueProperties, Status, SubscriptionProperties, TopicProperties,
};
use vorrang_client::{
    CorrelationFilter, Error, Message, Rule, RuleFilter, Source, Sql, TlsOptions, TransportKind, Value,
};

use crate::broker::Broker;

fn admin(broker: &Broker) -> Admin {
    let endpoint = format!("http://localhost:{}", broker.ready.http.port());
    Admin::new(&broker.connection_string()).unwrap().with_endpoint(&endpoint).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_created_shown_changed_and_deleted() {
    let broker = Broker::start().await;
    let admin = admin(&broker);
    let wanted = QueueProperties::new("made/here")
        .with_max_delivery_count(3)
        .with_lock_duration(Duration::from_secs(30))
        .with_user_metadata("a < b & \"c\"");
    assert!(matches!(admin.queue("made/here").await, Err(Error::NotFound(_))));
    assert!(!admin.queue_exists("made/here").await.unwrap());
    let made = admin.create_queue(&wanted).await.unwrap();
    assert_eq!((made.name(), made.max_delivery_count()), ("made/here", Some(3)));
    assert_eq!(made.default_time_to_live(), Some(FOREVER));
    assert!(matches!(admin.create_queue(&wanted).await, Err(Error::AlreadyExists(_))));
    let other = QueueProperties::new("made/here").with_max_delivery_count(9);
    let kept = admin.create_queue_if_missing(&other).await.unwrap();
    assert_eq!(kept.max_delivery_count(), Some(3), "what is there stays as it is");
    assert_eq!(kept.user_metadata().as_deref(), Some("a < b & \"c\""));

    // An update from what was read changes what was changed and nothing else.
    let changed = admin.update_queue(&kept.clone().with_max_delivery_count(7)).await.unwrap();
    assert_eq!(changed.max_delivery_count(), Some(7));
    assert_eq!(changed.user_metadata(), kept.user_metadata());
    assert_eq!(changed.lock_duration(), Some(Duration::from_secs(30)));
    let cleared = admin.update_queue(&changed.clone().without_user_metadata()).await.unwrap();
    assert_eq!(cleared.user_metadata(), None);
    let off = admin.update_queue(&cleared.with_status(Status::ReceiveDisabled)).await.unwrap();
    assert_eq!(off.status(), Some(Status::ReceiveDisabled));
    let wrong = admin.update_queue(&off.clone().with_sessions()).await;
    assert!(matches!(wrong, Err(Error::InvalidArgument(_))), "{wrong:?}");
    let missing = admin.update_queue(&QueueProperties::new("nowhere")).await;
    assert!(matches!(missing, Err(Error::NotFound(_))), "{missing:?}");

    // A topic is no queue, whatever its name.
    assert!(matches!(admin.queue("topic").await, Err(Error::NotFound(_))));
    let taken = admin.create_queue_if_missing(&QueueProperties::new("topic")).await;
    assert!(matches!(taken, Err(Error::AlreadyExists(_))), "{taken:?}");

    admin.delete_queue("made/here").await.unwrap();
    assert!(matches!(admin.delete_queue("made/here").await, Err(Error::NotFound(_))));
    assert_eq!(admin.namespace().await.unwrap().name, "sbemulatorns");
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_show_what_is_in_an_entity() {
    let broker = Broker::start().await;
    let (admin, client) = (admin(&broker), broker.client().await);
    let sender = client.sender("orders").await.unwrap();
    for _ in 0..3 {
        sender.send("x").await.unwrap();
    }
    let soon = std::time::SystemTime::now() + Duration::from_hours(1);
    sender.schedule(["later"], soon).await.unwrap();
    let mut receiver = client.receiver("orders").await.unwrap();
    let first = receiver.recv().await.unwrap();
    receiver.dead_letter(&first, vorrang_client::DeadLetter::default()).await.unwrap();
    let runtime = admin.queue("orders").await.unwrap().runtime();
    assert_eq!((runtime.active, runtime.dead_letters, runtime.scheduled, runtime.messages), (2, 1, 1, 4));
    assert!(runtime.size_bytes > 0 && runtime.created.is_some() && runtime.accessed >= runtime.created);
    assert_eq!(admin.topic("topic").await.unwrap().runtime().subscriptions, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_read_page_by_page_to_its_end() {
    let broker = Broker::start().await;
    let admin = admin(&broker);
    let before = admin.queues().await.unwrap().len();
    // Exactly a full page at the end, and one beyond it.
    for place in before..101 {
        admin.create_queue(&QueueProperties::new(format!("many-{place:03}"))).await.unwrap();
        if place == 99 {
            assert_eq!(admin.queues().await.unwrap().len(), 100);
        }
    }
    let all = admin.queues().await.unwrap();
    assert_eq!(all.len(), 101);
    assert!(all.iter().any(|queue| queue.name() == "many-100"));
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_subscriptions_and_rules_are_administered() {
    let broker = Broker::start().await;
    let (admin, client) = (admin(&broker), broker.client().await);
    let topic = TopicProperties::new("news").with_duplicate_detection(Duration::from_mins(5));
    admin.create_topic(&topic).await.unwrap();
    let changed = admin.topic("news").await.unwrap().with_default_time_to_live(Duration::from_hours(48));
    assert_eq!(
        admin.update_topic(&changed).await.unwrap().default_time_to_live(),
        Some(Duration::from_hours(48))
    );
    assert!(admin.topic_exists("news").await.unwrap());
    assert_eq!(admin.topics().await.unwrap().len(), 2);

    let first = Rule::sql("high", Sql::from("Priority = @p").with_parameter("@p", "High"))
        .with_action("SET seen = 1");
    let high = SubscriptionProperties::new("news", "high").with_first_rule(&first).with_forward_to("orders");
    let made = admin.create_subscription(&high).await.unwrap();
    assert_eq!(made.forward_to().as_deref(), Some("orders"));
    assert_eq!(admin.rules("news", "high").await.unwrap(), [first]);
    let stays = admin.update_subscription(&made.with_max_delivery_count(4)).await.unwrap();
    assert_eq!((stays.forward_to().as_deref(), stays.max_delivery_count()), (Some("orders"), Some(4)));
    let kept = admin.update_subscription(&stays.without_forward_to()).await.unwrap();
    assert_eq!(kept.forward_to(), None);
    let all = SubscriptionProperties::new("news", "all");
    admin.create_subscription_if_missing(&all).await.unwrap();
    assert_eq!(admin.subscriptions("news").await.unwrap().len(), 2);
    assert_eq!(admin.rules("news", "all").await.unwrap()[0].filter, RuleFilter::True);

    let by_subject = CorrelationFilter {
        subject: Some("urgent".to_owned()),
        properties: vec![("empty".to_owned(), Value::from("")), ("n".to_owned(), Value::Int(1))],
        ..CorrelationFilter::default()
    };
    let urgent = Rule::correlation("urgent", by_subject);
    assert_eq!(admin.create_rule("news", "high", &urgent).await.unwrap(), urgent);
    assert!(matches!(admin.create_rule("news", "high", &urgent).await, Err(Error::AlreadyExists(_))));
    let low = Rule { name: "high".to_owned(), ..Rule::sql("", "Priority = 'Low'") };
    admin.update_rule("news", "high", &low).await.unwrap();
    assert_eq!(admin.rule("news", "high", "high").await.unwrap(), low);
    let list = Rule::correlation(
        "list",
        CorrelationFilter { properties: vec![("x".to_owned(), Value::Null)], ..CorrelationFilter::default() },
    );
    let refused = admin.create_rule("news", "high", &list).await;
    assert!(matches!(refused, Err(Error::InvalidArgument(_))), "{refused:?}");
    assert!(!admin.rule_exists("news", "high", "list").await.unwrap());

    let sender = client.sender("news").await.unwrap();
    for (id, level) in [("1", "High"), ("2", "Low")] {
        sender.send(Message::text(level).with_id(id).with_property("Priority", level)).await.unwrap();
    }
    let mut receiver = client.receiver(Source::subscription("news", "high")).await.unwrap();
    assert_eq!(receiver.recv().await.unwrap().text(), Some("Low"));
    assert_eq!(admin.subscription("news", "high").await.unwrap().runtime().active, 1);

    admin.delete_rule("news", "high", "urgent").await.unwrap();
    admin.delete_subscription("news", "all").await.unwrap();
    assert!(!admin.subscription_exists("news", "all").await.unwrap());
    admin.delete_topic("news").await.unwrap();
    assert!(matches!(admin.subscriptions("news").await, Err(Error::NotFound(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn priorities_are_set_and_survive_updates_of_other_settings() {
    let broker = Broker::start().await;
    let admin = admin(&broker);
    let gold = Class { name: "gold".to_owned(), level: 9, target_wait: Some(Duration::from_secs(10)) };
    let priority = Priority {
        policy: Some(Policy::Aged { step: Duration::from_secs(10) }),
        classes: Some(vec![gold.clone()]),
        ..Priority::default()
    };
    let queue = QueueProperties::new("ranked").with_priority(&priority);
    let made = admin.create_queue(&queue).await.unwrap();
    let shown = made.priority().unwrap();
    assert_eq!((shown.policy, shown.classes), (priority.policy, Some(vec![gold])));
    let changed = admin.update_queue(&made.clone().with_max_delivery_count(2)).await.unwrap();
    assert_eq!(changed.priority(), made.priority());
    // From nothing but a name: what is not mentioned stays.
    let paused = Priority { paused: Some(true), ..Priority::default() };
    let changed = admin.update_queue(&QueueProperties::new("ranked").with_priority(&paused)).await.unwrap();
    assert_eq!(changed.priority().unwrap().policy, priority.policy);
    assert_eq!(changed.max_delivery_count(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn administration_goes_over_https_and_says_who_may_not() {
    let broker = Broker::start().await;
    let over = |kind| broker.builder_over(kind);
    let client = over(TransportKind::Tls).connect().await.unwrap();
    let endpoint = format!("https://localhost:{}", broker.ready.https.port());
    let admin = client.admin(&endpoint).unwrap();
    assert!(admin.queue_exists("orders").await.unwrap());
    let strange = Admin::new(&broker.connection_string()).unwrap().with_endpoint(&endpoint).unwrap();
    let strange = strange.with_tls(TlsOptions::platform_roots());
    assert!(matches!(strange.queue("orders").await, Err(Error::Disconnected { .. })), "an unknown authority");
    let wrong = broker.connection_string().replace("SAS_KEY_VALUE", "guess");
    let wrong =
        Admin::new(&wrong).unwrap().with_endpoint(&format!("http://localhost:{}", broker.ready.http.port()));
    assert!(matches!(wrong.unwrap().queue("orders").await, Err(Error::Unauthorized(_))));
    assert!(matches!(client.admin("ftp://x"), Err(Error::InvalidArgument(_))));
}
