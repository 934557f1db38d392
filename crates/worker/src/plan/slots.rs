//! Which message gets a slot, and who makes room for it.
//!
//! A task is *ready* (received, waiting for a slot), *running*, or *set aside* for a higher one. What must stay
//! true: no more tasks run than there are slots, save when slots were taken away; a task is set aside only for
//! a strictly higher one, and only within the guards; what was set aside goes on before anything that is not
//! higher begins.
//!
//! The broker keeps the order among what it has not handed out, so a slot that is free means credit, and
//! nothing is held back here in normal times. What is ready came by prefetch, by an express link, or crossed
//! a change of size.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use super::share::Share;
use crate::moment::Moment;

mod credit;

/// Names a task; later arrivals have higher numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

/// How important a task is: first by the rank of its queue, then by its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Precedence {
    /// Higher for a queue that stands earlier in a strictly ordered list; zero where there is no such order.
    pub rank: u16,
    /// The message's level.
    pub level: u8,
}

/// How a task makes room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preemptible {
    /// It does not.
    No,
    /// It is stopped where it is and goes on later, in this process.
    Freeze,
    /// It is asked to return with a checkpoint, and may go on anywhere.
    Yield,
}

/// What protects running tasks from being set aside for ever or for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guards {
    /// How long a task runs, since it started or went on, before it can be set aside.
    pub run_min: Duration,
    /// How often one task can be set aside.
    pub preemptions_max: u32,
    /// Levels whose tasks are never set aside.
    pub exempt: Vec<RangeInclusive<u8>>,
    /// How many tasks may be set aside at once; each holds its memory and its lock.
    pub set_aside_max: usize,
}

impl Default for Guards {
    fn default() -> Self {
        Guards { run_min: Duration::ZERO, preemptions_max: 10, exempt: Vec::new(), set_aside_max: 64 }
    }
}

/// In which order ready tasks of several queues get free slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// The highest precedence first.
    Strict,
    /// Queues take turns by weight; within one, the highest precedence first.
    Weighted(Share),
}

/// What is known of a message when it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Which of the pool's queues it came from.
    pub queue: usize,
    /// How important it is.
    pub precedence: Precedence,
    /// How its task makes room.
    pub preemptible: Preemptible,
    /// How often it was set aside in earlier deliveries.
    pub preemptions: u32,
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Start a ready task.
    Start(TaskId),
    /// Stop polling a running task: a higher one gets its slot.
    Freeze(TaskId),
    /// Ask a running task to return with a checkpoint: a higher one gets its slot now.
    AskToYield(TaskId),
    /// Let a task that was set aside go on.
    Resume(TaskId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Running { since: Moment },
    SetAside,
}

#[derive(Debug, Clone, Copy)]
struct Task {
    arrival: Arrival,
    state: State,
}

/// The slots of one pool and the tasks around them.
#[derive(Debug)]
pub struct Slots {
    capacity: usize,
    prefetch: usize,
    order: Order,
    /// None: nobody is ever set aside.
    guards: Option<Guards>,
    tasks: BTreeMap<TaskId, Task>,
    last: u64,
    occupied: usize,
    /// One line where the order is strict, else one per queue.
    ready: Vec<BTreeSet<(Reverse<Precedence>, TaskId)>>,
    /// Running tasks that may be set aside: the lowest, most recently started first.
    victims: BTreeSet<(Precedence, Reverse<Moment>, TaskId)>,
    set_aside: BTreeSet<(Reverse<Precedence>, TaskId)>,
    preempted: u64,
}

impl Slots {
    /// Slots that start nothing until they have a capacity.
    pub fn new(order: Order, prefetch: usize, guards: Option<Guards>) -> Slots {
        let lines = match &order {
            Order::Strict => 1,
            Order::Weighted(share) => share.len().max(1),
        };
        Slots {
            capacity: 0,
            prefetch,
            order,
            guards,
            tasks: BTreeMap::new(),
            last: 0,
            occupied: 0,
            ready: vec![BTreeSet::new(); lines],
            victims: BTreeSet::new(),
            set_aside: BTreeSet::new(),
            preempted: 0,
        }
    }

    /// Changes how many tasks may run. Running ones are never stopped for it.
    pub fn resize(&mut self, capacity: u32) {
        self.capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
    }

    /// How many tasks may run at once.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many run.
    pub fn running(&self) -> usize {
        self.occupied
    }

    /// How many wait for a slot.
    pub fn ready(&self) -> usize {
        self.ready.iter().map(BTreeSet::len).sum()
    }

    /// How many are set aside.
    pub fn set_aside(&self) -> usize {
        self.set_aside.len()
    }

    /// How often a task was set aside so far.
    pub fn preempted(&self) -> u64 {
        self.preempted
    }

    /// How often this task was set aside, in this delivery and before.
    pub fn preemptions_of(&self, id: TaskId) -> u32 {
        self.tasks.get(&id).map_or(0, |task| task.arrival.preemptions)
    }

    /// A message has arrived; it is ready. [`Slots::next`] says when it starts.
    pub fn arrive(&mut self, arrival: Arrival) -> TaskId {
        self.last = self.last.saturating_add(1);
        let id = TaskId(self.last);
        let line = self.line(arrival.queue);
        if let Some(line) = self.ready.get_mut(line) {
            line.insert((Reverse(arrival.precedence), id));
        }
        self.tasks.insert(id, Task { arrival, state: State::Ready });
        id
    }

    /// A task has ended, whatever it was doing.
    pub fn end(&mut self, id: TaskId) {
        let Some(task) = self.tasks.remove(&id) else { return };
        let precedence = task.arrival.precedence;
        match task.state {
            State::Running { since } => {
                self.occupied = self.occupied.saturating_sub(1);
                self.victims.remove(&(precedence, Reverse(since), id));
            }
            State::SetAside => {
                self.set_aside.remove(&(Reverse(precedence), id));
            }
            State::Ready => {
                let line = self.line(task.arrival.queue);
                if let Some(line) = self.ready.get_mut(line) {
                    line.remove(&(Reverse(precedence), id));
                }
            }
        }
    }

    /// Takes everything that has not started, to be given back to the broker.
    pub fn give_back(&mut self) -> Vec<TaskId> {
        let ids: Vec<TaskId> = self.ready.iter_mut().flat_map(std::mem::take).map(|(_, id)| id).collect();
        for id in &ids {
            self.tasks.remove(id);
        }
        ids
    }

    /// The next thing to do; call until there is none.
    pub fn next(&mut self, now: Moment) -> Option<Action> {
        let best = self.best_ready();
        if self.occupied >= self.capacity {
            let (precedence, _) = best?;
            return self.preempt(now, precedence);
        }
        if let Some((Reverse(precedence), id)) = self.set_aside.first().copied() {
            return match best {
                // What was set aside is lower than the best ready one: that one it is, whosever turn.
                Some((ready, best)) if ready > precedence => Some(self.start(now, best)),
                _ => {
                    self.set_aside.remove(&(Reverse(precedence), id));
                    self.run(now, id);
                    Some(Action::Resume(id))
                }
            };
        }
        let (_, best) = best?;
        let id = self.in_turn().unwrap_or(best);
        Some(self.start(now, id))
    }

    /// Makes room for a ready task, if somebody lower may be set aside.
    fn preempt(&mut self, now: Moment, precedence: Precedence) -> Option<Action> {
        let victim = self.victim(now, precedence)?;
        let task = self.tasks.get_mut(&victim)?;
        let State::Running { since } = task.state else { return None };
        self.victims.remove(&(task.arrival.precedence, Reverse(since), victim));
        task.state = State::SetAside;
        task.arrival.preemptions = task.arrival.preemptions.saturating_add(1);
        self.set_aside.insert((Reverse(task.arrival.precedence), victim));
        self.occupied = self.occupied.saturating_sub(1);
        self.preempted = self.preempted.saturating_add(1);
        Some(match task.arrival.preemptible {
            Preemptible::Yield => Action::AskToYield(victim),
            Preemptible::Freeze | Preemptible::No => Action::Freeze(victim),
        })
    }

    /// The lowest, most recently started task below `precedence` that has run long enough.
    fn victim(&self, now: Moment, precedence: Precedence) -> Option<TaskId> {
        let guards = self.guards.as_ref()?;
        // After a pool shrank, setting one task aside makes no room yet.
        if self.set_aside.len() >= guards.set_aside_max || self.occupied > self.capacity {
            return None;
        }
        let newest = Reverse(now.before(guards.run_min)?);
        let mut from = (Precedence { rank: 0, level: 0 }, Reverse(Moment::NEVER), TaskId(0));
        loop {
            let (lowest, since, id) = *self.victims.range(from..).next()?;
            if lowest >= precedence {
                return None;
            }
            if since >= newest {
                return Some(id);
            }
            // Those of this level that started too recently come first: skip them.
            from = (lowest, newest, TaskId(0));
        }
    }

    fn start(&mut self, now: Moment, id: TaskId) -> Action {
        if let Some(task) = self.tasks.get(&id) {
            let (line, key) = (self.line(task.arrival.queue), (Reverse(task.arrival.precedence), id));
            if let Some(line) = self.ready.get_mut(line) {
                line.remove(&key);
            }
        }
        self.run(now, id);
        Action::Start(id)
    }

    fn run(&mut self, now: Moment, id: TaskId) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.state = State::Running { since: now };
        self.occupied = self.occupied.saturating_add(1);
        let Some(guards) = &self.guards else { return };
        let Arrival { precedence, preemptible, preemptions, .. } = task.arrival;
        let exempt = guards.exempt.iter().any(|levels| levels.contains(&precedence.level));
        if preemptible != Preemptible::No && preemptions < guards.preemptions_max && !exempt {
            self.victims.insert((precedence, Reverse(now), id));
        }
    }

    fn best_ready(&self) -> Option<(Precedence, TaskId)> {
        let (Reverse(precedence), id) = self.ready.iter().filter_map(BTreeSet::first).min().copied()?;
        Some((precedence, id))
    }

    /// The ready task whose queue's turn it is.
    fn in_turn(&mut self) -> Option<TaskId> {
        let Order::Weighted(share) = &mut self.order else { return None };
        let ready = &self.ready;
        let queue = share.take(|queue| ready.get(queue).is_some_and(|line| !line.is_empty()))?;
        ready.get(queue)?.first().map(|(_, id)| *id)
    }

    fn line(&self, queue: usize) -> usize {
        match &self.order {
            Order::Strict => 0,
            Order::Weighted(_) => queue.min(self.ready.len().saturating_sub(1)),
        }
    }
}

#[cfg(test)]
mod tests;
