//! Pools that follow the load.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vorrang_client::{Message, Received};
use vorrang_worker::plan::autoscale::Scaling;
use vorrang_worker::plan::size::Size;
use vorrang_worker::pool::{Backlog, Gauge};
use vorrang_worker::{Context, Options, Pool};

use crate::broker::{Broker, options, until};

fn scaling(min: u32, max: u32) -> Options {
    let mut options = options(1, ["work"]);
    options.size = Size::Between { min, max };
    options.scaling_interval = Duration::from_millis(20);
    options.scaling = Scaling {
        target: Duration::from_millis(100),
        service_assumed: Duration::from_millis(100),
        cooldown: Duration::from_millis(300),
    };
    options
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_grows_with_the_backlog_at_once_and_sleeps_when_it_is_gone() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let backlog = Arc::new(AtomicU64::new(0));
    let gauge: Gauge = {
        let backlog = Arc::clone(&backlog);
        Arc::new(move || {
            let unsettled = backlog.load(Ordering::SeqCst);
            Box::pin(async move { Some(Backlog { unsettled, oldest: Duration::ZERO }) })
        })
    };
    let handler = |_: Context, _: Received| async {};
    let pool = Pool::builder(&client, scaling(0, 6)).gauge(gauge).start(handler).await.unwrap();
    until(&pool, "asleep", |figures| figures.slots == 0).await;
    for (waiting, slots) in [(3, 3), (100, 6), (0, 0), (2, 2)] {
        backlog.store(waiting, Ordering::SeqCst);
        until(&pool, "another size", |figures| figures.slots == slots).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_gauge_the_queue_itself_is_looked_at() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let sender = client.sender("work").await.unwrap();
    sender.send_all((0..40).map(|number| Message::text(number.to_string()))).await.unwrap();
    let handler = |_: Context, _: Received| async { tokio::time::sleep(Duration::from_millis(100)).await };
    let pool = Pool::start(&client, scaling(0, 8), handler).await.unwrap();
    until(&pool, "it grows", |figures| figures.slots == 8).await;
    until(&pool, "it sleeps", |figures| figures.slots == 0 && figures.entities[0].completed == 40).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_wakes_a_sleeping_pool_at_once_however_seldom_it_looks() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut options = scaling(0, 6);
    options.scaling_interval = Duration::from_hours(1);
    let handler = |_: Context, _: Received| async { tokio::time::sleep(Duration::from_millis(300)).await };
    let pool = Pool::start(&client, options, handler).await.unwrap();
    until(&pool, "asleep", |figures| figures.slots == 0).await;
    let sender = client.sender("work").await.unwrap();
    sender.send_all((0..30).map(|number| Message::text(number.to_string()))).await.unwrap();
    until(&pool, "it has grown", |figures| figures.slots == 6 && figures.running == 6).await;
    until(&pool, "all are done", |figures| figures.entities[0].completed == 30).await;
}
