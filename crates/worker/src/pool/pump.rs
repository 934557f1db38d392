//! The loop of a pool: messages in, tasks started and set aside, outcomes out.
//!
//! One task owns everything here. It decides nothing itself: [`Slots`] says what runs, [`Renewals`] which lock is
//! due, [`Breaker`] whether anything is asked for at all. After each batch of events it acts on what they say,
//! grants credit once, and sleeps until the next event or deadline; an idle pool therefore costs nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info};
use vorrang_client::Received;

use super::gauge::{Backlog, Chosen};
use super::line::Line;
use super::links::{Arrived, Links};
use super::options::Options;
use super::problem::{OnProblem, Problem};
use super::task::{Event, Job, Settled};
use crate::context::Context;
use crate::figures::Figures;
use crate::handler::Handler;
use crate::moment::Moment;
use crate::outcome::Checkpoint;
use crate::plan::autoscale::{Autoscaler, Load};
use crate::plan::breaker::{Breaker, Permit};
use crate::plan::looking::{Look, Looking, Situation};
use crate::plan::renewal::{Due, Renewals};
use crate::plan::settlement::Verdict;
use crate::plan::share::Share;
use crate::plan::size::Size;
use crate::plan::slots::{Action, Arrival, Order, Preemptible, Slots, TaskId};
use crate::replies::Replies;

/// Events handled before anything is acted upon.
const BATCH_MAX: usize = 256;
/// Settlements on their way to the broker; beyond that nothing new is received until some are answered.
const SETTLING_MAX: usize = 4_096;
/// Requests to complete on their way, per link. What ends meanwhile goes with the next one, so the busier the pool and the
/// slower the broker, the more messages share a request.
const COMPLETING_MAX: usize = 2;
/// The application property under which a checkpoint travels.
pub(crate) const CHECKPOINT: &str = "vorrang-checkpoint";
/// And how often its task was set aside before.
pub(crate) const PREEMPTIONS: &str = "vorrang-preemptions";

/// What the owner of a pool asks for.
#[derive(Debug)]
pub(super) enum Control {
    Pause(oneshot::Sender<()>),
    Resume,
    Resize(Size),
    Stop { within: Duration },
}

/// A message that is held, from its arrival to the answer to its settlement.
#[derive(Debug)]
struct Held {
    context: Context,
    entity: usize,
    link: usize,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Ready,
    Running,
    Settling,
}

/// Messages of one link to be completed, many with one request.
#[derive(Debug, Default)]
struct Completing {
    waiting: Vec<(TaskId, Context)>,
    /// Requests without an answer.
    under_way: usize,
}

/// Stopping, step by step.
#[derive(Debug, Clone, Copy)]
enum Stopping {
    /// Tasks may finish until then.
    Draining { until: Moment },
    /// Tasks were cancelled, and are dropped then.
    Cancelled { until: Moment },
    /// Tasks were dropped; their messages are on their way back.
    Dropped { until: Moment },
}

pub(super) struct Pump<H> {
    pub(super) options: Arc<Options>,
    line: Line<H>,
    pub(super) figures: Arc<Figures>,
    pub(super) replies: Arc<Replies>,
    pub(super) on_problem: OnProblem,
    pub(super) links: Links,
    pub(super) gauge: Chosen,
    entities: Vec<Arc<str>>,
    begin: Instant,
    slots: Slots,
    renewals: Renewals,
    breaker: Breaker,
    scaler: Autoscaler,
    size: Size,
    desired: Option<u32>,
    held: BTreeMap<TaskId, Held>,
    /// What has ended well and is to be completed, by the link it came on.
    completing: BTreeMap<usize, Completing>,
    /// When to see whether jobs are stuck.
    attend_at: Option<Moment>,
    /// Ready messages that came on an express link since the last look.
    express: Vec<TaskId>,
    settling: usize,
    paused: bool,
    stopping: Option<Stopping>,
    measuring: bool,
    looking: Looking,
    events: mpsc::UnboundedSender<Event>,
    inbox: Option<mpsc::UnboundedReceiver<Event>>,
}

impl<H: Handler> Pump<H> {
    pub(super) fn new(
        options: Arc<Options>,
        handler: Arc<H>,
        figures: Arc<Figures>,
        replies: Arc<Replies>,
        on_problem: OnProblem,
        links: Links,
        gauge: Chosen,
    ) -> Pump<H> {
        let order = match options.order {
            super::Precedence::Strict => Order::Strict,
            super::Precedence::Weighted => {
                Order::Weighted(Share::new(options.serves.iter().map(|served| served.weight)))
            }
        };
        let guards = options.preemption.as_ref().map(|preemption| preemption.guards.clone());
        // At most two events per held message are on their way, and what is held is bounded by credit.
        let (events, inbox) = mpsc::unbounded_channel();
        let seed =
            options.name.bytes().fold(0, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        Pump {
            entities: options.serves.iter().map(|served| Arc::from(served.entity.as_str())).collect(),
            begin: Instant::now(),
            slots: Slots::new(order, options.prefetch, guards),
            renewals: Renewals::new(options.renew_for),
            breaker: Breaker::new(options.breaker, seed),
            scaler: Autoscaler::new(options.scaling),
            size: options.size,
            desired: None,
            held: BTreeMap::new(),
            completing: BTreeMap::new(),
            attend_at: None,
            express: Vec::new(),
            settling: 0,
            paused: false,
            stopping: None,
            measuring: false,
            looking: Looking::new(options.scaling_interval),
            events,
            inbox: Some(inbox),
            options,
            line: Line::new(handler),
            figures,
            replies,
            on_problem,
            links,
            gauge,
        }
    }

    /// Works until it is told to stop and everything it held is settled or given back.
    pub(super) async fn run(mut self, mut control: mpsc::Receiver<Control>) {
        let Some(mut inbox) = self.inbox.take() else { return };
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            self.act().await;
            if self.stopping.is_some() && self.held.is_empty() {
                break;
            }
            let wake = self.begin + self.wake().elapsed().min(Duration::from_hours(24 * 365));
            let stopping = self.stopping.is_some();
            tokio::select! {
                biased;
                command = control.recv(), if !stopping => self.command(command),
                _ = inbox.recv_many(&mut batch, BATCH_MAX) => {
                    for event in batch.drain(..) {
                        self.event(event);
                    }
                }
                arrived = self.links.next() => self.arrived(arrived),
                () = sleep_until(wake) => {}
            }
            // While handlers begin one after the other, the more of them end before we look, the less it costs each.
            if self.line.has_jobs() {
                tokio::task::yield_now().await;
            }
            for _ in 0..BATCH_MAX {
                let Some(arrived) = self.links.try_next() else { break };
                self.arrived(arrived);
            }
            while let Ok(event) = inbox.try_recv() {
                self.event(event);
            }
        }
        info!(pool = %self.options.name, "pool stopped");
    }

    fn now(&self) -> Moment {
        Moment::at(self.begin.elapsed())
    }

    /// Whether messages are taken at all.
    fn takes(&self) -> bool {
        !self.paused && self.stopping.is_none() && self.slots.capacity() > 0
    }

    /// The earliest moment at which something is due.
    fn wake(&self) -> Moment {
        let now = self.now();
        let breaker = match self.breaker.permit(now) {
            Permit::NoneUntil(until) => Some(until),
            Permit::All | Permit::Probe => None,
        };
        let stopping = self.stopping.map(|stopping| match stopping {
            Stopping::Draining { until } | Stopping::Cancelled { until } | Stopping::Dropped { until } => {
                until
            }
        });
        let measure = self.looking.due(self.situation()).filter(|_| self.scales() && !self.measuring);
        let hours = self.options.hours.seconds_to_change(unix_seconds());
        let hours = hours.map(|seconds| now.after(Duration::from_secs(seconds)));
        let express = self.links.express_floors().filter_map(|floor| self.slots.express_at(now, floor)).min();
        let all = [self.renewals.wake(), breaker, stopping, measure, hours, express, self.attend_at];
        all.into_iter().flatten().min().unwrap_or(Moment::NEVER)
    }

    fn scales(&self) -> bool {
        self.stopping.is_none() && matches!(self.size_now(), Size::Between { .. })
    }

    /// A pool that has shrunk to nothing listens with one credit: the next message wakes it.
    fn asleep(&self) -> bool {
        self.scales() && self.size_now().slots(self.desired) == 0
    }

    fn situation(&self) -> Situation {
        let (capacity, occupied) =
            (self.slots.capacity(), self.slots.running().saturating_add(self.slots.ready()));
        Situation {
            busy: capacity > 0 && occupied >= capacity,
            can_shrink: !self.asleep() && capacity > self.size_now().fewest(),
            own_gauge: self.gauge.own,
        }
    }

    fn size_now(&self) -> Size {
        self.options.hours.size_at(unix_seconds()).unwrap_or(self.size)
    }

    fn command(&mut self, command: Option<Control>) {
        match command {
            Some(Control::Pause(done)) => {
                self.paused = true;
                // Whoever asked may not care when.
                let _ = done.send(());
            }
            Some(Control::Resume) => self.paused = false,
            Some(Control::Resize(size)) => self.size = size,
            Some(Control::Stop { within }) => self.stop(within),
            // The pool's handle is gone: nobody can ask for anything any more.
            None => self.stop(Duration::ZERO),
        }
    }

    fn stop(&mut self, within: Duration) {
        info!(pool = %self.options.name, held = self.held.len(), "pool stops");
        self.stopping = Some(Stopping::Draining { until: self.now().after(within) });
    }

    /// A message has arrived, or a link has something to say.
    fn arrived(&mut self, arrived: Arrived) {
        match arrived {
            Arrived::Message { link, message } => self.message(link, message),
            Arrived::Lost { link, error } => {
                let entity = self.links.shown(link);
                (self.on_problem)(&Problem::Receive { entity, error });
            }
        }
    }

    fn message(&mut self, link: usize, message: Received) {
        let now = self.now();
        let (entity, precedence) = self.links.place(link, &message);
        let checkpoint =
            message.property(CHECKPOINT).and_then(|value| Some(Checkpoint(value.as_binary()?.clone())));
        let preemptions = message.property(PREEMPTIONS).and_then(|value| value.as_u64());
        let preemptible =
            self.options.preemption.as_ref().map_or(Preemptible::No, |preemption| preemption.by);
        let id = self.slots.arrive(Arrival {
            queue: entity,
            precedence,
            preemptible,
            preemptions: preemptions.and_then(|count| u32::try_from(count).ok()).unwrap_or(0),
        });
        if let Some(left) =
            message.locked_until().and_then(|until| until.duration_since(SystemTime::now()).ok())
        {
            self.renewals.track(id, now, now.after(left));
        }
        if let Some(figures) = self.figures.entities.get(entity) {
            figures.received.add_one();
        }
        let path = self.entities.get(entity).cloned().unwrap_or_else(|| Arc::from(""));
        let settler = self.links.settler(link);
        let context =
            Context::new(path, precedence.level, checkpoint, message, settler, &self.options, &self.replies);
        self.held.insert(id, Held { context, entity, link, stage: Stage::Ready });
        if self.links.is_express(link) {
            self.express.push(id);
        }
    }

    fn event(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Ended { id, verdict, panicked, took, complete } => {
                self.slots.end(id);
                let Some(held) = self.held.get_mut(&id) else { return };
                held.stage = Stage::Settling;
                if complete {
                    let completing = self.completing.entry(held.link).or_default();
                    completing.waiting.push((id, held.context.clone()));
                }
                self.settling = self.settling.saturating_add(1);
                let Some(figures) = self.figures.entities.get(held.entity) else { return };
                figures.service.add(took);
                if panicked {
                    figures.panicked.add_one();
                }
                match verdict {
                    Verdict::Unavailable => {
                        figures.unavailable.add_one();
                        if self.breaker.unavailable(now) {
                            (self.on_problem)(&Problem::BreakerOpened { pool: self.options.name.clone() });
                        }
                    }
                    Verdict::Failed => figures.failed.add_one(),
                    Verdict::Done | Verdict::Suspended => {}
                }
                if matches!(verdict, Verdict::Done | Verdict::Failed) && self.breaker.available(now) {
                    info!(pool = %self.options.name, "what was down is up again");
                }
            }
            Event::Settled { id, settled } => self.settled(id, settled),
            Event::Completed { link, outcomes } => {
                if let Some(completing) = self.completing.get_mut(&link) {
                    completing.under_way = completing.under_way.saturating_sub(1);
                }
                for (id, outcome) in outcomes {
                    self.settled(id, outcome.map_or_else(Settled::Refused, |()| Settled::Completed));
                }
            }
            Event::Renewed { id, result } => self.renewed(now, id, result),
            Event::Measured { backlog } => self.measured(now, backlog),
        }
    }

    fn settled(&mut self, id: TaskId, settled: Settled) {
        self.renewals.ended(id);
        let Some(held) = self.held.remove(&id) else { return };
        self.settling = self.settling.saturating_sub(1);
        let Some(figures) = self.figures.entities.get(held.entity) else { return };
        figures.count(&settled);
        if let Settled::Refused(error) = settled {
            let entity = held.context.entity().to_owned();
            (self.on_problem)(&Problem::Settle { entity, error });
        }
    }

    fn renewed(&mut self, now: Moment, id: TaskId, result: Result<SystemTime, vorrang_client::Error>) {
        let Some(held) = self.held.get(&id) else { return };
        match result {
            Ok(until) => {
                let left = until.duration_since(SystemTime::now()).unwrap_or_default();
                self.renewals.renewed(id, now, now.after(left));
                if let Some(figures) = self.figures.entities.get(held.entity) {
                    figures.renewed.add_one();
                }
            }
            Err(error) => {
                let lost = matches!(error, vorrang_client::Error::LockLost(_));
                let entity = held.context.entity().to_owned();
                (self.on_problem)(&Problem::Renew { entity, error });
                if lost {
                    self.renewals.ended(id);
                    self.lost(id);
                } else {
                    self.renewals.failed(id, now);
                }
            }
        }
    }

    /// A lock has ended while its message was held: what is done for it is in vain.
    fn lost(&mut self, id: TaskId) {
        let Some(held) = self.held.get(&id) else { return };
        if let Some(figures) = self.figures.entities.get(held.entity) {
            figures.locks_lost.add_one();
        }
        let entity = held.context.entity().to_owned();
        (self.on_problem)(&Problem::LockLost { entity });
        match held.stage {
            // It belongs to somebody else now.
            Stage::Ready => {
                self.slots.end(id);
                self.held.remove(&id);
            }
            Stage::Running => {
                held.context.forget_lock();
                held.context.cancel();
            }
            Stage::Settling => {}
        }
    }

    fn measured(&mut self, now: Moment, backlog: Option<Backlog>) {
        self.measuring = false;
        let before = self.desired;
        if let Some(backlog) = backlog {
            self.scale(now, backlog);
        }
        self.looking.answered(now, self.desired > before);
    }

    /// Finds the size that a backlog calls for.
    fn scale(&mut self, now: Moment, backlog: Backlog) {
        let own = self.slots.running().saturating_add(self.slots.ready());
        let own = u64::try_from(own.saturating_add(self.slots.set_aside())).unwrap_or(u64::MAX);
        let load = Load {
            waiting: backlog.unsettled.saturating_sub(own),
            oldest: backlog.oldest,
            arrivals_per_kilosecond: 0,
            service: self.figures.service_mean(),
            running: u32::try_from(self.slots.running()).unwrap_or(u32::MAX),
        };
        let desired = self.scaler.desired(now, &load);
        debug!(pool = %self.options.name, ?load, desired, "load measured");
        self.desired = Some(desired);
    }

    /// Does what is due: renews, gives back, starts, sets aside, resumes, grants credit.
    async fn act(&mut self) {
        let now = self.now();
        self.progress_stop(now);
        if self.asleep() && self.slots.running().saturating_add(self.slots.ready()) > 0 {
            self.desired = Some(1);
        }
        self.slots.resize(if self.stopping.is_some() || self.asleep() {
            // What was set aside still needs slots to finish in; who sleeps listens.
            self.size.slots(self.desired).max(1)
        } else {
            self.size_now().slots(self.desired)
        });
        while let Some(due) = self.renewals.next(now) {
            match due {
                Due::Renew(id) => self.renew(id),
                Due::Lost(id) => self.lost(id),
            }
        }
        let refuses = !self.takes() || matches!(self.breaker.permit(now), Permit::NoneUntil(_));
        if refuses && self.slots.ready() > 0 {
            for id in self.slots.give_back() {
                self.give_back(id);
            }
        }
        while let Some(action) = self.slots.next(now) {
            self.perform(action);
        }
        self.attend_at = self.line.attend(now);
        self.give_back_express();
        self.complete_all();
        self.measure(now);
        self.grant(now).await;
        self.publish(now);
    }

    fn perform(&mut self, action: Action) {
        let (Action::Start(id) | Action::Freeze(id) | Action::AskToYield(id) | Action::Resume(id)) = action;
        let Some(held) = self.held.get_mut(&id) else { return };
        match action {
            Action::Start(id) => {
                if let (Some(figures), Some(enqueued)) =
                    (self.figures.entities.get(held.entity), held.context.message().enqueued_time())
                {
                    figures.wait.add(SystemTime::now().duration_since(enqueued).unwrap_or_default());
                }
                let job = Job { id, context: held.context.clone(), events: self.events.clone() };
                held.stage = Stage::Running;
                self.line.push(job);
            }
            Action::Freeze(_) => held.context.gate().shut(),
            Action::AskToYield(id) => {
                held.context.set_preemptions(self.slots.preemptions_of(id));
                held.context.ask_to_yield(true);
            }
            Action::Resume(_) => {
                held.context.ask_to_yield(false);
                held.context.gate().open();
            }
        }
    }

    fn renew(&mut self, id: TaskId) {
        let Some(held) = self.held.get(&id) else { return };
        let (context, events) = (held.context.clone(), self.events.clone());
        tokio::spawn(async move {
            let result = context.renew().await;
            // The pump may have ended.
            let _ = events.send(Event::Renewed { id, result });
        });
    }

    /// Gives a message back that never started, to its place and without counting a delivery.
    fn give_back(&mut self, id: TaskId) {
        let Some(held) = self.held.get_mut(&id) else { return };
        held.stage = Stage::Settling;
        self.settling = self.settling.saturating_add(1);
        Job { id, context: held.context.clone(), events: self.events.clone() }.give_back();
    }

    /// An express message that found no room after all is better off with another worker.
    fn give_back_express(&mut self) {
        for id in std::mem::take(&mut self.express) {
            if self.held.get(&id).is_some_and(|held| matches!(held.stage, Stage::Ready)) {
                self.slots.end(id);
                self.give_back(id);
            }
        }
    }

    /// Completes what has ended well since the last time, one request per link.
    fn complete_all(&mut self) {
        for (link, completing) in &mut self.completing {
            if completing.under_way >= COMPLETING_MAX {
                continue;
            }
            // A link that was attached again has a new settler, which settles what came before as well.
            let Some(settler) =
                completing.waiting.first().and_then(|(_, context)| context.settler().cloned())
            else {
                continue;
            };
            completing.under_way = completing.under_way.saturating_add(1);
            let waiting = std::mem::take(&mut completing.waiting);
            Job::complete_all(*link, settler, waiting, self.events.clone());
        }
    }

    fn measure(&mut self, now: Moment) {
        if self.measuring || !self.scales() {
            return;
        }
        match self.looking.next(now, self.situation()) {
            None => return,
            Some(Look::NothingWaits) => return self.scale(now, Backlog::default()),
            Some(Look::Ask) => {}
        }
        self.measuring = true;
        let (measure, events) = ((self.gauge.gauge)(), self.events.clone());
        tokio::spawn(async move {
            let backlog = measure.await;
            // The pump may have ended.
            let _ = events.send(Event::Measured { backlog });
        });
    }

    /// Lets the broker send what can be started, and takes back what cannot.
    async fn grant(&mut self, now: Moment) {
        let permit = self.breaker.permit(now);
        let busy = self.slots.running().saturating_add(self.slots.ready()) > 0;
        let takes = self.takes() && self.settling < SETTLING_MAX;
        for link in self.links.main() {
            let credit = match permit {
                _ if !takes => 0,
                Permit::All => self.slots.credit(link),
                Permit::Probe if !busy => 1,
                Permit::Probe | Permit::NoneUntil(_) => 0,
            };
            let withdraw = !self.takes() || permit != Permit::All;
            // More than the free slots need is always on its way, so what is fetched ahead is asked for in large pieces.
            let step = self.options.prefetch / 2;
            self.links.set_credit(link, credit, step, withdraw).await;
        }
        // The widest express link that somebody could make room for; one message at a time.
        let mut granted = !takes || permit != Permit::All;
        for link in self.links.express() {
            let floor = self.links.floor(link);
            let wanted = !granted && self.slots.express(now, floor);
            granted |= wanted;
            self.links.set_credit(link, usize::from(wanted), 1, !self.takes()).await;
        }
    }

    fn progress_stop(&mut self, now: Moment) {
        let Some(stopping) = self.stopping else { return };
        match stopping {
            Stopping::Draining { until } if now >= until => {
                for held in self.held.values().filter(|held| matches!(held.stage, Stage::Running)) {
                    held.context.cancel();
                }
                self.stopping = Some(Stopping::Cancelled { until: now.after(self.options.grace) });
            }
            Stopping::Cancelled { until } if now >= until => {
                let running = |(id, held): (&TaskId, &Held)| match &held.stage {
                    Stage::Running => {
                        held.context.reins().drop_job();
                        Some(*id)
                    }
                    Stage::Ready | Stage::Settling => None,
                };
                let ids: Vec<TaskId> = self.held.iter().filter_map(running).collect();
                for id in ids {
                    self.slots.end(id);
                    self.give_back(id);
                }
                self.stopping = Some(Stopping::Dropped { until: now.after(self.options.grace) });
            }
            // The broker does not answer: the locks will run out.
            Stopping::Dropped { until } if now >= until => self.held.clear(),
            Stopping::Draining { .. } | Stopping::Cancelled { .. } | Stopping::Dropped { .. } => {}
        }
    }

    fn publish(&self, now: Moment) {
        let figures = &self.figures;
        figures.slots.set(if self.asleep() { 0 } else { self.slots.capacity() });
        figures.running.set(self.slots.running());
        figures.ready.set(self.slots.ready());
        figures.set_aside.set(self.slots.set_aside());
        figures.preempted.set(self.slots.preempted());
        figures.breaker_opened.set(self.breaker.opened());
        figures.breaker_open.set(usize::from(self.breaker.permit(now) != Permit::All));
    }
}

impl<H> Drop for Pump<H> {
    fn drop(&mut self) {
        for held in self.held.values() {
            if matches!(held.stage, Stage::Running) {
                held.context.reins().drop_job();
            }
        }
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
