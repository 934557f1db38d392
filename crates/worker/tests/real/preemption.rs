//! Lower work makes room for higher, and goes on after.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use vorrang_client::{Message, Received};
use vorrang_worker::plan::slots::{Guards, Preemptible};
use vorrang_worker::pool::Preemption;
use vorrang_worker::{Checkpoint, Context, Options, Outcome, Pool};

use crate::broker::{Broker, PATIENCE, Reports, options, send, sum, text, until};

fn preempting(mut options: Options, by: Preemptible) -> Options {
    options.preemption = Some(Preemption { by, ..Preemption::default() });
    options
}

/// Low work waits at a door; everything else is done at once.
fn at_the_door(
    door: &Arc<Semaphore>,
    reports: &Reports,
) -> impl Fn(Context, Received) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync + 'static
{
    let (door, to) = (Arc::clone(door), reports.sender());
    move |context: Context, message: Received| {
        let (door, to) = (Arc::clone(&door), to.clone());
        Box::pin(async move {
            to.send(format!("starts {}", text(&message))).unwrap();
            if context.level() < 7 {
                door.acquire().await.unwrap().forget();
            }
            to.send(format!("ends {}", text(&message))).unwrap();
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_higher_message_runs_at_once_and_the_task_it_displaced_goes_on_after() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "work", &[("low", 1)]).await;
    let (door, mut reports) = (Arc::new(Semaphore::new(0)), Reports::new());
    let pool = preempting(options(1, ["work"]), Preemptible::Freeze);
    let pool = Pool::start(&client, pool, at_the_door(&door, &reports)).await.unwrap();
    assert_eq!(reports.next().await, "starts low");
    send(&client, "work", &[("also low", 1), ("urgent", 9)]).await;
    assert_eq!(reports.take(2).await, ["starts urgent", "ends urgent"]);
    let figures = until(&pool, "low goes on", |figures| figures.set_aside == 0 && figures.running == 1).await;
    assert_eq!(figures.preempted, 1);
    door.add_permits(2);
    assert_eq!(reports.take(3).await, ["ends low", "starts also low", "ends also low"]);
    let figures = until(&pool, "all done", |figures| figures.entities[0].completed == 3).await;
    assert_eq!(figures.entities[0].received, 3, "nothing was delivered twice for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_several_queues_the_earlier_queue_takes_the_later_ones_slot() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "low", &[("low", 9)]).await;
    let (go, mut reports) = (Arc::new(Semaphore::new(0)), Reports::new());
    let handler = {
        let (go, to) = (Arc::clone(&go), reports.sender());
        move |context: Context, message: Received| {
            let (go, to) = (Arc::clone(&go), to.clone());
            async move {
                to.send(format!("starts {}", text(&message))).unwrap();
                if context.entity() == "low" || context.entity() == "normal" {
                    go.acquire().await.unwrap().forget();
                }
                to.send(format!("ends {}", text(&message))).unwrap();
            }
        }
    };
    let pool = preempting(options(1, ["high", "normal", "low"]), Preemptible::Freeze);
    let pool = Pool::start(&client, pool, handler).await.unwrap();
    assert_eq!(reports.next().await, "starts low");
    send(&client, "normal", &[("normal", 1)]).await;
    assert_eq!(reports.next().await, "starts normal", "a later queue's level does not count");
    send(&client, "high", &[("high", 0)]).await;
    assert_eq!(reports.take(2).await, ["starts high", "ends high"]);
    until(&pool, "normal goes on", |figures| figures.running == 1 && figures.set_aside == 1).await;
    go.add_permits(2);
    assert_eq!(reports.take(2).await, ["ends normal", "ends low"]);
    assert_eq!(pool.figures().snapshot().preempted, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_is_asked_to_yield_goes_on_from_its_checkpoint_without_counting() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "work", &[("low", 1)]).await;
    let mut reports = Reports::new();
    let to = reports.sender();
    // A request is withdrawn when a slot is free before it was heard; so the urgent task waits for it to be heard.
    let heard = Arc::new(Notify::new());
    let handler = move |context: Context, message: Received| {
        let (to, heard) = (to.clone(), Arc::clone(&heard));
        async move {
            let from = context
                .checkpoint()
                .map_or("the start".into(), |at| String::from_utf8_lossy(&at.0).into_owned());
            to.send(format!("{} from {from}, delivery {}", text(&message), message.delivery_count()))
                .unwrap();
            if context.level() < 7 && context.checkpoint().is_none() {
                context.yield_requested().await;
                heard.notify_one();
                return Outcome::Suspend(Checkpoint("row 5".into()));
            }
            if context.level() >= 7 {
                heard.notified().await;
            }
            Outcome::Complete
        }
    };
    let pool = preempting(options(1, ["work"]), Preemptible::Yield);
    let pool = Pool::start(&client, pool, handler).await.unwrap();
    assert_eq!(reports.next().await, "low from the start, delivery 0");
    send(&client, "work", &[("urgent", 9)]).await;
    assert_eq!(reports.next().await, "urgent from the start, delivery 0");
    assert_eq!(reports.next().await, "low from row 5, delivery 0");
    let figures = until(&pool, "both are done", |figures| figures.entities[0].completed == 2).await;
    assert_eq!((figures.entities[0].suspended, figures.preempted), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_set_aside_keeps_its_lock() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "short", &[("low", 1)]).await;
    let mut reports = Reports::new();
    let to = reports.sender();
    let handler = move |context: Context, message: Received| {
        let to = to.clone();
        async move {
            to.send(format!("starts {}", text(&message))).unwrap();
            if context.level() > 6 {
                // Longer than the lock of the other one.
                tokio::time::sleep(Duration::from_secs(7)).await;
            } else {
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            to.send(format!("ends {} delivery {}", text(&message), message.delivery_count())).unwrap();
        }
    };
    let pool = preempting(options(1, ["short"]), Preemptible::Freeze);
    let pool = Pool::start(&client, pool, handler).await.unwrap();
    assert_eq!(reports.next().await, "starts low");
    send(&client, "short", &[("urgent", 9)]).await;
    assert_eq!(reports.take(3).await, ["starts urgent", "ends urgent delivery 0", "ends low delivery 0"]);
    let figures = until(&pool, "both are done", |figures| figures.entities[0].completed == 2).await;
    assert_eq!((figures.entities[0].received, figures.entities[0].locks_lost), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guards_keep_a_storm_of_higher_messages_from_starving_anybody() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let low: Vec<String> = (0..8).map(|number| format!("low {number}")).collect();
    send(&client, "work", &low.iter().map(|text| (text.as_str(), 1)).collect::<Vec<_>>()).await;
    let urgent_done = Arc::new(AtomicUsize::new(0));
    let handler = {
        let urgent_done = Arc::clone(&urgent_done);
        move |context: Context, _: Received| {
            let urgent_done = Arc::clone(&urgent_done);
            async move {
                let level = context.level();
                tokio::time::sleep(Duration::from_millis(if level > 6 { 2 } else { 30 })).await;
                if level > 6 {
                    urgent_done.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    };
    let mut pool = preempting(options(4, ["work"]), Preemptible::Freeze);
    if let Some(preemption) = &mut pool.preemption {
        preemption.guards = Guards { preemptions_max: 3, set_aside_max: 4, ..Guards::default() };
    }
    let pool = Pool::start(&client, pool, handler).await.unwrap();
    until(&pool, "low work runs", |figures| figures.running == 4).await;
    let sender = client.sender("work").await.unwrap();
    for number in 0..200 {
        sender.send(Message::text(format!("urgent {number}")).with_priority(9)).await.unwrap();
    }
    let figures = until(&pool, "everything is done", |figures| figures.entities[0].completed == 208).await;
    assert_eq!(urgent_done.load(Ordering::SeqCst), 200);
    assert!(figures.preempted >= 1 && figures.preempted <= 8 * 3, "{figures:?}");
    assert_eq!(sum(&figures, |entity| entity.locks_lost + entity.failed), 0);
    pool.stop(PATIENCE).await;
}
