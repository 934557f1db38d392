//! A rule's filter, of whichever kind.

use std::sync::Arc;

use crate::correlation::Correlation;
use crate::environment::Environment;
use crate::error::FilterError;
use crate::message::Message;
use crate::sql::Sql;

/// Decides whether a rule matches a message. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// Matches every message.
    True,
    /// Matches no message.
    False,
    /// Matches where a SQL condition is true.
    Sql(Arc<Sql>),
    /// Matches by equality of fields.
    Correlation(Arc<Correlation>),
}

impl From<Sql> for Filter {
    fn from(filter: Sql) -> Self {
        Self::Sql(Arc::new(filter))
    }
}

impl From<Correlation> for Filter {
    fn from(filter: Correlation) -> Self {
        Self::Correlation(Arc::new(filter))
    }
}

impl Filter {
    /// Whether the filter matches. An error is the rule's own: the caller treats it as no match or
    /// dead-letters a copy, as the subscription says.
    pub fn matches(
        &self,
        message: &dyn Message,
        environment: &mut Environment<'_>,
    ) -> Result<bool, FilterError> {
        match self {
            Self::True => Ok(true),
            Self::False => Ok(false),
            Self::Sql(filter) => filter.matches(message, environment),
            Self::Correlation(filter) => Ok(filter.matches(message)),
        }
    }
}
