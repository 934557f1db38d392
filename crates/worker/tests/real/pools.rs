//! Pools over one and many entities: strict order, weights, sizes, hours, several pools in one process.

use std::time::Duration;

use vorrang_client::{Message, Received};
use vorrang_worker::plan::hours::{Hours, Window};
use vorrang_worker::plan::size::Size;
use vorrang_worker::pool::{OptionsError, Precedence, Served, StartError};
use vorrang_worker::{Context, Outcome, Pool};

use crate::broker::{Broker, PATIENCE, Reports, options, send, text, until};

fn reporting(
    reports: &Reports,
) -> impl Fn(Context, Received) -> std::future::Ready<Outcome> + Send + Sync + 'static {
    let to = reports.sender();
    move |context: Context, message: Received| {
        to.send(format!("{}:{}", context.entity(), text(&message))).unwrap();
        std::future::ready(Outcome::Complete)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_pool_over_three_queues_always_takes_from_the_highest_that_has_something() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "low", &[("a", 9), ("b", 4)]).await;
    send(&client, "normal", &[("c", 4)]).await;
    send(&client, "high", &[("d", 1), ("e", 1)]).await;
    let mut reports = Reports::new();
    let pool =
        Pool::start(&client, options(1, ["high", "normal", "low"]), reporting(&reports)).await.unwrap();
    assert_eq!(reports.take(5).await, ["high:d", "high:e", "normal:c", "low:a", "low:b"]);
    send(&client, "low", &[("later", 4)]).await;
    assert_eq!(reports.next().await, "low:later", "an idle pool is woken by any of them");
    let figures = until(&pool, "all are counted", |figures| figures.entities[2].completed == 3).await;
    let counted: Vec<(&str, u64)> =
        figures.entities.iter().map(|one| (&*one.entity, one.completed)).collect();
    assert_eq!(counted, [("high", 2), ("normal", 1), ("low", 3)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_weighted_pool_shares_its_turns() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    for queue in ["high", "low"] {
        let sender = client.sender(queue).await.unwrap();
        sender.send_all((0..40).map(|number| Message::text(number.to_string()))).await.unwrap();
    }
    let mut reports = Reports::new();
    let mut pool = options(1, []);
    pool.serves =
        [("high", 3), ("low", 1)].map(|(entity, weight)| Served { entity: entity.into(), weight }).into();
    pool.order = Precedence::Weighted;
    let to = reports.sender();
    let handler = move |context: Context, _: Received| {
        let to = to.clone();
        async move {
            // Longer than the broker takes to send the next one.
            tokio::time::sleep(Duration::from_millis(5)).await;
            to.send(context.entity().to_owned()).unwrap();
        }
    };
    let _pool = Pool::start(&client, pool, handler).await.unwrap();
    let served = reports.take(40).await;
    let low = served.iter().filter(|entity| *entity == "low").count();
    assert!((8..=13).contains(&low), "a quarter of forty turns: {low} in {served:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_with_a_subscription_and_a_pool_for_each_priority() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut reports = Reports::new();
    let (high, low) = ("jobs/Subscriptions/High", "jobs/Subscriptions/Low");
    let high = Pool::start(&client, options(2, [high]), reporting(&reports)).await.unwrap();
    let low = Pool::start(&client, options(1, [low]), reporting(&reports)).await.unwrap();
    let sender = client.sender("jobs").await.unwrap();
    for (text, priority) in [("1", "Low"), ("2", "High"), ("3", "Low"), ("4", "Medium")] {
        sender.send(Message::text(text).with_property("Priority", priority)).await.unwrap();
    }
    let mut seen = reports.take(3).await;
    seen.sort();
    assert_eq!(seen, ["jobs/Subscriptions/High:2", "jobs/Subscriptions/Low:1", "jobs/Subscriptions/Low:3"]);
    until(&high, "one high", |figures| figures.entities[0].completed == 1).await;
    until(&low, "two low", |figures| figures.entities[0].completed == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_is_shrunk_suspended_and_grown_while_it_works() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let sender = client.sender("work").await.unwrap();
    sender.send_all((0..20).map(|number| Message::text(number.to_string()))).await.unwrap();
    let door = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let handler = {
        let door = std::sync::Arc::clone(&door);
        move |_: Context, _: Received| {
            let door = std::sync::Arc::clone(&door);
            async move { door.acquire().await.unwrap().forget() }
        }
    };
    let pool = Pool::start(&client, options(4, ["work"]), handler).await.unwrap();
    until(&pool, "four run", |figures| figures.running == 4).await;
    pool.resize(Size::Fixed(2)).await.unwrap();
    until(&pool, "two slots", |figures| figures.slots == 2).await;
    assert_eq!(pool.figures().snapshot().running, 4, "nobody is stopped for it");
    door.add_permits(3);
    until(&pool, "two run", |figures| figures.running == 2 && figures.entities[0].completed == 3).await;
    pool.resize(Size::Suspended).await.unwrap();
    door.add_permits(2);
    until(&pool, "none run", |figures| figures.running == 0 && figures.slots == 0).await;
    pool.resize(Size::Fixed(6)).await.unwrap();
    until(&pool, "six run", |figures| figures.running == 6).await;
    assert!(matches!(pool.resize(Size::Fixed(99_999)).await, Err(OptionsError::Size { .. })));
    door.add_permits(20);
    until(&pool, "all done", |figures| figures.entities[0].completed == 20).await;
    pool.stop(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_its_quiet_hours_a_pool_has_another_size() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let reports = Reports::new();
    let mut quiet = options(3, ["work"]);
    let always = Window::parse("daily 00:00-24:00", Size::Suspended).unwrap();
    quiet.hours = Hours::new(0, vec![always]).unwrap();
    let pool = Pool::start(&client, quiet, reporting(&reports)).await.unwrap();
    send(&client, "work", &[("a", 4)]).await;
    until(&pool, "suspended", |figures| figures.slots == 0).await;
    assert_eq!(crate::broker::left(&client, "work").await, 1);
    assert_eq!(pool.figures().snapshot().entities[0].received, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_over_nothing_or_over_what_does_not_exist_says_so() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let reports = Reports::new();
    let nothing = Pool::start(&client, options(1, []), reporting(&reports)).await;
    assert!(matches!(nothing, Err(StartError::Options(OptionsError::Entities { .. }))));
    let missing = Pool::start(&client, options(1, ["high", "missing"]), reporting(&reports)).await;
    assert!(matches!(missing, Err(StartError::Client(vorrang_client::Error::NotFound(_)))), "{missing:?}");
}
