//! Operators: entities that come and go beside those the promises are about.

use super::send::Manner;
use super::{Client, Scene};
use crate::history::Call;
use crate::topology::{KINDS, Kind};
use smallvec::smallvec;
use vorrang_broker::api::{Acceptance, Operation};
use vorrang_engine::command::Selection;
use vorrang_engine::entity::{EntityName, EntityPath, Request, RuleDescription, Setting, SubscriptionName};
use vorrang_engine::{EntityId, Level, MailboxId, Span, Timestamp};
use vorrang_filter::Filter;

impl Client {
    pub(super) fn administer(&mut self, scene: &mut Scene<'_>) {
        let (Ok(scratch), Ok(topic), Ok(extra)) =
            (EntityName::parse("scratch"), EntityName::parse("topic"), SubscriptionName::parse("extra"))
        else {
            return;
        };
        // Operators guess the number of what they created last: a wrong guess must do no harm.
        let first = u64::try_from(KINDS.len()).unwrap_or_default() + 1;
        let entity = EntityId(u32::try_from(first + self.dice.below(6)).unwrap_or_default());
        let mailbox = MailboxId::main(entity);
        let rule = RuleDescription { filter: Filter::False, ..RuleDescription::first() };
        let request = match self.dice.below(12) {
            0 => Request::CreateQueue { name: scratch, settings: Vec::new() },
            1 => Request::Delete { path: EntityPath::of(scratch) },
            2 => {
                let settings = vec![Setting::DefaultMessageTimeToLive(Span::seconds(60))];
                Request::Update { path: EntityPath::of(scratch), settings }
            }
            3 => Request::CreateSubscription { topic, name: extra, settings: Vec::new(), first_rule: None },
            7 => Request::CreateRule { topic, subscription: extra, rule },
            8 => Request::UpdateRule { topic, subscription: extra, rule },
            9 => Request::DeleteRule { topic, subscription: extra, rule: rule.name },
            4 => Request::Delete { path: EntityPath::of_subscription(topic, extra) },
            5 => {
                let (selection, level) = (Selection::All, Level(7));
                let operation = Operation::Reprioritise { mailbox, selection, level, max: 5, dry_run: false };
                return self.ask(scene, operation, Call::Reprioritise);
            }
            6 => {
                let (selection, before) = (Selection::All, Timestamp::NEVER);
                let operation = Operation::DeleteMessages { mailbox, selection, before, max: 5 };
                return self.ask(scene, operation, Call::DeleteMessages);
            }
            _ => {
                let (mail, message) = self.compose(scene, Kind::Plain, 0, Vec::new(), Manner::Plain);
                let operation = Operation::Send {
                    entity,
                    via: None,
                    transaction: None,
                    messages: smallvec![message],
                    acceptance: Acceptance::Plain,
                };
                return self.ask(scene, operation, Call::Send { mails: vec![mail], transaction: None });
            }
        };
        self.ask(scene, Operation::Administer(Box::new(request)), Call::Administer);
    }
}
