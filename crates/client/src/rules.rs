//! The rules of a subscription: which messages of its topic it gets.

use vorrang_amqp::value::{Map, MapBuilder, Value};

use crate::error::Error;
use crate::management::Management;

/// Rules asked for at once.
const PAGE: i32 = 100;
/// Descriptors of Service Bus's filters and actions.
const SQL_FILTER: u64 = 0x0000_0013_7000_0006;
const TRUE_FILTER: u64 = 0x0000_0013_7000_0007;
const FALSE_FILTER: u64 = 0x0000_0013_7000_0008;
const CORRELATION_FILTER: u64 = 0x0000_0013_7000_0009;

/// A rule: a filter, and maybe a change to the messages it lets through.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// What it lets through.
    pub filter: RuleFilter,
    /// What it changes, in Service Bus SQL.
    pub action: Option<Sql>,
}

/// Text in Service Bus SQL, with values for the `@names` in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sql {
    /// The text.
    pub text: String,
    /// Its parameters, such as `@limit`. Rules with parameters are made with [`Admin`](crate::admin::Admin).
    pub parameters: Vec<(String, Value)>,
}

impl Sql {
    /// Gives a parameter its value.
    #[must_use]
    pub fn with_parameter(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }
}

impl From<&str> for Sql {
    fn from(text: &str) -> Self {
        Sql { text: text.to_owned(), parameters: Vec::new() }
    }
}

impl From<String> for Sql {
    fn from(text: String) -> Self {
        Sql { text, parameters: Vec::new() }
    }
}

/// What a rule lets through.
#[derive(Debug, Clone, PartialEq)]
pub enum RuleFilter {
    /// Everything.
    True,
    /// Nothing.
    False,
    /// What a condition in Service Bus SQL says.
    Sql(Sql),
    /// Messages whose properties are equal to these.
    Correlation(CorrelationFilter),
}

/// Properties a message must have; those that are not given do not matter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CorrelationFilter {
    /// Its correlation id.
    pub correlation_id: Option<String>,
    /// Its message id.
    pub message_id: Option<String>,
    /// Whom it is for.
    pub to: Option<String>,
    /// Where answers go.
    pub reply_to: Option<String>,
    /// What it is about.
    pub subject: Option<String>,
    /// Its session.
    pub session_id: Option<String>,
    /// The session answers go to.
    pub reply_to_session_id: Option<String>,
    /// The media type of its body.
    pub content_type: Option<String>,
    /// Its application properties.
    pub properties: Vec<(String, Value)>,
}

impl Rule {
    /// A rule with a condition in Service Bus SQL.
    pub fn sql(name: impl Into<String>, condition: impl Into<Sql>) -> Self {
        Rule { name: name.into(), filter: RuleFilter::Sql(condition.into()), action: None }
    }

    /// A rule that compares properties.
    pub fn correlation(name: impl Into<String>, filter: CorrelationFilter) -> Self {
        Rule { name: name.into(), filter: RuleFilter::Correlation(filter), action: None }
    }

    /// Changes the messages it lets through.
    #[must_use]
    pub fn with_action(mut self, action: impl Into<Sql>) -> Self {
        self.action = Some(action.into());
        self
    }

    /// The rule as `add-rule` takes it, which has no place for parameters.
    fn description(&self) -> Result<Map, Error> {
        let expression = |sql: &Sql| {
            if !sql.parameters.is_empty() {
                let text = "rules with parameters are made with the administration API";
                return Err(Error::InvalidArgument(text.into()));
            }
            let text = Value::from(sql.text.as_str());
            Ok(Value::Map(std::iter::once((Value::from("expression"), text)).collect()))
        };
        let mut map = MapBuilder::default();
        let mut put = |name: &str, value: Value| map.push(&Value::from(name), &value);
        put("rule-name", Value::from(self.name.as_str()));
        match &self.filter {
            RuleFilter::True => put("sql-filter", expression(&"1=1".into())?),
            RuleFilter::False => put("sql-filter", expression(&"1=0".into())?),
            RuleFilter::Sql(condition) => put("sql-filter", expression(condition)?),
            RuleFilter::Correlation(filter) => put("correlation-filter", Value::Map(filter.to_map())),
        }
        if let Some(action) = &self.action {
            put("sql-rule-action", expression(action)?);
        }
        Ok(map.finish())
    }
}

impl CorrelationFilter {
    /// The fields by the names the administration API has for them, in the order of its schema.
    pub(crate) fn fields(&self) -> [(&'static str, &Option<String>); 8] {
        [
            ("CorrelationId", &self.correlation_id),
            ("MessageId", &self.message_id),
            ("To", &self.to),
            ("ReplyTo", &self.reply_to),
            ("Label", &self.subject),
            ("SessionId", &self.session_id),
            ("ReplyToSessionId", &self.reply_to_session_id),
            ("ContentType", &self.content_type),
        ]
    }

    /// The same, to be set.
    pub(crate) fn fields_mut(&mut self) -> [(&'static str, &mut Option<String>); 8] {
        [
            ("CorrelationId", &mut self.correlation_id),
            ("MessageId", &mut self.message_id),
            ("To", &mut self.to),
            ("ReplyTo", &mut self.reply_to),
            ("Label", &mut self.subject),
            ("SessionId", &mut self.session_id),
            ("ReplyToSessionId", &mut self.reply_to_session_id),
            ("ContentType", &mut self.content_type),
        ]
    }

    fn to_map(&self) -> Map {
        let mut map = MapBuilder::default();
        let texts = [
            ("correlation-id", &self.correlation_id),
            ("message-id", &self.message_id),
            ("to", &self.to),
            ("reply-to", &self.reply_to),
            ("label", &self.subject),
            ("session-id", &self.session_id),
            ("reply-to-session-id", &self.reply_to_session_id),
            ("content-type", &self.content_type),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                map.push(&Value::from(name), &Value::from(text.as_str()));
            }
        }
        if !self.properties.is_empty() {
            let properties: Map = self
                .properties
                .iter()
                .map(|(name, value)| (Value::from(name.as_str()), value.clone()))
                .collect();
            map.push(&Value::from("properties"), &Value::Map(properties));
        }
        map.finish()
    }

    fn from_fields(fields: &[Value]) -> Self {
        let text = |place: usize| fields.get(place).and_then(Value::as_str).map(str::to_owned);
        let properties = fields.get(8).and_then(Value::as_map).cloned().unwrap_or_default();
        CorrelationFilter {
            correlation_id: text(0),
            message_id: text(1),
            to: text(2),
            reply_to: text(3),
            subject: text(4),
            session_id: text(5),
            reply_to_session_id: text(6),
            content_type: text(7),
            properties: properties
                .iter()
                .filter_map(|(name, value)| Some((name.as_str()?.to_owned(), value)))
                .collect(),
        }
    }
}

/// The rules of one subscription.
#[derive(Debug, Clone)]
pub struct Rules {
    management: Management,
}

impl Rules {
    pub(crate) fn new(management: Management) -> Self {
        Rules { management }
    }

    /// Adds a rule. [`Error::AlreadyExists`] if there is one of that name.
    pub async fn add(&self, rule: &Rule) -> Result<(), Error> {
        let arguments = vec![
            ("rule-name", Value::from(rule.name.as_str())),
            ("rule-description", Value::Map(rule.description()?)),
        ];
        self.management.call("com.microsoft:add-rule", arguments, None).await.map(|_| ())
    }

    /// Removes a rule. [`Error::NotFound`] if there is none of that name.
    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        let arguments = vec![("rule-name", Value::from(name))];
        self.management.call("com.microsoft:remove-rule", arguments, None).await.map(|_| ())
    }

    /// All rules.
    pub async fn list(&self) -> Result<Vec<Rule>, Error> {
        let mut rules = Vec::new();
        loop {
            let skip = i32::try_from(rules.len()).unwrap_or(i32::MAX);
            let arguments = vec![("top", Value::from(PAGE)), ("skip", Value::from(skip))];
            let answer = self.management.call_repeatable("com.microsoft:enumerate-rules", arguments).await?;
            let page = answer.items("rules")?;
            if page.is_empty() {
                return Ok(rules);
            }
            for item in &page {
                rules.push(
                    read_rule(item).ok_or_else(|| Error::Protocol("a rule that cannot be read".into()))?,
                );
            }
        }
    }
}

/// Reads a rule as `enumerate-rules` describes it: a list of filter, action and name.
fn read_rule(item: &Value) -> Option<Rule> {
    let description = item.as_map()?.value("rule-description")?;
    let fields: Vec<Value> = description.undescribed().as_list()?.iter().collect();
    let [filter, action, name, ..] = fields.as_slice() else { return None };
    Some(Rule {
        name: name.as_str()?.to_owned(),
        filter: read_filter(filter)?,
        action: first_text(action).map(Sql::from),
    })
}

fn read_filter(filter: &Value) -> Option<RuleFilter> {
    let Value::Described(described) = filter else { return None };
    match described.descriptor.as_u64()? {
        TRUE_FILTER => Some(RuleFilter::True),
        FALSE_FILTER => Some(RuleFilter::False),
        SQL_FILTER => Some(RuleFilter::Sql(first_text(filter)?.into())),
        CORRELATION_FILTER => {
            let fields: Vec<Value> = described.value.as_list()?.iter().collect();
            Some(RuleFilter::Correlation(CorrelationFilter::from_fields(&fields)))
        }
        _ => None,
    }
}

/// The expression of a filter or an action; none if it has none.
fn first_text(described: &Value) -> Option<String> {
    described.undescribed().as_list()?.item(0)?.as_str().map(str::to_owned)
}
