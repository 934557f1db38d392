//! While something the handlers need is down, nothing is taken and nothing is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vorrang_client::{Message, Received};
use vorrang_worker::{Context, Outcome, Pool};

use crate::broker::{Broker, Reports, options, sum, until};

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_pauses_the_pump_without_burning_delivery_counts() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let sender = client.sender("work").await.unwrap();
    sender.send_all((0..30).map(|number| Message::text(number.to_string()))).await.unwrap();
    let down = Arc::new(AtomicBool::new(true));
    let (mut deliveries, mut problems) = (Reports::new(), Reports::new());
    let handler = {
        let (down, to) = (Arc::clone(&down), deliveries.sender());
        move |_: Context, message: Received| {
            let outcome = if down.load(Ordering::SeqCst) {
                Outcome::Unavailable("the database is down".into())
            } else {
                to.send(message.delivery_count().to_string()).unwrap();
                Outcome::Complete
            };
            std::future::ready(outcome)
        }
    };
    let pool = Pool::builder(&client, options(4, ["work"])).on_problem(problems.problems());
    let pool = pool.start(handler).await.unwrap();
    assert_eq!(problems.next().await, "problem: pool 'work' pauses: what its handlers need is unavailable");
    // It opens again after each probe that fails.
    let figures = until(&pool, "probes fail", |figures| figures.breaker_opened >= 3).await;
    assert!(figures.entities[0].unavailable < 15, "probes are single: {figures:?}");
    down.store(false, Ordering::SeqCst);
    let figures = until(&pool, "all are done", |figures| figures.entities[0].completed == 30).await;
    assert!(!figures.breaker_open);
    assert!(deliveries.take(30).await.iter().all(|count| count == "0"), "no delivery was counted");
    assert_eq!(sum(&figures, |entity| entity.failed + entity.dead_lettered + entity.retried), 0);
}
