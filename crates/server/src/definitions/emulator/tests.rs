use vorrang_engine::Span;

use super::*;

const SAMPLE: &str = r#"
// what people mount into the container
{
  "UserConfig": {
    "Namespaces": [ {
      "Name": "sbemulatorns",
      "Queues": [
        { "Name": "queue.1",
          "Properties": {
            "DefaultMessageTimeToLive": "PT1H",
            "ForwardTo": "", /* not set */
            "lockDuration": "PT1M",
            "MaxDeliveryCount": 3,
            "RequiresSession": false,
          } },
        { "Name": "orders~in" },
      ],
      "Topics": [
        { "Name": "topic.1",
          "Properties": { "RequiresDuplicateDetection": false },
          "Subscriptions": [
            { "Name": "subscription.1",
              "Properties": { "ForwardTo": "sb://sbemulatorns/queue.1" },
              "Rules": [
                { "Name": "r1", "Properties": {
                    "FilterType": "Correlation",
                    "CorrelationFilter": { "ContentType": "application/json", "Properties": { "p": 7 } } } },
                { "Name": "r2", "Properties": {
                    "FilterType": "Sql",
                    "SqlFilter": { "SqlExpression": "sys.MessageId = '1'" },
                    "Action": { "SqlExpression": "SET sys.To = 'Entity'" } } },
              ] } ] },
        { "Name": "lonely" } ]
    } ],
    "Logging": { "Type": "File" }
  }
}
"#;

#[test]
fn a_file_with_comments_and_trailing_commas_is_read_whole() {
    let definitions = parse(SAMPLE).unwrap();
    let queue = &definitions.queues[0];
    assert_eq!(queue.name.as_str(), "queue.1");
    assert!(queue.settings.contains(&Setting::LockDuration(Span::minutes(1))));
    assert!(queue.settings.contains(&Setting::ForwardTo(None)));
    assert!(queue.settings.contains(&Setting::MaxDeliveryCount(3)));
    assert_eq!(definitions.queues[1].name.as_str(), "orders~in");
    assert!(definitions.topics[1].subscriptions.is_empty());
    let subscription = &definitions.topics[0].subscriptions[0];
    let target = EntityName::parse("queue.1").unwrap();
    assert!(subscription.settings.contains(&Setting::ForwardTo(Some(target))));
    let rules = &subscription.rules;
    assert!(matches!(&rules[0].filter, Filter::Correlation(_)));
    let Filter::Sql(sql) = &rules[1].filter else { panic!("an SQL filter") };
    assert_eq!(sql.text(), "sys.MessageId = '1'");
    assert_eq!(rules[1].action.as_ref().unwrap().text(), "SET sys.To = 'Entity'");
}

#[test]
fn every_mistake_is_reported_with_its_path() {
    let text = r#"{ "UserConfig": { "Namespaces": [ {
        "Queues": [
          { "Name": "a", "Properties": { "LockDuration": "one minute", "MaxDeliveryCount": -1, "Colour": "red" } },
          { "Name": "A" },
          { "Name": "bad?name" },
          { "Properties": {} } ],
        "Topics": [ { "Name": "t", "Subscriptions": [ { "Name": "s", "Rules": [
          { "Name": "r", "Properties": { "FilterType": "Sqll" } },
          { "Name": "p", "Properties": { "FilterType": "Sql", "SqlFilter": { "SqlExpression": "a = " } } },
          { "Name": "q", "Properties": { "FilterType": "Sql" } } ] } ] } ]
    } ] } }"#;
    let problems = parse(text).unwrap_err().0;
    let expected = [
        "Queues[0].Properties.LockDuration: 'one minute' is no duration",
        "Queues[0].Properties.MaxDeliveryCount: cannot be -1: allowed is a whole number",
        "Queues[0].Properties.Colour: is not a property",
        "Queues[2]: ",
        "Queues[3]: Name is missing",
        "Rules[0].Properties: FilterType 'Sqll' is unknown",
        "Rules[1].Properties.SqlFilter.SqlExpression: ",
        "Rules[2].Properties: SqlFilter is missing",
        "'A' is defined twice",
    ];
    for part in expected {
        assert!(problems.iter().any(|problem| problem.contains(part)), "{part} not in {problems:#?}");
    }
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
}

#[test]
fn what_is_no_emulator_configuration_is_said_to_be_none() {
    assert!(parse("{").unwrap_err().to_string().contains("not valid JSON"));
    assert!(parse("{}").unwrap_err().to_string().contains("no UserConfig"));
}
