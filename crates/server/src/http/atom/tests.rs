//! Documents against literal fixtures: what we write, and what clients write to us.

use std::sync::Arc;

use vorrang_broker::api::Listed;
use vorrang_engine::entity::authorization::Rights;
use vorrang_engine::entity::priority::{Policy, PrioritySettings};
use vorrang_engine::entity::{
    Catalogue, Entity, EntityLimits, EntityName, EntityPath, Request, RuleDescription, RuleName, Setting,
    Status, SubscriptionName,
};
use vorrang_engine::{Counts, Span, Timestamp};

use super::description::{self, Intent, Root};
use super::entry::{self, Origin, Page};
use super::writer::Writer;
use super::{entity_head, rule, rule_head, xml};

/// 31 January 2026, 08:15:30.
const AT: Timestamp = Timestamp(1_769_847_330_000);

fn origin() -> Origin {
    Origin { host: "broker:5443".to_owned(), api_version: "2021-05".to_owned(), namespace: "shop".to_owned() }
}

fn name(text: &str) -> EntityName {
    EntityName::parse(text).unwrap()
}

/// A catalogue after these requests.
fn catalogue(requests: &[Request]) -> Catalogue {
    let mut catalogue = Catalogue::default();
    for request in requests {
        let change = catalogue.decide(request, &EntityLimits::default()).unwrap();
        catalogue.apply(&change, AT);
    }
    catalogue
}

fn listed(catalogue: &Catalogue, path: &str) -> Listed {
    let entity: Entity = catalogue.find(&EntityPath::parse(path).unwrap()).unwrap().clone();
    let counts = |ready, scheduled| Counts { ready, scheduled, ..Counts::default() };
    Listed {
        entity: Arc::new(entity),
        accessed: AT,
        size: 4_096,
        main: counts(3, 2),
        dead_letter: counts(1, 0),
        transfer_dead_letter: Counts::default(),
        receivers: 0,
    }
}

/// The fixture as it is written: without the line breaks and indentation that make it readable.
fn compact(text: &str) -> String {
    text.lines().map(str::trim).collect()
}

fn written(catalogue: &Catalogue, path: &str) -> String {
    let listed = listed(catalogue, path);
    let origin = origin();
    entry::document(&origin, &entity_head(&listed), |writer| {
        description::write(writer, &listed, origin.bare_host());
    })
}

#[test]
fn a_queue_is_written_with_every_element_in_its_place() {
    let settings = vec![
        Setting::LockDuration(Span::seconds(30)),
        Setting::ForwardDeadLetteredMessagesTo(Some(name("graveyard"))),
        Setting::UserMetadata(Some("a <note> & more".into())),
    ];
    let catalogue = catalogue(&[
        Request::CreateQueue { name: name("graveyard"), settings: Vec::new() },
        Request::CreateQueue { name: name("eu/Orders"), settings },
    ]);
    let expected = r#"
        <entry xmlns="http://www.w3.org/2005/Atom">
          <id>https://broker:5443/eu/Orders?api-version=2021-05</id>
          <title type="text">eu/Orders</title>
          <published>2026-01-31T08:15:30Z</published>
          <updated>2026-01-31T08:15:30Z</updated>
          <author><name>shop</name></author>
          <link rel="self" href="https://broker:5443/eu/Orders?api-version=2021-05"/>
          <content type="application/xml">
            <QueueDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect" xmlns:i="http://www.w3.org/2001/XMLSchema-instance">
              <LockDuration>PT30S</LockDuration>
              <MaxSizeInMegabytes>1024</MaxSizeInMegabytes>
              <RequiresDuplicateDetection>false</RequiresDuplicateDetection>
              <RequiresSession>false</RequiresSession>
              <DefaultMessageTimeToLive>P10675199DT2H48M5.4775807S</DefaultMessageTimeToLive>
              <DeadLetteringOnMessageExpiration>false</DeadLetteringOnMessageExpiration>
              <DuplicateDetectionHistoryTimeWindow>PT10M</DuplicateDetectionHistoryTimeWindow>
              <MaxDeliveryCount>10</MaxDeliveryCount>
              <EnableBatchedOperations>true</EnableBatchedOperations>
              <SizeInBytes>4096</SizeInBytes>
              <MessageCount>6</MessageCount>
              <IsAnonymousAccessible>false</IsAnonymousAccessible>
              <AuthorizationRules/>
              <Status>Active</Status>
              <UserMetadata>a &lt;note&gt; &amp; more</UserMetadata>
              <CreatedAt>2026-01-31T08:15:30Z</CreatedAt>
              <UpdatedAt>2026-01-31T08:15:30Z</UpdatedAt>
              <AccessedAt>2026-01-31T08:15:30Z</AccessedAt>
              <SupportOrdering>true</SupportOrdering>
              <CountDetails xmlns:d2p1="http://schemas.microsoft.com/netservices/2011/06/servicebus">
                <d2p1:ActiveMessageCount>3</d2p1:ActiveMessageCount>
                <d2p1:DeadLetterMessageCount>1</d2p1:DeadLetterMessageCount>
                <d2p1:ScheduledMessageCount>2</d2p1:ScheduledMessageCount>
                <d2p1:TransferMessageCount>0</d2p1:TransferMessageCount>
                <d2p1:TransferDeadLetterMessageCount>0</d2p1:TransferDeadLetterMessageCount>
              </CountDetails>
              <AutoDeleteOnIdle>P10675199DT2H48M5.4775807S</AutoDeleteOnIdle>
              <EnablePartitioning>false</EnablePartitioning>
              <ForwardDeadLetteredMessagesTo>sb://broker/graveyard</ForwardDeadLetteredMessagesTo>
              <EntityAvailabilityStatus>Available</EntityAvailabilityStatus>
              <EnableExpress>false</EnableExpress>
              <MaxMessageSizeInKilobytes>256</MaxMessageSizeInKilobytes>
            </QueueDescription>
          </content>
        </entry>"#;
    assert_eq!(written(&catalogue, "EU/orders"), compact(expected));
}

fn news() -> Catalogue {
    let (topic, subscription) = (name("news"), SubscriptionName::parse("All").unwrap());
    catalogue(&[
        Request::CreateTopic { name: topic.clone(), settings: Vec::new() },
        Request::CreateSubscription { topic, name: subscription, settings: Vec::new(), first_rule: None },
    ])
}

#[test]
fn a_topic_and_a_subscription_are_written_with_every_element_in_its_place() {
    let topic = written(&news(), "news");
    let expected = r"
        <DefaultMessageTimeToLive>P10675199DT2H48M5.4775807S</DefaultMessageTimeToLive>
        <MaxSizeInMegabytes>1024</MaxSizeInMegabytes>
        <RequiresDuplicateDetection>false</RequiresDuplicateDetection>
        <DuplicateDetectionHistoryTimeWindow>PT10M</DuplicateDetectionHistoryTimeWindow>
        <EnableBatchedOperations>true</EnableBatchedOperations>
        <SizeInBytes>4096</SizeInBytes>
        <FilteringMessagesBeforePublishing>false</FilteringMessagesBeforePublishing>
        <IsAnonymousAccessible>false</IsAnonymousAccessible>
        <AuthorizationRules/>
        <Status>Active</Status>
        <CreatedAt>2026-01-31T08:15:30Z</CreatedAt>
        <UpdatedAt>2026-01-31T08:15:30Z</UpdatedAt>
        <AccessedAt>2026-01-31T08:15:30Z</AccessedAt>
        <SupportOrdering>true</SupportOrdering>
        <CountDetails";
    assert!(topic.contains(&compact(expected)), "{topic}");
    let expected = r"
        <SubscriptionCount>1</SubscriptionCount>
        <SqlFilterCount>1</SqlFilterCount>
        <CorrelationFilterCount>0</CorrelationFilterCount>
        <AutoDeleteOnIdle>P10675199DT2H48M5.4775807S</AutoDeleteOnIdle>
        <EnablePartitioning>false</EnablePartitioning>
        <EntityAvailabilityStatus>Available</EntityAvailabilityStatus>
        <EnableSubscriptionPartitioning>false</EnableSubscriptionPartitioning>
        <EnableExpress>false</EnableExpress>
        <MaxMessageSizeInKilobytes>256</MaxMessageSizeInKilobytes>
        </TopicDescription>";
    assert!(topic.contains(&compact(expected)), "{topic}");

    let subscription = written(&news(), "news/subscriptions/all");
    assert!(subscription.contains("<id>https://broker:5443/news/Subscriptions/All?api-version=2021-05</id>"));
    assert!(subscription.contains("<title type=\"text\">All</title>"));
    let expected = r"
        <LockDuration>PT1M</LockDuration>
        <RequiresSession>false</RequiresSession>
        <DefaultMessageTimeToLive>P10675199DT2H48M5.4775807S</DefaultMessageTimeToLive>
        <DeadLetteringOnMessageExpiration>false</DeadLetteringOnMessageExpiration>
        <DeadLetteringOnFilterEvaluationExceptions>true</DeadLetteringOnFilterEvaluationExceptions>
        <MessageCount>6</MessageCount>
        <MaxDeliveryCount>10</MaxDeliveryCount>
        <EnableBatchedOperations>true</EnableBatchedOperations>
        <Status>Active</Status>
        <CreatedAt>";
    assert!(subscription.contains(&compact(expected)), "{subscription}");
}

#[test]
fn a_feed_links_to_the_next_page_only_if_there_is_one() {
    let catalogue = news();
    let items = [listed(&catalogue, "news")];
    let feed = |more| {
        let page = Page { path: "$Resources/Topics", title: "Topics", skip: 5, top: 1, more, updated: AT };
        entry::feed(&origin(), &page, &items, entity_head, |_, _| {})
    };
    let expected = r#"
        <feed xmlns="http://www.w3.org/2005/Atom">
          <title type="text">Topics</title>
          <id>https://broker:5443/$Resources/Topics?api-version=2021-05&amp;$skip=5&amp;$top=1</id>
          <updated>2026-01-31T08:15:30Z</updated>
          <link rel="self" href="https://broker:5443/$Resources/Topics?api-version=2021-05&amp;$skip=5&amp;$top=1"/>
          <link rel="next" href="https://broker:5443/$Resources/Topics?api-version=2021-05&amp;$skip=6&amp;$top=1"/>
          <entry>
            <id>https://broker:5443/news?api-version=2021-05</id>"#;
    assert!(feed(true).starts_with(&compact(expected)), "{}", feed(true));
    assert!(!feed(false).contains("rel=\"next\""));
}

/// Reads a rule as a client writes it, and writes it back.
fn rule_round_trip(inside: &str) -> Result<String, Vec<String>> {
    let text = format!(
        "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\"><RuleDescription \
         xmlns=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\" \
         xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\">{inside}</RuleDescription></content></entry>"
    );
    let document = xml::parse(text.as_bytes()).unwrap();
    let (root, description) = description::find(&document).unwrap();
    assert_eq!(root, Root::Rule);
    let mut problems = Vec::new();
    let rule = rule::read(RuleName::parse("r").unwrap(), description, &mut problems);
    let rule = rule.filter(|_| problems.is_empty()).ok_or(problems)?;
    Ok(rule_text(rule))
}

fn rule_text(rule: RuleDescription) -> String {
    let (topic, subscription) = (name("news"), SubscriptionName::parse("All").unwrap());
    let mut catalogue = news();
    let request = Request::CreateRule { topic, subscription, rule };
    let change = catalogue.decide(&request, &EntityLimits::default()).unwrap();
    catalogue.apply(&change, AT);
    let found = catalogue.find(&EntityPath::parse("news/subscriptions/all").unwrap()).unwrap();
    let rule = found.subscription().unwrap().rule(&RuleName::parse("r").unwrap()).unwrap();
    assert_eq!(rule_head(&found.path, rule).path, "news/Subscriptions/All/Rules/r");
    let mut writer = Writer::default();
    rule::write(&mut writer, rule);
    writer.finish()
}

#[test]
fn rules_of_every_kind_are_written_as_they_were_read() {
    let end = "<CreatedAt>2026-01-31T08:15:30Z</CreatedAt><Name>r</Name>";
    let none = "<Action i:type=\"EmptyRuleAction\"/>";
    let cases = [
        (
            "sql with a parameter",
            r#"<Filter i:type="SqlFilter"><SqlExpression>color = @c</SqlExpression><CompatibilityLevel>20</CompatibilityLevel>
               <Parameters><KeyValueOfstringanyType><Key>@c</Key>
               <Value xmlns:d6p1="http://www.w3.org/2001/XMLSchema" i:type="d6p1:string">red</Value>
               </KeyValueOfstringanyType></Parameters></Filter>"#,
            none,
        ),
        (
            "true",
            "<Filter i:type=\"TrueFilter\"><SqlExpression>1=1</SqlExpression><CompatibilityLevel>20</CompatibilityLevel></Filter>",
            none,
        ),
        (
            "false",
            "<Filter i:type=\"FalseFilter\"><SqlExpression>1=0</SqlExpression><CompatibilityLevel>20</CompatibilityLevel></Filter>",
            none,
        ),
        (
            "correlation",
            r#"<Filter i:type="CorrelationFilter"><CorrelationId>c</CorrelationId><MessageId>m</MessageId><To>t</To>
               <ReplyTo>r</ReplyTo><Label>l</Label><SessionId>s</SessionId><ReplyToSessionId>rs</ReplyToSessionId>
               <ContentType>ct</ContentType><Properties><KeyValueOfstringanyType><Key>Amount</Key>
               <Value xmlns:d6p1="http://www.w3.org/2001/XMLSchema" i:type="d6p1:int">7</Value>
               </KeyValueOfstringanyType></Properties></Filter>"#,
            none,
        ),
        (
            "action",
            "<Filter i:type=\"TrueFilter\"><SqlExpression>1=1</SqlExpression><CompatibilityLevel>20</CompatibilityLevel></Filter>",
            "<Action i:type=\"SqlRuleAction\"><SqlExpression>SET x = 1</SqlExpression><CompatibilityLevel>20</CompatibilityLevel></Action>",
        ),
    ];
    for (case, filter, action) in cases {
        let filter = compact(filter);
        let text = rule_round_trip(&format!("{filter}{action}")).unwrap();
        assert_eq!(text, format!("{filter}{action}{end}"), "{case}");
    }
    assert!(
        rule_round_trip("").unwrap().starts_with("<Filter i:type=\"TrueFilter\">"),
        "no filter takes all"
    );
}

#[test]
fn a_wrong_rule_is_refused_with_every_reason() {
    let cases = [
        ("<Filter/>", "filter without a type"),
        ("<Filter i:type=\"Other\"/>", "cannot be a Other"),
        ("<Filter i:type=\"SqlFilter\"/>", "Filter needs an SqlExpression"),
        ("<Filter i:type=\"SqlFilter\"><SqlExpression>x ===</SqlExpression></Filter>", "Filter is not valid"),
        ("<Filter i:type=\"CorrelationFilter\"/>", "needs at least one field"),
        ("<Action i:type=\"Other\"/>", "Action cannot be a Other"),
        (
            "<Action i:type=\"SqlRuleAction\"><SqlExpression>SET</SqlExpression></Action>",
            "Action is not valid",
        ),
    ];
    for (text, expected) in cases {
        let problems = rule_round_trip(text).unwrap_err().join("; ");
        assert!(problems.contains(expected), "{text}: {problems}");
    }
}

fn settings(root: Root, inside: &str, intent: Intent) -> Result<Vec<Setting>, Vec<String>> {
    let text = format!(
        "<{0} xmlns=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\" \
         xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\">{inside}</{0}>",
        root.name()
    );
    let document = xml::parse(text.as_bytes()).unwrap();
    let (found, description) = description::find(&document).unwrap();
    assert_eq!(found, root);
    let mut problems = Vec::new();
    let settings = description::read_settings(root, description, intent, &mut problems);
    if problems.is_empty() { Ok(settings) } else { Err(problems) }
}

#[test]
fn a_request_sets_what_it_mentions_and_absence_clears_texts_on_update_only() {
    assert_eq!(settings(Root::Queue, "", Intent::Create), Ok(Vec::new()));
    let cleared = vec![
        Setting::UserMetadata(None),
        Setting::ForwardTo(None),
        Setting::ForwardDeadLetteredMessagesTo(None),
    ];
    assert_eq!(settings(Root::Queue, "", Intent::Update), Ok(cleared.clone()));
    assert_eq!(settings(Root::Subscription, "<LockDuration i:nil=\"true\"/>", Intent::Update), Ok(cleared));
    assert_eq!(settings(Root::Topic, "", Intent::Update), Ok(vec![Setting::UserMetadata(None)]));
    let text = "<Unknown>1</Unknown><MessageCount>7</MessageCount><MaxDeliveryCount>3</MaxDeliveryCount>\
                <RequiresSession>True</RequiresSession><Status>ReceiveDisabled</Status><LockDuration>PT5S</LockDuration>\
                <ForwardTo>https://host:1/a/b/</ForwardTo>";
    let expected = vec![
        Setting::Status(Status::ReceiveDisabled),
        Setting::LockDuration(Span::seconds(5)),
        Setting::RequiresSession(true),
        Setting::MaxDeliveryCount(3),
        Setting::ForwardTo(Some(name("a/b"))),
    ];
    assert_eq!(settings(Root::Queue, text, Intent::Create), Ok(expected));
}

#[test]
fn everything_wrong_with_a_request_is_said_at_once() {
    let text = "<LockDuration>soon</LockDuration><MaxDeliveryCount>-1</MaxDeliveryCount><Status>Deleting</Status>\
                <RequiresSession>perhaps</RequiresSession><ForwardTo>a//b</ForwardTo>\
                <AuthorizationRules><AuthorizationRule/></AuthorizationRules>";
    let problems = settings(Root::Queue, text, Intent::Create).unwrap_err();
    for expected in
        ["Status", "AuthorizationRules", "LockDuration", "RequiresSession", "MaxDeliveryCount", "ForwardTo"]
    {
        assert!(problems.iter().any(|problem| problem.starts_with(expected)), "{expected}: {problems:?}");
    }
    assert_eq!(problems.len(), 6);
}

#[test]
fn keys_are_read_and_missing_ones_are_made() {
    let text = "<AuthorizationRules><AuthorizationRule i:type=\"SharedAccessAuthorizationRule\"><Rights>\
                <AccessRights>Send</AccessRights><AccessRights>Listen</AccessRights></Rights><KeyName>k</KeyName>\
                <PrimaryKey>given</PrimaryKey></AuthorizationRule></AuthorizationRules>";
    let read = settings(Root::Topic, text, Intent::Create).unwrap();
    let [Setting::AuthorizationRules(rules)] = read.as_slice() else { panic!("{read:?}") };
    assert_eq!(rules[0].rights, Rights { send: true, listen: true, manage: false });
    assert_eq!(rules[0].primary_key.expose(), "given");
    assert!(rules[0].secondary_key.expose().len() >= 32);
    let empty = settings(Root::Queue, "<AuthorizationRules></AuthorizationRules>", Intent::Create);
    assert_eq!(empty, Ok(vec![Setting::AuthorizationRules(Vec::new())]));
}

const PRIORITY: &str = r#"
    <Priority xmlns="urn:vorrang:priority">
      <Policy>aged</Policy>
      <AgedStep>PT10S</AgedStep>
      <RescueAfter>PT1M</RescueAfter>
      <RescueShare>250</RescueShare>
      <DefaultLevel>3</DefaultLevel>
      <Lift>true</Lift>
      <PrefetchShare>500</PrefetchShare>
      <Paused>false</Paused>
      <Classes>
        <Class><Name>gold</Name><Level>9</Level><TargetWait>PT30S</TargetWait></Class>
        <Class><Name>bulk</Name><Level>1</Level></Class>
      </Classes>
      <Rules>
        <Rule>
          <Class>gold</Class>
          <Filter i:type="SqlFilter"><SqlExpression>vip = 1</SqlExpression><CompatibilityLevel>20</CompatibilityLevel></Filter>
        </Rule>
      </Rules>
    </Priority>"#;

#[test]
fn priority_settings_are_written_as_they_were_read() {
    let read = settings(Root::Queue, PRIORITY, Intent::Create).unwrap();
    let catalogue = catalogue(&[Request::CreateQueue { name: name("q"), settings: read }]);
    let text = written(&catalogue, "q");
    assert!(text.contains(&compact(PRIORITY)), "{text}");
    let entity = listed(&catalogue, "q").entity;
    assert_eq!(entity.outlet().unwrap().priority.policy, Policy::Aged { step: Span::seconds(10) });
}

#[test]
fn an_update_that_does_not_know_priorities_leaves_them() {
    let read = settings(Root::Queue, PRIORITY, Intent::Create).unwrap();
    let mut catalogue = catalogue(&[Request::CreateQueue { name: name("q"), settings: read }]);
    let before = listed(&catalogue, "q").entity.outlet().unwrap().priority.clone();
    let path = EntityPath::of(name("q"));
    let plain = settings(Root::Queue, "<MaxDeliveryCount>7</MaxDeliveryCount>", Intent::Update).unwrap();
    let change = catalogue.decide(&Request::Update { path, settings: plain }, &EntityLimits::default());
    catalogue.apply(&change.unwrap(), AT);
    let after = listed(&catalogue, "q").entity.outlet().unwrap().clone();
    assert_eq!((after.max_delivery_count, after.priority), (7, before));
}

#[test]
fn wrong_priority_settings_are_named() {
    let wrong = r#"<Priority xmlns="urn:vorrang:priority"><Policy>aged</Policy><RescueShare>1001</RescueShare>
        <DefaultLevel>256</DefaultLevel><Classes><Class><Name>7</Name></Class></Classes><Rules><Rule/></Rules></Priority>"#;
    let problems = settings(Root::Queue, wrong, Intent::Create).unwrap_err().join("; ");
    for expected in [
        "Priority/Policy",
        "Priority/RescueShare",
        "Priority/DefaultLevel",
        "a class without",
        "a rule without",
    ] {
        assert!(problems.contains(expected), "{expected}: {problems}");
    }
    let plain = settings(Root::Queue, "", Intent::Create).unwrap();
    let catalogue = catalogue(&[Request::CreateQueue { name: name("q"), settings: plain }]);
    assert_eq!(listed(&catalogue, "q").entity.outlet().unwrap().priority, PrioritySettings::default());
    assert!(!written(&catalogue, "q").contains("Priority"), "nothing to say is not said");
}
