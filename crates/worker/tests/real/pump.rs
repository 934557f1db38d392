//! The message pump: concurrency, settlement, panics, poison, renewal, pause, drain.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use vorrang_client::Received;
use vorrang_worker::context::LAST_ERROR;
use vorrang_worker::{Context, Outcome, Pool};

use crate::broker::{Broker, PATIENCE, Reports, dead_letters, left, options, send, sum, text, until};

#[tokio::test(flavor = "multi_thread")]
async fn as_many_messages_run_at_once_as_there_are_slots_and_all_are_completed() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let numbers: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    let messages: Vec<(&str, u8)> = numbers.iter().map(|number| (number.as_str(), 4)).collect();
    send(&client, "work", &messages).await;
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let door = Arc::new(Semaphore::new(0));
    let handler = {
        let (running, most, door) = (Arc::clone(&running), Arc::clone(&most), Arc::clone(&door));
        move |_: Context, _: Received| {
            let (running, most, door) = (Arc::clone(&running), Arc::clone(&most), Arc::clone(&door));
            async move {
                let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                door.acquire().await.unwrap().forget();
                running.fetch_sub(1, Ordering::SeqCst);
            }
        }
    };
    let pool = Pool::start(&client, options(7, ["work"]), handler).await.unwrap();
    until(&pool, "seven run", |figures| figures.running == 7).await;
    door.add_permits(50);
    let figures = until(&pool, "all are completed", |figures| figures.entities[0].completed == 50).await;
    assert_eq!(most.load(Ordering::SeqCst), 7);
    assert_eq!(figures.entities[0].received, 50);
    assert!(figures.entities[0].wait_mean.is_some() && figures.entities[0].service_mean.is_some());
    pool.stop(PATIENCE).await;
    assert_eq!(left(&client, "work").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_a_failure_of_its_message_and_of_nothing_else() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "work", &[("bad", 9), ("good", 4)]).await;
    let handler = |_: Context, message: Received| async move {
        assert_ne!(message.text(), Some("bad"), "this one is bad");
    };
    let mut pool = options(2, ["work"]);
    pool.retries.attempts_max = 3;
    let pool = Pool::start(&client, pool, handler).await.unwrap();
    let figures = until(&pool, "both are done with", |figures| {
        figures.entities[0].completed == 1 && figures.entities[0].dead_lettered == 1
    });
    let figures = figures.await;
    assert_eq!((figures.entities[0].panicked, figures.entities[0].retried), (3, 2));
    let letter = &dead_letters(&client, "work", 1).await[0];
    assert_eq!(letter.dead_letter_reason().as_deref(), Some("HandlerFailed"));
    assert!(letter.dead_letter_description().unwrap().contains("this one is bad"));
}

/// A handler is begun by a runner that begins others, too; see to it that they need not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_their_thread_run_side_by_side_and_hold_up_nobody() {
    const SLOTS: usize = 6;
    let broker = Broker::start().await;
    let client = broker.client().await;
    let numbers: Vec<String> = (0..SLOTS).map(|number| number.to_string()).collect();
    let messages: Vec<(&str, u8)> = numbers.iter().map(|number| (number.as_str(), 4)).collect();
    send(&client, "work", &messages).await;
    let together = Arc::new(std::sync::Barrier::new(SLOTS));
    let handler = move |_: Context, _: Received| {
        let together = Arc::clone(&together);
        async move {
            tokio::task::block_in_place(|| together.wait());
        }
    };
    let mut pool = options(6, ["work"]);
    pool.prefetch = 10;
    let pool = Pool::start(&client, pool, handler).await.unwrap();
    until(&pool, "all are completed", |figures| figures.entities[0].completed == 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_panics_before_it_begins_is_a_failure_like_any_other() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "work", &[("bad", 4)]).await;
    let handler = |_: Context, message: Received| {
        assert_ne!(message.text(), Some("bad"), "no future comes of this");
        async {}
    };
    let mut pool = options(1, ["work"]);
    pool.retries.attempts_max = 2;
    let pool = Pool::start(&client, pool, handler).await.unwrap();
    let dead = |figures: &vorrang_worker::figures::Snapshot| figures.entities[0].dead_lettered == 1;
    assert_eq!(until(&pool, "it is dead-lettered", dead).await.entities[0].panicked, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poison_message_is_put_off_longer_each_time_and_ends_with_the_handlers_words() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "work", &[("poison", 4)]).await;
    let mut reports = Reports::new();
    let to = reports.sender();
    let handler = move |_: Context, message: Received| {
        let error = message.property(LAST_ERROR).and_then(|error| error.as_str().map(str::to_owned));
        to.send(format!("{} {}", message.delivery_count(), error.unwrap_or_default())).unwrap();
        async { Err::<(), _>("no stock") }
    };
    let mut pool = options(1, ["work"]);
    pool.retries.attempts_max = 4;
    let pool = Pool::start(&client, pool, handler).await.unwrap();
    assert_eq!(reports.take(4).await, ["0 ", "1 no stock", "2 no stock", "3 no stock"]);
    let letter = &dead_letters(&client, "work", 1).await[0];
    assert_eq!(letter.dead_letter_reason().as_deref(), Some("HandlerFailed"));
    assert_eq!(letter.dead_letter_description().as_deref(), Some("no stock"));
    assert_eq!(pool.figures().snapshot().entities[0].failed, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_may_settle_by_itself_and_every_outcome_reaches_the_broker() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "work", &[("itself", 9), ("defer", 8), ("refuse", 7), ("later", 6)]).await;
    let handler = |context: Context, message: Received| async move {
        match (text(&message).as_str(), message.delivery_count()) {
            ("itself", _) => {
                context.settle(Outcome::Complete).await.unwrap();
                Outcome::Settled
            }
            ("defer", _) => Outcome::Defer,
            ("refuse", _) => Outcome::dead_letter("unwanted", "nobody asked"),
            ("later", 0) => Outcome::Retry(Some(Duration::from_millis(50))),
            _ => Outcome::Complete,
        }
    };
    let pool = Pool::start(&client, options(4, ["work"]), handler).await.unwrap();
    let figures = until(&pool, "all have their outcome", |figures| {
        let entity = &figures.entities[0];
        entity.completed == 1 && entity.dead_lettered == 1 && entity.retried == 1 && figures.running == 0
    })
    .await;
    assert_eq!(figures.entities[0].received, 5);
    assert_eq!(dead_letters(&client, "work", 1).await[0].dead_letter_reason().as_deref(), Some("unwanted"));
    pool.stop(PATIENCE).await;
    let peeked = client.receiver("work").await.unwrap().peek_from(0, 10).await.unwrap();
    assert_eq!(peeked.len(), 1, "only the deferred one is left");
    assert_eq!(peeked[0].state(), vorrang_client::MessageState::Deferred);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_pool_takes_nothing_and_goes_on_when_it_is_resumed() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut reports = Reports::new();
    let to = reports.sender();
    let handler = move |_: Context, message: Received| {
        to.send(text(&message)).unwrap();
        async {}
    };
    let pool = Pool::start(&client, options(2, ["work"]), handler).await.unwrap();
    send(&client, "work", &[("before", 4)]).await;
    assert_eq!(reports.next().await, "before");
    pool.pause().await;
    until(&pool, "nothing runs", |figures| figures.running == 0).await;
    send(&client, "work", &[("during", 4)]).await;
    // Somebody else can have it: no credit was left behind.
    let mut other = client.receiver("work").await.unwrap();
    let taken = other.recv_timeout(PATIENCE).await.unwrap().expect("the message is free");
    other.abandon(&taken, vorrang_client::Abandon::default()).await.unwrap();
    drop(other);
    assert!(reports.none());
    pool.resume().await;
    assert_eq!(reports.next().await, "during");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_tasks_finish_within_the_deadline_and_gives_the_others_back_uncounted() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "work", &[("finishes", 9), ("hangs", 8), ("waits", 7)]).await;
    let door = Arc::new(Semaphore::new(0));
    let handler = {
        let door = Arc::clone(&door);
        move |_: Context, message: Received| {
            let door = Arc::clone(&door);
            async move {
                if message.text() == Some("hangs") {
                    std::future::pending::<()>().await;
                }
                door.acquire().await.unwrap().forget();
            }
        }
    };
    let pool = Pool::start(&client, options(2, ["work"]), handler).await.unwrap();
    until(&pool, "two run", |figures| figures.running == 2).await;
    pool.begin_stop(Duration::from_millis(500)).await;
    door.add_permits(1);
    tokio::time::timeout(PATIENCE, pool.stopped()).await.expect("the stop has a deadline");
    let figures = pool.figures().snapshot();
    assert_eq!((figures.entities[0].completed, figures.entities[0].given_back), (1, 1));
    let mut receiver = client.receiver("work").await.unwrap();
    for expected in ["hangs", "waits"] {
        let message = receiver.recv_timeout(PATIENCE).await.unwrap().expect("given back");
        assert_eq!((text(&message).as_str(), message.delivery_count()), (expected, 0));
        receiver.complete(&message).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_kept_as_long_as_the_handler_runs() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "short", &[("long work", 4)]).await;
    let mut reports = Reports::new();
    let to = reports.sender();
    let handler = move |_: Context, message: Received| {
        let to = to.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(7)).await;
            to.send(format!("delivery {}", message.delivery_count())).unwrap();
        }
    };
    let pool = Pool::builder(&client, options(2, ["short"])).on_problem(reports.problems());
    let pool = pool.start(handler).await.unwrap();
    assert_eq!(
        reports.next().await,
        "delivery 0",
        "longer than the lock of five seconds, and nobody else got it"
    );
    let figures = until(&pool, "it is completed", |figures| figures.entities[0].completed == 1).await;
    assert!(figures.entities[0].renewed >= 2, "{figures:?}");
    assert_eq!((figures.entities[0].received, figures.entities[0].locks_lost), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_whose_lock_is_lost_is_told_and_its_outcome_changes_nothing() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    send(&client, "short", &[("slow", 4)]).await;
    let mut reports = Reports::new();
    let to = reports.sender();
    let handler = move |context: Context, message: Received| {
        let to = to.clone();
        async move {
            if message.delivery_count() == 0 {
                context.cancelled().await;
                to.send("cancelled".to_owned()).unwrap();
            } else {
                to.send("second".to_owned()).unwrap();
            }
        }
    };
    let mut pool = options(2, ["short"]);
    pool.renew_for = Duration::ZERO;
    let pool = Pool::builder(&client, pool).on_problem(reports.problems()).start(handler).await.unwrap();
    let mut told = reports.take(3).await;
    told.sort();
    assert_eq!(told[0], "cancelled");
    assert!(told[1].starts_with("problem: a lock on short was lost"), "{told:?}");
    assert_eq!(told[2], "second");
    let figures = until(&pool, "the second is completed", |figures| figures.entities[0].completed >= 1).await;
    assert_eq!(figures.entities[0].locks_lost, 1);
    pool.stop(PATIENCE).await;
    assert_eq!(left(&client, "short").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_restarts_under_load_loses_nothing() {
    let mut broker = Broker::start().await;
    let client = broker.client().await;
    let numbers: Vec<String> = (0..300).map(|number| format!("m{number}")).collect();
    let messages: Vec<(&str, u8)> = numbers.iter().map(|number| (number.as_str(), 4)).collect();
    send(&client, "short", &messages).await;
    let mut reports = Reports::new();
    let to = reports.sender();
    let handler = move |_: Context, message: Received| {
        let to = to.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(2)).await;
            to.send(text(&message)).unwrap();
        }
    };
    let pool = Pool::start(&client, options(8, ["short"]), handler).await.unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for restart in [50, 150] {
        while seen.len() < restart {
            seen.insert(reports.next().await);
        }
        broker.restart().await;
    }
    while seen.len() < 300 {
        seen.insert(reports.next().await);
    }
    pool.stop(PATIENCE).await;
    let figures = pool.figures().snapshot();
    assert!(sum(&figures, |entity| entity.completed) <= 300, "nothing is completed twice: {figures:?}");
}
