//! Entities over the JSON API.

use std::time::Duration;

use vorrang_client::Error;
use vorrang_client::admin::{Entity, Properties};

use crate::broker::Broker;

#[tokio::test(flavor = "multi_thread")]
async fn entities_are_created_shown_changed_and_deleted() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let admin = client.admin(&format!("http://localhost:{}", broker.ready.http.port())).unwrap();
    let queue = Entity::queue("made/here");
    let wanted = Properties::default().with_max_delivery_count(3).with_lock_duration(Duration::from_secs(30));
    assert!(matches!(admin.get(&queue).await, Err(Error::NotFound(_))));
    let made = admin.create(&queue, &wanted).await.unwrap();
    assert_eq!(
        (made.name.as_str(), made.properties.value("maxDeliveryCount")),
        ("made/here", Some(&3.into()))
    );
    assert!(matches!(admin.create(&queue, &wanted).await, Err(Error::AlreadyExists(_))));
    let other = Properties::default().with_max_delivery_count(9);
    admin.create_if_missing(&queue, &other).await.unwrap();
    let shown = admin.get(&queue).await.unwrap();
    assert_eq!(shown.properties.value("maxDeliveryCount"), Some(&3.into()));
    assert_eq!(shown.properties.value("lockDuration"), Some(&"PT30S".into()));
    let changed = admin.update(&queue, &other).await.unwrap();
    assert_eq!(changed.properties.value("maxDeliveryCount"), Some(&9.into()));
    let wrong = admin.update(&queue, &Properties::default().with("noSuchThing", 1)).await;
    assert!(matches!(wrong, Err(Error::InvalidArgument(_))), "{wrong:?}");

    client.sender("made/here").await.unwrap().send("x").await.unwrap();
    let queues = admin.queues().await.unwrap();
    assert!(queues.iter().any(|queue| queue.name == "made/here"));
    admin.create(&Entity::subscription("topic", "second"), &Properties::default()).await.unwrap();
    assert_eq!(admin.subscriptions("topic").await.unwrap().len(), 2);
    assert_eq!(admin.topics().await.unwrap().len(), 1);
    admin.delete(&queue).await.unwrap();
    assert!(matches!(admin.delete(&queue).await, Err(Error::NotFound(_))));
    assert!(matches!(client.admin("ftp://x"), Err(Error::InvalidArgument(_))));
}
