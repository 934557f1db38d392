//! The lanes against a sorted list.
//!
//! The model knows nothing of lanes: it keeps every ready message in one list and, to pick, sorts it by
//! the definition of the policy. Both must pick the same message every time, whatever arrived, returned,
//! was deferred or re-prioritised, and whatever the policy was switched to in between.

use proptest::prelude::*;

use crate::command::{Command, Settlement};
use crate::entity::Setting;
use crate::entity::priority::{Class, ClassName, Policy, Rescue, Share, TARGET_WITHOUT_CLASS};
use crate::id::{MailboxId, ReceiverId};
use crate::level::Level;
use crate::message::{Delivery, Incoming};
use crate::time::{Span, Timestamp};
use crate::trial::{Trial, message};

#[derive(Debug, Clone, Copy, PartialEq)]
struct Ready {
    level: u8,
    eligible: u64,
    sequence: u64,
    deadline: Option<u64>,
}

/// The sorted list.
struct Model {
    ready: Vec<Ready>,
    policy: Policy,
    rescue: Rescue,
    account: u16,
}

impl Model {
    fn key(policy: Policy, message: &Ready) -> (u64, u64, u64) {
        let Ready { level, eligible, sequence, deadline } = *message;
        let target = if level == 9 { 10_000 } else { TARGET_WITHOUT_CLASS.0 };
        match policy {
            Policy::Strict => (255 - u64::from(level), eligible, sequence),
            Policy::Aged { step } => (0, eligible + step.0 * (255 - u64::from(level)), sequence),
            Policy::Deadline => (0, deadline.unwrap_or(eligible + target), sequence),
            Policy::Fifo => (0, eligible, sequence),
        }
    }

    fn pick(&mut self, now: u64) -> Option<u64> {
        let policy = self.policy;
        self.ready.sort_by_key(|message| Model::key(policy, message));
        let oldest =
            self.ready.iter().enumerate().min_by_key(|(_, message)| (message.eligible, message.sequence));
        let (place, oldest) = oldest.map(|(place, message)| (place, message.eligible))?;
        let starving = now - oldest > self.rescue.after.0 && self.policy == Policy::Strict;
        let share = self.rescue.share.thousandths();
        self.account = if starving && share > 0 { self.account + share } else { 0 };
        let place = if self.account >= 1_000 { place } else { 0 };
        self.account %= 1_000;
        Some(self.ready.remove(place).sequence)
    }
}

#[derive(Debug, Clone)]
enum Step {
    Send { level: u8, deadline: Option<u64> },
    Receive,
    Return(prop::sample::Index),
    Complete(prop::sample::Index),
    Reprioritise { which: prop::sample::Index, level: u8 },
    Wait(u64),
    Policy(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (0u8..12, prop::option::weighted(0.2, 0u64..60_000)).prop_map(|(level, deadline)| Step::Send { level, deadline }),
        8 => Just(Step::Receive),
        4 => any::<prop::sample::Index>().prop_map(Step::Return),
        3 => any::<prop::sample::Index>().prop_map(Step::Complete),
        1 => (any::<prop::sample::Index>(), 0u8..12).prop_map(|(which, level)| Step::Reprioritise { which, level }),
        4 => prop_oneof![9 => 0u64..2_000, 1 => 0u64..40_000].prop_map(Step::Wait),
        1 => (0usize..40).prop_map(Step::Policy),
    ]
}

const POLICIES: [Policy; 4] =
    [Policy::Strict, Policy::Aged { step: Span::seconds(3) }, Policy::Deadline, Policy::Fifo];

fn settings(policy: Policy, rescue: Rescue) -> Vec<Setting> {
    let now = Class {
        name: ClassName::parse("now").unwrap(),
        level: Level(9),
        target_wait: Some(Span::seconds(10)),
    };
    let lock = Setting::LockDuration(Span::minutes(5));
    let tries = Setting::MaxDeliveryCount(1_000_000);
    vec![lock, tries, Setting::Classes(vec![now]), Setting::Policy(policy), Setting::Rescue(rescue)]
}

fn send(trial: &mut Trial, level: u8, deadline: Option<u64>) -> u64 {
    let deadline = deadline.map(|after| trial.now.after(Span(after)));
    let incoming = Incoming { priority: Some(level), deadline, ..message("m") };
    let send = trial.sending("queue", vec![(incoming, vorrang_filter::MapMessage::new())]);
    trial.submit(send).unwrap()[0].0
}

/// Gives one credit and takes what comes.
fn receive(trial: &mut Trial) -> Option<Delivery> {
    receive_by(trial, 1)
}

fn receive_by(trial: &mut Trial, receiver: u64) -> Option<Delivery> {
    let receiver = ReceiverId(receiver);
    trial.step(&Command::Credit { receiver, credit: 1, drain: false }).unwrap();
    let got = trial.receive().pop();
    trial.step(&Command::Credit { receiver, credit: 0, drain: false }).unwrap();
    got
}

fn live(steps: Vec<Step>, start: Policy, rescue: Rescue) {
    live_beside(steps, start, rescue, Model { ready: Vec::new(), policy: start, rescue, account: 0 });
}

fn live_beside(steps: Vec<Step>, start: Policy, rescue: Rescue, mut model: Model) {
    let mut trial = Trial::new();
    trial.queue("queue", settings(start, rescue));
    trial.attach("queue", 1, 0);
    let mut held: Vec<(Delivery, Ready)> = Vec::new();
    let mut all: Vec<Ready> = Vec::new();
    for step in steps {
        // Locks end after five minutes; renewing them keeps this about order alone.
        match step {
            Step::Send { level, deadline } => {
                let sequence = send(&mut trial, level, deadline);
                let deadline = deadline.map(|after| trial.now.0 + after);
                let message = Ready { level, eligible: trial.now.0, sequence, deadline };
                model.ready.push(message);
                all.push(message);
            }
            Step::Receive => {
                let expected = model.pick(trial.now.0);
                let got = receive(&mut trial);
                assert_eq!(got.as_ref().map(|delivery| delivery.sequence.0), expected);
                if let Some(delivery) = got {
                    let message =
                        *all.iter().find(|message| message.sequence == delivery.sequence.0).unwrap();
                    assert_eq!(delivery.level, Level(message.level), "the level is kept for life");
                    held.push((delivery, message));
                }
            }
            Step::Return(which) if !held.is_empty() => {
                let (delivery, message) = held.swap_remove(which.index(held.len()));
                trial.settle(&delivery, Settlement::Abandon { changes: None, delay: None }).unwrap();
                model.ready.push(message);
            }
            Step::Complete(which) if !held.is_empty() => {
                let (delivery, _) = held.swap_remove(which.index(held.len()));
                trial.settle(&delivery, Settlement::Complete).unwrap();
            }
            Step::Reprioritise { which, level } if !model.ready.is_empty() => {
                let place = which.index(model.ready.len());
                let chosen = &mut model.ready[place];
                let sequence = crate::id::Sequence(chosen.sequence);
                if chosen.level != level {
                    chosen.level = level;
                    all.iter_mut().find(|message| message.sequence == sequence.0).unwrap().level = level;
                    let mailbox = trial.mailbox("queue");
                    let selection = crate::command::Selection::Sequences(vec![sequence]);
                    let (max, dry_run, level) = (1, false, Level(level));
                    trial
                        .ask(|request| Command::Reprioritise {
                            request,
                            mailbox,
                            selection,
                            level,
                            max,
                            dry_run,
                        })
                        .unwrap();
                }
            }
            Step::Wait(span) => {
                trial.advance(Span(span));
                let mailbox: MailboxId = trial.mailbox("queue");
                let tokens: Vec<_> = held.iter().filter_map(|(delivery, _)| delivery.token).collect();
                for token in tokens {
                    let tokens = smallvec::smallvec![token];
                    trial.ask(|request| Command::Renew { request, mailbox, tokens }).unwrap();
                }
            }
            Step::Policy(choice) => {
                if let Some(policy) = POLICIES.get(choice) {
                    trial.update("queue", Setting::Policy(*policy));
                    model.policy = *policy;
                }
            }
            Step::Return(_) | Step::Complete(_) | Step::Reprioritise { .. } => {}
        }
    }
    assert_eq!(trial.state.audit(), Vec::<String>::new());
    assert_eq!(trial.replayed().contents(), trial.contents());
}

proptest! {
    // 4 policies × 32 cases × up to 1,500 steps: about a hundred thousand operations.
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lanes_pick_what_a_sorted_list_would(
        steps in prop::collection::vec(step(), 1..1_500),
        after in 0u64..20_000,
        share in prop_oneof![Just(0u16), 50u16..400, Just(1_000)],
    ) {
        let rescue = Rescue { after: Span(after), share: Share::per_mille(share).unwrap() };
        for policy in POLICIES {
            live(steps.clone(), policy, rescue);
        }
    }

    /// Whatever arrives meanwhile, the n-th of those who starve is served within n ÷ share deliveries.
    #[test]
    fn the_starving_are_rescued_within_the_bound(
        waiting in prop::collection::vec(0u8..9, 1..12),
        arrivals in prop::collection::vec(0usize..3, 200),
        share in 50u16..=1_000,
    ) {
        let rescue = Rescue { after: Span::seconds(60), share: Share::per_mille(share).unwrap() };
        let mut trial = Trial::new();
        trial.queue("queue", settings(Policy::Strict, rescue));
        trial.attach("queue", 1, 0);
        let starving: Vec<u64> = waiting.iter().map(|level| send(&mut trial, *level, None)).collect();
        trial.advance(Span::seconds(61));
        let mut served = Vec::new();
        for more in arrivals {
            // Never let the queue run out of higher messages, so that rescue alone can help.
            for _ in 0..=more {
                send(&mut trial, 9, None);
            }
            let delivery = receive(&mut trial).unwrap();
            trial.settle(&delivery, Settlement::Complete).unwrap();
            served.push(delivery.sequence.0);
        }
        for (place, sequence) in starving.iter().enumerate() {
            let bound = (place + 1) * 1_000 / usize::from(share) + 1;
            let turn = served.iter().position(|other| other == sequence);
            if bound <= served.len() {
                prop_assert!(turn.is_some_and(|turn| turn < bound), "{place} served at {turn:?}, bound {bound}");
            }
        }
    }

    /// The same though every other delivery is one that they may not have.
    #[test]
    fn deliveries_that_only_higher_levels_may_have_do_not_hold_up_those_who_starve(
        waiting in prop::collection::vec(0u8..9, 1..6),
        share in 50u16..=1_000,
    ) {
        let rescue = Rescue { after: Span::seconds(60), share: Share::per_mille(share).unwrap() };
        let mut trial = Trial::new();
        trial.queue("queue", settings(Policy::Strict, rescue));
        trial.attach("queue", 1, 0);
        trial.attach_above("queue", 2, Level(9));
        let starving: Vec<u64> = waiting.iter().map(|level| send(&mut trial, *level, None)).collect();
        trial.advance(Span::seconds(61));
        let mut served = Vec::new();
        for _ in 0..=waiting.len() * 1_000 / usize::from(share) {
            for receiver in [1, 2] {
                send(&mut trial, 9, None);
                send(&mut trial, 9, None);
                let delivery = receive_by(&mut trial, receiver).unwrap();
                trial.settle(&delivery, Settlement::Complete).unwrap();
                served.push(delivery.sequence.0);
            }
        }
        for (place, sequence) in starving.iter().enumerate() {
            // One delivery more than there are shares to a turn, because the turn may come when it cannot be taken.
            let bound = (place + 1) * 1_000 / usize::from(share).min(500) + 2;
            let turn = served.iter().position(|other| other == sequence);
            prop_assert!(turn.is_some_and(|turn| turn <= bound), "{place} served at {turn:?}, bound {bound}");
        }
    }

    /// A message is overtaken only by those that became eligible within (their level − its) × step after it.
    #[test]
    fn ageing_bounds_who_may_overtake(sends in prop::collection::vec((0u8..12, 0u64..4_000), 2..60)) {
        let step = Span::seconds(3);
        let mut trial = Trial::new();
        trial.queue("queue", settings(Policy::Aged { step }, Rescue::default()));
        trial.attach("queue", 1, 0);
        let mut sent = Vec::new();
        for (level, wait) in sends {
            trial.advance(Span(wait));
            send(&mut trial, level, None);
            sent.push((level, trial.now.0));
        }
        let order: Vec<usize> = std::iter::from_fn(|| receive(&mut trial))
            .map(|delivery| usize::try_from(delivery.sequence.0).unwrap() - 1)
            .collect();
        for (turn, later) in order.iter().enumerate() {
            for earlier in &order[..turn] {
                let ((level, at), (other, before)) = (sent[*later], sent[*earlier]);
                if before > at {
                    let worth = u64::from(other.saturating_sub(level)) * step.0;
                    prop_assert!(before - at <= worth, "{later} at {level} was overtaken by {earlier} at {other}");
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "left: Some(1)")]
fn a_model_of_another_policy_is_noticed() {
    let rescue = Rescue::default();
    let model = Model { ready: Vec::new(), policy: Policy::Strict, rescue, account: 0 };
    let send = |level| Step::Send { level, deadline: None };
    live_beside(vec![send(1), send(9), Step::Receive], Policy::Fifo, rescue, model);
}

/// Four classes at 120 % of what can be handled, for an hour of simulated time.
#[test]
fn an_hour_of_overload_starves_nobody_and_keeps_the_order() {
    let mut trial = Trial::new();
    trial.queue("queue", settings(Policy::Strict, Rescue::default()));
    trial.attach("queue", 1, 0);
    let levels = [9_u8, 7, 4, 1];
    let mut waits: [Vec<u64>; 4] = Default::default();
    let mut sent_at: Vec<(usize, Timestamp)> = Vec::new();
    let mut unexplained = 0;
    // A delivery every 100 ms; 12 messages for every 10 deliveries, a third of them urgent or high.
    for tick in 0..36_000_u64 {
        for extra in 0..=u64::from(tick % 5 == 0) {
            let class = usize::try_from((tick * 7 + extra * 3) % 12).unwrap();
            let class = [0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3][class];
            let sequence = send(&mut trial, levels[class], None);
            assert_eq!(usize::try_from(sequence).unwrap(), sent_at.len() + 1);
            sent_at.push((class, trial.now));
        }
        let mailbox = trial.mailbox("queue");
        let highest = trial.state.levels(mailbox).into_iter().rfind(|level| level.oldest.is_some());
        let highest = highest.map(|level| level.level);
        let delivery = receive(&mut trial).unwrap();
        trial.settle(&delivery, Settlement::Complete).unwrap();
        let (class, at) = sent_at[usize::try_from(delivery.sequence.0).unwrap() - 1];
        let waited = trial.now.since(at).0;
        waits[class].push(waited);
        if highest > Some(delivery.level) && waited <= Span::minutes(5).0 {
            unexplained += 1;
        }
        trial.advance(Span(100));
    }
    let worst: Vec<u64> =
        waits.iter().map(|waits| waits.iter().copied().max().unwrap_or(0) / 1_000).collect();
    let served: Vec<usize> = waits.iter().map(Vec::len).collect();
    assert_eq!(unexplained, 0, "a lower message went first though it was not starving");
    assert!(worst[0] <= 2 && worst[1] <= 5, "urgent and high wait seconds: {worst:?}");
    assert!(served[3] > 0, "low is served: {served:?}");
    // What starves gets a tenth of the deliveries, once there is somebody who starves.
    let starving = waits.iter().flatten().filter(|waited| **waited > Span::minutes(5).0).count();
    assert!(starving >= 36_000 / 10 - 36_000 / 60, "{starving} of the starving were served: {served:?}");
}
