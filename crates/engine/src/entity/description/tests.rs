use super::*;
use crate::entity::priority::{Policy, Share};
use crate::level::Level;

fn limits() -> EntityLimits {
    EntityLimits::default()
}

fn queue(settings: &[Setting]) -> Result<QueueDescription, Vec<Problem>> {
    QueueDescription::create(settings, &limits())
}

#[test]
fn defaults_are_those_of_service_bus() {
    let queue = queue(&[]).unwrap();
    assert_eq!(queue.outlet.lock_duration, Span::minutes(1));
    assert_eq!(queue.intake.max_size_megabytes, 1_024);
    assert_eq!(queue.intake.size_bytes_max(), 1 << 30);
    assert_eq!(queue.intake.message_bytes_max(), 262_144);
    assert_eq!(queue.intake.duplicate_window, Span::minutes(10));
    assert_eq!(queue.shared.default_time_to_live, Span::FOREVER);
    assert_eq!(queue.outlet.max_delivery_count, 10);
    assert_eq!(queue.shared.auto_delete_on_idle, Span::FOREVER);
    assert!(queue.shared.enable_batched_operations);
    assert!(!TopicDescription::default().filtering_before_publishing);
    assert!(SubscriptionDescription::default().dead_letter_on_filter_errors);
}

#[test]
fn each_limit_holds_at_its_edge() {
    let text = |chars: usize| Setting::UserMetadata(Some(Arc::from("é".repeat(chars))));
    let cases = [
        (Setting::LockDuration(Span(0)), false),
        (Setting::LockDuration(Span(1)), true),
        (Setting::LockDuration(Span::minutes(5)), true),
        (Setting::LockDuration(Span(300_001)), false),
        (Setting::MaxSizeInMegabytes(0), false),
        (Setting::MaxSizeInMegabytes(1), true),
        (Setting::MaxSizeInMegabytes(81_920), true),
        (Setting::MaxSizeInMegabytes(81_921), false),
        (Setting::MaxSizeInMegabytes(u64::MAX), false),
        (Setting::DuplicateDetectionHistoryTimeWindow(Span(4_999)), false),
        (Setting::DuplicateDetectionHistoryTimeWindow(Span::seconds(5)), true),
        (Setting::DuplicateDetectionHistoryTimeWindow(Span::days(7)), true),
        (Setting::DuplicateDetectionHistoryTimeWindow(Span(604_800_001)), false),
        (Setting::DuplicateDetectionHistoryTimeWindow(Span::FOREVER), false),
        (Setting::DefaultMessageTimeToLive(Span(999)), false),
        (Setting::DefaultMessageTimeToLive(Span(1_000)), true),
        (Setting::DefaultMessageTimeToLive(Span::FOREVER), true),
        (Setting::MaxDeliveryCount(0), false),
        (Setting::MaxDeliveryCount(1), true),
        (Setting::MaxDeliveryCount(2_147_483_647), true),
        (Setting::MaxDeliveryCount(2_147_483_648), false),
        (Setting::AutoDeleteOnIdle(Span(299_999)), false),
        (Setting::AutoDeleteOnIdle(Span::minutes(5)), true),
        (text(1_023), true),
        (text(1_024), true),
        (text(1_025), false),
        (Setting::MaxMessageSizeInKilobytes(0), false),
        (Setting::MaxMessageSizeInKilobytes(1), true),
        (Setting::MaxMessageSizeInKilobytes(102_400), true),
        (Setting::MaxMessageSizeInKilobytes(102_401), false),
        (Setting::Policy(Policy::Aged { step: Span(0) }), false),
        (Setting::Policy(Policy::Aged { step: Span(1) }), true),
        (Setting::Policy(Policy::Aged { step: Span::FOREVER }), false),
        (Setting::DefaultLevel(Level(255)), true),
    ];
    for (setting, valid) in cases {
        assert_eq!(queue(std::slice::from_ref(&setting)).is_ok(), valid, "{setting:?}");
    }
}

#[test]
fn all_problems_are_reported_together_each_with_its_bound() {
    let problems = queue(&[
        Setting::LockDuration(Span::minutes(6)),
        Setting::MaxDeliveryCount(0),
        Setting::FilteringMessagesBeforePublishing(true),
    ])
    .unwrap_err();
    let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "FilteringMessagesBeforePublishing cannot be set: allowed is only on kinds of entities that have it",
            "LockDuration cannot be 360 s: allowed is more than nothing, at most 300 s",
            "MaxDeliveryCount cannot be 0: allowed is 1 to 2147483647",
        ]
    );
}

#[test]
fn a_kind_takes_its_own_properties_only() {
    // queue, topic, subscription
    let cases = [
        (Setting::LockDuration(Span::seconds(9)), [true, false, true]),
        (Setting::MaxSizeInMegabytes(2_048), [true, true, false]),
        (Setting::RequiresDuplicateDetection(true), [true, true, false]),
        (Setting::DuplicateDetectionHistoryTimeWindow(Span::minutes(1)), [true, true, false]),
        (Setting::RequiresSession(true), [true, false, true]),
        (Setting::DefaultMessageTimeToLive(Span::days(1)), [true, true, true]),
        (Setting::DeadLetteringOnMessageExpiration(true), [true, false, true]),
        (Setting::DeadLetteringOnFilterEvaluationExceptions(false), [false, false, true]),
        (Setting::MaxDeliveryCount(3), [true, false, true]),
        (Setting::EnableBatchedOperations(false), [true, true, true]),
        (Setting::AutoDeleteOnIdle(Span::days(1)), [true, true, true]),
        (Setting::Status(Status::Disabled), [true, true, true]),
        (Setting::Status(Status::SendDisabled), [true, true, false]),
        (Setting::Status(Status::ReceiveDisabled), [true, false, true]),
        (Setting::ForwardTo(Some(EntityName::parse("b").unwrap())), [true, false, true]),
        (Setting::ForwardDeadLetteredMessagesTo(Some(EntityName::parse("b").unwrap())), [true, false, true]),
        (Setting::SupportOrdering(false), [true, true, false]),
        (Setting::UserMetadata(Some(Arc::from("note"))), [true, true, true]),
        (Setting::MaxMessageSizeInKilobytes(1_024), [true, true, false]),
        (Setting::AuthorizationRules(Vec::new()), [true, true, false]),
        (Setting::FilteringMessagesBeforePublishing(true), [false, true, false]),
        (Setting::Classes(Vec::new()), [true, false, true]),
        (Setting::Policy(Policy::Fifo), [true, false, true]),
        (Setting::PriorityRules(Vec::new()), [true, false, true]),
        (Setting::DefaultLevel(Level(9)), [true, false, true]),
        (Setting::Lift(true), [true, false, true]),
        (Setting::PrefetchShare(Share::NONE), [true, false, true]),
        (Setting::Paused(true), [true, false, true]),
    ];
    for (setting, expected) in cases {
        let settings = std::slice::from_ref(&setting);
        let found = [
            queue(settings).is_ok(),
            TopicDescription::create(settings, &limits()).is_ok(),
            SubscriptionDescription::create(settings, &limits()).is_ok(),
        ];
        assert_eq!(found, expected, "{setting:?}");
    }
}

#[test]
fn an_update_keeps_what_it_does_not_mention() {
    let old = queue(&[
        Setting::Policy(Policy::Fifo),
        Setting::LockDuration(Span::seconds(30)),
        Setting::RequiresSession(true),
    ])
    .unwrap();
    let new = old
        .update(&[Setting::LockDuration(Span::seconds(40)), Setting::RequiresSession(true)], &limits())
        .unwrap();
    assert_eq!(new.outlet.lock_duration, Span::seconds(40));
    assert_eq!(new.outlet.priority.policy, Policy::Fifo);
    assert!(new.outlet.requires_session);
}

#[test]
fn unchangeable_properties_are_refused_only_when_they_would_change() {
    let old = queue(&[]).unwrap();
    for (setting, same) in [
        (Setting::RequiresSession(true), Setting::RequiresSession(false)),
        (Setting::RequiresDuplicateDetection(true), Setting::RequiresDuplicateDetection(false)),
        (Setting::SupportOrdering(false), Setting::SupportOrdering(true)),
    ] {
        assert!(!setting.property().is_changeable());
        let problems = old.update(std::slice::from_ref(&setting), &limits()).unwrap_err();
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].property, setting.property());
        assert_eq!(old.update(&[same], &limits()).as_ref(), Ok(&old));
    }
}

#[test]
fn a_session_entity_does_not_forward() {
    let target = EntityName::parse("target").unwrap();
    let forward = Setting::ForwardTo(Some(target.clone()));
    assert!(queue(&[Setting::RequiresSession(true), forward]).is_err());
    let dead_letters = Setting::ForwardDeadLetteredMessagesTo(Some(target));
    assert!(queue(&[Setting::RequiresSession(true), dead_letters]).is_ok());
}
