//! Histories made by hand, to show that the checkers see what is wrong with them.

use super::check;
use crate::history::{BoxRules, Call, CallId, Entry, History, How, Mail, Outcome, Seen, Target, What, Wish};
use vorrang_engine::command::ReceiveMode;
use vorrang_engine::{EntityId, LockToken, MailboxId, Sequence, Span, Timestamp};

/// The one queue of forged histories.
pub(crate) const QUEUE: EntityId = EntityId(1);
const MAIN: MailboxId = MailboxId(4);

pub(crate) struct Forge {
    history: History,
    step: u64,
    clock: u64,
    calls: u64,
}

impl Forge {
    pub(crate) fn new() -> Forge {
        let mut history = History::default();
        let rules = BoxRules {
            lock: Span::seconds(30),
            deliveries_max: 3,
            sessions: false,
            window: Some(Span::seconds(30)),
            strict: true,
            in_line: true,
            lossy: false,
            keeps_expired: false,
        };
        history.boxes.insert(QUEUE, rules);
        Forge { history, step: 1, clock: 1_000_000, calls: 0 }
    }

    fn add(&mut self, what: What) {
        self.step += 1;
        self.history.entries.push(Entry { step: self.step, clock: Timestamp(self.clock), what });
    }

    pub(crate) fn tick(&mut self, milliseconds: u64) {
        self.clock += milliseconds;
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.clock)
    }

    fn invoke(&mut self, peer: u32, call: Call) -> CallId {
        self.calls += 1;
        self.add(What::Invoke { id: CallId(self.calls), peer, call });
        CallId(self.calls)
    }

    fn done(&mut self, peer: u32, call: Call, outcome: Outcome) {
        let id = self.invoke(peer, call);
        self.add(What::Return { id, outcome });
    }

    pub(crate) fn mails(&mut self, mail: u64, change: impl FnOnce(&mut Mail)) {
        change(self.history.mails.get_mut(&mail).unwrap());
    }

    fn mail(&mut self, mail: u64) -> Vec<u64> {
        let plain = Mail {
            targets: vec![QUEUE],
            message_id: None,
            session: None,
            level: 4,
            kind: 0,
            time_to_live: None,
            scheduled: None,
        };
        self.history.mails.insert(mail, plain);
        vec![mail]
    }

    pub(crate) fn sent(&mut self, mail: u64) {
        let mails = self.mail(mail);
        self.done(1, Call::Send { mails, transaction: None }, Outcome::Sent(vec![Sequence(mail)]));
    }

    pub(crate) fn dropped(&mut self, mail: u64) {
        let mails = self.mail(mail);
        self.done(1, Call::Send { mails, transaction: None }, Outcome::Sent(vec![Sequence(0)]));
    }

    pub(crate) fn sent_in(&mut self, mail: u64, transaction: u128) {
        let mails = self.mail(mail);
        let call = Call::Send { mails, transaction: Some(transaction) };
        self.done(1, call, Outcome::Sent(vec![Sequence(0)]));
    }

    pub(crate) fn send_unanswered(&mut self, mail: u64) {
        let mails = self.mail(mail);
        self.invoke(1, Call::Send { mails, transaction: None });
    }

    pub(crate) fn send_refused(&mut self, mail: u64) {
        let mails = self.mail(mail);
        self.done(1, Call::Send { mails, transaction: None }, Outcome::Refused("no".to_owned()));
    }

    pub(crate) fn cancelled(&mut self, mail: u64) {
        self.done(1, Call::Cancel { mails: vec![mail] }, Outcome::Done);
    }

    pub(crate) fn delivered(&mut self, mail: u64, deliveries: u32) -> Target {
        self.delivered_with(mail, deliveries, |_| ())
    }

    pub(crate) fn delivered_with(
        &mut self,
        mail: u64,
        deliveries: u32,
        change: impl FnOnce(&mut Seen),
    ) -> Target {
        let token = LockToken(u128::from(self.step));
        let sequence = Sequence(mail);
        let mut seen = Seen {
            mail: Some(mail),
            mailbox: MAIN,
            sequence,
            level: 4,
            deliveries,
            enqueued: self.now(),
            lock: Some((token, Timestamp(self.clock + 30_000))),
            reason: None,
            deferred: false,
        };
        change(&mut seen);
        self.add(What::Deliver { link: (1, 1), mode: ReceiveMode::PeekLock, seen });
        Target { mailbox: MAIN, sequence, mail, token }
    }

    pub(crate) fn settled(&mut self, how: How, target: Target) {
        self.done(1, Call::Settle { how, target, transaction: None }, Outcome::Done);
    }

    pub(crate) fn settled_in(&mut self, how: How, target: Target, transaction: u128) {
        self.done(1, Call::Settle { how, target, transaction: Some(transaction) }, Outcome::Done);
    }

    pub(crate) fn declared(&mut self, transaction: u128) {
        self.done(1, Call::Declare, Outcome::Declared(transaction));
    }

    pub(crate) fn discharged(&mut self, transaction: u128, rollback: bool) {
        self.done(1, Call::Discharge { transaction, rollback }, Outcome::Done);
    }

    pub(crate) fn discharge_unanswered(&mut self, transaction: u128) {
        self.invoke(1, Call::Discharge { transaction, rollback: false });
    }

    pub(crate) fn accepted(&mut self, link: u32, session: &str) {
        let outcome = Outcome::Session { session: session.to_owned(), until: Timestamp(self.clock + 30_000) };
        self.done(link, Call::Accept { mailbox: MAIN, link }, outcome);
    }

    pub(crate) fn closed(&mut self, peer: u32) {
        self.add(What::Closed { peer });
    }

    pub(crate) fn link_ended(&mut self, link: u32) {
        self.add(What::LinkEnded { link: (link, link) });
    }

    pub(crate) fn unread(&mut self) {
        self.add(What::Unread);
    }

    pub(crate) fn state_set(&mut self, session: &str, value: Option<u64>) {
        let call = Call::SetState { mailbox: MAIN, session: session.to_owned(), value };
        self.done(1, call, Outcome::Done);
    }

    pub(crate) fn state_read(&mut self, session: &str, value: Option<u64>) {
        let call = Call::GetState { mailbox: MAIN, session: session.to_owned() };
        self.done(1, call, Outcome::State(value));
    }

    pub(crate) fn crash(&mut self) {
        self.add(What::Crash);
        self.add(What::Restart);
    }

    pub(crate) fn drain_begins(&mut self) {
        self.add(What::DrainBegins);
    }

    pub(crate) fn drained(&mut self, left: u64) {
        if !self.history.entries.iter().any(|entry| matches!(entry.what, What::DrainBegins)) {
            self.drain_begins();
        }
        self.add(What::DrainEnds { left });
    }

    /// The receiver of all deliveries wants only some.
    pub(crate) fn wishes(&mut self, wish: Wish) {
        self.history.wishes.insert((1, 1), wish);
    }

    /// The named checker must object.
    pub(crate) fn breaks(&self, promise: &str) {
        let found = check(&self.history);
        assert!(
            found.iter().any(|violation| violation.promise == promise),
            "{promise} saw nothing: {found:?}"
        );
    }

    /// The named checker must not object.
    pub(crate) fn keeps(&self, promise: &str) {
        let found = check(&self.history);
        let wrong: Vec<_> = found.iter().filter(|violation| violation.promise == promise).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
