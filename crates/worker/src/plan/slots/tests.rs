use proptest::prelude::*;

use super::*;

fn at(milliseconds: u64) -> Moment {
    Moment::millis(milliseconds)
}

fn level(level: u8) -> Arrival {
    let precedence = Precedence { rank: 0, level };
    Arrival { queue: 0, precedence, preemptible: Preemptible::Freeze, preemptions: 0 }
}

fn floor(level: u8) -> Precedence {
    Precedence { rank: 0, level }
}

fn slots(capacity: u32, guards: Option<Guards>) -> Slots {
    let mut slots = Slots::new(Order::Strict, 0, guards);
    slots.resize(capacity);
    slots
}

/// Everything to do at `now`.
fn actions(slots: &mut Slots, now: u64) -> Vec<Action> {
    std::iter::from_fn(|| slots.next(at(now))).collect()
}

#[test]
fn a_free_slot_takes_the_highest_then_the_earliest() {
    let mut slots = slots(2, None);
    let ids: Vec<TaskId> = [1, 4, 9, 4].into_iter().map(|l| slots.arrive(level(l))).collect();
    assert_eq!(actions(&mut slots, 0), [Action::Start(ids[2]), Action::Start(ids[1])]);
    slots.end(ids[2]);
    assert_eq!(actions(&mut slots, 1), [Action::Start(ids[3])]);
    assert_eq!((slots.running(), slots.ready()), (2, 1));
}

#[test]
fn an_earlier_queue_of_an_ordered_list_counts_more_than_any_level() {
    let mut slots = slots(1, None);
    let low_queue = slots.arrive(level(255));
    let high = Arrival { precedence: Precedence { rank: 1, level: 0 }, ..level(0) };
    let high_queue = slots.arrive(high);
    assert_eq!(slots.next(at(0)), Some(Action::Start(high_queue)));
    slots.end(high_queue);
    assert_eq!(slots.next(at(0)), Some(Action::Start(low_queue)));
}

#[test]
fn the_lowest_most_recently_started_task_makes_room_and_goes_on_after() {
    let mut slots = slots(3, Some(Guards::default()));
    let first_low = slots.arrive(level(1));
    actions(&mut slots, 0);
    let second_low = slots.arrive(level(1));
    actions(&mut slots, 10);
    let normal = slots.arrive(level(4));
    actions(&mut slots, 20);

    let urgent = slots.arrive(level(9));
    assert_eq!(actions(&mut slots, 30), [Action::Freeze(second_low), Action::Start(urgent)]);
    let high = slots.arrive(level(7));
    assert_eq!(actions(&mut slots, 40), [Action::Freeze(first_low), Action::Start(high)]);
    let another_low = slots.arrive(level(1));
    assert_eq!(actions(&mut slots, 50), [], "nobody makes room for an equal");

    slots.end(normal);
    assert_eq!(
        actions(&mut slots, 60),
        [Action::Resume(first_low)],
        "the earliest of the highest goes on first"
    );
    slots.end(urgent);
    assert_eq!(
        actions(&mut slots, 70),
        [Action::Resume(second_low)],
        "before anything new of its level begins"
    );
    slots.end(high);
    assert_eq!(actions(&mut slots, 80), [Action::Start(another_low)]);
    assert_eq!(slots.preempted(), 2);
}

#[test]
fn what_is_ready_and_higher_goes_before_what_was_set_aside() {
    let mut slots = slots(1, Some(Guards::default()));
    let low = slots.arrive(level(1));
    actions(&mut slots, 0);
    let urgent = slots.arrive(level(9));
    let normal = slots.arrive(level(4));
    assert_eq!(actions(&mut slots, 1), [Action::Freeze(low), Action::Start(urgent)]);
    slots.end(urgent);
    assert_eq!(actions(&mut slots, 2), [Action::Start(normal)]);
    slots.end(normal);
    assert_eq!(actions(&mut slots, 3), [Action::Resume(low)]);
}

#[test]
fn the_guards_hold_at_their_edges() {
    let guards = |change: fn(&mut Guards)| {
        let mut guards = Guards::default();
        change(&mut guards);
        Some(guards)
    };
    let cases: [(&str, Option<Guards>, Arrival, u64, bool); 11] = [
        ("no preemption at all", None, level(1), 1_000, false),
        ("no guard in the way", guards(|_| ()), level(1), 0, true),
        (
            "just short of the minimum run",
            guards(|g| g.run_min = Duration::from_millis(50)),
            level(1),
            49,
            false,
        ),
        ("at the minimum run", guards(|g| g.run_min = Duration::from_millis(50)), level(1), 50, true),
        ("an exempt level", guards(|g| g.exempt = vec![0..=1]), level(1), 0, false),
        ("beside an exempt level", guards(|g| g.exempt = vec![0..=1]), level(2), 0, true),
        ("set aside too often before", guards(|_| ()), Arrival { preemptions: 10, ..level(1) }, 0, false),
        ("once less", guards(|_| ()), Arrival { preemptions: 9, ..level(1) }, 0, true),
        ("not preemptible", guards(|_| ()), Arrival { preemptible: Preemptible::No, ..level(1) }, 0, false),
        ("an equal", guards(|_| ()), level(9), 0, false),
        ("no room to set aside", guards(|g| g.set_aside_max = 0), level(1), 0, false),
    ];
    for (case, guards, running, now, preempts) in cases {
        let mut slots = slots(1, guards);
        slots.arrive(running);
        actions(&mut slots, 0);
        assert_eq!(slots.express(at(now), floor(9)), preempts, "{case}: credit on the express link");
        let urgent = slots.arrive(level(9));
        assert_eq!(actions(&mut slots, now).contains(&Action::Start(urgent)), preempts, "{case}");
    }
}

#[test]
fn a_task_that_offers_checkpoints_is_asked_to_yield() {
    let mut slots = slots(1, Some(Guards::default()));
    let low = slots.arrive(Arrival { preemptible: Preemptible::Yield, ..level(1) });
    actions(&mut slots, 0);
    let urgent = slots.arrive(level(9));
    assert_eq!(actions(&mut slots, 1), [Action::AskToYield(low), Action::Start(urgent)]);
    assert_eq!(slots.preemptions_of(low), 1);
    slots.end(low);
    assert_eq!((slots.running(), slots.set_aside()), (1, 0), "it yielded: the slot is the urgent one's");
}

#[test]
fn the_express_link_listens_when_all_slots_are_busy_with_lower_work_and_only_then() {
    let guards = Guards { run_min: Duration::from_millis(50), ..Guards::default() };
    let mut slots = slots(2, Some(guards));
    assert!(!slots.express(at(0), floor(7)), "free slots take it anyway");
    let first = slots.arrive(level(1));
    actions(&mut slots, 10);
    assert!(!slots.express(at(100), floor(7)));
    slots.arrive(level(7));
    actions(&mut slots, 20);
    assert_eq!(slots.express_at(at(20), floor(7)), Some(at(60)));
    assert!(!slots.express(at(59), floor(7)));
    assert!(slots.express(at(60), floor(7)));
    assert_eq!(slots.express_at(at(60), floor(7)), None, "true already");
    slots.end(first);
    slots.arrive(level(8));
    actions(&mut slots, 70);
    assert_eq!(slots.express_at(at(70), floor(7)), None, "nothing below seven runs");
    assert!(slots.express(at(70), floor(8)), "the seven has run its minimum");
}

#[test]
fn credit_is_what_is_free_and_the_prefetch_less_what_is_ready() {
    let mut slots = Slots::new(Order::Strict, 2, None);
    assert_eq!(slots.credit(0), 0, "a suspended pool asks for nothing, prefetch or not");
    slots.resize(3);
    assert_eq!(slots.credit(0), 5);
    let ids: Vec<TaskId> = (0..4).map(|_| slots.arrive(level(4))).collect();
    actions(&mut slots, 0);
    assert_eq!((slots.running(), slots.ready(), slots.credit(0)), (3, 1, 1));
    slots.resize(1);
    assert_eq!(slots.credit(0), 1);
    slots.end(ids[0]);
    assert_eq!(actions(&mut slots, 1), [], "shrunk: two still run in one slot");
    assert_eq!(slots.give_back(), [ids[3]]);
    assert_eq!(slots.ready(), 0);
}

#[test]
fn by_weight_queues_take_turns_and_each_keeps_its_share_ready() {
    let mut slots = Slots::new(Order::Weighted(Share::new([3, 1])), 0, None);
    slots.resize(4);
    assert_eq!((slots.credit(0), slots.credit(1)), (3, 1));
    slots.resize(1);
    assert_eq!((slots.credit(0), slots.credit(1)), (1, 1));
    let mut served = Vec::new();
    let mut queue_of = BTreeMap::new();
    for round in 0..8 {
        for queue in 0..2 {
            while slots.credit(queue) > 0 {
                let id = slots.arrive(Arrival { queue, ..level(4) });
                queue_of.insert(id, queue);
            }
        }
        for action in actions(&mut slots, round) {
            let Action::Start(id) = action else { panic!("{action:?}") };
            served.push(queue_of[&id]);
            slots.end(id);
        }
    }
    let low = served.iter().filter(|queue| **queue == 1).count();
    assert_eq!((served.len() - low, low), (6, 2), "{served:?}");
}

#[derive(Debug, Clone)]
enum Step {
    Arrive { level: u8, preemptible: Preemptible },
    EndAny(usize),
    Resize(u32),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let preemptible = prop_oneof![Just(Preemptible::No), Just(Preemptible::Freeze), Just(Preemptible::Yield)];
    prop_oneof![
        4 => (0_u8..10, preemptible).prop_map(|(level, preemptible)| Step::Arrive { level, preemptible }),
        3 => any::<usize>().prop_map(Step::EndAny),
        1 => (0_u32..5).prop_map(Step::Resize),
        2 => (0_u64..60).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Whatever happens, nobody is set aside outside the guards, for an equal, or for ever.
    #[test]
    fn a_storm_of_arrivals_never_breaks_a_guard(steps in prop::collection::vec(step(), 1..200)) {
        let guards = Guards {
            run_min: Duration::from_millis(20),
            preemptions_max: 2,
            exempt: vec![3..=3],
            set_aside_max: 3,
        };
        let mut slots = slots(2, Some(guards.clone()));
        let (mut now, mut capacity) = (0, 2_usize);
        let mut arrived: BTreeMap<TaskId, (u8, Preemptible)> = BTreeMap::new();
        let mut running: BTreeMap<TaskId, u64> = BTreeMap::new();
        let mut aside: BTreeMap<TaskId, u64> = BTreeMap::new();
        let mut times: BTreeMap<TaskId, u32> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Arrive { level: l, preemptible } => {
                    let id = slots.arrive(Arrival { preemptible, ..level(l) });
                    arrived.insert(id, (l, preemptible));
                }
                Step::EndAny(index) if !running.is_empty() => {
                    let id = *running.keys().nth(index % running.len()).expect("within");
                    running.remove(&id);
                    slots.end(id);
                }
                Step::EndAny(_) => {}
                Step::Resize(size) => {
                    capacity = usize::try_from(size).expect("small");
                    slots.resize(size);
                }
                Step::Wait(milliseconds) => now += milliseconds,
            }
            let mut before_start: Option<TaskId> = None;
            for action in actions(&mut slots, now) {
                match action {
                    Action::Start(id) => {
                        let (l, _) = arrived[&id];
                        if let Some(victim) = before_start.take() {
                            prop_assert!(arrived[&victim].0 < l, "set aside only for a higher one");
                        } else {
                            prop_assert!(running.len() < capacity);
                        }
                        prop_assert!(running.insert(id, now).is_none());
                    }
                    Action::Resume(id) => {
                        prop_assert!(aside.remove(&id).is_some());
                        match before_start.take() {
                            Some(victim) => prop_assert!(arrived[&victim].0 < arrived[&id].0),
                            None => prop_assert!(running.len() < capacity),
                        }
                        running.insert(id, now);
                    }
                    Action::Freeze(id) | Action::AskToYield(id) => {
                        let since = running.remove(&id).expect("it ran");
                        let (l, preemptible) = arrived[&id];
                        prop_assert!(now - since >= 20, "minimum run");
                        prop_assert!(l != 3, "exempt");
                        prop_assert!(preemptible != Preemptible::No);
                        let count = times.entry(id).or_default();
                        *count += 1;
                        prop_assert!(*count <= guards.preemptions_max);
                        aside.insert(id, now);
                        prop_assert!(aside.len() <= guards.set_aside_max);
                        before_start = Some(id);
                    }
                }
            }
            prop_assert!(before_start.is_none(), "whoever made room made it for somebody");
            prop_assert_eq!(slots.running(), running.len());
            prop_assert_eq!(slots.set_aside(), aside.len());
            let waits = slots.ready() > 0 || slots.set_aside() > 0;
            prop_assert!(!waits || running.len() >= capacity, "no slot idles while somebody waits");
        }
        // The storm is over: everything comes to its end.
        slots.resize(1);
        for _ in 0..arrived.len() * 4 {
            for action in actions(&mut slots, now) {
                match action {
                    Action::Start(id) | Action::Resume(id) => { running.insert(id, now); }
                    Action::Freeze(id) | Action::AskToYield(id) => { running.remove(&id); }
                }
            }
            if let Some((id, _)) = running.pop_first() {
                slots.end(id);
            }
            now += 1;
        }
        prop_assert_eq!((slots.running(), slots.ready(), slots.set_aside()), (0, 0, 0));
    }
}
