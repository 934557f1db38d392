//! A rule's action: statements that change the copy its rule makes.

use std::fmt;

use crate::changes::{Change, Changed, Changes};
use crate::convert;
use crate::environment::Environment;
use crate::error::FilterError;
use crate::message::Message;
use crate::sql::{self, Dialect, Node, Parameters, ParseError, Parser, Property};

/// Most statements in one action; more are refused.
pub const STATEMENTS_MAX: usize = 32;

/// A parsed action. Displays as the text it was parsed from.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    text: Box<str>,
    parameters: Parameters,
    statements: Box<[Statement]>,
}

#[derive(Debug, Clone, PartialEq)]
enum Statement {
    Set { target: Property, value: Node },
    Remove { target: Property },
}

impl Action {
    /// Parses `SET` and `REMOVE` statements, separated by `;`, `,` or nothing.
    pub fn parse(text: &str, parameters: Parameters) -> Result<Self, ParseError> {
        sql::check_count(&parameters)?;
        let mut parser = Parser::new(text, Dialect::Action, &parameters)?;
        let mut statements = Vec::new();
        loop {
            if statements.len() == STATEMENTS_MAX {
                return Err(ParseError::TooManyStatements { limit: STATEMENTS_MAX });
            }
            statements.push(statement(&mut parser)?);
            let comma = parser.take_symbol(",");
            if !comma {
                parser.take_symbol(";");
            }
            if !comma && parser.at_end() {
                return Ok(Self { text: text.into(), parameters, statements: statements.into() });
            }
        }
    }

    /// The text it was parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The values of its parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The action in one fixed spelling; see [`Sql::canonical`](crate::Sql::canonical).
    pub fn canonical(&self) -> String {
        let statements: Vec<String> = self.statements.iter().map(ToString::to_string).collect();
        statements.join("; ")
    }

    /// Whether both parse to the same statements, however they are spelled.
    pub(crate) fn same_tree(&self, other: &Self) -> bool {
        self.statements == other.statements
    }

    /// What the action changes in the message, which itself stays as it is. Each statement sees what
    /// those before it did. A statement whose value is unknown changes nothing; one that fails fails
    /// the whole action.
    pub fn apply(
        &self,
        message: &dyn Message,
        environment: &mut Environment<'_>,
    ) -> Result<Changes, FilterError> {
        environment.begin();
        let mut changes = Changes::default();
        for statement in &self.statements {
            environment.charge(1)?;
            let change = statement.change(Changed::new(message, &changes), environment)?;
            if let Some(change) = change {
                changes.push(change);
            }
        }
        Ok(changes)
    }
}

impl Statement {
    fn change(
        &self,
        message: Changed<'_>,
        environment: &mut Environment<'_>,
    ) -> Result<Option<Change>, FilterError> {
        match self {
            Self::Set { target, value } => {
                let Some(value) = sql::value(value, &message, environment)?.into_value() else {
                    return Ok(None);
                };
                match target {
                    Property::User(name) => {
                        let value = match message.user(name).value() {
                            Some(existing) => convert::to_type_of(existing, value),
                            None => value,
                        };
                        Ok(Some(Change::SetUser { name: name.clone(), value }))
                    }
                    Property::System(property) => Ok(convert::for_system(*property, value)?
                        .map(|value| Change::SetSystem { property: *property, value })),
                }
            }
            Self::Remove { target: Property::User(name) } => {
                Ok(Some(Change::RemoveUser { name: name.clone() }))
            }
            Self::Remove { target: Property::System(crate::SystemProperty::ScheduledEnqueueTimeUtc) } => {
                Ok(None)
            }
            Self::Remove { target: Property::System(property) } => {
                Ok(Some(Change::RemoveSystem { property: *property }))
            }
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { target, value } => write!(out, "SET {target} = {value}"),
            Self::Remove { target } => write!(out, "REMOVE {target}"),
        }
    }
}

fn statement(parser: &mut Parser<'_>) -> Result<Statement, ParseError> {
    if parser.take_keyword("SET") {
        let target = target(parser)?;
        parser.expect_symbol("=", "'=' after the property")?;
        return Ok(Statement::Set { target, value: parser.value()? });
    }
    if parser.take_keyword("REMOVE") {
        return Ok(Statement::Remove { target: target(parser)? });
    }
    parser.expected("SET or REMOVE")
}

fn target(parser: &mut Parser<'_>) -> Result<Property, ParseError> {
    let (property, position) = parser.property()?;
    match property {
        Property::System(system) if !system.settable() => {
            Err(ParseError::NotSettable { name: system.name(), position })
        }
        other => Ok(other),
    }
}
